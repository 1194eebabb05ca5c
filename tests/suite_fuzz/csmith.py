"""Random C programs by Csmith, from the Debian packages ``csmith`` and ``libcsmith-dev``.

A seed decides everything: Csmith's own seed, its settings, the level of optimisation and the
argument that the program is given.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from debian import Unavailable, files_of
from suite_fuzz.kind import LEVELS, Written

PACKAGES = ("csmith", "libcsmith-dev")
SECONDS = 60
_FLAGS = ("-Wno-incompatible-pointer-types",)
"""It passes the address of a float as one of bytes."""
_SMALL = {
    "max-funcs": 2, "max-block-depth": 2, "max-block-size": 2, "max-expr-complexity": 3,
    "max-array-dim": 1, "max-array-len-per-dim": 4, "max-struct-fields": 3, "max-pointer-depth": 2,
}  # fmt: skip
"""Some 50 thousand instructions, most of them for the table of a checksum."""
_LARGER = {
    "max-funcs": 5, "max-block-depth": 3, "max-block-size": 3, "max-expr-complexity": 6,
    "max-array-dim": 2, "max-array-len-per-dim": 6, "max-struct-fields": 6, "max-pointer-depth": 3,
}  # fmt: skip
_WIDTHS = (("--longlong",), ("--no-longlong", "--no-math64"), ("--longlong", "--no-math64"))
_SOMETIMES = (
    "--no-safe-math", "--no-volatiles", "--no-bitfields", "--no-packed-struct", "--no-unions",
    "--no-jumps", "--inline-function",
)  # fmt: skip
"""Each in one of six programs. Without safe math a program may do what C does not define, and
WebAssembly does: trap, above all."""


def settings(seed: int) -> tuple[tuple[str, ...], str, tuple[str, ...]]:
    """What a seed stands for: options for Csmith, the level of optimisation, and the program's
    arguments, of which ``1`` makes it print a checksum of each variable."""
    rng = random.Random(seed)
    sizes = _SMALL if rng.random() < 0.7 else _LARGER
    options = [part for name, size in sizes.items() for part in (f"--{name}", str(size))]
    options += rng.choice(_WIDTHS)
    options += ["--float"] if rng.random() < 0.4 else []
    options += [option for option in _SOMETIMES if rng.random() < 1 / 6]
    args = rng.choice(((), ("1",)))
    return tuple(options), rng.choice(LEVELS), args


@dataclass(frozen=True)
class Csmith:
    """The generator, and the folder of the headers that its programs include."""

    program: Path
    headers: Path
    name = "csmith"

    def write(self, seed: int, target: Path) -> Written:
        """Writes the program of a seed."""
        options, opt, args = settings(seed)
        command = (
            str(self.program), "--quiet", "--seed", str(seed), *options, "--output", str(target)
        )  # fmt: skip
        subprocess.run(
            command, check=True, cwd=target.parent, timeout=SECONDS, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, env={**os.environ, "CSMITH_HOME": str(self.headers)},
        )  # fmt: skip
        return Written(opt, args, _FLAGS, (self.headers,))


def find_csmith() -> Csmith:
    """The installed Csmith, or else that of the packages.

    Raises:
        Unavailable: there is none.
    """
    installed = shutil.which("csmith")
    if installed and Path("/usr/include/csmith/csmith.h").exists():
        return Csmith(Path(installed), Path("/usr/include/csmith"))
    folder = files_of(PACKAGES, _keep)
    csmith = Csmith(folder / "bin" / "csmith", folder / "csmith")
    try:
        subprocess.run([csmith.program, "--version"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise Unavailable(f"csmith does not run here: {error}") from None
    return csmith


def _keep(unpacked: Path, kept: Path) -> None:
    shutil.copytree(unpacked / "usr" / "include" / "csmith", kept / "csmith")
    shutil.copytree(unpacked / "usr" / "bin", kept / "bin")
