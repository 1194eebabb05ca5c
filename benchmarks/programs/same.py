"""The C functions of this folder in Python, line by line."""

from __future__ import annotations

import sys

MASK = 0xFFFFFFFF


def steps(n: int) -> int:
    """See mix.c."""
    table = [0] * 64
    x = 1
    for _ in range(n):
        x ^= x << 13 & MASK
        x ^= x >> 17
        x ^= x << 5 & MASK
        table[x & 63] = table[x & 63] + x % 10 & MASK
    result = table[0] + x & MASK
    return result - (result >> 31 << 32)


def primes(n: int) -> int:
    """See sieve.c."""
    count = 0
    composite = bytearray(n)
    for i in range(2, n):
        if composite[i]:
            continue
        count += 1
        for k in range(2 * i, n, i):
            composite[k] = 1
    return count


def fib(n: int) -> int:
    """See fib.c."""
    return n if n < 2 else fib(n - 1) + fib(n - 2)


if __name__ == "__main__":
    print({"steps": steps, "primes": primes, "fib": fib}[sys.argv[1]](int(sys.argv[2])))
