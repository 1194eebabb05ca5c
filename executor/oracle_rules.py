"""What each opcode does to the state of the oracle, and which tokens it writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from compiler import isa
from compiler.program import TRAP_REASONS

if TYPE_CHECKING:
    from executor.oracle import Oracle

Tokens = tuple[str, ...]
Rule = Callable[["Oracle", int], Tokens]
"""Executes one instruction, given its immediate, and returns its tokens."""

_M = 0xFFFFFFFF
_SIGN = 0x80000000
_BYTE = tuple(isa.byte_token(value) for value in range(256))
_SUM = tuple(isa.byte_token(value & 255, value > 255) for value in range(512))
_OUT = tuple(isa.out_token(value) for value in range(256))
_POP = (isa.commit_token(-1, False, False),)


def _word(value: int, end: str) -> Tokens:
    b0, b1, b2 = value & 255, value >> 8 & 255, value >> 16 & 255
    return _BYTE[b0], _BYTE[b1], _BYTE[b2], _BYTE[value >> 24], end


def _sum(a: int, b: int, carry: int, end: str) -> tuple[int, Tokens]:
    """a + b + carry, byte by byte, with the carries marked in the tokens."""
    s0 = (a & 255) + (b & 255) + carry
    s1 = (a >> 8 & 255) + (b >> 8 & 255) + (s0 >> 8)
    s2 = (a >> 16 & 255) + (b >> 16 & 255) + (s1 >> 8)
    s3 = (a >> 24) + (b >> 24) + (s2 >> 8)
    value = s0 & 255 | (s1 & 255) << 8 | (s2 & 255) << 16 | (s3 & 255) << 24
    return value, (_SUM[s0], _SUM[s1], _SUM[s2], _SUM[s3], end)


def _signed(value: int) -> int:
    return value - ((value & _SIGN) << 1)


def _commit(name: str) -> str:
    opcode = isa.OPCODES[name]
    return isa.commit_token(opcode.delta, opcode.stores, False)


# --- values ------------------------------------------------------------------------------------


def _const(o: Oracle, immediate: int) -> Tokens:
    o.stack.append(immediate)
    return _word(immediate, _PUSH)


_PUSH = _commit("i32.const")


def _local_get(o: Oracle, immediate: int) -> Tokens:
    value = o.frames[o.depth][immediate]
    o.stack.append(value)
    return _word(value, _PUSH)


def _global_get(o: Oracle, immediate: int) -> Tokens:
    value = o.frames[0][immediate]
    o.stack.append(value)
    return _word(value, _PUSH)


_SET, _TEE = _commit("local.set"), _commit("local.tee")


def _local_set(o: Oracle, immediate: int) -> Tokens:
    value = o.frames[o.depth][immediate] = o.stack.pop()
    return _word(value, _SET)


def _local_tee(o: Oracle, immediate: int) -> Tokens:
    value = o.frames[o.depth][immediate] = o.stack[-1]
    return _word(value, _TEE)


def _global_set(o: Oracle, immediate: int) -> Tokens:
    value = o.frames[0][immediate] = o.stack.pop()
    return _word(value, _SET)


_SELECT, _ADD = _commit("select"), _commit("i32.add")


def _select(o: Oracle, immediate: int) -> Tokens:
    stack = o.stack
    condition, second, first = stack.pop(), stack.pop(), stack.pop()
    value = first if condition else second
    stack.append(value)
    return _word(value, _SELECT)


def _add(o: Oracle, immediate: int) -> Tokens:
    b, a = o.stack.pop(), o.stack.pop()
    value, tokens = _sum(a, b, 0, _ADD)
    o.stack.append(value)
    return tokens


def _sub(o: Oracle, immediate: int) -> Tokens:
    b, a = o.stack.pop(), o.stack.pop()
    value, tokens = _sum(a, b ^ _M, 1, _ADD)
    o.stack.append(value)
    return tokens


def _eqz(o: Oracle, immediate: int) -> Tokens:
    value = o.stack[-1] = int(not o.stack[-1])
    return _word(value, _UNARY)


_UNARY = _commit("i32.eqz")

_COUNTS: dict[str, Callable[[int], int]] = {
    "i32.clz": lambda a: 32 - a.bit_length(),
    "i32.ctz": lambda a: (a & -a).bit_length() - 1 if a else 32,
    "i32.popcnt": int.bit_count,
}


def _count(compute: Callable[[int], int]) -> Rule:
    def rule(o: Oracle, immediate: int) -> Tokens:
        value = o.stack[-1] = compute(o.stack[-1])
        return _word(value, _UNARY)

    return rule


_BINARY: dict[str, Callable[[int, int], int]] = {
    "i32.mul": lambda a, b: a * b & _M,
    "i32.and": lambda a, b: a & b,
    "i32.or": lambda a, b: a | b,
    "i32.xor": lambda a, b: a ^ b,
    "i32.shl": lambda a, b: a << (b & 31) & _M,
    "i32.shr_u": lambda a, b: a >> (b & 31),
    "i32.shr_s": lambda a, b: _signed(a) >> (b & 31) & _M,
    "i32.rotl": lambda a, b: (a << (b & 31) | a >> (-b & 31)) & _M,
    "i32.rotr": lambda a, b: (a >> (b & 31) | a << (-b & 31)) & _M,
    "i32.eq": lambda a, b: int(a == b),
    "i32.ne": lambda a, b: int(a != b),
    "i32.lt_s": lambda a, b: int(a ^ _SIGN < b ^ _SIGN),
    "i32.lt_u": lambda a, b: int(a < b),
    "i32.gt_s": lambda a, b: int(a ^ _SIGN > b ^ _SIGN),
    "i32.gt_u": lambda a, b: int(a > b),
    "i32.le_s": lambda a, b: int(a ^ _SIGN <= b ^ _SIGN),
    "i32.le_u": lambda a, b: int(a <= b),
    "i32.ge_s": lambda a, b: int(a ^ _SIGN >= b ^ _SIGN),
    "i32.ge_u": lambda a, b: int(a >= b),
}


def _binary(compute: Callable[[int, int], int], end: str) -> Rule:
    def rule(o: Oracle, immediate: int) -> Tokens:
        b, a = o.stack.pop(), o.stack.pop()
        value = compute(a, b)
        o.stack.append(value)
        return _word(value, end)

    return rule


# --- memory, input and output ------------------------------------------------------------------


def _trap(name: str) -> Rule:
    token, reason = (isa.trap_token(name),), isa.TRAPS[name]

    def rule(o: Oracle, immediate: int) -> Tokens:
        o.trap, o.ended = reason, True
        o.index -= 1
        return token

    return rule


_UNREACHABLE = (isa.trap_token("unreachable"),)


def _unreachable(o: Oracle, immediate: int) -> Tokens:
    o.trap, o.ended = TRAP_REASONS[immediate], True
    o.index -= 1
    return _UNREACHABLE


_OUT_OF_BOUNDS, _EXHAUSTED = _trap("trap.out_of_bounds"), _trap("trap.stack_exhausted")
_BY_ZERO, _OVERFLOW = _trap("trap.divide_by_zero"), _trap("trap.integer_overflow")
_DIGITS = tuple(tuple(isa.digit_token(k, value) for value in range(256)) for k in range(4))


def _division(name: str) -> Rule:
    """The digits of the magnitudes' quotient, the highest first, and then the result."""
    signed, remainder = name.endswith("_s"), ".rem" in name
    end = _commit(name)

    def rule(o: Oracle, immediate: int) -> Tokens:
        b, a = o.stack[-1], o.stack[-2]
        if b == 0:
            return _BY_ZERO(o, 0)
        if name == "i32.div_s" and a == _SIGN and b == _M:
            return _OVERFLOW(o, 0)
        if signed:
            a, b = _signed(a), _signed(b)
        magnitude, rest = divmod(abs(a), abs(b))
        if remainder:
            value = -rest if a < 0 else rest
        else:
            value = -magnitude if (a < 0) != (b < 0) else magnitude
        value &= _M
        o.stack[-2:] = [value]
        digits = tuple(_DIGITS[k][magnitude >> 8 * k & 255] for k in (3, 2, 1, 0))
        return digits + _word(value, end)

    return rule


def _load(name: str) -> Rule:
    width, extend = isa.LOADS[name]
    end = _commit(name)

    def rule(o: Oracle, immediate: int) -> Tokens:
        address = o.stack[-1] + immediate
        if address + width > o.memory_size:
            return _OUT_OF_BOUNDS(o, 0)
        value = int.from_bytes(o.memory[address : address + width], "little", signed=extend) & _M
        o.stack[-1] = value
        return _word(value, end)

    return rule


def _store(name: str) -> Rule:
    width = isa.STORES[name]
    mask = (1 << 8 * width) - 1
    end = _commit(name)

    def rule(o: Oracle, immediate: int) -> Tokens:
        value, base = o.stack[-1], o.stack[-2]
        address = base + immediate
        if address + width > o.memory_size:
            return _OUT_OF_BOUNDS(o, 0)
        del o.stack[-2:]
        o.memory[address : address + width] = (value & mask).to_bytes(width, "little")
        o.touch(address)
        return _word(value, end)

    return rule


def _input(o: Oracle, immediate: int) -> Tokens:
    value = o.stack[-1] = o.input(immediate + o.stack[-1]) & _M
    return _word(value, _UNARY)


def _output(o: Oracle, immediate: int) -> Tokens:
    byte = o.stack.pop() & 255
    (o.errors if immediate == isa.STANDARD_ERROR else o.output).append(byte)
    return (_OUT[byte],)


def _drop(o: Oracle, immediate: int) -> Tokens:
    o.stack.pop()
    return _POP


# --- control -----------------------------------------------------------------------------------

_BR, _BR_IF = (isa.commit_token(delta, False, True) for delta in (0, -1))


def _br(o: Oracle, immediate: int) -> Tokens:
    o.jump(_signed(immediate))
    return (isa.BRANCH_TAKEN, *_word(immediate, _BR))


def _br_if(o: Oracle, immediate: int) -> Tokens:
    if not o.stack.pop():
        return _POP
    o.jump(_signed(immediate))
    return (isa.BRANCH_TAKEN, *_word(immediate, _BR_IF))


def _call(o: Oracle, immediate: int) -> Tokens:
    if o.depth == isa.MAX_CALL_DEPTH - 1:
        return _EXHAUSTED(o, 0)
    o.calls.append(immediate)
    o.enter()
    o.jump(_signed(immediate))
    return _word(immediate, isa.CALL_COMMIT)


def _return(o: Oracle, immediate: int) -> Tokens:
    value, tokens = _sum(immediate, o.calls.pop(), 0, isa.RETURN_COMMIT)
    o.depth -= 1
    o.jump(-_signed(value))
    return tokens


def _halt(o: Oracle, immediate: int) -> Tokens:
    o.ended = True
    o.index -= 1
    return (isa.HALT,)


RULES: dict[str, Rule] = {
    "i32.const": _const, "local.get": _local_get, "local.set": _local_set, "local.tee": _local_tee,
    "global.get": _global_get, "global.set": _global_set, "select": _select, "input": _input,
    "i32.add": _add, "i32.sub": _sub, "i32.eqz": _eqz, "drop": _drop, "output": _output,
    "br": _br, "br_if": _br_if, "call": _call, "return": _return, "halt": _halt,
    **{name: _load(name) for name in isa.LOADS},
    **{name: _store(name) for name in isa.STORES},
    **{name: _binary(compute, _ADD) for name, compute in _BINARY.items()},
    **{name: _count(compute) for name, compute in _COUNTS.items()},
    **{name: _division(name) for name in isa.DIVISIONS},
    "unreachable": _unreachable,
}  # fmt: skip
"""The rule of every opcode."""
