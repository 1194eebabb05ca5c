"""Calls with numbers of every type, inside the model and beside wasmtime."""

from __future__ import annotations

import math
import struct
from pathlib import Path

import pytest
import wasmtime

from command_line import transputer
from compiler import compile_wasm
from compiler.errors import UnsupportedError, UsageError
from compiler.values import Number, bits_of, value_of
from executor import check, run
from executor.call import parse_call

C = """
#include <stdint.h>
#include <stdlib.h>
long long twice(long long a) { return a * 2; }
unsigned long long largest(unsigned long long a, uint64_t b) { return a > b ? a : b; }
int64_t mixed(char a, int64_t b, float c, double d, unsigned short e) {
  return a * 1000000000000LL + b + (int64_t)c + (int64_t)d + e;
}
float third(float x) { return x / 3; }
double hypotenuse(double a, double b) { return __builtin_sqrt(a * a + b * b); }
double divide(double a, int b) { return a / b; }
void nothing(double x) { (void)x; }
long long leave(double x) { exit((int)x); }
long double wide(long double x) { return x; }
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("call") / "f.c"
    path.write_text(C)
    return path


CALLS: list[tuple[tuple[str | Number, ...], Number | None]] = [
    (("twice", -(2**62)), -(2**63)),
    (("largest", 2**64 - 1, 1), 2**64 - 1),
    (("mixed", -3, 5, 1.75, -2.5, 65535), -3 * 10**12 + 5 + 1 - 2 + 65535),
    (("third", 1), struct.unpack("<f", struct.pack("<f", 1 / 3))[0]),
    (("hypotenuse", 3, 4.0), 5.0),
    (("divide", 0.1, 3), 0.1 / 3),
    (("divide", -1.5, 0), -math.inf),
    (("divide", 0.0, 0), math.nan),
    (("nothing", 5e-324), None),
]


@pytest.mark.parametrize(("call", "value"), CALLS, ids=lambda item: str(item)[:24])
def test_c_functions_take_and_return_their_types(
    source: Path, call: tuple[str | Number, ...], value: Number | None
) -> None:
    checked = check(source, call=call)
    assert checked.agrees, checked.differences
    assert checked.result is not None and checked.result.exit_code == 0
    assert repr(checked.result.value) == repr(value)


def test_values_are_printed_in_the_fewest_digits_of_their_type(source: Path) -> None:
    for call, text in [
        ("third(0.3)", "0.1"), ("third(-inf)", "-inf"), ("third(nan)", "nan"),
        ("third(3e38)", "1e+38"),
        ("divide(1, 3)", "0.3333333333333333"), ("divide(-0.0, 1)", "-0.0"),
        ("twice(-0x10)", "-32"), ("hypotenuse(0x1.8p1, 4)", "5.0"), ("nothing(1)", ""),
    ]:  # fmt: skip
        code, out, err = transputer("run", "--call", call, source)
        assert (code, out.strip()) == (0, text), err


def test_a_call_that_exits_has_its_code_and_no_value(source: Path) -> None:
    checked = check(source, call=("leave", 300.5))
    assert checked.agrees, checked.differences
    assert checked.result is not None
    assert (checked.result.exit_code, checked.result.value) == (300 & 0xFF, None)


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (("twice", 2**63), "argument 1 is 9223372036854775808, which is not long long"),
        (("twice", 0.5), "argument 1 is 0.5, which is not long long"),
        (("largest", 1, -1), "argument 2 is -1, which is not unsigned long long"),
        (("third", 10**400), "beyond the range of float"),
        (("twice",), "takes 1 arguments, not 0"),
        (("wide", 1.0), "long double; only numbers of at most 64 bits"),
    ],
)
def test_values_that_do_not_fit(source: Path, call: tuple[str | Number, ...], reason: str) -> None:
    with pytest.raises(UsageError) as caught:
        run(source, call=call)
    assert reason in str(caught.value)


WAT = """(module (global $ready (mut i32) (i32.const 0))
  (func (export "_initialize") (global.set $ready (i32.const 1)))
  (func (export "l") (param i64 i32) (result i64) (i64.rotl (local.get 0) (i64.extend_i32_u (local.get 1))))
  (func (export "f") (param f32) (result f32) (f32.sqrt (local.get 0)))
  (func (export "d") (param f64 i64) (result f64) (f64.mul (local.get 0) (f64.convert_i64_u (local.get 1))))
  (func (export "ready") (result i32) (global.get $ready))
  (func (export "two") (result i32 i32) (i32.const 1) (i32.const 2))
  (func (export "ref") (param externref)))"""  # noqa: E501


def test_exports_of_a_module_take_and_return_its_types() -> None:
    wasm = bytes(wasmtime.wat2wasm(WAT))
    for call, value in [
        (("l", -2, 1), -3), (("l", 2**63, 1), 1), (("f", 2), value_of("f", 0x3FB504F3)),
        (("d", 0.5, 2**64 - 1), 2.0**63), (("ready",), 1), (("f", -1.0), math.nan),
    ]:  # fmt: skip
        checked = check(wasm, call=call)
        assert checked.agrees, checked.differences
        assert checked.result is not None and repr(checked.result.value) == repr(value)
    with pytest.raises(UsageError, match="l: argument 2: 0.5 is no integer, as i32 is"):
        run(wasm, call=("l", 1, 0.5))
    with pytest.raises(UsageError, match="takes 1 arguments, 2 given"):
        run(wasm, call=("f", 1, 2))
    for name in ("two", "ref"):
        with pytest.raises(UnsupportedError, match="only numbers can be passed and one returned"):
            compile_wasm(wasm, "m.wasm", call=(name,))


def test_texts_of_calls() -> None:
    numbers = (1, -16, 2.5, 1000.0, -math.inf, 0.5)
    assert parse_call("f(1, -0x10, 2.5, 1e3, -inf, 0x1p-1)") == ("f", *numbers)
    assert math.isnan(float(parse_call("f(nan)")[1]))
    for text in ("f(x)", "f(1,)", "f(1e999)", "f(0x1p99999)", "f(1.5f)", "f"):
        with pytest.raises(UsageError, match="--call"):
            parse_call(text)


def test_bits_and_values() -> None:
    for type_, value, bits in [
        ("i", -1, 2**32 - 1), ("l", -(2**63), 2**63), ("f", 16777217, 0x4B800000),
        ("f", 1e39, 0x7F800000), ("f", -1e39, 0xFF800000), ("f", 5e-46, 0), ("d", -0.0, 2**63),
        ("d", math.nan, 0x7FF8 << 48),
    ]:  # fmt: skip
        assert bits_of(type_, value) == bits
        assert bits_of(type_, value_of(type_, bits)) == bits
    for type_, value in [
        ("i", 2**32),
        ("i", -(2**31) - 1),
        ("l", 2**64),
        ("i", 1.0),
        ("d", 10**400),
    ]:
        with pytest.raises(UsageError):
            bits_of(type_, value)
