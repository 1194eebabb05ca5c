"""The runner of GCC's torture tests: verdicts, the list of programs left out, options, packages."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import wasmtime

import debian
import differential
from compiler import compile_wasm
from debian import Unavailable, files_of
from differential import (
    LEFT_OUT,
    LIMIT,
    REFUSED,
    RIGHT,
    WRONG,
    Results,
    Verdict,
    compiled,
    judge,
    table,
)
from suite_torture.__main__ import Judging, chosen, ended_well, failed
from suite_torture.programs import LEVELS, TortureProgram, all_programs, skipped


def module(body: str) -> Callable[[], bytes]:
    """Builds a module whose ``main`` has this body."""
    text = f'(memory (export "memory") 1) (func (export "main") (result i32) {body})'
    return lambda: bytes(wasmtime.wat2wasm(f"(module {text})"))


COUNTING = """(local i32) (loop (local.set 0 (i32.add (local.get 0) (i32.const 1)))
  (br_if 0 (i32.lt_u (local.get 0) (i32.const {})))) (i32.const 0)"""


def outcome(build: Callable[[], bytes], max_tokens: int = 1_000_000) -> str:
    return judge("p", "-O0", build, expected=ended_well, max_tokens=max_tokens).outcome


def test_verdicts() -> None:
    assert outcome(module(COUNTING.format(10))) == RIGHT
    assert outcome(module(COUNTING.format(10_000))) == RIGHT  # too long to be followed
    assert outcome(module(COUNTING.format(10)), max_tokens=100) == LIMIT
    assert outcome(module("(i32.const 3)")) == LEFT_OUT
    assert outcome(module("unreachable")) == LEFT_OUT
    simd = "(i32x4.extract_lane 0 (v128.const i32x4 0 0 0 0))"
    assert outcome(module(simd)) == REFUSED


def test_a_crash_of_ours_is_wrong() -> None:
    def build() -> bytes:
        raise RuntimeError("broken")

    verdict = judge("p", "-O0", build)
    assert verdict.outcome == WRONG and "broken" in verdict.reason


@pytest.mark.parametrize("count", [10, 10_000])
def test_a_model_that_computes_something_else_is_wrong(
    monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    right = COUNTING.format(count)
    wrong = compile_wasm(module(right.replace("(i32.const 0)", "(i32.const 1)"))(), "p")
    monkeypatch.setattr(differential, "compile_wasm", lambda wasm, _: replace(wrong, wasm=wasm))
    verdict = judge("p", "-O0", module(right), expected=ended_well)
    assert verdict.outcome == WRONG
    assert "exit code" in verdict.reason or "differs" in verdict.reason


SELF_CHECKING = """/* { dg-options "-fgnu89-inline -O3 -mtune=i686" } */
/* { dg-additional-options { "-fwrapv" } } */
/* { dg-additional-options "-DWRONG" { target pdp11-*-* } } */
#include <limits.h>
inline int twice(int x) { return 2 * x; }
static add(a, b) { return a + b; }
main() {
  if (add(INT_MAX, 1) != INT_MIN || twice(4) != 8) abort();
  exit(0);
}
"""


def test_a_program_is_compiled_as_it_asks_and_judged(tmp_path: Path) -> None:
    path = tmp_path / "old.c"
    path.write_text(SELF_CHECKING)
    program = TortureProgram("old", path)
    assert program.flags[-2:] == ("-fgnu89-inline", "-fwrapv")
    for opt in LEVELS:
        verdict = Judging(1_000_000)((program, opt))
        assert verdict.outcome == RIGHT, verdict.reason
    path.write_text(SELF_CHECKING.replace("!= 8", "!= 9"))
    assert Judging(1_000_000)((program, "-O0")).outcome == LEFT_OUT


def test_what_the_compiler_refuses_is_refused_with_its_words(tmp_path: Path) -> None:
    path = tmp_path / "nested.c"
    path.write_text("int main(void) { int f(void) { return 0; } return f(); }")
    verdict = judge("nested", "-O0", lambda: compiled(path, "-O0"))
    assert verdict.outcome == REFUSED and "not allowed here" in verdict.reason


def test_the_list_of_programs_left_out() -> None:
    text = "# nested functions\na b\nieee/c:-O0\n\n# asm\nd:-O2\n"
    listed = skipped(text)
    assert {listed[name, opt] for name in "ab" for opt in ("-O0", "-O2")} == {"nested functions"}
    assert ("ieee/c", "-O0") in listed and ("ieee/c", "-O2") not in listed
    assert listed["d", "-O2"] == listed["d", "-Os"] == "asm" and ("d", "-O0") not in listed
    assert all(skipped().values())


def test_samples_depend_on_the_seed_alone() -> None:
    programs = [TortureProgram(f"p{i}", Path()) for i in range(100)]
    names = [p.name for p in chosen(programs, [], 5, 1)]
    assert names == [p.name for p in chosen(programs, [], 5, 1)] == sorted(names)
    assert names != [p.name for p in chosen(programs, [], 5, 2)]
    assert [p.name for p in chosen(programs, ["p7", "p99"], None, 0)][-3:] == ["p78", "p79", "p99"]


def test_a_wrong_program_or_too_few_right_ones_fail() -> None:
    right = [Verdict(str(i), "-O0", RIGHT) for i in range(99)]
    assert not failed([*right, Verdict("x", "-O0", REFUSED)], ["-O0"])
    assert failed([*right, *[Verdict("x", "-O0", LEFT_OUT)] * 2], ["-O0"])
    assert failed([*right, Verdict("x", "-O0", WRONG)], ["-O0"])
    assert failed(right, ["-O0", "-O2"])
    assert table([*right, Verdict("x", "-O0", REFUSED)])[1].split() == [
        "-O0", "99", "1", "0", "0", "0", "99.00%",
    ]  # fmt: skip


def test_results_are_taken_over_if_they_were_right(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    results = Results(path)
    results.add(Verdict("a", "-O0", RIGHT, n_trace=5))
    results.add(Verdict("b", "-O0", WRONG, "output"))
    assert Results(path).known == {("a", "-O0"): Verdict("a", "-O0", RIGHT, n_trace=5)}
    assert json.loads(path.read_text().splitlines()[1])["reason"] == "output"


def tools(folder: Path, **scripts: str) -> str:
    """A PATH with these shell scripts in front of the system's tools."""
    folder.mkdir()
    for name, script in scripts.items():
        (folder / name.replace("_", "-")).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name.replace("_", "-")).chmod(0o755)
    return f"{folder}:/usr/bin:/bin"


def test_packages_are_got_by_name_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRANSPUTER_CACHE", str(tmp_path / "cache"))
    download = 'for name; do :; done; [ "$name" = update ] || echo > "${name}_1_all.deb"'
    unpack = 'mkdir -p "$3/usr"; basename "$2" > "$3/usr/name"'
    monkeypatch.setenv("PATH", tools(tmp_path / "bin", apt_get=download, dpkg_deb=unpack))

    def keep(unpacked: Path, kept: Path) -> None:
        (unpacked / "usr" / "name").rename(kept / "name")

    folder = files_of(("hello",), keep)
    assert (folder / "name").read_text() == "hello_1_all.deb\n"
    monkeypatch.setenv("PATH", "")
    assert files_of(("hello",), keep) == folder


def test_packages_that_cannot_be_had_are_said_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRANSPUTER_CACHE", str(tmp_path / "cache"))
    fails = 'echo "E: Unable to locate package" >&2; exit 100'
    monkeypatch.setenv("PATH", tools(tmp_path / "bin", apt_get=fails, dpkg_deb=""))
    with pytest.raises(Unavailable, match="Unable to locate package"):
        files_of(("hello",), lambda *_: None)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(Unavailable, match="no apt-get"):
        files_of(("hello",), lambda *_: None)
    assert not list((debian.cache_folder() / "debian").glob("hello*"))


@pytest.mark.long
def test_a_sample_of_the_suite() -> None:
    try:
        programs = all_programs()
    except Unavailable as error:
        pytest.skip(str(error))
    left_out = skipped()
    judging = Judging(differential.MAX_TOKENS)
    for program in chosen(programs, [], 10, 0):
        for opt in LEVELS:
            if (program.name, opt) not in left_out:
                verdict = judging((program, opt))
                assert verdict.outcome == RIGHT, verdict
