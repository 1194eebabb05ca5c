"""Pictures of an explanation hold what it says; what cannot be drawn is told."""

from __future__ import annotations

import builtins
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from command_line import ADD, transputer
from executor import explain
from executor.inside.forward import keys_of_head
from executor.inside.picture import arcs_of, hull

pytest.importorskip("matplotlib")


def drawn(folder: Path, *options: object) -> str:
    """The texts of a drawing."""
    file = folder / "picture.svg"
    assert transputer("explain", "--at", 10, "--picture", file, *options, ADD) == (0, "", "")
    comments = re.findall(r"<!-- (.*?) -->", file.read_text())
    return "\n".join(comment.replace("&gt;", ">") for comment in comments)


def test_arcs_are_labelled_with_heads_tokens_and_positions(tmp_path: Path) -> None:
    texts = drawn(tmp_path)
    assert "2.6  the second value of the stack: 1,056" in texts
    assert "2.5  the top of the stack: itself" in texts
    assert "5.2  the byte of the top of the stack: 1,057" in texts
    assert "1,061 commit(+1,sts=1,bt=0)" in texts
    assert "i32.add" in texts
    assert "memory" not in texts


def test_the_arcs_are_the_heads_that_count() -> None:
    found = explain(ADD, at=10)
    assert found.names is not None
    arcs = arcs_of(found, 1061)
    assert {(arc.layer, arc.head) for arc in arcs} >= {(2, 5), (2, 6), (4, 0), (5, 2)}
    for arc in arcs:
        attention = found.layers[arc.layer].attention
        assert attention.used[0, arc.head]
        assert attention.winners[0, arc.head] == arc.winner


def test_the_hull_of_a_head_names_winner_and_query(tmp_path: Path) -> None:
    texts = drawn(tmp_path, "--hull", "2.6")
    assert "layer 2, head 6 (the second value of the stack)" in texts
    assert "query (2, 1)" in texts
    assert "3 different keys" in texts
    assert "winner (4, -4): position 1,056, commit" in texts


def test_the_same_picture_is_the_same_file(tmp_path: Path) -> None:
    drawn(tmp_path)
    first = (tmp_path / "picture.svg").read_bytes()
    drawn(tmp_path)
    assert (tmp_path / "picture.svg").read_bytes() == first


def test_keys_of_a_head_are_those_that_win() -> None:
    found = explain(ADD, at=16)
    tokens = found.tokens[: int(found.positions[0]) + 1]
    for layer, head in ((0, 4), (2, 5), (5, 0), (6, 3)):
        attention = found.layers[layer].attention
        keys = keys_of_head(found.checkpoint, tokens, layer, head)
        assert len(keys) == len(tokens)
        winner = attention.winners[0, head]
        assert np.array_equal(keys[winner], attention.keys[0, head])


def test_a_hull_has_the_corners_and_no_others() -> None:
    square = [(x, y) for x in range(4) for y in range(4)]
    assert {tuple(c) for c in hull(np.array(square, float)).tolist()} == {
        (0, 0), (0, 3), (3, 0), (3, 3),
    }  # fmt: skip
    circle = [(math.cos(a), math.sin(a)) for a in range(9)]
    assert len(hull(np.unique(np.array([*circle, (0, 0)]), axis=0))) == 9
    line = np.array([(n, 2.0 * n) for n in range(5)])
    assert {tuple(c) for c in hull(line).tolist()} == {(0, 0), (4, 8)}
    assert hull(line[:1]).tolist() == [[0, 0]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--picture", "a.txt"), "a picture ends in one of"),
        (("--picture", "nowhere/a.svg"), "nowhere/a.svg: there is no folder nowhere"),
        (("--picture", "a.svg", "--at", "1:3"), "a picture shows one token, these are 2"),
        (("--picture", "a.svg", "--hull", "9.0"), "no layer 9"),
        (("--hull", "2.6"), "--picture FILE.svg"),
    ],
)
def test_what_cannot_be_drawn_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = transputer("explain", *options, ADD)
    assert (code, out) == (2, "")
    assert message in err
    assert list(tmp_path.iterdir()) == []


def test_without_matplotlib_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    code, _, err = transputer("explain", "--picture", tmp_path / "a.svg", ADD)
    assert code == 2
    assert "the extra `plots`): pip install matplotlib" in err
