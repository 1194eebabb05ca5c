"""Options of ``transputer demo``, for the command line's parser; imports nothing heavy."""

from __future__ import annotations

import argparse
import math

MOST_FPS = 60.0
MAXIMUM = "max"
N_PUZZLES = 50
N_PROBLEMS = 200


def add_options(parser: argparse.ArgumentParser) -> None:
    """The demonstrations and their options; ``demo`` holds the demonstration's name."""
    demos = parser.add_subparsers(dest="demo", required=True, metavar="DEMO")

    def add(name: str, text: str) -> argparse.ArgumentParser:
        added = demos.add_parser(name, help=text, description=text, allow_abbrev=False)
        assert isinstance(added, argparse.ArgumentParser)
        return added

    sudoku = add("sudoku", "Solve a Sudoku by search, and prove that there is no other solution.")
    sudoku.add_argument(
        "puzzle",
        nargs="?",
        metavar="PUZZLE",
        help="81 cells row by row, 0 or . for a blank, or a file with them; default: Arto Inkala's",
    )
    _view_options(sudoku)
    sudoku.add_argument(
        "--all", action="store_true", help=f"solve {N_PUZZLES} hard puzzles and check each"
    )

    hungarian = add("hungarian", "Solve an assignment problem by the Hungarian algorithm.")
    hungarian.add_argument(
        "matrix",
        nargs="?",
        metavar="MATRIX",
        help="costs, up to 20 x 20, as '3 1 2; 4 5 6; 7 8 9' or a file with a row on each line; "
        "whole numbers from -1000000 to 1000000; default: programs/data/hungarian10.txt",
    )
    hungarian.add_argument(
        "--random", metavar="N", type=_natural, help="a random N x N matrix, costs from 1 to 99"
    )
    hungarian.add_argument(
        "--seed", metavar="S", type=_natural, help="of random matrices; default 0"
    )
    _view_options(hungarian)
    hungarian.add_argument(
        "--all", action="store_true", help="solve random problems up to 20 x 20 and check each"
    )
    hungarian.add_argument(
        "--count", metavar="N", type=_natural, help=f"how many, for --all; default {N_PROBLEMS}"
    )


def _view_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("showing (on a terminal; plain text elsewhere)")
    group.add_argument("--plain", action="store_true", help="no live view, text alone")
    group.add_argument(
        "--fps", metavar="N", type=_fps, default=15.0, help="pictures a second; default 15"
    )
    group.add_argument(
        "--speed",
        metavar="TOKENS",
        type=_speed,
        help="tokens a second that are shown, a few for slow motion; max for all that the model "
        "writes; default: some seconds for the default input",
    )
    group.add_argument("--record", metavar="FILE.svg", type=_svg, help="also write an animated SVG")


def _natural(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0")
    return int(text)


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return value


def _fps(text: str) -> float:
    value = _positive(text)
    if value > MOST_FPS:
        raise argparse.ArgumentTypeError(f"{text}: at most {MOST_FPS:g} pictures a second")
    return value


def _speed(text: str) -> float:
    """Tokens a second; infinity for ``max``."""
    return math.inf if text == MAXIMUM else _positive(text)


def _svg(text: str) -> str:
    if not text.endswith(".svg"):
        raise argparse.ArgumentTypeError(f"{text!r} does not end in .svg")
    return text
