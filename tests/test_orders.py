"""The residual stream is the same to the bit however its sums are computed.

Known tokens go through the default machine in several ways at once (see ``orders.py``): terms left
to right, right to left and shuffled, each product rounded or fused (a C function, compiled here),
in the order that an optimising C compiler likes, by NumPy's loops, by BLAS and by torch. Every
projection, score, gate and value, and the stream after every half-layer, must be the same to the
bit (the sign of zero aside), but for the slots that hold a mean, until the snapping neuron has
made an exact sum of it. Two weights that break the rules show that the comparison can fail.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from compiler import compile_program
from compiler.build import build_machine
from compiler.graph import SNAP
from compiler.program import Program
from executor.checkpoint import Array
from executor.loading import build_checkpoint
from executor.oracle import trace_tokens
from orders import (
    Dot,
    Pass,
    Way,
    backward,
    blas,
    blas_rows,
    blurred,
    different,
    einsum,
    forward,
    in_order,
    mean_by_weights,
    mean_of_sum,
    shuffled,
    torch_linear,
    true_winner,
)
from probe import INPUT, probe, prompt_ids

PROGRAMS = Path(__file__).parent.parent / "programs"

SOURCE = """
#include <math.h>
#include <stddef.h>
#ifdef FUSED
#define ADD(a, b, sum) fma(a, b, sum)
#else
#define ADD(a, b, sum) ((a) * (b) + (sum))
#endif

/* out[t, m] = start[t, m] + the sum of x[t, n] * w[t * stride + m, n], in the order given;
   number 0 of the order is start. */
void ordered(size_t T, size_t M, size_t N, size_t stride, const double *x, const double *w,
             const double *start, const int *order, double *out)
{
    for (size_t t = 0; t < T; t++, x += N, w += stride * N, start += M, out += M) {
        for (size_t m = 0; m < M; m++) out[m] = 0;
        for (size_t k = 0; k <= N; k++) {
            int n = order[k] - 1;
            for (size_t m = 0; m < M; m++)
                out[m] = n < 0 ? out[m] + start[m] : ADD(x[n], w[m * N + n], out[m]);
        }
    }
}

/* The same for a compiler that may reorder and fuse as it likes. */
void natural(size_t T, size_t M, size_t N, size_t stride, const double *x, const double *w,
             const double *start, const int *order, double *out)
{
    (void)order;
    for (size_t t = 0; t < T; t++, x += N, w += stride * N, start += M, out += M)
        for (size_t m = 0; m < M; m++) {
            double sum = start[m];
            for (size_t n = 0; n < N; n++) sum += x[n] * w[m * N + n];
            out[m] = sum;
        }
}
"""
BUILDS = {
    "plain": ("-ffp-contract=off",),
    "fused": ("-ffp-contract=off", "-DFUSED"),
    "free": ("-ffp-contract=fast", "-fassociative-math", "-fno-signed-zeros", "-fno-trapping-math"),
}


def compiler() -> list[str]:
    """A C compiler for this machine: the system's, or zig's clang."""
    system = shutil.which("cc")
    return [system] if system else [sys.executable, "-m", "ziglang", "cc"]


def build(folder: Path, name: str) -> ctypes.CDLL:
    source, library = folder / "orders.c", folder / f"{name}.so"
    source.write_text(SOURCE)
    command = [*compiler(), "-O3", "-shared", "-fPIC", *BUILDS[name], "-o", str(library)]
    for native in (["-march=native"], []):  # fma as an instruction, if the compiler knows how
        done = subprocess.run([*command, *native, str(source), "-lm"], capture_output=True)
        if done.returncode == 0:
            return ctypes.CDLL(str(library))
    raise RuntimeError(done.stderr.decode())


def compiled_dot(function: object, order: Callable[[int], Sequence[int]]) -> Dot:
    """One of the C functions as a way to compute dot products."""

    def dot(x: Array, w: Array, start: Array | None) -> Array:
        (time, n), m = x.shape, w.shape[-2]
        begin = np.zeros((time, m)) if start is None else start
        out = np.empty((time, m))
        terms = np.array(order(n + 1), dtype=np.intc)
        arrays = [np.ascontiguousarray(array) for array in (x, w, begin)]
        sizes = [ctypes.c_size_t(k) for k in (time, m, n, 0 if w.ndim == 2 else m)]
        pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in (*arrays, terms, out)]
        function(*sizes, *pointers)  # type: ignore[operator]
        return out

    return dot


@pytest.fixture(scope="module")
def ways(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Way]:
    """All ways by name; the first is the one that the others must equal."""
    folder = tmp_path_factory.mktemp("orders")
    plain, fused, free = (build(folder, name) for name in BUILDS)
    dots = {
        "left to right": in_order(forward),
        "right to left": in_order(backward),
        "C": compiled_dot(plain.ordered, forward),
        "C, fused": compiled_dot(fused.ordered, forward),
        "C, as the compiler likes": compiled_dot(free.natural, forward),
        "einsum": einsum,
        "BLAS": blas,
        "BLAS, row by row": blas_rows,
        "torch": torch_linear,
    }
    for seed in range(2):
        dots[f"C, shuffled {seed}"] = compiled_dot(plain.ordered, shuffled(seed))
        dots[f"C, shuffled and fused {seed}"] = compiled_dot(fused.ordered, shuffled(9 + seed))
    table = {name: Way(name, dot, mean_of_sum) for name, dot in dots.items()}
    for name in ("C, fused", "C, shuffled and fused 0"):
        table[f"{name}, products too"] = Way(
            f"{name}, products too", dots[name], mean_by_weights, contracted=True
        )
    table["softmax's mean"] = Way("softmax's mean", blas, mean_by_weights)
    return table


FEW = (
    "left to right",
    "C",
    "C, shuffled 0",
    "C, shuffled and fused 1",
    "BLAS",
    "torch",
    "C, fused, products too",
)


def sequence(
    program: Program, args: Sequence[str], stdin: bytes, most: int
) -> tuple[list[int], int]:
    """Prompt and trace, at most ``most`` tokens of it, as ids; the length of the prompt."""
    model = build_checkpoint()
    prompt = prompt_ids(model, program, args, stdin)
    return prompt + model.encode(islice(trace_tokens(program, args, stdin), most)), len(prompt)


def check_winners(one: Pass, samples: int) -> None:
    """Of the layer done last: no earlier key scores higher, and no later one as high."""
    query, key, _ = one.parts(one.projected)
    time = len(one.projected)
    rng = np.random.default_rng(time)
    for t in [*rng.integers(0, time, samples).tolist(), time - 1]:
        for column, head in enumerate(one.attention.live):
            expected = true_winner(query[head, t], key[head, : t + 1])
            assert one.attention.winners[t, column] == expected, (t, head)


def check_tokens(one: Pass, ids: Sequence[int], start: int) -> None:
    """The last stream predicts the trace; logits of some positions are the same in all ways."""
    head = one.model.weights["head.weight"]
    for at in range(start - 1, len(ids) - 1, 1000):
        end = min(at + 1000, len(ids) - 1)
        best = np.argmax(one.streams[0][at:end] @ head.T, axis=1)
        assert best.tolist() == ids[at + 1 : end + 1]
    some = np.random.default_rng(1).integers(0, len(ids), 60)
    streams = zip(one.ways, one.streams, strict=True)
    logits = [way.dot(stream[some], head, None) for way, stream in streams]
    assert not any(different(logits[0], other) for other in logits)


def run_all_ways(ids: list[int], start: int, ways: Sequence[Way], samples: int) -> None:
    one = Pass(build_checkpoint(), ids, ways, blurred(build_machine()))
    for layer in range(one.model.config.n_layers):
        assert not list(one.layer(layer))
        check_winners(one, samples)
    check_tokens(one, ids, start)


def test_the_stream_is_the_same_in_any_order(ways: dict[str, Way]) -> None:
    """The probe, which has every instruction, in the most different ways."""
    ids, start = sequence(probe(), (), INPUT, 3000)
    run_all_ways(ids, start, [ways[name] for name in FEW], samples=20)


SUDOKU = "530070000600195000098000060800060003400803001700020006060000280000419005000080079"
LONG = (
    ("sudoku.c", (SUDOKU,), b""),
    ("hungarian.c", (), (PROGRAMS / "data/hungarian10.txt").read_bytes()),
    ("xorshift.c", ("16",), b""),
)


@pytest.mark.long
@pytest.mark.parametrize(("name", "args", "stdin"), [pytest.param(*c, id=c[0]) for c in LONG])
def test_the_streams_of_long_traces_are_the_same_in_any_order(
    ways: dict[str, Way], name: str, args: tuple[str, ...], stdin: bytes
) -> None:
    """20,000 tokens of three programs, and their prompts, in all ways."""
    ids, start = sequence(compile_program(PROGRAMS / name, libc="tiny"), args, stdin, 20_000)
    assert len(ids) == start + 20_000
    run_all_ways(ids, start, list(ways.values()), samples=300)


def with_a_third(weights: dict[str, Array]) -> None:
    """The four bytes before, as a number, times 1/3: products and their sum are rounded."""
    slot = build_machine().plan.slots["word"]
    weights["attn.0.out_proj.weight"][slot] /= 3


def with_a_fine_term(weights: dict[str, Array]) -> None:
    """2^-30 of another quantity in a query that subtracts the snapping constant."""
    projection = weights["attn.2.in_proj_weight"]
    row = int(np.flatnonzero((projection[:36] <= -SNAP / 2).any(axis=1))[0])
    projection[row, build_machine().plan.slots["position"]] += 2.0**-30


@pytest.mark.parametrize(
    ("change", "layer"), [(with_a_third, 0), (with_a_fine_term, 2)], ids=["third", "fine term"]
)
def test_orders_differ_where_sums_are_rounded(
    ways: dict[str, Way],
    change: Callable[[dict[str, Array]], None],
    layer: int,
) -> None:
    """The comparison notices a model that is not exact, in the layer where it is not."""
    ids, _ = sequence(probe(), (), INPUT, 10)
    model = build_checkpoint()
    weights = {name: array.copy() for name, array in model.weights.items()}
    change(weights)
    one = Pass(
        replace(model, weights=weights),
        ids[:1500],
        [ways[n] for n in FEW],
        blurred(build_machine()),
    )
    faults = [list(one.layer(number)) for number in range(layer + 1)]
    assert faults[layer] and not any(faults[:layer])
    assert any("shuffled" in fault for fault in faults[layer])


def test_a_snapped_sum_hides_how_the_mean_was_taken(ways: dict[str, Way]) -> None:
    """The means of two ways do differ, and would be noticed if they were compared."""
    ids, _ = sequence(probe(), (), INPUT, 500)
    nothing: list[set[int]] = [set() for _ in blurred(build_machine())]
    one = Pass(build_checkpoint(), ids, [ways["BLAS"], ways["softmax's mean"]], nothing)
    faults = " ".join(one.layer(0))
    assert "between" in faults and "values" in faults
