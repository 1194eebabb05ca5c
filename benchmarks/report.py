"""From the JSON of the benchmarks to a page with plots, and to the table of figures in the README.

    python benchmarks/report.py --results benchmarks/results --page docs/benchmarks.md \
        --pictures docs/pictures [--readme README.md]

A benchmark that has no JSON yet has no section. In the README, what is between the two marks is
written anew.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

Found = Mapping[str, Any]
ENGINE_RUNS = ("sudoku", "bits")
BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"


def table(names: Sequence[str], rows: Iterable[Sequence[object]], align: str = "--:") -> str:
    """A Markdown table, all columns but the first on the right, if not said otherwise."""
    head = [f"| {' | '.join(names)} |", f"|---|{(align + '|') * (len(names) - 1)}"]
    return "\n".join([*head, *(f"| {' | '.join(map(cell, row))} |" for row in rows)])


def cell(value: object) -> str:
    """A number or a text in a table."""
    if isinstance(value, float) and abs(value) < 1000:
        return f"{value:.4g}"
    return f"{value:,.0f}" if isinstance(value, int | float) else str(value)


def seconds(value: float) -> str:
    """A time with its unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def where(found: Found) -> str:
    """The machine in a sentence."""
    w = found["where"]
    quick = " Quick: less of everything, rougher figures." if w["quick"] else ""
    return (
        f"*{w['processor']}, {w['cores']} cores, {w['system']}; Python {w['python']}, NumPy "
        f"{w['numpy']}, wasmtime {w['wasmtime']}, {w['compiler']}; commit {w['commit']}, "
        f"{w['date']}, {w['seconds']} s.{quick}*"
    )


def engines(found: Found, picture: str) -> str:
    """Section: all engines on two programs."""
    names = {
        "specialised": "native, specialised (the default)",
        "plain": "native, plain",
        "hull": "`hull`: generated Python",
        "standard": "`standard`: NumPy, a scan of all keys",
    }
    rows = []
    for run in ENGINE_RUNS:
        for name, label in names.items():
            if name not in found[run]:
                continue
            row = found[run][name]
            low, high = row["slowest_and_fastest"]
            rows.append(
                [f"`{run}.c`: {label}", row["tokens"], row["tokens_per_second"]]
                + [row["tokens_per_cpu_second"], f"{low:,} to {high:,}", row["bytes_per_token"]]
                + [found[run].get("times_standard", {}).get(name, "")]
            )
    start = found["start_cpu_seconds"]
    names_of = ["engine", "tokens", "tokens/s", "by processor time", "spread", "bytes a token"]
    return f"""## Engines

The article's hardest Sudoku, and a loop of bit operations on a table of 16 KiB; one core, the
prompt not counted. The last column is relative to `standard` in the same run, which measures once.

{table([*names_of, "times"], rows)}

Making the native engine, which is generating and compiling it, takes
{start["specialised"]["made"]} s of processor time (plain: {start["plain"]["made"]} s), finding it
in the cache {start["specialised"]["found"]} s."""


def hull_vs_standard(found: Found, picture: str) -> str:
    """Section: the hull against a scan."""
    rows = found["candidates"]
    lengths = sorted({n for row in rows.values() for n in row["lengths"]})

    def speed(row: Found, length: int) -> object:
        if length not in row["lengths"]:
            return ""
        return row["tokens_per_second"][row["lengths"].index(length)]

    speeds = table(
        ["tokens in the sequence", *rows],
        [[f"{n:,}", *(speed(row, n) for row in rows.values())] for n in lengths]
        + [["fitted exponent of the time", *(row["exponent"] for row in rows.values())]]
        + [["bytes a token", *(found["bytes_per_token"].get(name, "") for name in rows)]],
    )
    article = found["article_tokens_per_second"]
    faster = found["hull_times_faster"]
    best = {language: list(times.items())[-1] for language, times in faster.items()}
    texts = [f"{cell(t)} times at {int(n):,} tokens in {lang}" for lang, (n, t) in best.items()]
    return f"""## Hull against scan

One model, one sequence ({found["program"]}, a prompt of {found["prompt_tokens"]:,} tokens), the
same tokens from all. In each language hull and scan are exchanged and nothing else: in Python the
engine that is generated from the weights, in C the native engine without specialisation.
"Classified" and "specialised" are what the native engine makes of most heads where it recognises
them. Tokens/s:

{speeds}

The hull is faster by {", ".join(texts)}.
The article names {article["hull"]:,} tokens/s with the hull and {article["standard"]:,} without.

![Time per step against the length of the sequence]({picture})"""


def scaling(found: Found, picture: str) -> str:
    """Section: what a token costs as things grow."""
    trace = table(
        ["tokens", "ns a token", "bytes a token"],
        [[r["up_to"], r["nanoseconds_per_token"], r["bytes_per_token"]] for r in found["trace"]],
    )

    def grown(key: str, name: str) -> str:
        rows = found[key]
        first = next(iter(rows[0]))
        return table(
            [name, "prompt", "trace", "ns a token"],
            [[r[first], r["prompt"], r["tokens"], r["nanoseconds_per_token"]] for r in rows],
        )

    opcodes = table(
        ["instruction", "tokens", "ns"],
        [[f"`{r['opcode']}`", r["tokens"], r["nanoseconds"]] for r in found["opcodes"]],
    )
    return f"""## As things grow

The native engine as it runs by default, one core.

{trace}

![Nanoseconds a token against trace, memory, call depth and program]({picture})

{grown("memory", "bytes of memory, read and written at random")}

{grown("call_depth", "depth of calls")}

{grown("program", "instructions in the loop")}

### Instructions

Each instruction alone, without fetching its operands and keeping its result.

<details><summary>{len(found["opcodes"])} instructions</summary>

{opcodes}

</details>"""


def native(found: Found, picture: str) -> str:
    """Section: beside native code."""
    tasks = found["tasks"]
    ways = list(next(iter(tasks.values()))["seconds"])
    rows = [
        [name, task["tokens"], *(seconds(task["seconds"][way]["median"]) for way in ways)]
        for name, task in tasks.items()
    ]
    ratios = [
        [name, *(task["model_takes_times_as_long"][way] for way in ways[2:])]
        for name, task in tasks.items()
    ]
    return f"""## Beside native code

The same function inside the model, in wasmtime, compiled, in Python, and as a tool call: starting a
process, computing, reading back. "Model" is decoding by a loaded engine, prompt and trace; "model,
run" is `executor.run`, which loads it.

{table(["task", "tokens", *ways], rows)}

How many times as long the model takes (below 1: the model is faster):

{table(["task", *ways[2:]], ratios)}

![Seconds of each way]({picture})"""


def service(found: Found, picture: str) -> str:
    """Section: what a user waits for."""
    start, prompt, batch, long = (found[key] for key in ("start", "prompt", "batch", "long"))
    rows = [[name.replace("_", " "), t["wall"], t["processor"]] for name, t in start.items()]
    rows += [
        [f"`explain --at {at}` of that Sudoku", t["wall"], t["processor"]]
        for at, t in found["explain"].items()
    ]
    if found["cold_seconds"] is not None:
        rows.append(["hardest sudoku, all caches empty", found["cold_seconds"], ""])
    parts = f"""## Starting, many runs, a long run

Seconds from the command to its end, everything in the cache: a `printf` hello, and `sudoku.c` on
the article's hardest puzzle.

{table(["command", "seconds", "of the processor"], rows)}

Of these, finding the compiled program takes {seconds(prompt["find_program"])}, and reading the
prompt, {prompt["tokens"]:,} tokens, {seconds(prompt["read_prompt"])}: too little to keep the
engine's state on disk.

{batch["runs"]} such runs: {batch["one_process"]} s by one worker process, {batch["processes"]} s by
{batch["cores"]}, {batch["threads"]} s by as many threads."""
    if long is None:
        return parts
    whole, resumed = long["whole"], long["killed_and_resumed"]
    return f"""{parts}

A run of {long["tokens"]:,} tokens: {whole["seconds"]} s, at most {whole["peak_megabytes"]} MB of
memory; one that saves checkpoints, is killed half way and resumed writes the same, with at most
{resumed["peak_megabytes"]} MB."""


def model(found: Found, picture: str) -> str:
    """Section: the model's size."""
    parts = table(
        ["part", "parameters", "not zero"],
        [[name, p["parameters"], p["non_zeros"]] for name, p in found["parts"].items()]
        + [["all", found["parameters"], found["non_zeros"]]],
    )
    files = table(
        ["file", "bytes", "xz", "zstd"],
        [[name, f["raw"], f["xz"], f["zstd"]] for name, f in found["files"].items()],
    )
    return f"""## The model

{parts}

All parameters have {found["distinct_values"]:,} distinct values, those of the seven layers
{found["distinct_values_of_layers"]:,}. Building the weights from the stored plan takes
{seconds(found["build_seconds"]["median"])}.

{files}"""


SECTIONS: dict[str, Callable[[Found, str], str]] = {
    "engines": engines,
    "hull_vs_standard": hull_vs_standard,
    "scaling": scaling,
    "service": service,
    "native": native,
    "model": model,
}


def picture_of(name: str) -> str:
    """The file of a benchmark's plot."""
    return f"bench-{name.replace('_', '-')}.svg"


def page(results: Mapping[str, Found], pictures: str) -> str:
    """The whole page; ``pictures`` is their folder as seen from it."""
    parts = [
        "# Benchmarks\n\nMade by `make bench`: every figure is a median of runs that took turns. "
        "The JSON is in `benchmarks/results`, what the programs do in `benchmarks/programs`."
    ]
    for name, section in SECTIONS.items():
        if name in results:
            found = results[name]
            parts.append(f"{section(found, f'{pictures}/{picture_of(name)}')}\n\n{where(found)}")
    return "\n\n".join(parts) + "\n"


def with_figures(readme: str, results: Mapping[str, Found]) -> str:
    """The README with its table of figures made of these results."""
    before, _, rest = readme.partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise ValueError(f"the README has no {BEGIN} and {END}")
    return f"{before}{BEGIN}\n{figures(results)}\n{END}{after}"


def figures(results: Mapping[str, Found]) -> str:
    """What the README shows of them."""
    engine, hull = results["engines"], results["hull_vs_standard"]
    start, long = results["service"]["start"], results["service"]["long"]
    model = results["model"]
    speeds = " and ".join(
        f"{engine[run]['specialised']['tokens_per_second'] / 1e6:.1f}" for run in ENGINE_RUNS
    )
    sizes = " and ".join(f"{engine[run]['specialised']['bytes_per_token']}" for run in ENGINE_RUNS)
    faster = hull["hull_times_faster"]["C"]
    exponents = {name: row["exponent"] for name, row in hull["candidates"].items()}
    deepest = results["scaling"]["trace"][-1]
    tool = results["native"]["tasks"]
    small = {name: task for name, task in tool.items() if task["tokens"] < 50_000}
    quick, slow = (
        [task["model_takes_times_as_long"][way] for task in small.values()]
        for way in ("tool call, native", "wasmtime")
    )
    rows = [
        [
            "the hardest Sudoku, from the command to the grid",
            f"{start['hardest_sudoku']['wall']} s; {results['service']['cold_seconds']} s with "
            f"C library and engine to compile",
        ],
        ["a `printf` hello, likewise", f"{start['printf_hello']['wall']} s"],
        [
            "native engine: the Sudoku, and bit operations on 16 KiB",
            f"{speeds} million tokens/s, {sizes} bytes a token",
        ],
        [
            "the same Sudoku with `hull` and `standard`, in Python",
            f"{cell(engine['sudoku']['hull']['tokens_per_second'])} and "
            f"{cell(engine['sudoku']['standard']['tokens_per_second'])} tokens/s",
        ],
        [
            "making the engine, finding it in the cache",
            f"{engine['start_cpu_seconds']['specialised']['made']} s, "
            f"{engine['start_cpu_seconds']['specialised']['found']} s",
        ],
        [
            "hull against scan, both in C, at 100,000 tokens",
            f"{cell(faster['100000'])} times as fast; time per step grows with the power "
            f"{exponents['C, hull']} of the length against {exponents['C, scan']}",
        ],
        [
            f"a trace of {deepest['up_to']:,} tokens, its last stretch",
            f"{deepest['nanoseconds_per_token']} ns and {deepest['bytes_per_token']} bytes a token",
        ],
        [
            f"{long['tokens']:,} tokens, the peak of memory; killed half way and resumed",
            f"{long['whole']['peak_megabytes']} MB; "
            f"{long['killed_and_resumed']['peak_megabytes']} MB",
        ],
        [
            "a small function, beside a tool call of a native program; beside wasmtime",
            f"{min(quick)} to {max(quick)} times its time; {min(slow)} to {max(slow)} times",
        ],
        [
            "parameters, those that are not zero; the model's file, with `xz`",
            f"{model['parameters']:,}, {model['non_zeros']:,}; "
            f"{model['files']['model.safetensors']['xz']:,} bytes",
        ],
    ]
    return table(["what", "figure"], rows, "---")


def main() -> None:
    """Read the results, write the page and the README's table."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--page", type=Path, required=True)
    parser.add_argument("--pictures", type=Path, required=True)
    parser.add_argument("--readme", type=Path, help="write its table of figures anew")
    options = parser.parse_args()
    import plots  # needs matplotlib, which the text does not

    paths = [options.results / f"{name}.json" for name in SECTIONS]
    results = {path.stem: json.loads(path.read_text()) for path in paths if path.exists()}
    relative = os.path.relpath(options.pictures, options.page.parent)
    options.page.write_text(page(results, relative), "utf-8")
    options.pictures.mkdir(parents=True, exist_ok=True)
    for name, found in results.items():
        plot = getattr(plots, name, None)
        if plot is not None:
            plot(found, options.pictures / picture_of(name))
    if options.readme is not None:
        text = options.readme.read_text("utf-8")
        options.readme.write_text(with_figures(text, results), "utf-8")


if __name__ == "__main__":
    main()
