"""The programs print what Python computes, use only what the machine has, and stay cheap."""

from __future__ import annotations

import itertools
import math
import random
import zlib

import pytest

from c_programs import PROGRAMS, STANDARD, compiled_program, opcodes, run

BOTH = pytest.mark.parametrize("opt", ["-O0", "-O2"])
NAMES = sorted(path.name for path in PROGRAMS.glob("*.c") if path.name not in STANDARD)
EASY = "53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79"
EASY_SOLVED = "534678912672195348198342567859761423426853791713924856961537284287419635345286179"
INKALA = "8..........36......7..9.2...5...7.......457.....1...3...1....68..85...1..9....4.."
INKALA_SOLVED = "812753649943682175675491283154237896369845721287169534521974368438526917796318452"


def output(name: str, *args: object, opt: str = "-O2", stdin: str = "", code: int = 0) -> str:
    """What a program prints; it must end with this exit code."""
    result = run(compiled_program(name, opt), [str(arg) for arg in args], stdin.encode())
    assert (result.trap, result.exit_code) == (None, code), result.output
    return result.output.decode()


@pytest.mark.parametrize("opt", ["-O0", "-O1", "-O2", "-O3"])
@pytest.mark.parametrize("name", NAMES)
def test_only_32_bit_instructions_are_used(name, opt):
    found = opcodes(compiled_program(name, opt))
    kinds = {op.split(".")[0] for op in found - {"memory.size"} if "." in op}
    assert kinds <= {"i32", "local", "global"}
    assert "call_indirect" not in found


def test_each_program_is_tested_and_described():
    source = (PROGRAMS.parent / "tests" / "test_c_programs.py").read_text()
    table = (PROGRAMS / "README.md").read_text()
    for path in [*PROGRAMS.glob("*.c"), *PROGRAMS.glob("*.tok")]:
        assert f"`{path.name}`" in table
        elsewhere = path.suffix == ".tok" or path.name in STANDARD
        assert elsewhere or f'output("{path.name}"' in source


def test_add_is_the_program_of_the_article():
    expected = (
        "{ i32.const 03 00 00 00 i32.const 05 00 00 00 i32.add 00 00 00 00 "
        "output 00 00 00 00 halt 00 00 00 00 }"
    )
    assert (PROGRAMS / "add.tok").read_text().split() == expected.split()


@BOTH
def test_hello(opt):
    assert output("hello.c", opt=opt) == "Hello from inside a transformer!\n"


@BOTH
def test_collatz(opt):
    for start in (1, 6, 27):
        n, sequence = start, [start]
        while n != 1:
            n = 3 * n + 1 if n % 2 else n // 2
            sequence.append(n)
        numbers = " ".join(map(str, sequence))
        expected = f"{numbers}\nsteps: {len(sequence) - 1}\n"
        assert output("collatz.c", start, opt=opt) == expected
    assert output("collatz.c") == "6 3 10 5 16 8 4 2 1\nsteps: 8\n"
    assert "at least 1" in output("collatz.c", 0, code=1)


@BOTH
def test_fibonacci(opt):
    a, b = 0, 1
    for n in range(16):
        assert output("fibonacci.c", n, opt=opt) == f"loop: {a}\nrecursion: {a}\n"
        a, b = b, a + b
    assert output("fibonacci.c") == "loop: 13\nrecursion: 13\n"
    assert "0 to 47" in output("fibonacci.c", 48, code=1)


@BOTH
def test_gcd(opt):
    pairs = [(48, 36), (1, 1), (17, 5), (5, 17), (2**31 - 1, 2**30), (1071, 462), (123456, 7890)]
    for a, b in pairs:
        assert output("gcd.c", a, b, opt=opt) == f"gcd({a}, {b}) = {math.gcd(a, b)}\n"
    assert output("gcd.c") == "gcd(48, 36) = 12\n"
    assert "at least 1" in output("gcd.c", 4, -2, code=1)


@BOTH
def test_primes(opt):
    for limit in (2, 3, 30, 121, 1000):
        primes = [n for n in range(2, limit + 1) if all(n % d for d in range(2, n))]
        assert output("primes.c", limit, opt=opt) == "".join(f"{n} " for n in primes) + "\n"
    assert output("primes.c") == output("primes.c", 30)
    assert "2 to 10000" in output("primes.c", 1, code=1)


@BOTH
def test_crc32(opt):
    for text in (
        "123456789",
        "",
        "a",
        "The quick brown fox jumps over the lazy dog",
        "\u00e9\u4e2d",
    ):
        assert output("crc32.c", text, opt=opt) == f"{zlib.crc32(text.encode()):08x}\n"
    assert output("crc32.c") == "cbf43926\n"


@BOTH
def test_xorshift(opt):
    for count, seed in ((5, 1), (20, 123456789), (3, -1)):
        state, rows = seed % 2**32, []
        for _ in range(count):
            state ^= state << 13 & 0xFFFFFFFF
            state ^= state >> 17
            state ^= state << 5 & 0xFFFFFFFF
            rows.append(f"{state:x}\n")
        assert output("xorshift.c", count, seed, opt=opt) == "".join(rows)
    assert output("xorshift.c") == output("xorshift.c", 5, 1)
    assert "must not be 0" in output("xorshift.c", 5, 0, code=1)


@BOTH
def test_bits(opt):
    mask, words, state, ones, table = 0xFFFFFFFF, 32, 2463534242, 0, []
    for _ in range(words):
        state ^= state << 13 & mask
        state ^= state >> 17
        state ^= state << 5 & mask
        table.append(state)
    for _ in range(2):
        for i in range(words):
            value, other = table[i], table[(i * 5 + 1) % words]
            value = (value << 7 & mask | value >> 25) ^ (other & ~state)
            table[i] = value
            ones += value.bit_count()
            state = state + (value | 1) & mask
    assert output("bits.c", 2, words, opt=opt) == f"{ones} {state:08x}\n"
    assert "power of two" in output("bits.c", 1, 5, code=1)


@BOTH
def test_sort(opt):
    chosen = random.Random(3)
    lists = [[1], [2, 1], [5] * 8, list(range(20)), list(range(20, 0, -1))]
    lists += [[chosen.randrange(-99, 99) for _ in range(n)] for n in (3, 10, 50, 100)]
    lists.append([-(2**31), 2**31 - 1, 0])
    for numbers in lists:
        text = output("sort.c", opt=opt, stdin=" ".join(map(str, numbers)))
        rows = [line.partition(" (")[0].split() for line in text.splitlines()]
        expected = [str(number) for number in sorted(numbers)]
        assert rows == [["bubble", *expected], ["quick", *expected]]
    assert output("sort.c").startswith("bubble -21 -8 0 27 32 35 41 42 61 86 (39 comparisons)\n")


@BOTH
def test_ackermann(opt):
    for m, n in itertools.product(range(4), range(4)):
        value = (n + 1, n + 2, 2 * n + 3, 2 ** (n + 3) - 3)[m]
        assert output("ackermann.c", m, n, opt=opt).startswith(f"{value} after ")
    assert output("ackermann.c") == "7 after 27 calls\n"
    assert "M must be" in output("ackermann.c", 4, 0, code=1)


def least_cost(cost: list[list[int]]) -> int:
    """Optimal cost of an assignment, by trying all sets of columns for the first rows."""
    best = {0: 0}
    for row in cost:
        following: dict[int, int] = {}
        for taken, total in best.items():
            for column, price in enumerate(row):
                if not taken >> column & 1:
                    key = taken | 1 << column
                    following[key] = min(total + price, following.get(key, total + price))
        best = following
    return best[(1 << len(cost)) - 1]


def hungarian(cost: list[list[int]], opt: str) -> int:
    """Cost that the program prints, after checking every line against the matrix."""
    rows = "\n".join(" ".join(map(str, row)) for row in cost)
    text = output("hungarian.c", opt=opt, stdin=f"{len(cost)}\n{rows}\n")
    *steps, last, optimum = text.splitlines()
    for count, line in enumerate(steps, start=1):
        head, _, total = line.rpartition(", cost ")
        name, _, columns = head.partition(":")
        chosen = [int(column) - 1 for column in columns.split()]
        assert name == f"row {count}"
        assert len(set(chosen)) == len(chosen) == count
        assert int(total) == sum(row[column] for row, column in zip(cost, chosen, strict=False))
    assert len(steps) == len(cost)
    assert last.removeprefix("assignment:").split() == [str(column + 1) for column in chosen]
    assert optimum == f"optimal cost: {total}"
    return int(total)


@BOTH
def test_hungarian_is_optimal(opt):
    chosen = random.Random(11)
    for n, low, high in ((1, 5, 5), (2, 0, 1), (5, -9, 9), (7, 0, 3), (8, 1, 99),
                         (9, -1000000, 1000000), (11, 0, 50)):  # fmt: skip
        for _ in range(3):
            cost = [[chosen.randint(low, high) for _ in range(n)] for _ in range(n)]
            assert hungarian(cost, opt) == least_cost(cost)
    n = 20  # largest against smallest factor
    cost = [[(i + 1) * (j + 1) for j in range(n)] for i in range(n)]
    assert hungarian(cost, opt) == sum((i + 1) * (n - i) for i in range(n))


@BOTH
def test_hungarian_solves_the_demonstration(opt):
    text = (PROGRAMS / "data" / "hungarian10.txt").read_text()
    rows = [list(map(int, line.split())) for line in text.splitlines()[1:]]
    assert hungarian(rows, opt) == least_cost(rows) == 206


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "must start with n"),
        ("0", "must start with n"),
        ("21", "must start with n"),
        ("2 1 2 3", "n rows of n costs"),
        ("2 1 2 3 x", "n rows of n costs"),
        ("1 1000001", "between"),
    ],
)
def test_hungarian_refuses_wrong_input(text, complaint):
    assert complaint in output("hungarian.c", stdin=text, code=1)


@BOTH
@pytest.mark.parametrize(
    ("puzzle", "solution"),
    [
        (EASY, EASY_SOLVED),
        (EASY.replace(".", "0"), EASY_SOLVED),
        (EASY_SOLVED[:40] + "." + EASY_SOLVED[41:], EASY_SOLVED),
        (EASY_SOLVED, EASY_SOLVED),
        (INKALA, INKALA_SOLVED),
    ],
)
def test_sudoku_ends_with_the_solved_grid(puzzle, solution, opt):
    guesses, grid = output("sudoku.c", puzzle, opt=opt).splitlines()
    assert grid == solution
    assert guesses.startswith("guesses: ")
    assert (guesses == "guesses: 0") == (puzzle != INKALA)


def test_sudoku_fills_grids_with_many_solutions_by_the_rules():
    chosen = random.Random(5)
    puzzles = ["." * 81]
    for _ in range(10):
        keep = set(chosen.sample(range(81), chosen.randrange(2, 30)))
        puzzles.append("".join(c if i in keep else "." for i, c in enumerate(INKALA_SOLVED)))
    digits = set("123456789")
    for puzzle in puzzles:
        grid = output("sudoku.c", puzzle).splitlines()[-1]
        assert all(clue in (".", digit) for clue, digit in zip(puzzle, grid, strict=True))
        for i in range(9):
            r, c = i // 3 * 27, i % 3 * 3
            box = "".join(grid[r + 9 * k + c : r + 9 * k + c + 3] for k in range(3))
            assert set(grid[9 * i : 9 * i + 9]) == set(grid[i::9]) == set(box) == digits


@BOTH
def test_sudoku_refuses_wrong_and_unsolvable_puzzles(opt):
    for args in ((), (EASY[:-1],), (EASY + ".",), (EASY.replace("5", "x", 1),), (EASY, EASY)):
        assert "usage: sudoku PUZZLE" in output("sudoku.c", *args, opt=opt, code=1)
    twice = "55" + EASY[2:]
    no_place = EASY.replace("53..7", "531.7", 1)
    full_but_wrong = EASY_SOLVED[:-1] + "1"
    for puzzle in (twice, no_place, full_but_wrong):
        assert "no solution" in output("sudoku.c", puzzle, opt=opt, code=1)


@pytest.mark.parametrize(
    ("name", "args", "most"),
    [
        ("hello.c", [], 380),
        ("collatz.c", [], 3_500),
        ("fibonacci.c", [], 2_100),
        ("gcd.c", [], 1_500),
        ("primes.c", [], 1_800),
        ("crc32.c", [], 1_800),
        ("xorshift.c", [], 1_800),
        ("sort.c", [], 11_400),
        ("ackermann.c", [], 1_800),
        ("hungarian.c", [], 80_000),
        ("sudoku.c", [EASY], 41_000),
        ("sudoku.c", [INKALA], 780_000),
    ],
)
def test_executed_instructions(name, args, most):
    """The model writes about five tokens for each."""
    stdin = (PROGRAMS / "data" / "hungarian10.txt").read_bytes() if name == "hungarian.c" else b""
    assert run(compiled_program(name), args, stdin).instructions <= most
