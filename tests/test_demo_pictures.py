"""The pictures of the demonstrations are the trace's, fit every terminal, and can be recorded."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.text import Text

from command_line import ROOT, transputer
from executor.demo import hungarian, many
from executor.demo.hungarian import HungarianScene, Memory
from executor.demo.scene import Scene
from executor.demo.screen import compose
from executor.demo.stage import Pacing, Show, pieces
from executor.demo.sudoku import HARDEST, SudokuScene
from executor.demo.svg import Recording
from executor.oracle import trace_tokens
from executor.replay import Replay
from executor.watch import MemoryWatch, addresses
from test_demo import EASY, LEAST, MATRIX, TWO_WAYS
from test_scan import IDS, VOCABULARY


def recorded(scene: Scene, most: int) -> tuple[MemoryWatch, Replay, list[str]]:
    """A scene's program, its tokens up to ``most``, and both ways to follow them."""
    program = scene.task.compiled()
    scene.begin(program)
    trace = trace_tokens(program, scene.task.args, scene.task.stdin)
    tokens = [token for token, _ in zip(trace, range(most), strict=False)]
    return MemoryWatch(program, VOCABULARY), Replay(program), tokens


def moments(scene: Scene, most: int, step: int) -> Iterator[bytearray]:
    """Shows a recorded run step by step; after each step yields the memory by the replay."""
    watch, replay, tokens = recorded(scene, most)
    for at in range(0, len(tokens), step):
        part = tokens[at : at + step]
        watch.push(np.array([IDS[token] for token in part], np.int32))
        scene.look(watch)
        for token in part:
            replay.push(token)
        yield replay.memory


def digits_in(memory: bytearray, address: int) -> str:
    """The cells of one ``grid`` of sudoku.c that are placed, 0 for the others."""
    words = struct.unpack_from("<57I", memory, address)
    cells = []
    for cell in range(81):
        band, bit = divmod(cell, 27)
        holds = [d for d in range(9) if words[3 * d + band] >> bit & 1]
        placed = words[54 + band] >> bit & 1
        cells.append(str(holds[0] + 1) if placed and len(holds) == 1 else "0")
    return "".join(cells)


@pytest.mark.parametrize(
    ("puzzle", "title"),
    [
        (EASY, "solved, and there is no other solution"),
        (TWO_WAYS, "there is more than one solution"),
        ("55" + "0" * 79, "there is no solution"),
    ],
)
def test_the_title_says_how_the_search_ended(puzzle: str, title: str) -> None:
    scene = SudokuScene(puzzle)
    watch, _, tokens = recorded(scene, 1_000_000)
    assert scene.title == "Sudoku inside the model"
    watch.push(np.array([IDS[token] for token in tokens], np.int32))
    scene.look(watch)
    assert scene.title == f"Sudoku inside the model: {title}"


def shown_digits(lines: list[Text]) -> str:
    """The cells of the small picture of a grid."""
    rows = [line.plain[:25] for line in lines if line.plain.startswith("│")]
    return "".join(c for row in rows for c in row if c in "·123456789").replace("·", "0")


def test_the_grid_on_show_is_the_program_s_memory() -> None:
    scene = SudokuScene(HARDEST)
    at = addresses(scene.task.compiled(), ["grids", "guesses"])
    seen = set()
    for memory in moments(scene, 150_000, 4001):
        assert scene.guesses == struct.unpack_from("<i", memory, at["guesses"])[0]
        if scene.board is not None:
            digits = digits_in(memory, at["grids"] + 228 * scene.board.depth)
            assert shown_digits(scene.picture(80, 20)) == digits
            seen.add((scene.board.depth, digits))
    assert len(seen) >= 12 and max(depth for depth, _ in seen) >= 2


def test_what_is_shown_comes_from_the_trace_and_not_from_the_puzzle() -> None:
    """The trace of another puzzle shows that puzzle's cells."""
    other, scene = SudokuScene(EASY), SudokuScene("0" * 81)
    watch, _, tokens = recorded(other, 60_000)
    scene.begin(other.task.compiled())
    watch.push(np.array([IDS[token] for token in tokens], np.int32))
    scene.look(watch)
    clues = [i for i, c in enumerate(EASY) if c != "0"]
    digits = shown_digits(scene.picture(80, 20))
    assert [digits[i] for i in clues] == [EASY[i] for i in clues]


def test_the_matching_on_show_is_the_program_s_memory() -> None:
    matrix = hungarian.random_matrix(4, 3, most=60)
    scene = HungarianScene(matrix)
    at = addresses(scene.task.compiled(), hungarian.VARIABLES)
    matchings = set()
    for memory in moments(scene, 1_000_000, 499):
        row_of, col_of = (
            struct.unpack_from("<20i", memory, at[name]) for name in ("row_of", "col_of")
        )
        n = struct.unpack_from("<i", memory, at["n"])[0]
        rows = [line.plain for line in scene.picture(80, 20)]
        for i in range(n):
            shown = re.search(r"\[ *(-?\d+)\]", rows[i + 1])
            j = col_of[i]
            if 0 <= j < n and row_of[j] == i:
                cost = struct.unpack_from("<i", memory, at["cost"] + 4 * (20 * i + j))[0]
                assert shown is not None and int(shown[1]) == cost
            else:
                assert shown is None
        matchings.add(col_of)
    assert len(matchings) >= 5
    assert scene.cost == str(many.scipy_cost(matrix) or scene.cost)
    assert scene.counters().startswith("rows assigned 4 of 4")


def test_a_row_is_matched_where_both_directions_agree() -> None:
    """In the midst of an exchange they do not."""
    zeros = np.zeros((3, 3), np.int32)
    memory = Memory(zeros, zeros[0], zeros[0], np.array([1, 0, -1]), np.array([1, 0, 1]))
    assert memory.matched() == {0: 1, 1: 0}
    assert replace(memory, row_of=np.array([1, 2, -1])).matched() == {1: 0, 2: 1}


class Still(Show):
    """A show of one moment, without a model."""

    def __init__(self, scene: Scene, watch: MemoryWatch) -> None:
        self.scene, self.watch, self.model_seconds = scene, watch, 0.0


SIZES = ((80, 24), (200, 60), (40, 12), (10, 4), (1, 1))
WIDE = tuple(tuple(-1_000_000 + 97 * i + j for j in range(20)) for i in range(20))
SCENES = (
    SudokuScene(HARDEST),
    HungarianScene(hungarian.random_matrix(20, 1)),
    HungarianScene(WIDE),
    HungarianScene(((7,),)),
)


@pytest.mark.parametrize("scene", SCENES)
def test_a_picture_fits_every_terminal(scene: Scene) -> None:
    watch, _, tokens = recorded(scene, 30_000)
    before = compose(Still(scene, watch), 80, 24)
    watch.push(np.array([IDS[token] for token in tokens], np.int32))
    scene.look(watch)
    for width, height in SIZES:
        lines = compose(Still(scene, watch), width, height)
        assert len(lines) == max(height, 3)
        assert all(line.cell_len <= width for line in lines)
    assert len(before) == 24


def test_a_matrix_of_20_by_20_is_whole_at_80_by_24() -> None:
    scene = SCENES[1]
    watch, _, tokens = recorded(scene, 250_000)
    watch.push(np.array([IDS[token] for token in tokens], np.int32))
    scene.look(watch)
    lines = [line.plain for line in compose(Still(scene, watch), 80, 24)]
    rows = [line for line in lines if re.match(r" {1,2}\d+[ \[]", line)]
    assert [int(row[:3]) for row in rows] == list(range(1, 21))
    assert isinstance(scene, HungarianScene)
    for row, costs in zip(rows[:5], scene.matrix, strict=False):
        assert [int(word) for word in re.findall(r"\d+", row[4:])][:20] == list(costs)


@settings(max_examples=30)
@given(st.lists(st.integers(0, 9), max_size=12), st.integers(1, 7))
def test_pieces_are_the_same_ids_in_equal_parts(lengths: list[int], length: int) -> None:
    ids = np.arange(sum(lengths), dtype=np.int32)
    cut = np.split(ids, np.cumsum(lengths)[:-1]) if lengths else []
    found = list(pieces(cut, length))
    assert [int(x) for part in found for x in part] == ids.tolist()
    assert all(len(part) == length for part in found[:-1])
    assert all(0 < len(part) <= length for part in found[-1:])


def test_slow_motion_takes_fewer_pictures_and_not_fewer_tokens() -> None:
    assert (Pacing(15, 1_500_000).tokens, Pacing(15, 1_500_000).seconds) == (100_000, 1 / 15)
    assert (Pacing(15, 2).tokens, Pacing(15, 2).seconds) == (1, 0.5)
    assert (Pacing(15).tokens, Pacing(15).seconds) == (None, 1 / 15)


def visible(svg: str, moment: float) -> list[str]:
    """The lines of an animated SVG at a moment from 0 to 1 of its time."""
    shown = []
    for element in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text"):
        state = "visible"
        animation = element.find("{http://www.w3.org/2000/svg}animate")
        if animation is not None:
            values, times = (animation.attrib[key].split(";") for key in ("values", "keyTimes"))
            begun = [v for v, t in zip(values, times, strict=True) if float(t) <= moment]
            state = begun[-1]
        if state == "visible":
            shown.append((float(element.attrib["y"]), "".join(element.itertext())))
    return [text for _, text in sorted(shown)]


def test_a_recording_shows_each_picture_in_its_time() -> None:
    recording = Recording(20, 3, seconds=1.0)
    pictures = [["a <&> b", f"picture {i // 2}", "end" if i == 3 else ""] for i in range(4)]
    for picture in pictures:
        recording.add([Text(line, "bold red" if "a" in line else "") for line in picture])
    svg = recording.text()
    total = 4 + 3
    for i, picture in enumerate(pictures):
        wanted = [line for line in picture if line]
        assert visible(svg, (i + 0.5) / total) == wanted
    assert visible(svg, 1.0) == [line for line in pictures[-1] if line]
    still = re.sub(r"<text[^>]*visibility=\"hidden\".*?</text>", "", svg)
    assert "picture 1" in still and "picture 0" not in still
    assert "a &lt;&amp;&gt; b" in svg and "font-weight:bold" in svg


def test_a_long_recording_is_thinned_evenly() -> None:
    recording = Recording(20, 1, seconds=0.1)
    for i in range(1000):
        recording.add([Text(f"picture {i}")], last=i == 999)
    numbers = [int(n) for n in re.findall(r"picture (\d+)", recording.text())]
    assert len(numbers) <= 241 and numbers[-1] == 999
    assert set(np.diff(numbers[:-1])) == {numbers[1] - numbers[0]}


def test_recording_a_run(tmp_path: Path) -> None:
    file = tmp_path / "run.svg"
    code, out, _ = transputer("demo", "hungarian", MATRIX, "--record", file, "--speed", "30000")
    assert code == 0 and f"optimal cost: {LEAST}" in out
    svg = file.read_text()
    assert any(f"rows assigned 3 of 3   cost {LEAST}" in line for line in visible(svg, 1.0))
    assert any("rows assigned 0 of 3" in line for line in visible(svg, 0.0))
    code, out, err = transputer("demo", "sudoku", TWO_WAYS, "--record", tmp_path / "other.svg")
    assert code == 2 and "more than one" in err
    assert [path.name for path in tmp_path.iterdir()] == ["run.svg"]


def test_a_recording_that_cannot_be_written_is_refused_at_once(tmp_path: Path) -> None:
    code, out, err = transputer("demo", "sudoku", "--record", tmp_path / "none" / "run.svg")
    assert (code, out) == (2, "") and "No such file" in err


def test_pictures_in_the_documentation_are_recordings() -> None:
    for name in ("sudoku", "hungarian"):
        svg = (ROOT / f"docs/{name}.svg").read_text(encoding="utf-8")
        assert any("tokens/s" in line for line in visible(svg, 1.0))
        assert visible(svg, 0.0) != visible(svg, 1.0)
