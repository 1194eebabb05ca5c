"""The certificate of the softmax export: each bound holds just inside and fails outside."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from compiler import rom  # noqa: E402
from compiler.build import make_machine  # noqa: E402
from compiler.errors import UsageError  # noqa: E402
from compiler.graph import Graph  # noqa: E402
from compiler.machine import build_graph  # noqa: E402
from compiler.machine_arithmetic import LOOSE_FLOORS  # noqa: E402
from compiler.program import Program  # noqa: E402
from compiler.schedule import load_plan  # noqa: E402
from compiler.softmax import (  # noqa: E402
    TEMPERATURE,
    certify,
    most_address,
    most_tokens,
    softmax_export,
    softmax_limits,
    tie_break,
)
from executor.cli import main  # noqa: E402
from executor.config import ModelConfig  # noqa: E402
from executor.loading import build_checkpoint, refusal  # noqa: E402

BOTH = pytest.mark.parametrize("explicit", [False, True], ids=["fused", "explicit"])
LENGTHS = (2**15, 2**19, 2**20 - 3, 2**23)


def attend(queries: np.ndarray, keys: np.ndarray, values: np.ndarray, explicit: bool) -> np.ndarray:
    """One head of torch's own attention, projections the identity; queries without temperature."""
    head = torch.nn.MultiheadAttention(2, 1, batch_first=True, bias=False).double().eval()
    with torch.inference_mode():
        head.in_proj_weight.copy_(torch.eye(2).repeat(3, 1))
        head.out_proj.weight.copy_(torch.eye(2))
        q, k, v = (torch.from_numpy(a)[None] for a in (queries * TEMPERATURE, keys, values))
        return head(q, k, v, need_weights=explicit)[0][0].numpy()


def latest_writes(
    eps: float, addresses: np.ndarray, positions: np.ndarray, explicit: bool
) -> np.ndarray:
    """The position that is fetched for each of the addresses."""
    a, p = addresses.astype(float), positions.astype(float)
    keys = np.stack([2 * a, eps * p - a * a], axis=1)
    values = np.stack([p, 0 * p], axis=1)
    return attend(np.stack([a, np.ones_like(a)], axis=1), keys, values, explicit)[:, 0]


def writes(tokens: int, largest: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of writes at neighbouring positions to addresses near each power of sqrt(2)."""
    rng = np.random.default_rng(seed)
    powers = np.floor(2 ** (np.arange(2, 2 * np.log2(largest)) / 2)).astype(int)
    around = np.concatenate([powers + shift for shift in (-2, -1, 0, 1)])
    random = rng.integers(0, largest + 1, 40)
    chosen = np.unique(np.concatenate([around, random, largest - np.arange(4)]))
    chosen = chosen[(chosen >= 0) & (chosen <= largest)]
    late = rng.integers(1, tokens, len(chosen))
    late[::3] = tokens - 1
    addresses = np.concatenate([chosen, chosen])
    positions = np.concatenate([late, late - 1])
    return addresses, positions


def wrong_writes(tokens: int, largest: int, eps: float, explicit: bool) -> int:
    """How many addresses give another value than their latest."""
    count = 0
    for seed in range(6):
        addresses, positions = writes(tokens, largest, seed)
        half = len(addresses) // 2
        found = latest_writes(eps, addresses, positions, explicit)
        count += int((found != np.tile(positions[:half], 2)).sum())
    return count


@BOTH
@pytest.mark.parametrize("tokens", LENGTHS)
def test_the_latest_of_two_adjacent_writes_wins_up_to_the_largest_address(
    tokens: int, explicit: bool
) -> None:
    assert wrong_writes(tokens, most_address(tokens), tie_break(tokens), explicit) == 0


@BOTH
@pytest.mark.parametrize("tokens", LENGTHS)
def test_beyond_twice_the_largest_address_it_does_not(tokens: int, explicit: bool) -> None:
    assert wrong_writes(tokens, 2 * most_address(tokens), tie_break(tokens), explicit) > 0


@BOTH
def test_a_tie_break_too_large_lets_a_late_neighbour_win(explicit: bool) -> None:
    tokens, largest = 2**19, 1000
    assert wrong_writes(tokens, largest, tie_break(tokens), explicit) == 0
    assert wrong_writes(tokens, largest, 4 * tie_break(tokens), explicit) > 0


def floors(arguments: np.ndarray, explicit: bool) -> np.ndarray:
    """What the last floor head fetches: the position nearest to (x + 1/2) / 256 - 1/2."""
    p = np.arange(rom.ROM_TOKENS, dtype=float)
    queries = np.stack([(arguments + 0.5) / 256 - 0.5, np.ones_like(arguments)], axis=1)
    values = np.stack([p, 0 * p], axis=1)
    return attend(queries, np.stack([2 * p, -p * p], axis=1), values, explicit)[:, 0]


@BOTH
def test_the_last_floor_decides_by_the_finest_bit(explicit: bool) -> None:
    multiples = 256.0 * np.arange(1, 261)
    for step in (1, 2, 3):
        below = multiples - step * 2.0**-24 - rom.FINE_HALF
        assert (floors(below, explicit) == np.arange(260)).all()
        above = multiples + (step - 1) * 2.0**-24 - rom.FINE_HALF
        assert (floors(above, explicit) == np.arange(1, 261)).all()


def loose(number: int, temperature: float, explicit: bool) -> np.ndarray:
    """What a loose floor fetches where it is least sure, as a distance from either neighbour."""
    size, slack = LOOSE_FLOORS[number]
    most = (2.0**32 if number == 0 else LOOSE_FLOORS[0][0] * (1 + LOOSE_FLOORS[0][1])) // size
    k = np.arange(1.0, min(most, 8 if number == 0 else most))  # a product has 2^25 at most
    p = np.arange(rom.ROM_TOKENS, dtype=float)
    keys, values = np.stack([2 * p, -p * p], axis=1), np.stack([p, 0 * p], axis=1)
    found = []
    for step in range(-4, 5):
        x = size * (k + slack) + step * 2.0**-24 - rom.FINE_HALF
        queries = np.stack([(x + 0.5) / size - 0.5 - slack, np.ones_like(k)], axis=1)
        queries *= temperature / TEMPERATURE
        found.append(attend(queries, keys, values, explicit)[:, 0] - k)
    return np.concatenate(found)


@BOTH
@pytest.mark.parametrize("number", [0, 1])
def test_a_loose_floor_takes_a_neighbour_or_half_of_both(number: int, explicit: bool) -> None:
    """Halves of its size are multiples of 256 as well."""
    assert LOOSE_FLOORS[number][0] / 2 % 256 == 0
    assert set(loose(number, TEMPERATURE, explicit)) <= {0.0, -0.5, -1.0}


@BOTH
def test_a_lower_temperature_mixes_them_in_other_parts(explicit: bool) -> None:
    """2^46 is enough for the last floor, not for the first."""
    assert not set(loose(0, 2.0**46, explicit)) <= {0.0, -0.5, -1.0}


@BOTH
@pytest.mark.parametrize("tokens", [2**20, 2**23])
def test_positions_are_found_to_the_end(tokens: int, explicit: bool) -> None:
    p = np.concatenate([np.arange(50.0), tokens - np.arange(1.0, 200)])
    keys, values = np.stack([2 * p, -p * p], axis=1), np.stack([p, -p], axis=1)
    found = attend(np.stack([p, np.ones_like(p)], axis=1), keys, values, explicit)
    assert (found == values).all()


def test_every_head_of_the_machine_has_a_bound() -> None:
    export = softmax_export(2**19, 4096)
    lookups = [n for names in export.machine.placed.names[::2] for n in names if "erase" not in n]
    assert sorted(head.name for head in export.heads) == sorted(lookups)
    assert all(head.holds and head.temperature <= TEMPERATURE for head in export.heads)
    assert all(head.tokens >= 2**19 for head in export.heads)
    memory = next(head for head in export.heads if head.name == "memory")
    assert (memory.address, memory.most_address) == (4096, 65536)
    assert softmax_export(2**17).limiting.name == "memory"
    assert softmax_export(2**17, 10).limiting.name == "local"


def test_an_unknown_head_has_none() -> None:
    graph = Graph()
    graph.lookup(
        "other", query=(graph.position, 0.5), key=(2 * graph.position, -graph.position_squared),
        values=[(graph.position, graph.linear("x"))],
    )  # fmt: skip
    with pytest.raises(ValueError, match="nothing is known of the queries of head 'other'"):
        certify(graph, softmax_limits(2**15, None, 256))


def test_addresses_and_lengths_are_inverse() -> None:
    for power in range(10, 25):
        assert most_tokens(most_address(2**power)) >= 2**power
        assert most_tokens(most_address(2**power) + 1) < 2**power
        assert most_address(2**power + 1) < most_address(2**power)
    assert most_address(2**19) == 65536
    assert 2**20 * tie_break(2**20) == 0.5


def test_the_graph_fits_the_stored_plan_at_any_depth_of_calls() -> None:
    shallow = make_machine(build_graph(64), load_plan())
    deep = make_machine(build_graph(), load_plan())
    changed = [n for n, array in deep.arrays.items() if (array != shallow.arrays[n]).any()]
    assert changed
    assert shallow.placed == deep.placed


def test_an_export_differs_from_the_machine_in_queries_and_tie_breaks_only() -> None:
    export = softmax_export(2**15).machine
    hard = make_machine(build_graph(256), load_plan())
    width, p, breaks = 36, export.plan.slots["position"], {0.0}
    for name, array in export.arrays.items():
        expected = hard.arrays[name].copy()
        if "in_proj" in name:
            expected[:width] *= TEMPERATURE
            added = array[width : 2 * width, p] - expected[width : 2 * width, p]
            breaks |= set(np.abs(added))
            expected[width : 2 * width, p] += added
        assert (array == expected).all(), name
    assert breaks == {0.0, tie_break(2**15)}


REFUSED = {
    "memory": (
        {"tokens": 2**20, "memory": 65536},
        r"over 1,048,576 tokens cannot have 65,536 bytes .* head 'memory' .* above 46,340 .*"
        r"--memory 46340 would fit, or --tokens 524288",
    ),
    "calls": (
        {"tokens": 2**20, "calls": 2**15},
        r"cannot nest 32,768 calls: head 'local' .* --calls 16384 would fit, or --tokens 524288",
    ),
    "no power of two": ({"calls": 100}, "--calls 100: not a power of two"),
    "tokens": (
        {"tokens": 2**24},
        r"over 16,777,216 tokens is not exact: head 'memory' keeps .* --tokens 15081980 would fit",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_exact_is_refused(name: str) -> None:
    arguments, message = REFUSED[name]
    with pytest.raises(UsageError, match=message):
        softmax_export(**arguments)


def test_what_a_refusal_says_would_fit_does() -> None:
    for arguments in (
        {"tokens": 2**20, "memory": 46340},
        {"tokens": 524288, "memory": 65536},
        {"tokens": 2**20, "calls": 2**14},
        {"tokens": 15081980},
    ):
        softmax_export(**arguments)


def test_the_command_builds_and_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["build", "--softmax", "--tokens", "2**19", "--out", str(tmp_path / "m")]
    assert main([*arguments, "--memory", "4096", "--calls", "64"]) == 0
    said = capsys.readouterr().out
    assert "exact for 524,288 tokens, 4,096 bytes of memory, 1,023 locals, 65,535" in said
    assert main([*arguments, "--memory", "65537"]) == 2
    assert "--memory 65536 would fit" in capsys.readouterr().err
    assert main(["build", "--memory", "100", "--out", str(tmp_path / "n")]) == 2
    assert "--memory is for --softmax" in capsys.readouterr().err


def test_programs_beyond_the_limits_are_refused() -> None:
    config = build_checkpoint("softmax", 2**19, 4096).config
    assert (config.max_tokens, config.max_memory, config.max_locals) == (2**19, 4096, 255)

    def program(index: int, memory: int) -> Program:
        low, high = f"{index % 256:02x}", f"{index // 256:02x}"
        code = ("{", "local.get", low, high, "00", "00", "halt", *("00",) * 4, "}")
        return Program("p.tok", code, memory_bytes=memory)

    assert refusal(config, program(254, 4096)) is None
    assert refusal(config, program(255, 0)) == ("p.tok has 256 locals; this model is made for 255")
    assert refusal(config, program(0, 4097)) == (
        "p.tok has 4,097 bytes of memory; this model is made for 4,096"
    )
    assert refusal(build_checkpoint().config, program(300, 10**6)) is None
    assert isinstance(config, ModelConfig)
