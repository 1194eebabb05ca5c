"""The exact residual streams of a known sequence, and the torch module asked about samples.

The streams come from the weights for hard attention, layer by layer, all positions at once: heads
on keys (2p, -p²) by rounding the query, averages by cumulated sums, all others by hull caches.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from compiler.build import make_machine
from compiler.machine import build_graph
from compiler.schedule import load_plan
from executor.checkpoint import Array, Checkpoint
from executor.config import ModelConfig
from executor.model import VanillaTransformer
from hullcache import HullHead


def hard_checkpoint(calls: int) -> Checkpoint:
    """The machine for hard attention with another depth of calls."""
    machine = make_machine(build_graph(calls), load_plan())
    ids = machine.ids
    return Checkpoint(
        ModelConfig.from_mapping(machine.config),
        machine.vocabulary,
        machine.arrays,
        tuple(ids[token] for token in machine.rom),
    )


def exact_streams(model: Checkpoint, tokens: Sequence[int]) -> list[Array]:
    """Each layer's input, and the last residual stream: arrays (T, d_model)."""
    config, weights = model.config, model.weights
    p = np.arange(len(tokens), dtype=np.float64)
    x: Array = weights["tok.weight"][np.asarray(tokens)]
    for slot, feature in zip(config.position_slots, (p, p * p), strict=True):
        x[:, slot] += feature
    streams = [x]
    for layer in range(config.n_layers):
        mixed = _attend(config, weights[f"attn.{layer}.in_proj_weight"], layer, x)
        x = x + mixed @ weights[f"attn.{layer}.out_proj.weight"].T
        gate = np.maximum(x @ weights[f"gate.{layer}.weight"].T, 0.0)
        x = (
            x
            + (gate * (x @ weights[f"value.{layer}.weight"].T)) @ weights[f"down.{layer}.weight"].T
        )
        streams.append(x)
    return streams


def _attend(config: ModelConfig, projection: Array, layer: int, x: Array) -> Array:
    """What all heads of one layer fetch: (T, d_model) to (T, d_model)."""
    d = config.d_model
    fetched = np.zeros_like(x)
    groups: dict[bytes, list[int]] = {}
    for head in range(config.n_heads):
        if projection[2 * d + 2 * head : 2 * d + 2 * head + 2].any():
            keys = projection[d + 2 * head : d + 2 * head + 2] + 0.0
            groups.setdefault(keys.tobytes(), []).append(head)
    p = np.arange(len(x))
    for heads in groups.values():
        first = 2 * heads[0]
        keys = x @ projection[d + first : d + first + 2].T
        rows = {head: slice(2 * head, 2 * head + 2) for head in heads}
        queries = {head: x @ projection[rows[head]].T for head in heads}
        by_position = np.array_equal(keys, np.stack((2.0 * p, -1.0 * p * p), axis=1))
        searched = {} if by_position else _search(keys, queries)
        for head in heads:
            values = x @ projection[2 * d + 2 * head : 2 * d + 2 * head + 2].T
            if config.head_modes[layer][head] == "mean":
                fetched[:, rows[head]] = np.cumsum(values, axis=0) / (p + 1)[:, None]
            else:
                at = _nearest(queries[head], p) if by_position else searched[head]
                fetched[:, rows[head]] = values[at]
    return fetched


def _nearest(query: Array, p: np.ndarray) -> np.ndarray:
    """For keys (2p, -p²): the position nearest to q0/q1, the later of two, none in the future."""
    assert (query[:, 1] > 0).all()
    return np.clip(np.floor(query[:, 0] / query[:, 1] + 0.5), 0, p).astype(np.int64)


def _search(keys: Array, queries: dict[int, Array]) -> dict[int, np.ndarray]:
    """Winners by hull cache; equal keys: the latest. Heads with equal queries share the answer."""
    cache = HullHead("latest", 1)
    distinct: dict[bytes, list[int]] = {}
    for head, query in queries.items():
        distinct.setdefault(query.tobytes(), []).append(head)
    asked = [queries[heads[0]].tolist() for heads in distinct.values()]
    found = np.zeros((len(asked), len(keys)), dtype=np.int64)
    for at, (kx, ky) in enumerate(keys.tolist()):
        cache.insert(kx, ky, (float(at),))
        for number, query in enumerate(asked):
            found[number, at] = int(cache.query(*query[at])[0])
    return {head: found[number] for number, heads in enumerate(distinct.values()) for head in heads}


def best_tokens(model: Checkpoint, stream: Array) -> Array:
    """The id of the greatest logit at every row of a last residual stream."""
    head = model.weights["head.weight"].T
    blocks = np.array_split(stream, len(stream) // 4096 + 1)
    return np.concatenate([np.argmax(block @ head, axis=1) for block in blocks])


def module_predicts(
    model: VanillaTransformer,
    streams: Sequence[Array],
    positions: Sequence[int],
    *,
    explicit: bool = False,
    block: int = 64,
) -> Array:
    """The module's next token at some positions, all earlier layer inputs being the exact ones.

    Only the queries' own streams run through the module, with its own ``nn.MultiheadAttention``:
    O(positions · T). ``explicit``: with ``need_weights``, which does not use the fused kernel.
    """
    histories = [torch.from_numpy(stream) for stream in streams[:-1]]
    order = np.argsort(positions)
    out = np.zeros(len(positions), dtype=np.int64)
    with torch.inference_mode():
        for chunk in np.array_split(order, -(-len(order) // block)):
            at = torch.from_numpy(np.asarray(positions)[chunk])
            seen = int(at.max()) + 1
            future = torch.arange(seen) > at[:, None]
            x = histories[0][at][None]
            for layer, history in enumerate(histories):
                x = _layer(model, layer, x, history[None, :seen], future, explicit)
            out[chunk] = model.head(x)[0].argmax(dim=1).numpy()
    return out


def _layer(
    model: VanillaTransformer, layer: int, x: Tensor, seen: Tensor, future: Tensor, explicit: bool
) -> Tensor:
    mixed, _ = model.attn[layer](x, seen, seen, attn_mask=future, need_weights=explicit)
    x = x + mixed
    hidden = torch.relu(model.gate[layer](x)) * model.value[layer](x)
    result: Tensor = x + model.down[layer](hidden)
    return result
