"""Programs linked with the WASI library, beside the same ones under wasmtime's own WASI."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import wasmtime

from compiler.frontend import to_wasm
from compiler.toolchain import cache_folder, find_toolchain

PROGRAMS = Path(__file__).parent.parent / "programs"


@dataclass(frozen=True)
class Real:
    """What a program did under wasmtime's WASI."""

    stdout: bytes
    stderr: bytes
    exit_code: int
    trap: bool


@cache
def linked(text: str, opt: str = "-O2", suffix: str = ".c") -> bytes:
    """The module of a program given as text, with the WASI library."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"program{suffix}"
        path.write_text(text)
        return to_wasm(path, opt=opt, libc="wasi").wasm


@cache
def original(text: str, opt: str = "-O2", suffix: str = ".c") -> bytes:
    """The module that zig makes of the same program, with the WASI calls left in."""
    zig = find_toolchain().clang[0]
    cache = str(cache_folder() / "zig")
    environment = {**os.environ, "ZIG_GLOBAL_CACHE_DIR": cache, "ZIG_LOCAL_CACHE_DIR": cache}
    with tempfile.TemporaryDirectory() as folder:
        path, output = Path(folder) / f"program{suffix}", Path(folder) / "program.wasm"
        path.write_text(text)
        driver = "cc" if suffix == ".c" else "c++"
        flags = ["-mcpu=mvp", "-s", "-UNDEBUG", "-fno-sanitize=all", "-D_WASI_EMULATED_SIGNAL"]
        flags += ["-D_WASI_EMULATED_PROCESS_CLOCKS", "-D_WASI_EMULATED_GETPID"]
        flags += [] if suffix == ".c" else ["-fno-exceptions", "-fno-rtti"]
        command = [zig, driver, "--target=wasm32-wasi", opt, *flags, str(path), "-o", str(output)]
        subprocess.run(command, check=True, env=environment, capture_output=True, timeout=900)
        return output.read_bytes()


def run_real(wasm: bytes, args: Sequence[str] = (), stdin: bytes = b"") -> Real:
    """Runs a module under wasmtime's WASI, with no files and an empty environment."""
    config = wasmtime.Config()
    config.cranelift_nan_canonicalization = True  # the sign of a NaN would be the host machine's
    engine = wasmtime.Engine(config)
    store = wasmtime.Store(engine)
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / name for name in ("in", "out", "err")]
        files[0].write_bytes(stdin)
        wasi = wasmtime.WasiConfig()
        wasi.argv = ["program.c", *args]
        wasi.stdin_file, wasi.stdout_file, wasi.stderr_file = map(str, files)
        store.set_wasi(wasi)
        linker = wasmtime.Linker(engine)
        linker.define_wasi()
        code, trap = 0, False
        try:
            instance = linker.instantiate(store, wasmtime.Module(engine, wasm))
            start = instance.exports(store)["_start"]
            assert isinstance(start, wasmtime.Func)
            start(store)
        except wasmtime.ExitTrap as end:
            code = end.code
        except wasmtime.Trap:
            trap = True
        store.close()
        return Real(files[1].read_bytes(), files[2].read_bytes(), code, trap)
