"""Reading a prompt, and what an engine knows after it kept on disk for the next start.

In: a new engine and a prompt. The part that runs of one program have in common is read once: what
the engine then knows, if it can tell (:class:`executor.decode.Keepable`) and if reading took long,
is kept under a hash of the model, these tokens, the kind of engine and the engines' sources. It is
plain arrays: whatever stands in the folder, nothing in it is run, and what is damaged or was kept
for something else is not used.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from compiler.store import digest, keep, kept, sources_digest
from executor.checkpoint import Checkpoint
from executor.decode import Engine, Keepable, feed_chunks
from executor.kept import pack_arrays, unpack_arrays
from executor.resume import RunIdentity

SLOW_SECONDS = 0.3
"""Processor time of reading from which on the state is kept: getting it back takes less."""
PART = "states"
"""The part of the cache where states are."""
_KIND = "state"


def feed_prompt(
    engine: Engine, checkpoint: Checkpoint, prompt: Sequence[int], common: int
) -> Iterator[int]:
    """Feed a prompt to a new engine of a model; after each bit, how many tokens have been fed.

    Args:
        common: tokens at the head of the prompt that other runs begin with too; the state behind
            them is kept.
    """
    common = min(common, len(prompt))
    if isinstance(engine, Keepable) and common:
        yield from _feed_kept(engine, checkpoint, prompt[:common])
    else:
        common = 0
    for count in feed_chunks(engine, prompt[common:]):
        yield common + count


def _feed_kept(engine: Keepable, checkpoint: Checkpoint, tokens: Sequence[int]) -> Iterator[int]:
    key = _key(engine, checkpoint, tokens)
    entry = kept(_KIND, key, PART)
    if entry is not None and entry.value[0] == key:
        engine.restore(unpack_arrays(entry.value[1], entry.blobs))
        yield len(tokens)
        return
    begun = time.process_time()
    yield from feed_chunks(engine, tokens)
    if time.process_time() - begun < SLOW_SECONDS:
        return
    state = engine.state()
    if state is not None:
        forms, blobs = pack_arrays(state)
        keep(_KIND, key, [key, forms], blobs, PART)


def _key(engine: Keepable, checkpoint: Checkpoint, tokens: Sequence[int]) -> str:
    """A hash of all that the state depends on."""
    run = RunIdentity.of(checkpoint, tokens)
    sources = sources_digest("executor"), sources_digest("hullcache")
    return digest(*sources, type(engine).__name__, run.model, run.prompt)
