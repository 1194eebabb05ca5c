"""wasmtime as the reference: runs the module that a program was compiled from.

The imports (``transputer.output``, ``error``, ``input``, ``exit``) mean what they mean to the
machine, traps get the names of ``compiler.isa.TRAPS`` and ``compiler.program.TRAP_REASONS``, a
memory grows no further than the machine's can, and an endless run ends at a limit.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import wasmtime

from compiler import isa
from compiler.errors import CompileError, LimitError, Place, UsageError
from compiler.lower_context import IMPORT_MODULE, IMPORTS
from compiler.program import (
    MISMATCH,
    OUTSIDE_TABLE,
    TRAP_REASONS,
    UNDEFINED,
    UNINITIALISED,
    UNREACHABLE,
)
from compiler.values import Number, bits_of, value_of
from compiler.wasi_link import WASI_MODULE, wasi_binary, wasi_module
from compiler.wasm_opcodes import TYPE_NAMES
from compiler.wasm_types import PAGE_BYTES
from executor.call import Call, split_call

DEFAULT_FUEL = 1_000_000_000
"""WebAssembly instructions after which a run is given up: some seconds of wasmtime."""
ENTRIES = ("transputer_main", "main", "_start")
"""Exports that start a module, the first that exists."""
TRAP_EXIT_CODE = 134

_WASM_STACK_BYTES = 2 << 20
"""Native stack of the compiled code, as much as wasmtime allows: 128 bytes a call when calls nest
``isa.MAX_CALL_DEPTH`` deep."""
_THREAD_STACK_BYTES = 16 << 20
_REASONS = {
    wasmtime.TrapCode.UNREACHABLE: TRAP_REASONS[UNREACHABLE],
    wasmtime.TrapCode.INDIRECT_CALL_TO_NULL: TRAP_REASONS[UNINITIALISED],
    wasmtime.TrapCode.BAD_SIGNATURE: TRAP_REASONS[MISMATCH],
    wasmtime.TrapCode.INTEGER_DIVISION_BY_ZERO: isa.TRAPS["trap.divide_by_zero"],
    wasmtime.TrapCode.INTEGER_OVERFLOW: isa.TRAPS["trap.integer_overflow"],
    wasmtime.TrapCode.MEMORY_OUT_OF_BOUNDS: isa.TRAPS["trap.out_of_bounds"],
    wasmtime.TrapCode.STACK_OVERFLOW: isa.TRAPS["trap.stack_exhausted"],
}


_LETTERS = {TYPE_NAMES[letter]: letter for letter in "ilfd"}
_CALL_INDIRECT = 0x11
"""Its opcode: wasmtime has one trap for this and for instructions that access tables."""


@dataclass(frozen=True)
class ReferenceResult:
    """What a run of the reference left.

    Attributes:
        output, errors: the bytes it wrote to standard output and standard error.
        exit_code: the low eight bits of what the entry returned or ``exit`` was given, 0 if it
            returned nothing, 134 after a trap.
        trap: a reason of ``isa.TRAPS`` or ``program.TRAP_REASONS``, or wasmtime's own words for a
            trap that the machine does not have; None for a run that ended by itself.
        memory: the whole linear memory at the end, empty without one.
        value: what the entry or the called function returned (integers signed) or, without a call,
            ``exit`` was given; None if there is none.
        instructions: WebAssembly instructions executed, as wasmtime's fuel counts them (``block``,
            ``loop``, ``nop`` and ``drop`` are free).
    """

    output: bytes
    errors: bytes
    exit_code: int
    trap: str | None
    memory: bytes
    value: Number | None
    instructions: int


class _Exit(Exception):
    """Unwinds the module's frames when it calls ``transputer.exit``."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


@dataclass
class _Host:
    """The imports, over one input and two growing outputs."""

    input: bytes
    output: bytearray = field(default_factory=bytearray)
    errors: bytearray = field(default_factory=bytearray)

    def write(self, byte: int) -> None:
        self.output.append(byte & 0xFF)

    def write_error(self, byte: int) -> None:
        self.errors.append(byte & 0xFF)

    def read(self, k: int) -> int:
        if 0 <= k < len(self.input):
            return self.input[k]
        if k == len(self.input):
            return -1
        end = len(self.input)
        raise UsageError(f"input byte {k & 0xFFFFFFFF} was asked for, but the input ends at {end}")

    def exit(self, code: int) -> None:
        raise _Exit(code)

    def link(self, linker: wasmtime.Linker) -> None:
        i32 = wasmtime.ValType.i32
        for name, n_results, function in (
            ("output", 0, self.write),
            ("error", 0, self.write_error),
            ("input", 1, self.read),
            ("exit", 0, self.exit),
        ):
            kind = wasmtime.FuncType([i32()], [i32()] * n_results)
            linker.define_func("transputer", name, kind, function)


def run_reference(
    wasm: bytes,
    *,
    input: bytes = b"",
    call: Call | None = None,
    entry: str | None = None,
    fuel: int = DEFAULT_FUEL,
    name: str = "",
) -> ReferenceResult:
    """Runs a module's entry, or one exported function, under wasmtime.

    Args:
        wasm: the binary module.
        input: all bytes that ``transputer.input`` can read (``Program.input_bytes``).
        call: ``(export, argument, ...)``; integers signed or unsigned. Before it WASI's
            ``_initialize`` is called, if the module has it.
        entry: export to start; by default the first of ``ENTRIES`` that exists.
        fuel: WebAssembly instructions allowed.
        name: of the module, for messages.

    Raises:
        CompileError: invalid module, unknown import, or no entry.
        UsageError: no such export or arguments that do not fit; input asked for beyond its end.
        LimitError: the fuel is used up.

    Takes time proportional to the instructions executed, some 10^8 per second.
    """
    outcome: list[ReferenceResult | BaseException] = []

    def run() -> None:
        try:
            outcome.append(_run(wasm, input, call, entry, fuel, Place(file=name)))
        except BaseException as error:  # handed to the caller's thread
            outcome.append(error)

    # A deep recursion that the machine can run must not overflow this process's own stack.
    previous = threading.stack_size(_THREAD_STACK_BYTES)
    try:
        thread = threading.Thread(target=run, name="reference")
        thread.start()
    finally:
        threading.stack_size(previous)
    thread.join()
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    return outcome[0]


def _run(
    wasm: bytes,
    input_bytes: bytes,
    call: Call | None,
    entry: str | None,
    fuel: int,
    place: Place,
) -> ReferenceResult:
    config = wasmtime.Config()
    config.consume_fuel = True
    config.max_wasm_stack = _WASM_STACK_BYTES
    config.cranelift_nan_canonicalization = True  # the positive quiet NaN, as the machine's
    engine = wasmtime.Engine(config)
    store = wasmtime.Store(engine)
    store.set_limits(memory_size=isa.MAX_MEMORY_PAGES * PAGE_BYTES)
    store.set_fuel(fuel)
    host = _Host(input_bytes)
    instance: wasmtime.Instance | None = None
    value: Number | None = None
    code = 0
    trap: str | None = None
    try:
        module = wasmtime.Module(engine, wasm)
        linker = wasmtime.Linker(engine)
        host.link(linker)
        _link_wasi(engine, linker, module)
        _refuse_unknown(linker, module, place)
        instance = linker.instantiate(store, module)
        function, arguments = _target(store, instance, call, entry, place)
        result = function(store, *arguments)
        value = result if isinstance(result, int | float) else None
        code = value if call is None and isinstance(value, int) else 0
    except _Exit as end:
        code = end.code
        value = code if call is None else None
    except wasmtime.Trap as error:
        if error.trap_code is wasmtime.TrapCode.OUT_OF_FUEL:
            message = f"the reference executed {fuel} instructions without an end"
            raise LimitError(f"{place}: {message}" if str(place) else message) from None
        trap = _reason(error, wasm)
    except wasmtime.WasmtimeError as error:
        lines = str(error).strip().splitlines()
        raise CompileError(f"wasmtime refuses the module: {' '.join(lines[:3])}", place) from None
    memory = instance.exports(store).get("memory") if instance else None
    return ReferenceResult(
        output=bytes(host.output),
        errors=bytes(host.errors),
        exit_code=TRAP_EXIT_CODE if trap else code & 0xFF,
        trap=trap,
        memory=bytes(memory.read(store)) if isinstance(memory, wasmtime.Memory) else b"",
        value=value,
        instructions=fuel - store.get_fuel(),
    )


def _link_wasi(engine: wasmtime.Engine, linker: wasmtime.Linker, module: wasmtime.Module) -> None:
    """Define the imports of WASI that :mod:`compiler.wasi_link` links, by the same code: an
    instance on the module's own memory, made when it is first called."""
    imports = [i for i in module.imports if i.module == WASI_MODULE]
    if not imports:
        return
    calls = wasmtime.Module(engine, wasi_binary())
    known = {export.name: export.type for export in calls.exports}
    made: list[wasmtime.Instance] = []

    def forward(caller: wasmtime.Caller, *arguments: int, name: str) -> object:
        if not made:
            linker.define(caller, "env", "memory", caller["memory"])
            made.append(linker.instantiate(caller, calls))
        function = made[0].exports(caller)[name]
        assert isinstance(function, wasmtime.Func)
        return function(caller, *arguments)

    for name in (item.name for item in imports if item.name):
        kind = known.get(name)
        if isinstance(kind, wasmtime.FuncType):
            call = partial(forward, name=name)
            linker.define_func(WASI_MODULE, name, kind, call, access_caller=True)


def _refuse_unknown(linker: wasmtime.Linker, module: wasmtime.Module, place: Place) -> None:
    """Functions that nothing provides may be imported as long as nothing calls them."""

    def refuse(*arguments: int, what: str) -> None:
        raise CompileError(f"nothing provides the import {what}", place)

    for item in module.imports:
        name, kind = item.name or "", item.type
        linked = item.module == WASI_MODULE and name in wasi_module().exports
        provided = item.module == IMPORT_MODULE and name in IMPORTS
        if isinstance(kind, wasmtime.FuncType) and not linked and not provided:
            call = partial(refuse, what=f"{item.module}.{name}")
            linker.define_func(item.module, name, kind, call)


def _target(
    store: wasmtime.Store,
    instance: wasmtime.Instance,
    call: Call | None,
    entry: str | None,
    place: Place,
) -> tuple[wasmtime.Func, list[Number]]:
    """The function to start and its arguments, checked against its type."""
    exports = instance.exports(store)
    functions = {
        key: export for key, export in exports.items() if isinstance(export, wasmtime.Func)
    }
    if call is None:
        names = (entry,) if entry else ENTRIES
        found = next((name for name in names if name in functions), None)
        if found is None:
            wanted = " or ".join(names)
            remedy = "call one of its exports instead: " + (", ".join(functions) or "it has none")
            raise CompileError(f"exports no function {wanted} to start with", place, remedy)
        kind = functions[found].type(store)
        if kind.params or [str(result) for result in kind.results] not in ([], ["i32"]):
            raise UsageError(f"{found}: an entry takes nothing and returns one i32 or nothing")
        return functions[found], []
    name, arguments = split_call(call)
    if name not in functions:
        offered = ", ".join(functions) or "none"
        raise UsageError(f"no exported function {name}; there are: {offered}")
    initialise = functions.get("_initialize")
    if initialise is not None:
        initialise(store)
    kind = functions[name].type(store)
    params = [_LETTERS.get(str(valtype), "") for valtype in kind.params]
    results = [_LETTERS.get(str(valtype), "") for valtype in kind.results]
    if not all((*params, *results)) or len(results) > 1:
        raise UsageError(f"{name}: only numbers can be passed, and at most one returned")
    if len(params) != len(arguments):
        message = f"{name}: takes {len(params)} arguments, {len(arguments)} were given"
        raise UsageError(message)
    return functions[name], [
        value_of(type_, bits_of(type_, argument))
        for type_, argument in zip(params, arguments, strict=True)
    ]


def _reason(error: wasmtime.Trap, wasm: bytes) -> str:
    code = error.trap_code
    if code is wasmtime.TrapCode.TABLE_OUT_OF_BOUNDS:
        calls = any(wasm[frame.module_offset] == _CALL_INDIRECT for frame in error.frames[:1])
        return TRAP_REASONS[UNDEFINED if calls else OUTSIDE_TABLE]
    if code in _REASONS:
        return _REASONS[code]
    lines: Sequence[str] = error.message.strip().splitlines()
    return lines[-1].strip().removeprefix("wasm trap: ") if lines else "unknown trap"
