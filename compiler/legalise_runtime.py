"""The runtime: functions in C for what is too long to be written out, compiled to WebAssembly.

The package holds the compiled module, so that using it needs no C compiler. After a change of the
sources (``compiler/runtime/*.c``) compile it again::

    python -m compiler.legalise_runtime
"""

from __future__ import annotations

import subprocess
import tempfile
from importlib.resources import files
from pathlib import Path

from compiler.toolchain import find_toolchain

_FLAGS = (
    "-mcpu=mvp", "-Os", "-g0", "-nostdlib", "-ffreestanding", "-fno-builtin",
    "-fno-sanitize=all", "-Wall", "-Wextra", "-Werror",
    "-mllvm", "-disable-lsr", "-mllvm", "-switch-to-lookup=false",
    "-Wl,--no-entry", "-Wl,--export-dynamic",
)  # fmt: skip
_BINARY = "runtime.wasm"
_SECONDS = 120


def _folder() -> Path:
    return Path(str(files("compiler.runtime")))


def runtime_binary() -> bytes:
    """The compiled runtime."""
    return (_folder() / _BINARY).read_bytes()


def build_runtime() -> bytes:
    """Compile the sources.

    Raises:
        UsageError: no C compiler.
        subprocess.CalledProcessError: it refuses the sources.
    """
    toolchain = find_toolchain()
    sources = sorted(map(str, _folder().glob("*.c")))
    with tempfile.TemporaryDirectory(prefix="runtime-") as folder:
        output = Path(folder) / _BINARY
        command = (*toolchain.compile, *_FLAGS, *sources, *toolchain.link_flags, "-o", str(output))
        subprocess.run(command, check=True, timeout=_SECONDS)
        return output.read_bytes()


if __name__ == "__main__":
    (_folder() / _BINARY).write_bytes(build_runtime())
