"""Whatever is wrong with a source file is said in one message that names it."""

from __future__ import annotations

import os
import random
import time
from dataclasses import replace
from pathlib import Path

import pytest

from c_programs import compiled, run
from compiler import toolchain, toolchain_run
from compiler.errors import CompileError, TransputerError, UsageError
from compiler.frontend import to_wasm


def refusal(path: object, kind: type[TransputerError] = CompileError, **options: object) -> str:
    """The message of the error that compiling a file raises."""
    with pytest.raises(kind) as caught:
        to_wasm(path, **options)  # type: ignore[arg-type]
    assert type(caught.value) is kind
    return str(caught.value)


def c_file(folder: Path, text: str, name: str = "program.c") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_missing_files_and_folders(tmp_path):
    assert refusal(tmp_path / "none.c", UsageError).endswith("none.c: no such file")
    (tmp_path / "folder.c").mkdir()
    assert refusal(tmp_path / "folder.c", UsageError).endswith("folder.c: is a folder, not a file")
    os.mkfifo(tmp_path / "pipe.wasm")
    assert "not a regular file" in refusal(tmp_path / "pipe.wasm", UsageError)
    assert "no source file" in refusal([], UsageError)
    refusal("zero\0byte.c", UsageError)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_unreadable_file(tmp_path):
    path = c_file(tmp_path, "int main(void) { return 0; }")
    path.chmod(0)
    assert "cannot be read" in refusal(path, UsageError)


def test_a_file_that_fails_while_it_is_read(tmp_path, monkeypatch):
    path = c_file(tmp_path, "int main(void) { return 0; }")

    def broken(self: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", broken)
    message = f"{path}: cannot be read: Permission denied"
    assert refusal(path, UsageError) == message


def test_unknown_kinds_of_file(tmp_path):
    expected = "unknown kind of file, expected .c, .cpp, .wat, .wasm, .tok"
    assert expected in refusal(c_file(tmp_path, "", "x.txt"), UsageError)
    assert refusal(tmp_path / "none.txt", UsageError).endswith("none.txt: no such file")
    assert refusal(tmp_path / "none", UsageError).endswith("none: no such file")
    assert refusal(tmp_path, UsageError).endswith("is a folder, not a file")
    several = [c_file(tmp_path, "", "a.c"), c_file(tmp_path, "", "b.wat")]
    assert "only if all of them are C or C++" in refusal(several, UsageError)


def test_options_that_make_no_sense(tmp_path):
    path = c_file(tmp_path, "int main(void) { return 0; }")
    assert "-O9" in refusal(path, UsageError, opt="-O9")
    assert "NAME=VALUE" in refusal(path, UsageError, define=["1X"])
    assert "not the name of a function" in refusal(path, UsageError, exports=["a,b"])
    for size in (100, 1 << 26, 4100):
        assert "C stack" in refusal(path, UsageError, stack_bytes=size)
    for size in (0, 65537, 1 << 26):
        assert "pages of 64K" in refusal(path, UsageError, memory_bytes=size)
    assert "fit the memory" in refusal(path, memory_bytes=65536)
    assert "no such compiler" in refusal(path, UsageError, clang="/nowhere/clang")
    for flag in ("-c", "-mcpu=generic", "-Wl,-v", "-o", "b.c", "--target=x86_64", "-std=", "-E"):
        assert f"{flag}: not a flag that" in refusal(path, UsageError, flags=[flag])
    assert "unknown" in refusal(path, flags=["-fno-such-flag"])


def test_a_system_s_library_that_is_not_there(tmp_path, monkeypatch):
    path = c_file(tmp_path, "int main(void) { return 0; }")
    assert "--clang" in refusal(path, UsageError, sysroot=tmp_path)
    fake = tmp_path / "clang"
    fake.write_text("#!/bin/sh\necho fake\n")
    fake.chmod(0o755)
    wasi = {"clang": fake, "libc": "wasi"}
    assert f"{tmp_path}: no WASI library" in refusal(path, UsageError, sysroot=tmp_path, **wasi)
    monkeypatch.setenv("WASI_SDK_PATH", str(tmp_path / "sdk"))
    assert f"{tmp_path}/sdk/share/wasi-sysroot: no WASI" in refusal(path, UsageError, **wasi)


def test_compiler_that_does_not_run(tmp_path):
    fake = tmp_path / "clang"
    fake.write_text("#!/bin/sh\necho broken >&2\nexit 3\n")
    fake.chmod(0o755)
    path = c_file(tmp_path, "int main(void) { return 0; }")
    message = refusal(path, UsageError, clang=fake)
    assert message.startswith(f"{fake}: does not run as a compiler")
    assert "broken" in message


def test_c_errors_are_passed_on_with_file_and_line(tmp_path):
    message = refusal(c_file(tmp_path, "int main(void) {\n  return y;\n}\n"))
    assert "program.c:2:10: error: use of undeclared identifier 'y'" in message
    assert "Traceback" not in message


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("int other(void) { return 0; }", "write `int main(void)`"),
        ("void main(void) { }", "int main(void)"),
        ("double sqrt(double); int main(int c, char **v) { return sqrt(c); }", "defines sqrt"),
        ("#include <pthread.h>\nint main(void) { return 0; }", "the small C library has assert.h"),
    ],
)
def test_errors_say_what_to_do(tmp_path, text, advice):
    reason, _, remedy = refusal(c_file(tmp_path, text), libc="tiny").rpartition("\n  ")
    assert "program.c" in reason
    assert advice in remedy


def test_declarations_that_disagree(tmp_path):
    files = [
        c_file(tmp_path, "int f(int); int main(void) { return f(1); }", "a.c"),
        c_file(tmp_path, "int f(int a, int b) { return a + b; }", "b.c"),
    ]
    message = refusal(files)
    assert "defined as (i32) -> i32 in a.o\n" in message
    assert message.endswith("the declarations of f must agree in all files")


def test_a_function_that_cannot_be_called(tmp_path):
    path = c_file(tmp_path, "static int f(void) { return 1; } int main(void) { return f(); }")
    assert "not static" in refusal(path, exports=["f"])


def test_noise_is_refused_in_a_few_lines_and_seconds(tmp_path):
    noise = random.Random(1).randbytes(10_000_000)
    printable = bytes(32 + byte % 95 for byte in noise[:1_000_000]) + b"\n"
    started = time.monotonic()
    for name, content in [
        ("zero.c", noise),
        ("text.c", printable),
        ("lines.c", printable.replace(b"a", b"\n")),
        ("noise.wat", noise),
        ("text.wat", printable),
        ("noise.wasm", noise),
        ("magic.wasm", b"\0asm\x01\0\0\0" + noise),
    ]:
        path = tmp_path / name
        path.write_bytes(content)
        message = refusal(path)
        assert name in message
        assert len(message.splitlines()) < 50
        assert len(message) < 15_000
    assert time.monotonic() - started < 20


def test_every_truncation_of_a_module_is_refused(tmp_path):
    wasm = compiled("int main(int c, char **v) { return c / 3; }")
    code_end = wasm.index(b".debug")  # what follows are custom sections
    path = tmp_path / "cut.wasm"
    for size in [*range(0, 60), *range(60, code_end - 8, 17)]:
        path.write_bytes(wasm[:size])
        try:
            source = to_wasm(path)
        except CompileError as error:
            assert "cut.wasm" in str(error)
        else:  # cut exactly between two sections
            assert source.wasm == wasm[:size]
            assert size == 8 or wasm[size] in range(1, 12)


def test_text_format_errors_name_the_line(tmp_path):
    path = c_file(tmp_path, "(module\n  (func i32.bogus))\n", "x.wat")
    message = refusal(path)
    assert message.startswith(f"{path}: is not WebAssembly text")
    assert ":2:" in message


def test_a_compiler_that_does_not_end_is_stopped(tmp_path):
    fake = tmp_path / "clang"
    fake.write_text('#!/bin/sh\n[ "$1" = --version ] && echo fake && exit\nsleep 60 & wait\n')
    fake.chmod(0o755)
    path = c_file(tmp_path, "int main(void) { return 0; }")
    started = time.monotonic()
    assert "did not finish in 0.2 s" in refusal(path, clang=fake, timeout=0.2, libc="tiny")
    assert time.monotonic() - started < 10


def test_an_unusable_home_folder_is_no_obstacle(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.delenv("TRANSPUTER_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    for home in ("/nonexistent/home", str(tmp_path / "file"), ""):
        monkeypatch.setenv("HOME", home)
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        folder = toolchain.cache_folder()
        assert folder.parent.parent == tmp_path
        assert folder.is_dir()
    assert to_wasm(c_file(tmp_path, "int main(void) { return 0; }"), libc="tiny").wasm


@pytest.mark.parametrize(
    "script",
    [
        "echo 'warning: unable to write x: NoSpaceLeft'; echo more; exit 1",
        """echo "error: unable to open output file 'x.o': 'No space left on device'"; exit 1""",
        "echo 'error: IO failure on output stream: No space left on device'; exit 1",
        "kill -XFSZ $$",
    ],
)
def test_a_full_disk_under_the_compiler_is_told_in_one_line(script):
    with pytest.raises(UsageError, match="^the compiler cannot write .* is full; .*$"):
        toolchain_run.run(("/bin/sh", "-c", script), timeout=20)


def test_a_source_that_speaks_of_a_full_disk_is_no_full_disk(tmp_path):
    text = "int main(void) {\n  return x;  // No space left on device\n}"
    assert "the compiler refuses it" in refusal(c_file(tmp_path, text))


def test_a_failed_build_of_the_library_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setenv("TRANSPUTER_CACHE", str(tmp_path))
    good = toolchain.find_toolchain()
    broken = replace(good, archive=("/bin/false",), identity="broken archiver")
    with pytest.raises(CompileError):
        toolchain.library_archive(broken)
    assert not list((tmp_path / "libraries").glob("libc*"))


UNUSUAL = ['sp ace;$(x)"q.c', "a:b.c", "a\\b.c", "li\nne.c", "n" * 250 + ".c"]


@pytest.mark.parametrize("name", UNUSUAL)
def test_names_that_the_compiler_cannot_take(tmp_path, name):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "x.h").write_text("#define X 42\n")
    (tmp_path / "y.h").write_text("#define Y 1\n")
    text = '#include "x.h"\n#include "../y.h"\nint main(void) {\n  return X + Y; }\n'
    path = c_file(folder, text, name)
    first, second = to_wasm(path), to_wasm(path)
    assert run(first.wasm).exit_code == 43
    assert (first.name, first.wasm) == (name, second.wasm)
    c_file(folder, text.replace("+ Y", "+ z"), name)
    with pytest.raises(CompileError) as caught:
        to_wasm(path)
    _, first_line, *_ = caught.value.reason.splitlines()
    shown = f"{path}:4:14: error: use of undeclared".replace("\n", "?")
    assert first_line.startswith(shown[:300])
    assert "renamed" not in str(caught.value)


def test_folders_that_the_compiler_cannot_take(tmp_path):
    folder = tmp_path / "fol\\der"
    folder.mkdir()
    (folder / "x.h").write_text("#define X 42\n")
    path = c_file(folder, '#include "x.h"\nint main(void) { return X; }')
    assert run(to_wasm(path).wasm).exit_code == 42


def test_messages_about_headers_and_objects_of_renamed_files_name_the_user_s(tmp_path):
    (tmp_path / "x.h").write_text("int f(int) { return z; }\n")
    path = c_file(tmp_path, '#include "x.h"\nint main(void) { return f(1); }', "a:b.c")
    assert f"{tmp_path}/x.h:1:21: error" in refusal(path)
    path.write_text("int missing(void); int main(void) { return missing(); }")
    message = refusal(path)
    assert "a:b.o" in message and "renamed" not in message
