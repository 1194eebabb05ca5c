"""The benchmarks compare like with like, and the pages show what they measured."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BENCHMARKS = ROOT / "benchmarks"


@pytest.fixture(autouse=True)
def _scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(BENCHMARKS), *sys.path])


def compare(names: list[str], length: int) -> dict[str, float]:
    """Seconds a step of some candidates; each step's token is checked there."""
    import hull_vs_standard as bench
    from executor.loading import build_checkpoint

    model = build_checkpoint()
    sequence, _ = bench.sequence_of(model, 2 * length)
    everything = bench.candidates(model, quick=True)
    return bench.measure_at(length, {name: everything[name] for name in names}, sequence, 1)


def test_hull_and_scan_write_the_same_tokens_in_python() -> None:
    assert set(compare(["Python, hull", "Python, scan"], 1700)) == {"Python, hull", "Python, scan"}


@pytest.mark.long
def test_hull_and_scan_write_the_same_tokens_in_c() -> None:
    names = ["C, hull", "C, scan", "C, classified", "C, specialised"]
    assert all(seconds > 0 for seconds in compare(names, 20_000).values())


def test_a_wrong_token_is_noticed() -> None:
    import hull_vs_standard as bench
    from executor.loading import build_checkpoint

    model = build_checkpoint()
    engine = bench.python_engine(model, None)
    engine.feed(model.rom[:50])
    with pytest.raises(AssertionError, match="wrong tokens"):
        bench.turn(engine, [0] * 100, 60, 5)


def test_scans_answer_once_they_are_told_to() -> None:
    import hull_vs_standard as bench

    head = bench.FilledHead("latest", 1)
    head.insert(0.0, 0.0, (1.0,))
    head.scanning = True
    head.insert(2.0, -1.0, (2.0,))
    assert head.query(1.0, 1.0) == (2.0,)
    assert len(head.hull) == 1 and len(head.scan) == 2


def test_opcodes_cost_what_the_machine_charges() -> None:
    import scaling
    from executor.loading import build_checkpoint

    rows = {
        row["opcode"]: row
        for row in scaling.Bench(build_checkpoint()).opcodes(
            2, {"i32.add", "i32.div_u", "i32.load"}
        )
    }
    assert {name: row["tokens"] for name, row in rows.items()} == {
        "i32.load": 5,
        "i32.add": 5,
        "i32.div_u": 9,
    }


def results() -> dict[str, dict[str, object]]:
    import report

    paths = (BENCHMARKS / "results" / f"{name}.json" for name in report.SECTIONS)
    return {path.stem: json.loads(path.read_text("utf-8")) for path in paths}


def test_the_page_is_made_of_the_results() -> None:
    import report

    page = (ROOT / "docs" / "benchmarks.md").read_text("utf-8")
    assert page == report.page(results(), "pictures")


def test_the_readme_shows_the_results() -> None:
    import report

    readme = (ROOT / "README.md").read_text("utf-8")
    assert readme == report.with_figures(readme, results())
