"""What the native engine takes every part of a model for, as lines of text.

In: a model. Out: a paragraph for each kind of head and neuron in a layer, with the names that the
model gives them; then the output head, and what the code was split on.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence

from compiler.names import erased_by
from executor.checkpoint import Checkpoint
from executor.native.classify import Kind
from executor.native.families import Family
from executor.native.generate import Generated, generate
from executor.native.kept import code_of
from executor.native.neurons import Neurons
from executor.native.special import DETAIL, DROPPED
from executor.native.state import counted

TOKEN_BYTES = (2, 4)
POSITIONS = "keys (2p, -p²)"
CLEARS, UNUSED = "clear a slot for its next use", "nothing reads the result"
MOST_NAMED = 2
"""Heads of one structure that are named; of more the number is told."""


def describe(checkpoint: Checkpoint, width: int = 80, everything: bool = False) -> str:
    """Heads, neurons and output head of a model with two-dimensional heads.

    Args:
        width: columns of the text.
        everything: slots too.
    """
    return "\n".join(_Page(checkpoint, width, everything).lines())


class _Page:
    def __init__(self, checkpoint: Checkpoint, width: int, everything: bool) -> None:
        self._checkpoint, self._width, self._everything = checkpoint, width, everything
        self._found = generate(checkpoint.config, checkpoint.weights, specialised=False)

    def lines(self) -> Iterator[str]:
        config, found = self._checkpoint.config, self._found
        for layer in range(config.n_layers):
            yield f"layer {layer}"
            yield from self._groups(self._heads(layer))
            yield from self._groups(self._neurons(layer, found.neurons[layer]))
            if self._everything:
                yield from self._slots("slots after the heads", 2 * layer)
                yield from self._slots("slots after the neurons", 2 * layer + 1)
        yield "output head"
        yield from self._output()
        splits = code_of(self._checkpoint, True, lambda line: None).splits
        numbers = 0 if any(line.strip() == DROPPED for line in splits) else len(found.columns)
        size = counted(TOKEN_BYTES[config.vocab_size > 1 << 16], "byte")
        more = f", and {counted(numbers, 'number')} of 8 bytes" if numbers else ""
        yield f"stored for every token: {size}{more}"
        yield from self._splits(splits)

    def _groups(self, items: Iterator[tuple[str, str]]) -> Iterator[str]:
        """A paragraph for each title, with all that goes under it."""
        groups: dict[str, list[str]] = {}
        for title, item in items:
            groups.setdefault(title, []).append(item)
        for title, members in groups.items():
            yield from self._wrapped(f"{title}: {'; '.join(members)}")

    def _heads(self, layer: int) -> Iterator[tuple[str, str]]:
        live: set[int] = set()
        for reader in self._found.heads:
            if reader.layer == layer:
                live |= set(reader.heads)
                for head in reader.heads:
                    if self._cleared("heads", layer, head):
                        yield CLEARS, self._item("heads", layer, head)
                        continue
                    stored = "" if reader.values == "nothing stored" else f"; {reader.values}"
                    yield f"{_kind(reader.kind)}{stored}", self._item("heads", layer, head)
        dead = [head for head in range(self._checkpoint.config.n_heads) if head not in live]
        if dead:
            yield UNUSED, f"h{_ranges(dead)}"

    def _neurons(self, layer: int, found: Neurons) -> Iterator[tuple[str, str]]:
        kinds = {
            "a gate that depends on one token": found.by_token,
            "a gate that is computed": found.computed,
            "a gate that is always open": found.always_open,
            "a gate that is never open": found.dead,
        }
        for title, neurons in kinds.items():
            for neuron in sorted(neurons):
                clears = self._cleared("neurons", layer, neuron)
                yield CLEARS if clears else title, self._item("neurons", layer, neuron)
        live = {neuron for neurons in kinds.values() for neuron in neurons}
        dead = [n for n in range(self._checkpoint.config.d_ffn) if n not in live]
        if dead:
            yield UNUSED, f"n{_ranges(dead)}"

    def _slots(self, title: str, half: int) -> Iterator[str]:
        kinds: dict[str, list[int]] = {}
        names = self._checkpoint.names
        for slot, kind in enumerate(self._found.slots[half]):
            kinds.setdefault(kind, []).append(slot)
        yield f"  {title}"
        for kind, slots in kinds.items():
            row = names.slots[half + 1] if names is not None else ()
            members = [f"{slot} {row[slot]}" for slot in slots if row and row[slot]]
            nameless = [slot for slot in slots if not (row and row[slot])]
            members += [_ranges(nameless)] if nameless else []
            yield from self._wrapped(f"{kind}: {'; '.join(members)}", "    ")

    def _output(self) -> Iterator[str]:
        found, vocabulary = self._found, self._checkpoint.vocabulary
        yield from self._groups(_family(family, vocabulary) for family in found.families)
        names = [vocabulary[single.token] for single in found.singles]
        if names:
            yield from self._wrapped(f"scored each for itself: {'; '.join(names)}")
        same = len(vocabulary) - sum(family.size for family in found.families) - len(names)
        if same:
            yield from self._wrapped(
                f"never written, for one with a lower id has the same score: "
                f"{counted(same, 'token')}"
            )

    # --- names -------------------------------------------------------------------------------

    def _name(self, table: str, layer: int, number: int) -> str:
        names = self._checkpoint.names
        return "" if names is None else str(getattr(names, table)[layer][number])

    def _cleared(self, table: str, layer: int, number: int) -> tuple[str, ...]:
        return erased_by(self._name(table, layer, number))

    def _words(self, table: str, layer: int, number: int) -> str:
        """A name in words; of what clears slots, their names."""
        name, names = self._name(table, layer, number), self._checkpoint.names
        cleared = erased_by(name)
        return ", ".join(cleared) or ("" if names is None else names.words(name))

    def _item(self, table: str, layer: int, number: int) -> str:
        """``h6 the second value of the stack``."""
        return f"{table[0]}{number} {self._words(table, layer, number)}".rstrip()

    def _splits(self, splits: Sequence[str]) -> Iterator[str]:
        """The lines about specialised code, with heads instead of C names, each once."""
        parts = _parts(self._found)

        def words(match: re.Match[str]) -> str:
            heads = parts.get(match[0]) or parts.get(match[0].rpartition("_")[0])
            if heads is None:
                return match[0]
            told = []
            for layer, head in heads[:MOST_NAMED]:
                name = self._words("heads", layer, head)
                told.append(f"{layer}.{head} ({name})" if name else f"{layer}.{head}")
            more = len(heads) - len(told)
            ending = f" and {more} more" if more else ""
            return f"head{'s' if len(heads) > 1 else ''} {', '.join(told)}{ending}"

        vocabulary = self._checkpoint.vocabulary

        def token(match: re.Match[str]) -> str:
            return vocabulary[int(match[1])]

        chosen = [
            re.sub(r"\btoken (\d+)\b", token, line)
            for line in splits
            if self._everything or not line.startswith(DETAIL)
        ]
        for line in dict.fromkeys(re.sub(r"\w+", words, line) for line in chosen):
            yield from self._wrapped(line.strip(), line[: len(line) - len(line.lstrip())])

    def _wrapped(self, text: str, lead: str = "  ") -> Iterator[str]:
        yield from textwrap.wrap(
            text,
            self._width,
            initial_indent=lead,
            subsequent_indent=f"{lead}    ",
            break_on_hyphens=False,
        )


def _parts(found: Generated) -> dict[str, list[tuple[int, int]]]:
    """The heads (layer, number) of each structure of the engine, by its C name; of a position
    those that fetch something there."""
    parts: dict[str, list[tuple[int, int]]] = {}
    for reader in found.heads:
        heads = [(reader.layer, head) for head in reader.heads]
        parts.setdefault(reader.part, []).extend(heads)
    return {part: heads for part, heads in parts.items() if part != "p"}


def _kind(kind: Kind) -> str:
    """What heads of a kind find, in words."""
    if kind.name == "position" and kind.back is not None:
        return f"{counted(kind.back, 'token')} back"
    if kind.name == "general":
        return f"a convex hull ({kind.reason})"
    return {
        "self": "the token itself",
        "uniform": "the mean of all tokens",
        "extreme": f"the {'greatest' if kind.sign > 0 else 'least'} key",
        "position": f"the token at a position, {POSITIONS}",
        "quotient": f"the token at a quotient, {POSITIONS}",
        "few-valued": "a few different keys",
        "indexed": "the token with key k, (2k, -k²) if k is an integer",
        "scan": "a scan of all keys",
    }[kind.name]


def _family(family: Family, vocabulary: Sequence[str]) -> tuple[str, str]:
    """How the best of a family is found, and its tokens."""
    how = "a search"
    if family.spacing is not None:
        how = "a rounding"
    elif not family.corners:
        how = "one token, which always wins"
    first, last = (vocabulary[family.winners[end].token] for end in (0, -1))
    unique = len({line.token for line in family.winners})
    some = "" if unique == family.size else f", of which {unique:,} can win"
    tokens = f"{first} to {last} ({counted(family.size, 'token')}{some})"
    return f"scored by lines in one quantity, the best by {how}", tokens


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
