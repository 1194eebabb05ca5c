"""Checks the list of programs left out: does another way of compiling them give a right module?

``zig cc`` for WASI, with its own library and its own stack, run by wasmtime's own WASI. What runs
right that way does not belong on the list.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import wasmtime

from compiler.errors import CompileError
from compiler.library import CODE_FLAGS
from compiler.toolchain_find import zig_folder
from compiler.toolchain_run import run
from suite_torture.programs import TortureProgram

FUEL = 2_000_000_000
SECONDS = 300.0


def right_with_plain_zig(tasks: Sequence[tuple[TortureProgram, str]]) -> int:
    """Prints those programs, and returns 1 if there are any."""
    found = 0
    for program, opt in tasks:
        if runs_right(program, opt):
            found += 1
            print(f"{program.name}:{opt} is right by zig cc and should not be skipped", flush=True)
    print(f"{found} of {len(tasks)} should not be skipped")
    return int(found > 0)


def runs_right(program: TortureProgram, opt: str) -> bool:
    """Whether ``zig cc`` makes a module that ends with exit code 0 under wasmtime."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "program.wasm"
        command = (
            str(zig_folder() / "zig"), "cc", "--target=wasm32-wasi", *CODE_FLAGS, opt, "-s",
            "-UNDEBUG", "-fno-sanitize=undefined", "-w", *program.flags,
            str(program.path), "-o", str(target), "-lm",
        )  # fmt: skip
        try:
            run(command, timeout=SECONDS)
        except CompileError:
            return False
        return _exit_code(target.read_bytes()) == 0


def _exit_code(wasm: bytes) -> int | None:
    """What a WASI command ends with; None for a trap or no end."""
    config = wasmtime.Config()
    config.consume_fuel = True
    engine = wasmtime.Engine(config)
    store = wasmtime.Store(engine)
    store.set_fuel(FUEL)
    store.set_wasi(wasmtime.WasiConfig())
    linker = wasmtime.Linker(engine)
    linker.define_wasi()
    try:
        instance = linker.instantiate(store, wasmtime.Module(engine, wasm))
        start = instance.exports(store)["_start"]
        assert isinstance(start, wasmtime.Func)
        start(store)
    except wasmtime.ExitTrap as end:
        return end.code
    except (wasmtime.Trap, wasmtime.WasmtimeError):
        return None
    return 0
