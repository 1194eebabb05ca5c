"""Reports: tokens of a prompt and of a run by function and line of the source."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest
import wasmtime

from command_line import transputer
from compiler import compile_program, compile_wasm, isa
from compiler.program import Program
from compiler.report import Kind, prompt_report, sites
from executor import profile
from executor.loading import build_checkpoint
from executor.oracle import trace_tokens
from executor.profiling import Profile, Profiler
from executor.replay import replay
from executor.trace import Kind as Event
from page_commands import ROOT, Page
from page_commands import run as page_run

SORT = """\
#include <stdlib.h>
#include <transputer.h>
static int compare(const void *a, const void *b) {
  return *(const int *)a - *(const int *)b;
}
static inline __attribute__((always_inline)) int square(int x) {
  return x * x;
}
static __attribute__((noinline)) long long power(long long x, int n) {
  return n ? x * power(x, n - 1) : 1;
}
int main(int argc, char **argv) {
  int values[6] = {5, 3, 9, 1, 7, argc};
  qsort(values, 6, sizeof(int), compare);
  for (int i = 0; i < 6; i++)
    print_int(square(values[i]));
  return power(argc + 2, 5) != 243;
}
"""


@pytest.fixture(scope="module", params=["-O0", "-O2"])
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Program:
    path = tmp_path_factory.mktemp("report") / "sort.c"
    path.write_text(SORT)
    return compile_program(path, opt=request.param)


def test_a_prompt_is_counted_to_the_last_token(program: Program) -> None:
    report = prompt_report(program)
    assert report.tokens == len(program.tokens)
    assert sum(row.tokens for row in report.functions) == report.code - 2  # the braces
    assert sum(report.by_kind.values()) == report.code - 2
    kinds = {row.owner.function: row.owner.kind for row in report.functions}
    assert kinds["main"] is kinds["square"] is kinds["compare"] is kinds["power"] is Kind.SOURCE
    assert kinds["qsort"] is kinds["print_int"] is Kind.LIBRARY
    assert kinds["(start)"] is kinds["(i64.mul)"] is Kind.COMPILER
    sizes = [row.tokens for row in report.functions]
    assert sizes == sorted(sizes, reverse=True)


def test_searches_of_tables_are_counted() -> None:
    text = """(module (table 1 funcref) (elem (i32.const 0) $f) (func $f)
      (func (export "main") (call_indirect (i32.const 0))))"""
    program = compile_wasm(bytes(wasmtime.wat2wasm(text)), "indirect.wat")
    search = [o for o in program.origins if o.instruction.startswith("call_indirect")]
    assert prompt_report(program).searches == 5 * len(search) > 0


def test_without_lines_nothing_is_called_a_library(program: Program) -> None:
    plain = compile_wasm(program.wasm.replace(b".debug_", b".xxxxx_"), "sort.wasm")
    kinds = prompt_report(plain).by_kind
    assert set(kinds) == {Kind.SOURCE, Kind.COMPILER}
    text = "{ i32.const 01 00 00 00 drop 00 00 00 00 halt 00 00 00 00 }"
    assert prompt_report(Program("a.tok", tuple(text.split()))).functions == ()


def profiled(program: Program, cuts: int) -> tuple[Profiler, Profile]:
    """A profiler that has read the program's trace in chunks of a size, and what it says."""
    checkpoint = build_checkpoint()
    ids = np.array(checkpoint.encode(trace_tokens(program, (), b"")), np.int32)
    profiler = Profiler(program, checkpoint.vocabulary)
    for start in range(0, len(ids), cuts):
        profiler.push(ids[start : start + cuts])
    return profiler, profiler.profile()


@pytest.mark.parametrize("cuts", [61, 1000, 1 << 20])
def test_every_token_of_a_trace_is_counted_where_it_belongs(program: Program, cuts: int) -> None:
    """Against a walk through the steps of the trace, one by one."""
    profiler, counted = profiled(program, cuts)
    own = [site.within.kind is Kind.SOURCE for site in sites(program)]
    steps, tokens, entered = Counter[int](), Counter[int](), Counter[int]()
    asked: list[int | None] = [-1]
    debts: dict[int, int] = defaultdict(int)
    for step in replay(program, trace_tokens(program, (), b"")):
        steps[step.index] += 1
        tokens[step.index] += len(step.event.tokens)
        if asked[-1] is not None:
            debts[asked[-1]] += len(step.event.tokens)
        if step.event.kind is Event.CALL:
            target = step.index + step.event.signed // isa.INSTRUCTION_TOKENS
            entered[target] += 1
            asked.append(None if own[target] else step.index if asked[-1] is None else asked[-1])
        elif step.event.kind is Event.RETURN:
            asked.pop()
    for found, expected in (
        (profiler.executed, steps), (profiler.tokens, tokens), (profiler.entered, entered)
    ):  # fmt: skip
        assert {i: n for i, n in enumerate(found.tolist()) if n} == dict(expected)
    library = defaultdict(int)
    for index, debt in debts.items():
        if index >= 0:
            library[program.place(index).line] += debt
    lines = {row.line: row.counts for row in counted.lines}
    assert {n: c.library for n, c in lines.items() if c.library} == library
    assert counted.uncharged == debts[-1]


def test_functions_and_lines_add_up_to_the_run(program: Program) -> None:
    counted = profiled(program, 4096)[1]
    assert sum(row.counts.tokens for row in counted.functions) == counted.tokens
    own = [row for row in counted.functions if row.owner.kind is Kind.SOURCE]
    assert sum(row.counts.total for row in own) + counted.uncharged == counted.tokens
    assert sum(row.counts.total for row in counted.lines) + counted.uncharged == counted.tokens
    calls = {row.owner.function: row.counts.calls for row in counted.functions}
    assert (calls["main"], calls["print_int"]) == (1, 6)
    assert calls["power"] in (1, 6)  # one where the recursion is a loop
    lines = {row.line: row for row in counted.lines}
    assert lines[16].text == "print_int(square(values[i]));" and lines[16].counts.library > 0
    assert lines[4].counts.tokens > 0 and lines[10].counts.library > 0  # i64.mul


def test_a_program_without_source_has_totals(program: Program) -> None:
    counted = profile(Path(__file__).parent.parent / "programs" / "add.tok")
    assert (counted.tokens, counted.instructions, counted.lines) == (17, 5, ())
    plain = compile_wasm(program.wasm.replace(b".debug_", b".xxxxx_"), "sort.c")
    without = profiled(plain, 4096)[1]
    assert without.tokens == profiled(program, 4096)[1].tokens
    names = {row.owner.function: row.counts.tokens for row in without.functions}
    assert without.lines == () and names["print_int"] > 0 and sum(names.values()) == without.tokens


# --- the command -------------------------------------------------------------------------------


def test_the_command_prints_reports_and_json(tmp_path: Path) -> None:
    path = tmp_path / "sort.c"
    path.write_text(SORT)
    code, out, _ = transputer("compile", "--report", path)
    assert code == 0 and "qsort  library" in out and f"main  {path}" in out
    content = json.loads(transputer("compile", "--json", path)[1])
    assert (
        content["tokens"]
        == sum(row["tokens"] for row in content["functions"]) + 2 + (content["data"])
    )
    trace = tmp_path / "sort.trace"
    options = ("--stdin", "/dev/null")
    transputer("run", *options, "--trace", trace, path)
    code, out, _ = transputer("trace", *options, "--report", path)
    assert code == 0 and f"{path}:16  print_int(square(values[i]));" in out
    assert transputer("trace", *options, "--report", "--from", trace, path)[1] == out
    content = json.loads(transputer("trace", *options, "--json", path)[1])
    assert content["tokens"] == len(trace.read_text().split())


def test_a_run_that_reaches_a_limit_is_reported_up_to_there(tmp_path: Path) -> None:
    path = tmp_path / "loop.c"
    path.write_text("int main(void) {\n  for (volatile int i = 0;; i++);\n}\n")
    code, out, err = transputer(
        "trace", "--report", "--max-tokens", 20000, "--stdin", "/dev/null", path
    )
    assert code == 2 and "stopped after 20,000 tokens" in err
    assert out.splitlines()[1].split()[1] == "20,000" and f"{path}:2  for" in out


def test_a_trace_file_that_stops_too_early_is_refused(tmp_path: Path) -> None:
    file, add = tmp_path / "cut.trace", Path(__file__).parent.parent / "programs" / "add.tok"
    file.write_text("03 00 00 00 commit(+1,sts=1,bt=0)\n")
    code, _, err = transputer("trace", "--report", "--from", file, add)
    assert code == 2 and "ends after 5 tokens, without halt or trap" in err
    file.write_text("03 00 00 xx")
    assert "this model has no token 'xx'" in transputer("trace", "--json", "--from", file, add)[2]


# --- the page ----------------------------------------------------------------------------------


def test_the_page_about_lines_shows_real_output(tmp_path: Path) -> None:
    page = Page.read("docs/source-lines.md")
    text = (ROOT / "docs/source-lines.md").read_text("utf-8")
    (tmp_path / "average.c").write_text(text.partition("```c\n")[2].partition("```")[0])
    for command, shown in page.commands():
        real = page_run(["-m", "executor", *command.split()[1:]], tmp_path).stdout
        at = 0
        for part in shown.split("...\n"):
            at = real.index(part, at) + len(part)
    (code,) = page.python()
    done = page_run(["-c", code], tmp_path)
    assert done.returncode == 0 and done.stdout.endswith("argc - 1)); 6177\n"), done.stdout
