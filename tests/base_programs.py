"""Token programs in the base machine's opcodes, and any model against the oracle."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from functools import cache

from compiler import isa
from compiler.assemble import word_tokens
from compiler.program import Program
from compiler.tokfile import compile_tok
from executor.checkpoint import Checkpoint
from executor.decode import decode, make_engine
from executor.oracle import trace
from wat_programs import EDGES, compiled
from wat_random import Generator

PAGE = 65536


def written(checkpoint: Checkpoint, program: Program, limit: int, engine: str) -> Iterator[str]:
    """What the model writes, at most ``limit`` tokens."""
    prompt = [*checkpoint.rom]
    prompt += checkpoint.encode([*program.tokens, *program.input_tokens()])
    stop = checkpoint.config.stop_tokens
    for token in decode(make_engine(engine, checkpoint), prompt, stop, limit):
        yield checkpoint.vocabulary[token]


def agree(
    checkpoint: Checkpoint, program: Program, limit: int = 2000, engine: str = "hull"
) -> list[str]:
    """The trace, after comparing model and oracle; they also agree about its end."""
    expected = trace(program, program.input_tokens())
    found: list[str] = []
    for token in written(checkpoint, program, limit, engine):
        assert token == next(expected), f"token {len(found)} of {program.name}"
        found.append(token)
    assert len(found) == limit or next(expected, None) is None
    return found


def assembled(*code: tuple[str, int], memory: int | None = None, data: bytes = b"") -> Program:
    """A token program from opcodes and immediates, with a ``halt`` at its end.

    ``data`` is what the memory begins with.
    """
    lines = ["{"]
    if memory is not None:
        size, bytes_ = word_tokens(memory), map(isa.data_token, data)
        lines = [*size, isa.MEMORY, *bytes_, *word_tokens(10), isa.SEGMENT, "{"]
    for name, immediate in (*code, ("halt", 0)):
        lines += [name, *word_tokens(immediate)]
    return compile_tok(" ".join([*lines, "}"]), "assembled.tok")


def const(value: int) -> tuple[str, int]:
    return "i32.const", value & 0xFFFFFFFF


def all_pairs(op: str, count: int = 40) -> Program:
    """The opcode on pairs of awkward values."""
    generator = random.Random(op)
    values = [*EDGES, *(generator.getrandbits(32) for _ in range(8))]
    pairs = [tuple(generator.choices(values, k=2)) for _ in range(count)]
    pairs += [(a, a) for a in generator.choices(values, k=4)]
    code: list[tuple[str, int]] = []
    for a, b in pairs:
        code += [const(a), const(b), (op, 0)]
    return assembled(*code)


def memory_accesses(seed: int, memory: int = PAGE) -> Program:
    """Stores and loads of all widths that overlap, at both ends of the memory; some find data."""
    generator = random.Random(seed)
    code: list[tuple[str, int]] = []
    for _ in range(60):
        base = generator.choice([0, memory - 16])
        address, offset = base + generator.randrange(6), generator.randrange(6)
        if generator.random() < 0.5:
            value = generator.choice([*EDGES, generator.getrandbits(32)])
            store = generator.choice(list(isa.STORES))
            code += [const(address), const(value), (store, offset)]
        else:
            code += [const(address), (generator.choice(list(isa.LOADS)), offset)]
    return assembled(*code, memory=memory, data=generator.randbytes(16))


_BINARY = [name[4:] for name in ("i32.add", "i32.sub", *isa.COMPARISONS)]


class _Restricted(Generator):
    """Random modules whose addresses need no mask."""

    def _address(self, expression: str) -> str:
        number = self.random.randrange
        bounded = self.random.choice(
            [
                f"(select (i32.const {number(4000)}) (i32.const {number(4000)}) {expression})",
                f"(i32.load8_u offset={number(400)} (i32.eqz {expression}))",
            ]
        )
        anywhere = self.random.random() < 0.03
        return f"offset={number(300)} {expression if anywhere else bounded}"


@cache
def random_module(seed: int) -> Program:
    """A random program of functions, loops and memory accesses in the base opcodes."""
    generator = random.Random(seed)
    text = _Restricted(generator, size=7).module()
    left_out = r"i32\.(mul|and|or|xor|sh[lr]_?[us]?|rot[lr]|(div|rem)_[us])\b"
    text = re.sub(left_out, lambda _: f"i32.{generator.choice(_BINARY)}", text)
    return compiled(re.sub(r"i32\.(clz|ctz|popcnt|extend8_s|extend16_s)\b", "i32.eqz", text))


def small_program() -> Program:
    """A call with locals, a global, memory, ``select``, branches taken and not, and a carry."""
    return assembled(
        const(0x12F0),
        ("global.set", 0),
        const(3),
        ("call", 5 * 6),
        ("br_if", 5 * 2),
        ("drop", 0),  # never
        ("output", 0),
        ("br", 5 * 10),
        ("drop", 0),  # never
        ("local.set", 0),  # the function: stores its argument, leaves 'B' and the argument
        const(1),
        ("local.get", 0),
        ("i32.store16", 0),
        const(0x42),
        const(0),
        ("i32.load8_u", 1),
        ("return", 5 * 6),
        ("global.get", 0),  # behind the jump over the function
        const(0x1FF),
        const(0),
        ("select", 0),
        ("global.get", 0),
        ("i32.add", 0),
        memory=PAGE,
    )
