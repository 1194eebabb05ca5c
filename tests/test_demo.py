"""The demonstrations: what they print and refuse, and that their pictures are the trace's."""

from __future__ import annotations

import contextlib
import io
import os
import pty
import re
import select
import struct
import sys
import termios
import time
from collections.abc import Iterator
from dataclasses import replace
from fcntl import ioctl
from itertools import permutations
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.text import Text

from command_line import ROOT, transputer
from executor.demo import hungarian, many
from executor.demo.hungarian import HungarianScene, Memory, read_matrix
from executor.demo.scene import Scene
from executor.demo.screen import compose
from executor.demo.stage import Pacing, Show, pieces
from executor.demo.sudoku import HARDEST, SudokuScene
from executor.demo.svg import Recording
from executor.oracle import trace_tokens
from executor.replay import Replay
from executor.watch import MemoryWatch, addresses
from test_scan import IDS, VOCABULARY

EASY = "530070000600195000098000060800060003400803001700020006060000280000419005000080079"
EASY_SOLVED = "534678912672195348198342567859761423426853791713924856961537284287419635345286179"
MATRIX = "4 1 3; 2 0 5; 3 2 2"
LEAST = min(
    sum(row[j] for row, j in zip(read_matrix(MATRIX), columns, strict=True))
    for columns in permutations(range(3))
)
ESCAPE = "\x1b"


# --- text ---------------------------------------------------------------------------------------


def test_sudoku_as_text() -> None:
    code, out, _ = transputer("demo", "sudoku", EASY)
    assert code == 0 and ESCAPE not in out
    grids = re.findall(r"(?:^[\d. |+-]+\n)+", out, re.MULTILINE)
    cells = ["".join(c for c in grid if c.isdigit() or c == ".") for grid in grids[:2]]
    assert cells == [EASY.replace("0", "."), EASY_SOLVED]
    assert "There is no other." in out
    assert re.search(r"^guesses 0   standing 0   taken back 0$", out, re.MULTILINE)
    assert re.search(r"^[\d,]+ tokens   model [\d,]+ tokens/s$", out, re.MULTILINE)


def test_hungarian_as_text(tmp_path: Path) -> None:
    file = tmp_path / "matrix.txt"
    file.write_text("3\n4 1 3\n2 0 5\n3 2 2\n")
    code, out, _ = transputer("demo", "hungarian", file)
    assert code == 0 and ESCAPE not in out
    assert f"optimal cost: {LEAST}\n" in out
    assert "rows assigned 3 of 3" in out


def test_a_random_matrix_is_the_same_for_a_seed() -> None:
    assert hungarian.random_matrix(4, 7) == hungarian.random_matrix(4, 7)
    assert hungarian.random_matrix(4, 7) != hungarian.random_matrix(4, 8)


TWICE = "55" + "0" * 79
TWO_WAYS = "".join("0" if i in (32, 35, 41, 44) else c for i, c in enumerate(EASY_SOLVED))
"""The four blanks hold two digits crosswise."""
WRONG_PUZZLES = {
    "123": "81 cells, row by row; this one has 3",
    EASY + "0": "this one has 82",
    EASY[:-1] + "x": "'x' in the puzzle is neither a digit nor .",
    EASY[:-1] + "²": "'²' in the puzzle",
    "no/such/file": "neither a file nor a puzzle",
    "": "this one has 0",
    TWICE: "contradicts itself: row 1 has two of 5",
    "5" + "0" * 8 + "5" + "0" * 71: "contradicts itself: column 1 has two of 5",
    "5" + "0" * 9 + "5" + "0" * 70: "contradicts itself: box 1 has two of 5",
    EASY[:2] + "1" + EASY[3:]: "this puzzle has no solution",
    TWO_WAYS: "this puzzle has more than one solution",
}
WRONG_MATRICES = {
    "1 2; 3": "not square: it has 2 rows, row 2 has 1",
    "1 2 3; 4 5 6": "not square",
    "1 x; 2 3": "'x': neither a file nor a whole number",
    "1 2.5; 2 3": "'2.5'",
    "1 99999999999; 2 3": "'99999999999'",
    "1 1000001; 2 3": "row 1: costs are from -1,000,000 to 1,000,000",
    " ; ": "the matrix is empty",
    ";".join(["1 " * 21] * 21): "21 rows, the program takes up to 20",
}


@pytest.mark.parametrize("puzzle", WRONG_PUZZLES)
def test_a_wrong_puzzle_is_refused_in_one_message(puzzle: str) -> None:
    code, out, err = transputer("demo", "sudoku", puzzle)
    assert code == 2 and WRONG_PUZZLES[puzzle] in err
    assert err.startswith("transputer: error: ") and "Traceback" not in err


@pytest.mark.parametrize("matrix", WRONG_MATRICES)
def test_a_wrong_matrix_is_refused_in_one_message(matrix: str) -> None:
    code, out, err = transputer("demo", "hungarian", matrix)
    assert (code, out) == (2, "") and WRONG_MATRICES[matrix] in err


@pytest.mark.parametrize(
    "arguments",
    [
        ("sudoku", "--fps", "0"),
        ("sudoku", "--fps", "61"),
        ("sudoku", "--speed", "fast"),
        ("sudoku", "--record", "picture.png"),
        ("sudoku", "--all", EASY),
        ("sudoku", "--all", "--record", "picture.svg"),
        ("hungarian", "--random", "0"),
        ("hungarian", "--random", "21"),
        ("hungarian", "--random", "3", MATRIX),
        ("hungarian", "--seed", "3", MATRIX),
        ("hungarian", "--count", "3"),
        ("hungarian", "--all", "--count", "0"),
        ("chess",),
    ],
)
def test_wrong_options_are_refused(arguments: tuple[str, ...]) -> None:
    code, out, err = transputer("demo", *arguments)
    assert (code, out) == (2, "") and err.startswith("transputer: error: ")


def test_negative_costs_are_allowed() -> None:
    assert read_matrix("-1 2; 3 -4") == ((-1, 2), (3, -4))
    assert read_matrix("1\n5") == ((5,),)


# --- pictures -----------------------------------------------------------------------------------


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


# --- recording ----------------------------------------------------------------------------------


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


# --- on a terminal ------------------------------------------------------------------------------


class Terminal:
    """The command on a terminal of its own."""

    def __init__(self, *arguments: str, size: tuple[int, int] = (80, 24), **environment: str):
        self.text = ""
        self.pid, self.file = pty.fork()
        if self.pid == 0:
            columns, lines = size
            ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
            unset = {"NO_COLOR", "COLUMNS", "LINES", "FORCE_COLOR"}
            kept = {k: v for k, v in os.environ.items() if k not in unset}
            os.chdir(ROOT)
            os.execve(
                sys.executable,
                [sys.executable, "-m", "executor", "demo", *arguments],
                {**kept, "TERM": "xterm-256color", "PYTHONPATH": str(ROOT), **environment},
            )

    def read_until(self, wanted: str | None, seconds: float = 120) -> None:
        """Read up to some text, or to the end."""
        end = time.monotonic() + seconds
        while wanted is None or wanted not in self.text:
            ready, _, _ = select.select([self.file], [], [], max(end - time.monotonic(), 0))
            assert ready, f"not in time: {wanted!r} after {self.text[-500:]!r}"
            try:
                data = os.read(self.file, 1 << 16)
            except OSError:  # the other side is closed
                data = b""
            if not data:
                assert wanted is None, self.text[-500:]
                return
            self.text += data.decode()

    def exit_code(self) -> int:
        """After the end."""
        self.read_until(None)
        _, status = os.waitpid(self.pid, 0)
        os.close(self.file)
        return os.waitstatus_to_exitcode(status)


SHOW_CURSOR, HIDE_CURSOR, OTHER_SCREEN, OWN_SCREEN = (
    f"{ESCAPE}[?{code}" for code in ("25h", "25l", "1049h", "1049l")
)
COLOUR = re.compile(ESCAPE + r"\[(?:\d+;)*(?:3[0-8]|9[0-7])[;m]")


def restored(text: str) -> bool:
    """Whether the cursor and the user's own screen are back."""
    return all(
        0 <= text.rfind(begun) < text.rfind(ended)
        for begun, ended in ((HIDE_CURSOR, SHOW_CURSOR), (OTHER_SCREEN, OWN_SCREEN))
    )


def test_ctrl_c_restores_the_terminal() -> None:
    terminal = Terminal("sudoku", "--speed", "3000", "--fps", "10")
    before = termios.tcgetattr(terminal.file)
    terminal.read_until("guesses 0")
    assert COLOUR.search(terminal.text)
    os.write(terminal.file, b"\x03")
    with contextlib.suppress(termios.error):
        terminal.read_until(OWN_SCREEN)
        assert termios.tcgetattr(terminal.file) == before
    assert terminal.exit_code() == 130
    assert restored(terminal.text) and "Traceback" not in terminal.text


def test_the_last_picture_stays_without_colours_where_none_are_wanted() -> None:
    terminal = Terminal("hungarian", MATRIX, "--speed", "max", NO_COLOR="1")
    assert terminal.exit_code() == 0
    assert restored(terminal.text) and not COLOUR.search(terminal.text)
    stays = terminal.text[terminal.text.rfind(OWN_SCREEN) :]
    assert f"rows assigned 3 of 3   cost {LEAST}" in re.sub(r"\x1b\[[\d;]*m", "", stays)


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [(("--plain",), {}), ((), {"TERM": "dumb"}), ((), {"TERM": ""})],
)
def test_a_terminal_that_cannot_redraw_gets_text(
    arguments: tuple[str, ...],
    environment: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from executor.demo.verb import is_live

    monkeypatch.setattr("sys.stdout", open(pty.openpty()[1], "w"))  # noqa: SIM115
    monkeypatch.setenv("TERM", "xterm")
    assert is_live(plain=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert not is_live(plain="--plain" in arguments)


@pytest.mark.long
@pytest.mark.parametrize("size", [(80, 24), (200, 60)])
def test_the_default_puzzle_on_terminals_of_two_sizes(size: tuple[int, int]) -> None:
    terminal = Terminal("sudoku", size=size)
    assert terminal.exit_code() == 0
    assert restored(terminal.text)
    assert "solved, and there is no other solution" in terminal.text


@pytest.mark.long
def test_a_dumb_terminal_sees_no_escape_codes() -> None:
    terminal = Terminal("sudoku", EASY, TERM="dumb")
    assert terminal.exit_code() == 0
    assert ESCAPE not in terminal.text and "There is no other." in terminal.text


def test_the_documented_way_to_watch_a_program_works() -> None:
    text = (ROOT / "programs/README.md").read_text(encoding="utf-8")
    example = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert example is not None
    puzzle = re.sub(r'"8\d{80}"', f'"{EASY}"', example[1])
    with contextlib.chdir(ROOT), contextlib.redirect_stdout(io.StringIO()) as out:
        exec(puzzle, {})
    n_tokens, guesses = out.getvalue().splitlines()[-1].split()
    assert int(n_tokens) > 100_000 and guesses == "0"


def test_pictures_in_the_documentation_are_recordings() -> None:
    for name in ("sudoku", "hungarian"):
        svg = (ROOT / f"docs/{name}.svg").read_text(encoding="utf-8")
        assert any("tokens/s" in line for line in visible(svg, 1.0))
        assert visible(svg, 0.0) != visible(svg, 1.0)
