"""The cache on disk: what is kept comes back or is made again, and a program never a wrong one."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import compiler.kept
from compiler import compile_program, store
from compiler.kept import compile_kept
from compiler.program import Program
from compiler.store import cache_folders, digest, evict, keep, kept
from executor.kept import kept_checkpoint
from executor.loading import build_checkpoint


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of entries in a cache of the test's own, which shares the C libraries."""
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "libraries").symlink_to(cache_folders("libraries")[0])
    monkeypatch.setenv("TRANSPUTER_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "kept"


def test_an_entry_comes_back(folder: Path) -> None:
    assert kept("thing", "1") is None
    assert keep("thing", "1", {"a": [1, None, "é\ud800"]}, [b"", b"\0x" * 1000])
    entry = kept("thing", "1")
    assert entry == ({"a": [1, None, "é\ud800"]}, (b"", b"\0x" * 1000))
    assert kept("thing", "2") is None and kept("other", "1") is None


def test_a_damaged_entry_is_as_good_as_none(folder: Path) -> None:
    keep("thing", "1", [1, 2, 3], [b"abc" * 50])
    path = folder / "thing-1"
    whole = path.read_bytes()
    for at in range(len(whole)):
        for data in (whole[:at], whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]):
            path.write_bytes(data)
            assert kept("thing", "1") is None
            assert not path.exists()
    keep("thing", "1", [1, 2, 3], [b"abc" * 50])
    assert path.read_bytes() == whole


def test_without_a_folder_that_can_be_written_nothing_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TRANSPUTER_CACHE", str(tmp_path / "file"))
    assert not keep("thing", "1", 1)
    assert kept("thing", "1") is None


def test_many_keep_the_same_at_once(folder: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(lambda _: keep("thing", "1", 1, [b"x" * 100_000]), range(40)))
    assert [path.name for path in folder.iterdir()] == ["thing-1"]
    assert kept("thing", "1") == (1, (b"x" * 100_000,))


def test_what_was_not_used_for_longest_goes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        keep("thing", str(number), number, [os.urandom(1000)])
        os.utime(folder / f"thing-{number}", (number, number))
    assert kept("thing", "0") is not None  # it is used, so it stays
    evict(folder, 3 * (folder / "thing-0").stat().st_size)
    assert sorted(path.name for path in folder.iterdir()) == ["thing-0", "thing-3", "thing-4"]
    monkeypatch.setattr(store.evict, "__defaults__", (2500,))
    keep("thing", "5", 5, [os.urandom(1000)])
    assert sorted(path.name for path in folder.iterdir()) == ["thing-0", "thing-5"]


def test_what_is_too_large_is_not_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MOST_BYTES", 8000)
    assert not keep("thing", "1", 1, [os.urandom(1000)])
    assert keep("thing", "1", 1, [os.urandom(900)])


def test_names_depend_on_where_parts_begin() -> None:
    names = {digest("ab", "c"), digest("a", "bc"), digest("abc"), digest("ab", "c", ""), digest()}
    assert len(names) == 5 and digest("a", b"b") == digest(b"a", "b")


def test_where_the_cache_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    temporary = tmp_path / f"transputer-{os.getuid()}" / "kept"
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("TRANSPUTER_CACHE", "/a")
    assert cache_folders("kept") == [Path("/a/kept")]
    monkeypatch.delenv("TRANSPUTER_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    home = tmp_path / "home" / ".cache" / "transputer" / "kept"
    assert cache_folders("kept") == [tmp_path / "xdg" / "transputer" / "kept", home, temporary]
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_folders("kept") == [home, temporary]
    monkeypatch.setenv("HOME", "/nonexistent")
    assert cache_folders("kept") == [temporary]


def test_a_folder_of_somebody_else_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever owns it could have put a library of his own there."""
    uid = os.getuid()
    monkeypatch.delenv("TRANSPUTER_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", "/nonexistent")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(os, "getuid", lambda: uid + 1)
    (tmp_path / f"transputer-{uid + 1}").mkdir()
    assert cache_folders("kept") == []


# --- programs ---------------------------------------------------------------------------------

Compile = Callable[..., Program]


@pytest.fixture
def count(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What was really compiled."""
    compiled: list[object] = []

    def counted(source: object, **options: object) -> Program:
        compiled.append(source)
        return compile_program(source, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(compiler.kept, "compile_program", counted)
    return compiled


def test_a_kept_program_is_the_compiled_one(tmp_path: Path, count: list[object]) -> None:
    path = tmp_path / "p.c"
    path.write_text(
        '#include "p.h"\nint f(int a) { return a + P; }\n'
        "int main(int argc, char **argv) { return f(argc) + argv[0][0]; }\n#warning hear me\n"
    )
    (tmp_path / "p.h").write_text("#define P 5\n")
    for call in (None, ("f", 7)):
        wanted = compile_program(path, call=call)
        assert [compile_kept(path, call=call) for _ in range(3)] == [wanted] * 3
    wanted = compile_program(path)
    assert "hear me" in str(wanted.report["warnings"])
    assert compile_kept(wanted.wasm) == compile_kept(wanted.wasm) == compile_program(wanted.wasm)
    assert len(count) == 3


def test_whatever_a_program_depends_on_makes_it_another(
    tmp_path: Path, count: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    path, other = tmp_path / "p.c", tmp_path / "q.c"
    path.write_text('#include "p.h"\nint main(void) { return P; }\n')
    other.write_text('#include "p.h"\nint main(void) { return P; }\n')
    (tmp_path / "b" / "p.h").write_text("#define P 5\n")
    include = {"include": [tmp_path / "a", tmp_path / "b"]}

    def compiled(*, source: object = path, **options: object) -> Program:
        before = len(count)
        program = compile_kept(source, **{**include, **options})  # type: ignore[arg-type]
        assert len(count) == before + 1, "an old program was found"
        assert compile_kept(source, **{**include, **options}) == program  # type: ignore[arg-type]
        assert len(count) == before + 1, "nothing was found"
        return program

    first = compiled()
    (tmp_path / "b" / "p.h").write_text("#define P 6\n")
    second = compiled()
    assert first.wasm != second.wasm
    (tmp_path / "a" / "p.h").write_text("#define P 7\n")  # found before the one that was read
    assert compiled().wasm not in (first.wasm, second.wasm)
    compiled(opt="-O0")
    compiled(define=["X"])
    compiled(flags=["-fwrapv"])
    compiled(stack_bytes=65536)
    compiled(memory_bytes=1 << 20)
    compiled(libc="tiny")
    assert compiled(source=other).name == "q.c"
    monkeypatch.setattr(compiler.kept, "sources_digest", lambda package: "another compiler")
    compiled()


def test_a_source_that_changes_while_it_is_compiled_is_not_kept(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "p.c"
    path.write_text("int main(void) { return 1; }\n")

    def late(source: Path, **options: object) -> Program:
        source.write_text("int main(void) { return 2; }\n")
        return compile_program(source)

    monkeypatch.setattr(compiler.kept, "compile_program", late)
    compile_kept(path)
    assert not folder.exists() or not list(folder.glob("program-*"))


def test_files_that_the_preprocessor_does_not_see_are_not_trusted(
    tmp_path: Path, count: list[object]
) -> None:
    (tmp_path / "data").write_bytes(b"1")
    path = tmp_path / "p.c"
    path.write_text(f'asm(".incbin \\"{tmp_path}/data\\"");\nint main(void) {{ return 0; }}\n')
    for _ in range(2):
        compile_kept(path)
    path.write_text("int main(void) { return 0; }\n")
    for _ in range(2):
        compile_kept(path, flags=["-fmessage-length=0"])  # other flags like it read files
    assert len(count) == 4


def test_the_kept_model_is_the_built_one(folder: Path) -> None:
    wanted = build_checkpoint()
    for _ in range(2):
        found = kept_checkpoint()
        for name in ("config", "vocabulary", "rom", "names"):
            assert getattr(found, name) == getattr(wanted, name)
        assert found.weights.keys() == wanted.weights.keys()
        assert all(
            np.array_equal(found.weights[name], wanted.weights[name]) for name in found.weights
        )
    assert len(list(folder.glob("model-*"))) == 1
