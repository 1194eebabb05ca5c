"""``transputer explain``: what its text and JSON say is so; what cannot be explained is told."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
from pathlib import Path

import numpy as np
import pytest

from command_line import ADD, FOREVER, ROOT, start, transputer, write_tok
from executor import explain


def told(*arguments: object) -> str:
    code, out, err = transputer("explain", *arguments)
    assert (code, err) == (0, "")
    return out


def joined(text: str) -> str:
    """The text without its line breaks."""
    return " ".join(text.split())


def test_the_addition_is_told_with_what_it_read() -> None:
    text = told("--at", 10, ADD)
    page = joined(text)
    assert page.startswith("position 1,061: the model reads commit(+1,sts=1,bt=0) and writes 08")
    assert "08: written by i32.add" in page
    assert "the top of the stack: key 3 -> the token itself" in page
    assert "top = 5, top_position = 1,061" in page
    assert "the second value of the stack: key 2 -> position 1,056, commit(+1,sts=1,bt=0)" in page
    assert "second = 3, second_position = 1,056" in page
    assert "the byte of the second value: position 1,052, 03, written by i32.const" in page
    assert "result: i32.add: gate 1 * 8: result += 8" in page
    assert "logits: 08 64, 07 63, 09 63" in page
    assert text.endswith("margin: 1\n")
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 80


def test_heads_that_do_not_count_are_only_named() -> None:
    page = joined(told("--at", 10, ADD))
    assert "not needed by this token: memory, local" in page
    assert "where the local, global or return record was written" not in page
    everything = joined(told("--all", "--at", 10, ADD))
    assert "where the local, global or return record was written: key 0" in everything
    assert "counts for nothing here" in everything


def test_what_adds_nothing_is_told_only_if_everything_is() -> None:
    def sentences(text: str) -> list[str]:
        return re.findall(r"^  ([hn]\d+ .*(?:\n      .*)*)", text, re.MULTILINE)

    page, everything = told("--at", 10, ADD), told("--all", "--at", 10, ADD)
    amounts = [set(re.findall(r"=\s+(\S+?),?(?=\s|$)", text)) for text in sentences(page)]
    assert len(amounts) > 8 and all(added - {"0"} for added in amounts)
    assert "adds nothing here: shift_offsets, shift_factor\n" in page
    assert "adds nothing here: shifted\n" in page
    assert "the factor of a shift" in everything and "n16 shifted: gate 771 * 0" in everything
    assert "adds nothing here:" not in everything


def test_one_head_is_told_in_full_and_nothing_else() -> None:
    page = joined(told("--head", "2.6", "--at", 10, ADD))
    assert "query (2, 1), key (4, -4), score 4; ahead by 1 of position" in page
    assert "value (1,056, 3); counts for the answer" in page
    assert "layer 3" not in page
    assert "top_position" not in page


def test_all_slots_of_a_layer_before_and_after() -> None:
    rows = [line.split() for line in told("--layer", 6, "--at", 10, ADD).splitlines()]
    slots = [row for row in rows if row and row[0].isdigit()]
    assert [int(row[0]) for row in slots] == list(range(36))
    assert ["result", "8", '"', '"'] in [row[1:] for row in slots]


def test_the_last_token_is_the_default_and_several_come_in_order() -> None:
    assert told(ADD) == told("--at", -1, ADD) == told("--at", 16, ADD) == told("--at=-1:", ADD)
    page = told("--at", "10,3:5", "--layer", 0, ADD)
    starts = [line.split(":")[0] for line in page.splitlines() if line.startswith("position")]
    assert starts == ["position 1,054", "position 1,055", "position 1,061"]


def test_tokens_by_instruction_by_output_and_by_position() -> None:
    by_number = told("--at", "10:15", ADD)
    assert told("--instruction", 2, ADD) == by_number
    assert told("--position", "1061:1066", ADD) == by_number
    assert told("--output", 0, ADD) == told("--at", 15, ADD)


def test_output_bytes_are_those_of_standard_output(tmp_path: Path) -> None:
    source = tmp_path / "hello.c"
    source.write_text(
        "#include <stdio.h>\nint main(void){putchar(104);fputc(101,stderr);putchar(105);return 0;}"
    )
    page = told("--output", "0:2", "--layer", 6, source)
    assert "and writes out(h)" in page
    assert "and writes out(i)" in page
    assert "out(e)" not in page


def test_a_trace_from_a_file_is_read_by_the_same_weights(tmp_path: Path) -> None:
    trace = tmp_path / "add.trace"
    assert transputer("run", "--trace", trace, ADD)[0] == 0
    assert told("--from", trace, "--at", 10, ADD) == told("--at", 10, ADD)
    trace.write_text(trace.read_text().replace("08 00 00 00", "09 00 00 00"))
    page = joined(told("--from", trace, "--at", 10, ADD))
    assert "the trace has 09 there: it is not what this model writes" in page


def test_json_holds_what_the_python_object_holds() -> None:
    lines = told("--json", "--at", "10:12", ADD).splitlines()
    found = explain(ADD, at=[10, 11])
    assert [json.loads(line)["position"] for line in lines] == found.positions.tolist()
    data = json.loads(lines[0])
    assert (data["token"], data["writes"], data["margin"]) == ("commit(+1,sts=1,bt=0)", "08", 1)
    assert data["writes_source"]["step"] == 2
    second = data["layers"][2]["heads"][6]
    assert (second["name"], second["winner"], second["used"]) == ("second", 1056, True)
    assert {term["name"]: term["amount"] for term in second["adds"]} == {
        "second": 3,
        "second_position": 1056,
    }
    for time, slots in enumerate(data["stream"]):
        assert slots["values"] == found.stream[0, time].tolist()
    for number, layer in enumerate(data["layers"]):
        winners = [head["winner"] for head in layer["heads"]]
        assert winners == found.layers[number].attention.winners[0].tolist()
        outputs = np.array([max(n["gate"], 0) * n["value"] for n in layer["neurons"]])
        assert np.array_equal(outputs, found.layers[number].feed_forward.outputs[0])


def test_a_model_without_names_is_explained_by_number(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    assert transputer("build", "--out", folder)[0] == 0
    with_names = told("--model", folder, "--at", 10, ADD)
    assert with_names == told("--at", 10, ADD)
    (folder / "names.json").unlink()
    page = joined(told("--model", folder, "--at", 10, ADD))
    assert "head 6: key 2 -> position 1,056" in page
    assert "= 3" in page
    assert "top of the stack" not in page


def test_the_base_machine_has_names_of_its_own(tmp_path: Path) -> None:
    folder = tmp_path / "base"
    assert transputer("build", "--machine", "base", "--out", folder)[0] == 0
    page = joined(told("--model", folder, "--engine", "hull", "--at", 10, ADD))
    assert "what is read besides the top" in page
    assert "logits: 08" in page


def test_a_machine_of_ones_own_is_explained(tmp_path: Path) -> None:
    machine = tmp_path / "count.py"
    machine.write_text(COUNTER)
    folder = tmp_path / "count"
    code, _, err = transputer("build", "--machine", machine, "--seconds", 0, "--out", folder)
    assert code == 0, err
    page = joined(told("--model", folder, "--prompt", "7", "--max-tokens", 4, "--at", 1, "--all"))
    assert "the model reads 8 and writes 9, token 1 of the trace" in page
    assert "following.0: gate 8 * 1: following += 8" in page
    code, _, err = transputer("explain", "--model", folder, "--prompt", "7", "--output", 0)
    assert code == 2
    assert "--output is for models that run programs" in err


COUNTER = """
from compiler.graph import Graph

def machine() -> Graph:
    graph = Graph()
    number = graph.input("number")
    digits = {str(n): n for n in range(10)}
    for spelling, n in digits.items():
        graph.token(spelling, number=n)
    following = graph.function("following", number, {0: 1, 8: 9, 9: 0})
    graph.score_nearest(following, digits)
    graph.describe({"number": "the digit", "following": "the digit that follows"})
    return graph
"""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--at", 17), "no token of the trace 17: they go from 0 to 16"),
        (("--at", "20:30"), "no token of the trace 20:30"),
        (("--at", "x"), "is not a number, a range"),
        (("--instruction", 5), "no executed instruction 5: they go from 0 to 4"),
        (("--output", 1), "no byte of output 1: they go from 0 to 0"),
        (("--position", 5000), "no position 5000"),
        (("--layer", 7), "no layer 7"),
        (("--head", "0.18"), "no head 18"),
        (("--head", "5"), "is not LAYER.HEAD"),
        (("--layer", 1, "--head", "2.5"), "different layers"),
        (("--from", "missing.trace"), "missing.trace: cannot be read"),
        (("--model", "missing"), "missing: no such model folder"),
        (("--prompt", "a"), "--prompt is for a machine of your own"),
    ],
)
def test_what_does_not_exist_is_told(options: tuple[object, ...], message: str) -> None:
    code, out, err = transputer("explain", *options, ADD)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_a_file_that_is_no_trace_of_the_format_is_told(tmp_path: Path) -> None:
    trace = tmp_path / "add.trace"
    for text, message in (("halt halt", "'halt'"), ("hello", "no token 'hello'")):
        trace.write_text(text)
        code, _, err = transputer("explain", "--from", trace, ADD)
        assert code == 2
        assert message in err


def test_a_model_for_another_vocabulary_is_told(tmp_path: Path) -> None:
    from example_models import lookup_model
    from executor.checkpoint import save_checkpoint

    folder = save_checkpoint(lookup_model(), tmp_path / "model")
    code, _, err = transputer("explain", "--model", folder, ADD)
    assert code == 2
    assert "has no token" in err


def test_a_run_that_stops_at_a_limit_is_explained_as_far_as_it_goes() -> None:
    code, out, err = transputer("explain", "--max-tokens", 11, ADD)
    assert code == 0
    assert "stopped after 11 tokens" in err
    assert "writes 08" in joined(out)


def test_the_page_about_explain_shows_real_output(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs" / "explain.md").read_text()
    block = page.split("```console\n")[1].split("```")[0]
    command, _, shown = block.partition("\n")
    real = told("--at", 10, ADD)
    assert command == "$ transputer explain --at 10 programs/add.tok"
    at = 0
    for part in shown.split("...\n"):
        at = real.index(part, at)
    code = page.split("```python\n")[1].split("```")[0]
    monkeypatch.chdir(ROOT)
    exec(compile(code, "docs/explain.md", "exec"), {})
    assert capsys.readouterr().out.startswith("[1056 1056]\n")


def test_weights_for_softmax_are_told_in_the_same_words(tmp_path: Path) -> None:
    folder = tmp_path / "soft"
    assert transputer("build", "--softmax", "--out", folder)[0] == 0
    page = joined(told("--model", folder, "--at", 10, ADD))
    assert "the second value of the stack: key 2 -> position 1,056" in page
    assert "second = 3, second_position = 1,056" in page
    assert "position 1,052, 03, written by i32.const" in page


def test_what_the_model_would_write_in_the_prompt_is_told_as_such() -> None:
    page = joined(told("--position", 1050, "--layer", 0, ADD))
    assert page.startswith("position 1,050: the model reads } and would write")
    assert "the prompt goes on with eof" in page


@pytest.mark.parametrize("option", ["--at", "--instruction", "--output", "--position"])
def test_a_run_without_end_goes_only_as_far_as_is_needed(tmp_path: Path, option: str) -> None:
    program = write_tok(tmp_path / "forever.tok", *FOREVER)
    page = told(option, 1100 if option == "--position" else 1, "--layer", 0, program)
    assert page.startswith("position 1,")


@pytest.mark.long
@pytest.mark.parametrize("setting", ["", "1"])
def test_a_terminal_gets_colours_unless_it_does_not_want_them(tmp_path: Path, setting: str) -> None:
    trace = tmp_path / "add.trace"
    trace.write_text("03 00 00 00 commit(+1,sts=1,bt=0) 06")
    environment = {**os.environ, "TERM": "xterm-256color"} | (
        {"NO_COLOR": setting} if setting else {}
    )
    controller, terminal = pty.openpty()
    process = start("explain", "--from", trace, "--layer", 0, ADD, stdout=terminal, env=environment)
    os.close(terminal)
    text = b""
    with contextlib.suppress(OSError):  # the end of a terminal
        while part := os.read(controller, 1 << 16):
            text += part
    os.close(controller)
    assert process.wait(60) == 0
    assert b"it is not what this model writes" in text
    assert (b"\x1b[1;31m" in text) == (not setting)
