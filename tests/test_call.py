"""The prototype that a call is checked by is the one the compiler sees."""

from __future__ import annotations

from pathlib import Path

import pytest

from compiler.errors import UsageError
from executor.call import Prototype, c_prototype, prototype


def types(found: Prototype | None) -> list[str]:
    """Names of the parameters' types and of the result's."""
    assert found is not None and found.parameters is not None
    kinds = [*found.parameters, found.result]
    return [kind.name if kind else "void" for kind in kinds]


def in_file(folder: Path, text: str, **options: list[str]) -> list[str]:
    path = folder / "f.c"
    path.write_text(text)
    return types(prototype([path], "f", **options))  # type: ignore[arg-type]


BRANCHES = """
#if CHOICE
unsigned f(unsigned a) { return a; }
#else
int f(int a) { return -a; }
#endif
"""


def test_branches_that_are_not_compiled_are_not_read(tmp_path: Path) -> None:
    assert in_file(tmp_path, BRANCHES) == ["int", "int"]
    assert in_file(tmp_path, BRANCHES, define=["CHOICE=1"]) == ["unsigned", "unsigned"]


def test_macros_and_headers_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "headers"
    folder.mkdir()
    (folder / "word.h").write_text("typedef unsigned short word;\n#define RESULT signed char\n")
    text = "#include <stdio.h>\n#include <stdint.h>\n#include <stdlib.h>\n#include <stdarg.h>\n"
    text += '#include "word.h"\nRESULT f(word a, uint8_t b) { putchar(a); return b; }'
    found = in_file(tmp_path, text, include=[str(folder)])
    assert found == ["unsigned short", "unsigned char", "signed char"]


def test_attributes_say_nothing_about_types(tmp_path: Path) -> None:
    text = """
    __attribute__((noinline, section("a)b"), aligned(sizeof(int) * (1 + 1))))
    __extension__ unsigned f(int a __attribute__((unused))) { return a; }"""
    assert in_file(tmp_path, text) == ["int", "unsigned"]


def test_a_file_that_the_preprocessor_refuses_is_read_as_it_is(tmp_path: Path) -> None:
    assert in_file(tmp_path, '#include "none.h"\nint f(char a) { return a; }') == ["char", "int"]


def test_a_parse_error_is_shown_without_a_position_in_text_of_ours() -> None:
    with pytest.raises(UsageError) as caught:
        c_prototype("int f(unknown a) { return 1; }", "f", "a.c")
    assert str(caught.value) == "a.c: f: its prototype cannot be read (before: a)"


def test_files_that_are_not_there_and_functions_that_are_not_defined(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.c: no such file"):
        prototype([tmp_path / "none.c"], "f")
    with pytest.raises(UsageError, match=r"f\.c: no function f is defined here"):
        in_file(tmp_path, "int f(int); int g(void) { return f(1); }")


def test_a_path_and_its_options_reach_the_prototype(tmp_path: Path) -> None:
    """The function's sign depends on a macro that is given on the command line."""
    source = tmp_path / "sign.c"
    source.write_text(
        "#ifdef U\nunsigned f(int a) { return a; }\n#else\nint f(int a) { return a; }\n#endif\n"
    )
    from executor.runner import prepare

    assert (
        prepare(source, ("f", -1)).prototype != prepare(source, ("f", -1), define=["U"]).prototype
    )
