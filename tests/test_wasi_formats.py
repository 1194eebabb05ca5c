"""Formats of printf and scanf: what they link, and that it prints what the original prints."""

from __future__ import annotations

import hashlib

import pytest

from c_programs import opcodes, run
from compiler.wasm import decode
from wasi_programs import linked, main, same


@pytest.mark.parametrize(
    ("body", "has_doubles", "has_long_doubles"),
    [
        ('printf("%d %s\\n", argc, argv[0]);', False, False),
        ("double x; scanf(\"%lf\", &x); printf(\"%f\\n\", x / argc);", True, False),
        ('float x = argc; printf("%g\\n", x);', True, False),
        ('printf("%g\\n", atof("2.5"));', True, False),
        ('long double x = argc; printf("%Lg\\n", x / 3);', True, True),
    ],
)  # fmt: skip
def test_printf_is_linked_for_the_types_that_the_program_has(body, has_doubles, has_long_doubles):
    text = main(body)
    module = decode(linked(text), "test")
    assert same(text, stdin=b"7.25") != b""
    names = {function.name for function in module.functions}
    assert ("__extenddftf2" in names or "__multf3" in names) is has_long_doubles
    assert any(op.startswith("f64") for op in opcodes(linked(text))) is has_doubles


def test_printf_without_floats_never_prints_something_else():
    head = "extern int printf(const char *, ...);"
    text = head + 'int main(void) { printf("%d %f", 1, 2LL); return 0; }'
    result = run(linked(text))
    assert result.trap == "unreachable"
    assert b"use a double in the program" in result.errors
    text = '#include <stdio.h>\nint main(void) { char x[8]; return scanf("%lf", (void *)x); }'
    result = run(linked(text), stdin=b"1.5")
    assert result.trap == "unreachable"
    assert b"has a float or double" in result.errors


@pytest.mark.parametrize("opt", ["-O0", "-O2"])
@pytest.mark.parametrize(
    "body",
    [
        'errno = ENOENT; printf("%m|%-30m|%.4m|%d", 5);',
        'const char *form = argc ? "\\"%5.3m\\"" : ""; errno = EBADF; printf(form);',
        'char form[] = {37, 109, 0}; errno = 999; printf(form);',
        '#define FORM(x) "%" #x\n errno = ERANGE; fprintf(stdout, FORM(m));',
        'double m = argc; errno = EDOM; printf("%g %m", m);',
    ],
)  # fmt: skip
def test_texts_of_errors_are_linked_where_a_format_asks_for_them(body, opt):
    assert same(main(body + " return 0;"), opt=opt) != b""


def test_formats_without_a_text_of_errors_leave_them_out_and_never_print_something_else():
    text = main('int m = argc * 5, mul = m % 3; printf("%d%% more %d", m, mul); return 0;')
    assert b"Bad file descriptor" not in linked(text)
    made = 'char form[] = "%d"; form[argc] = "m"[0]; return printf(form, 1);'
    result = run(linked(main(made)))
    assert result.trap == "unreachable"
    assert b"%m in a format is linked only where" in result.errors


def test_hello_is_short():
    wasm = linked('#include <stdio.h>\nint main(void) { printf("Hello, %d!\\n", 42); return 0; }')
    module = decode(wasm, "test")
    assert sum(len(function.code) for function in module.functions) < 4_000
    assert run(wasm).instructions < 2_500


@pytest.mark.long
def test_printf_of_doubles_is_that_of_the_original():
    text = main(
        r"""
  double x;
  while (scanf("%lf", &x) == 1) {
    printf("%g %f %e %.0f %.15g %.17g %a %.3a %25.20f %.40g\n", x, x, x, x, x, x, x, x, x, x);
    printf("%.9g %g\n", (double)(float)x, fmod(x, 3));
    for (int i = 0; i < 16; i++) printf("%.*a %.*e ", i, x, i, x);
  }
"""
    )
    digest = hashlib.sha256(b"doubles").digest()
    numbers = [
        f"{int.from_bytes(digest[i : i + 4], 'big')}e{digest[i] % 600 - 310}" for i in range(28)
    ]
    numbers += ["0", "-0", "inf", "nan", "1e308", "5e-324", "2.2250738585072014e-308", "0.1", "9.5"]
    same(text, stdin=" ".join(numbers).encode())
