"""Trace files; disks that are full, and folders that cannot be written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import zstandard

from command_line import ADD, ENGINE, ROOT, countdown, left_in, small_disk, start, transputer
from executor.trace_file import TraceFile

# --- trace files ------------------------------------------------------------------------------


def test_a_compressed_trace_is_the_same_trace(tmp_path: Path) -> None:
    program = countdown(tmp_path / "p.tok", 5)
    plain, packed = tmp_path / "t", tmp_path / "t.zst"
    for trace in (plain, packed):
        assert transputer("run", *ENGINE, "--trace", trace, program)[0] == 0
    assert zstandard.ZstdDecompressor().decompressobj().decompress(packed.read_bytes()) == (
        plain.read_bytes()
    )
    shown = transputer("trace", *ENGINE, program)
    assert shown[0] == 0 and len(shown[1].splitlines()) == 43
    for trace in (plain, packed):
        assert transputer("trace", "--from", trace, program) == shown
    packed.write_bytes(packed.read_bytes()[:-20])
    assert transputer("trace", "--from", packed, program)[0] == 2
    packed.write_bytes(b"no zstd")
    code, _, err = transputer("trace", "--from", packed, program)
    assert code == 2 and "damaged, or not compressed by zstd" in err


@pytest.mark.parametrize("step", [1, 2, 7, 100])
def test_how_a_trace_is_divided_does_not_show(tmp_path: Path, step: int) -> None:
    vocabulary = ("00", "branch_taken", "commit(0,sts=0,bt=1)", "q3(01)", "out(A)", "halt")
    ids = np.array([1, 0, 0, 0, 0, 2, 4, 3, 0, 4, 5], np.int32)
    with TraceFile(str(tmp_path / "t"), vocabulary) as file:
        for at in range(0, len(ids), step):
            file.write(ids[at : at + step])
            file.write(ids[:0])
    assert (tmp_path / "t").read_text() == (
        "branch_taken 00 00 00 00 commit(0,sts=0,bt=1)\nout(A)\nq3(01) 00 out(A)\nhalt\n"
    )


def test_a_run_that_fails_before_its_trace_leaves_none(tmp_path: Path) -> None:
    options = ("--trace", tmp_path / "t", "--checkpoint", "/proc/nowhere")
    assert transputer("run", *ENGINE, *options, ADD)[0] == 125
    assert left_in(tmp_path) == []


# --- full or not to be written ----------------------------------------------------------------

FULL = "No space left on device"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    ("options", "place"),
    [
        ("--trace /dev/full", "/dev/full: cannot be written: "),
        ("--checkpoint /dev/full", "/dev/full: cannot be written: "),
        ("> /dev/full", "input or output: "),
        ("--trace - > /dev/full", "input or output: "),
    ],
)
def test_a_full_device_is_an_error_in_one_line(options: str, place: str, tmp_path: Path) -> None:
    program = countdown(tmp_path / "p.tok", 3)
    command = f"{sys.executable} -m executor run --engine hull $OPTIONS {program}"
    done = subprocess.run(
        command.replace("$OPTIONS", options), cwd=ROOT, shell=True, capture_output=True, timeout=60
    )
    assert done.returncode == 125
    assert done.stderr.decode() == f"transputer: error: {place}{FULL}\n"


@pytest.mark.parametrize("option", ["--trace", "--checkpoint", "--keep-source"])
def test_a_folder_that_cannot_be_written_is_told_at_once(option: str) -> None:
    engine = () if option == "--keep-source" else ENGINE
    code, out, err = transputer("run", *engine, option, "/proc/nowhere/file", ADD)
    assert (code, out) == (125, "")
    assert err.startswith("transputer: error: /proc/nowhere") and len(err.splitlines()) == 1


@pytest.mark.parametrize("home", ["/proc/self", "none"])
def test_an_unusable_home_is_no_obstacle(tmp_path: Path, home: str) -> None:
    """What is kept goes to the temporary folder then; where that fails too, all goes without."""
    tmp = tmp_path / "tmp"
    if home == "none":
        tmp.write_text("")
    else:
        tmp.mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "executor", "run", *ENGINE, ADD],
        env={"HOME": home, "TMPDIR": str(tmp), "PYTHONPATH": str(ROOT)},
        cwd="/proc",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "\x08", "")
    if home != "none":
        assert [path.name[:6] for path in tmp.glob("transputer-*/kept/*")] == ["model-"]


def test_a_full_disk_under_the_cache_is_no_obstacle(tmp_path: Path) -> None:
    limited = small_disk(64)
    limited["env"]["TRANSPUTER_CACHE"] = str(tmp_path)
    process = start("run", *ENGINE, ADD, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **limited)
    assert process.communicate(timeout=60) == (b"\x08", b"")
    assert left_in(tmp_path) == ["kept"] and left_in(tmp_path / "kept") == []
