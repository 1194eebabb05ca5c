"""Links the calls of WASI into a module that another compiler made.

The calls are C (``compiler/wasi``), compiled to a module without a memory of its own: what they
remember stands in globals, so that nothing of the program's memory is taken. The package holds the
compiled module. After a change of the sources compile it again::

    python -m compiler.wasi_link
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path

from compiler import wasm
from compiler.errors import CompileError, Place
from compiler.library import CODE_FLAGS, LIBRARY_FLAGS
from compiler.toolchain_find import find_toolchain
from compiler.toolchain_run import TIMEOUT_SECONDS, run
from compiler.wasm_types import Function, Instruction, Module

WASI_MODULE = "wasi_snapshot_preview1"
"""Module name of the imports that are linked."""
_FLAGS = (
    "--target=wasm32-unknown-unknown", "-ffreestanding", "-fno-builtin", "-fno-unroll-loops",
    "-Wall", "-Wextra", "-Werror", "-Wno-int-to-pointer-cast",
)  # fmt: skip
_BINARY = "wasi.wasm"


def _folder() -> Path:
    return Path(str(files("compiler.wasi"))) / "linked"


def wasi_binary() -> bytes:
    """The compiled calls: exports by their WASI names, imports a memory (``env.memory``) and the
    functions of ``transputer``."""
    return (_folder() / _BINARY).read_bytes()


@cache
def wasi_module() -> Module:
    """The compiled calls, decoded."""
    return wasm.decode(wasi_binary(), "the compiler's WASI")


def needs_wasi(module: Module) -> bool:
    """Whether a module imports functions of WASI."""
    return any(f.imported and f.imported.module == WASI_MODULE for f in module.functions)


def link_wasi(module: Module) -> Module:
    """The module with its imports of WASI defined; itself if it has none.

    All functions and globals keep their indices. What the calls need besides follows the module's
    own; a call that is not known stays an import, and is refused where it is reached.

    Raises:
        CompileError: the memory is not exported, or an import has another type than in WASI.
    """
    return _Linker(module).module() if needs_wasi(module) else module


class _Linker:
    """Appends functions and globals, in the order in which they are needed."""

    def __init__(self, module: Module) -> None:
        self.source = module
        self.calls = wasi_module()
        self.indices: dict[int, int] = {}
        self.queue: list[int] = []

    def module(self) -> Module:
        """The linked module."""
        source = self.source
        memory = source.exports.get("memory")
        if memory is None or (memory.kind, memory.index) != ("memory", 0):
            reason = "imports functions of WASI but exports no memory for them"
            raise CompileError(reason, Place(source.file), 'export its memory as "memory"')
        functions = [self._own(function) for function in source.functions]
        for index in self.queue:  # grows while functions are found
            functions.append(self._linked(self.calls.functions[index], len(functions)))
        variables = (*source.globals, *self.calls.globals)
        return replace(source, functions=tuple(functions), globals=variables)

    def _own(self, function: Function) -> Function:
        names = function.imported
        if names is None or names.module != WASI_MODULE or names.name not in self.calls.exports:
            return function
        call = self.calls.functions[self.calls.exports[names.name].index]
        if call.type != function.type:
            reason = f"WASI's {names.name} is {call.type}, not {function.type}"
            raise CompileError(f"a wrong import: {reason}", self.source.place(function))
        return self._linked(replace(call, name=names.name), function.index)

    def _linked(self, function: Function, index: int) -> Function:
        """A function of the calls as one of the module."""
        code = tuple(map(self._instruction, function.code))
        return replace(function, index=index, name=f"({function.name})", code=code, offset=-1)

    def _instruction(self, instruction: Instruction) -> Instruction:
        args, first_global = instruction.args, len(self.source.globals)
        if instruction.op == "call":
            args = (self._index(args[0]),)
        elif instruction.op in ("global.get", "global.set"):
            args = (args[0] + first_global,)
        return replace(instruction, args=args, offset=-1)

    def _index(self, index: int) -> int:
        """Where a function that the calls need stands in the module."""
        if index not in self.indices:
            self.indices[index] = len(self.source.functions) + len(self.queue)
            self.queue.append(index)
        return self.indices[index]


def build_wasi() -> bytes:
    """Compile the sources.

    Raises:
        UsageError: no C compiler.
        CompileError: it refuses the sources.
    """
    toolchain = find_toolchain()
    include = ("-isystem", str(_folder().parent / "include"))
    with tempfile.TemporaryDirectory(prefix="wasi-") as folder:
        built, output = Path(folder) / "wasi.o", Path(folder) / _BINARY
        flags = (*CODE_FLAGS, *_FLAGS, *LIBRARY_FLAGS, *include, *toolchain.headers)
        source = str(_folder() / "wasi.c")
        run((*toolchain.clang, *flags, "-c", source, "-o", str(built)), timeout=TIMEOUT_SECONDS)
        link = ("--no-entry", "--import-memory", "--gc-sections", str(built), "-o", str(output))
        run((*toolchain.linker, *link), timeout=TIMEOUT_SECONDS)
        return output.read_bytes()


if __name__ == "__main__":
    (_folder() / _BINARY).write_bytes(build_wasi())
