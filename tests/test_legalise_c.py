"""C programs with long long and double: compiled, legalised, in wasmtime and inside the machine."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from compiler import wasm
from compiler.legalise import legalise
from compiler.legalise_words import to_words
from compiler.pipeline import compile_calls
from compiler.toolchain import compile_c, find_toolchain
from executor.oracle import execute
from legal_tools import both
from wat_programs import LIMIT

SOURCE = """
typedef unsigned long long u64;
typedef long long i64;

/* decimal digits from the end, as printf("%lld") makes them, summed up with their places */
u64 digits(i64 value) {
  u64 x = value < 0 ? -(u64)value : (u64)value, sum = value < 0;
  for (int place = 1; x; place++, x /= 10) sum = sum * 31 + place * (x % 10);
  return sum;
}

u64 power(u64 base, u64 exponent, u64 modulus) {
  u64 result = 1;
  for (base %= modulus; exponent; exponent >>= 1) {
    if (exponent & 1) result = result * base % modulus;
    base = base * base % modulus;
  }
  return result;
}

u64 gcd(u64 a, u64 b) {
  while (b) { u64 c = a % b; a = b; b = c; }
  return a;
}

u64 shuffle(u64 s) {
  for (int i = 0; i < 20; i++) { s ^= s << 13; s ^= s >> 7; s ^= s << 17; s += s >> (s & 63); }
  return s;
}

struct pair { i64 a; double b; };
static struct pair cells[8];

i64 structs(i64 seed) {
  for (int i = 0; i < 8; i++) cells[i] = (struct pair){seed * i - 5, (double)seed / (i + 1)};
  struct pair sum = {0, 0};
  for (int i = 0; i < 8; i++) { sum.a += cells[i].a; sum.b -= cells[i].b * cells[7 - i].b; }
  return sum.a ^ (i64)sum.b;
}

double root(double x) {
  double y = x > 1 ? x : 1;
  for (int i = 0; i < 12; i++) y = (y + x / y) / 2;
  return y - __builtin_sqrt(x);
}

double sine(double x) {
  double term = x, sum = x;
  for (int n = 1; n < 12; n++) { term *= -x * x / (2 * n * (2 * n + 1)); sum += term; }
  return sum;
}

int escape(float x, float y) {
  float a = 0, b = 0;
  for (int n = 0; n < 30; n++) {
    float c = a * a - b * b + x;
    b = 2 * a * b + y, a = c;
    if (a * a + b * b > 4) return n;
  }
  return 30;
}

static i64 add(i64 a, i64 b) { return a + b; }
static i64 times(i64 a, i64 b) { return a * b; }
static double halve(double a, i64 b) { return a / 2 + b; }
static i64 (*const operations[])(i64, i64) = {add, times};
static double (*volatile real)(double, i64) = halve;

i64 dispatch(i64 a, i64 b) {
  i64 sum = 0;
  for (int i = 0; i < 2; i++) sum ^= operations[(a + i) & 1](a, b);
  return sum + (i64)real(a, b);
}
"""
CALLS = {
    "digits": ("l>l", [(0,), (7,), (1234567890123456789,), (1 << 63,), ((1 << 64) - 42,)]),
    "power": ("lll>l", [(3, 200, 1000000007), (2, 63, (1 << 61) - 1), (5, 1 << 20, 0xFFFFFFFF)]),
    "gcd": ("ll>l", [(48, 36), (12345678901234567890, 9876543210), (1 << 62, 3 << 40)]),
    "shuffle": ("l>l", [(88172645463325252,), (1,)]),
    "structs": ("l>l", [(3,), (123456789012,), ((1 << 64) - 77,)]),
    "root": ("d>d", [(0x4000 << 48,), (0x40C81C8000000000,), (0x3FB999999999999A,)]),
    "sine": ("d>d", [(0x3FF0 << 48,), (0xC000 << 48,), (0,)]),
    "escape": ("ff>i", [(0xBF000000, 0x3F000000), (0x3F800000, 0x3F800000), (0x3E800000, 0)]),
    "dispatch": ("ll>l", [(5, 7), ((1 << 64) - 3, 1 << 33)]),
}
"""Functions of the program: types, and bits of arguments."""


@cache
def module(opt: str) -> bytes:
    with TemporaryDirectory() as folder:
        source = Path(folder) / "numbers.c"
        source.write_text(SOURCE)
        return compile_c(find_toolchain(), [source], opt=opt, exports=tuple(CALLS))[0]


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("opt", ["-O0", "-O2"])
def test_in_wasmtime(name: str, opt: str) -> None:
    original, ours = both(module(opt))
    types, rows = CALLS[name]
    for row in rows:
        assert ours.call(name, types, *row) == original.call(name, types, *row)


@pytest.mark.parametrize("name", CALLS)
def test_inside_the_machine(name: str) -> None:
    original, _ = both(module("-O2"))
    types, rows = CALLS[name]
    words = to_words(types.split(">")[0], rows[0])
    legal = legalise(wasm.decode(module("-O2"), "numbers.wasm"))
    result = execute(compile_calls(legal, [(name, words)]), limit=LIMIT)
    expected = original.call(name, types, *rows[0])
    assert result.trap is None and result.value is not None and isinstance(expected, int)
    top = expected >> 32 if types[-1] in "ld" else expected
    assert result.value & 0xFFFFFFFF == top
