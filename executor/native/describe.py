"""What the native engine takes every part of a model for, and why, as lines of text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from executor.checkpoint import Checkpoint
from executor.native.families import Family
from executor.native.generate import Generated, generate
from executor.native.kept import code_of
from executor.native.neurons import Neurons

TOKEN_BYTES = (2, 4)


def describe(checkpoint: Checkpoint) -> str:
    """Heads, neurons, slots and output head of a model with two-dimensional heads."""
    config = checkpoint.config
    found = generate(config, checkpoint.weights, specialised=False)
    lines: list[str] = []
    for layer in range(config.n_layers):
        lines.append(f"layer {layer}")
        lines += _heads(found, layer, config.n_heads)
        lines += _neurons(found.neurons[layer], config.d_ffn)
        lines += _slots("slots after attention", found.slots[2 * layer])
        lines += _slots("slots after feed-forward", found.slots[2 * layer + 1])
    lines.append("output head")
    lines += [f"  {_family(family, checkpoint.vocabulary)}" for family in found.families]
    names = [checkpoint.vocabulary[single.token] for single in found.singles]
    if names:
        lines.append(f"  {len(names)} single rows: {', '.join(names)}")
    same = config.vocab_size - sum(f.size for f in found.families) - len(names)
    if same:
        lines.append(f"  {same} tokens that score as one with a lower id does")
    size = TOKEN_BYTES[config.vocab_size > 1 << 16]
    numbers = len(found.columns)
    splits = code_of(checkpoint, True, lambda line: None).splits
    if any(line.startswith("  columns: not stored") for line in splits):
        numbers = 0
    lines.append(f"stored for every token: {size} bytes, and {numbers} numbers of 8 bytes")
    lines += splits
    return "\n".join(lines)


def _heads(found: Generated, layer: int, n_heads: int) -> Iterator[str]:
    live: set[int] = set()
    for reader in found.heads:
        if reader.layer == layer:
            live |= set(reader.heads)
            heads = " ".join(map(str, reader.heads))
            yield f"  head {heads}: {reader.kind.name}: {reader.kind.reason}; {reader.values}"
    dead = [head for head in range(n_heads) if head not in live]
    if dead:
        yield f"  head {_ranges(dead)}: dead: nothing reads the result"


def _neurons(found: Neurons, d_ffn: int) -> Iterator[str]:
    kinds = {
        "a gate that depends on one token": found.by_token,
        "a gate that is always open": found.always_open,
        "a gate that is never open": found.dead,
        "a gate that is computed": found.computed,
    }
    live = [neuron for neurons in kinds.values() for neuron in neurons]
    kinds["dead: nothing reads the result"] = [n for n in range(d_ffn) if n not in live]
    for kind, neurons in kinds.items():
        if neurons:
            yield f"  neuron {_ranges(neurons)}: {kind}"


def _slots(title: str, slots: Sequence[str]) -> Iterator[str]:
    kinds: dict[str, list[int]] = {}
    for slot, kind in enumerate(slots):
        kinds.setdefault(kind, []).append(slot)
    parts = [f"{_ranges(members)} {kind}" for kind, members in kinds.items()]
    yield f"  {title}: {'; '.join(parts)}"


def _family(family: Family, vocabulary: Sequence[str]) -> str:
    first, last = family.winners[0], family.winners[-1]
    how = "a search"
    if family.spacing is not None:
        how = "a rounding"
    elif not family.corners:
        how = "one token that always wins"
    unique = Counter(line.token for line in family.winners)
    return (
        f"{family.size} tokens scored by lines in one quantity, {vocabulary[first.token]} to "
        f"{vocabulary[last.token]}: {how} among the {len(unique)} that can win"
    )


def _ranges(numbers: Sequence[int]) -> str:
    """``0-3 7`` for 0, 1, 2, 3, 7.

    >>> _ranges([3, 0, 1, 2, 7])
    '0-3 7'
    """
    text: list[str] = []
    ordered = sorted(numbers)
    for start, number in enumerate(ordered):
        if start and ordered[start - 1] == number - 1:
            text[-1] = f"{text[-1].partition('-')[0]}-{number}"
        else:
            text.append(str(number))
    return " ".join(text)
