"""An explanation as plain data for other programs: one position, everything in it."""

from __future__ import annotations

from typing import Any

import numpy as np

from executor.inside.explanation import Explanation


def as_data(explanation: Explanation, position: int) -> dict[str, Any]:
    """One position as dictionaries, lists, texts, numbers; ``docs/explain.md`` names the fields."""
    row = explanation.row(position)
    spellings = explanation.checkpoint.vocabulary
    answer = explanation.answer
    margin = float(answer.margins[row])
    data: dict[str, Any] = {
        "position": position,
        "token": explanation.spelling(position),
        "writes": spellings[int(answer.tokens[row, 0])],
        "trace_index": position + 1 - explanation.n_prompt,
        "logits": [
            {"token": spellings[int(token)], "logit": float(logit)}
            for token, logit in zip(answer.tokens[row], answer.logits[row], strict=True)
        ],
        "margin": margin if np.isfinite(margin) else None,
        "stream": [_slots(explanation, row, time) for time in range(explanation.stream.shape[1])],
        "layers": [
            {"heads": _heads(explanation, row, layer), "neurons": _neurons(explanation, row, layer)}
            for layer in range(len(explanation.layers))
        ],
    }
    if explanation.context is not None:
        data["source"] = _source(explanation, position)
        if position + 1 >= explanation.n_prompt:
            data["writes_source"] = _source(explanation, position + 1)
    return data


def _source(explanation: Explanation, position: int) -> dict[str, Any]:
    assert explanation.context is not None
    return vars(explanation.context.source(position))


def _slots(explanation: Explanation, row: int, time: int) -> dict[str, Any]:
    values = explanation.stream[row, time].tolist()
    names = explanation.names
    return {"names": list(names.slots[time]) if names else None, "values": values}


def _heads(explanation: Explanation, row: int, layer: int) -> list[dict[str, Any]]:
    attention, names = explanation.layers[layer].attention, explanation.names
    heads = []
    for head, mode in enumerate(attention.modes):
        name = names.heads[layer][head] if names else ""
        winner, runner_up = (int(a[row, head]) for a in (attention.winners, attention.runners_up))
        data: dict[str, Any] = {
            "head": head,
            "name": name,
            "about": names.words(name) if names else "",
            "mode": mode,
            "live": bool(attention.live[head]),
            "used": bool(attention.used[row, head]),
            "kept": bool(attention.kept[row, head]),
            "query": attention.queries[row, head].tolist(),
            "winner": winner,
            "ties": int(attention.ties[row, head]),
            "token": explanation.spelling(winner),
            "key": attention.keys[row, head].tolist(),
            "score": float(attention.scores[row, head]),
            "runner_up": runner_up if runner_up >= 0 else None,
            "lead": float(attention.leads[row, head]),
            "value": attention.values[row, head].tolist(),
            "adds": _adds(
                explanation,
                2 * layer + 1,
                attention.values[row, head] @ attention.output[head],
                attention.output[head].any(axis=0),
            ),
        }
        if explanation.context is not None:
            data["source"] = _source(explanation, winner)
        heads.append(data)
    return heads


def _neurons(explanation: Explanation, row: int, layer: int) -> list[dict[str, Any]]:
    forward, names = explanation.layers[layer].feed_forward, explanation.names
    return [
        {
            "neuron": neuron,
            "name": names.neurons[layer][neuron] if names else "",
            "live": bool(forward.live[neuron]),
            "used": bool(forward.used[row, neuron]),
            "kept": bool(forward.kept[row, neuron]),
            "gate": float(forward.gates[row, neuron]),
            "value": float(forward.values[row, neuron]),
            "adds": _adds(
                explanation,
                2 * layer + 2,
                forward.outputs[row, neuron] * output,
                output != 0,
            ),
        }
        for neuron, output in enumerate(forward.output)
    ]


def _adds(explanation: Explanation, time: int, amounts: Any, written: Any) -> list[dict[str, Any]]:
    """What goes to which slot; the name is that of the slot afterwards."""
    names = explanation.names
    return [
        {
            "slot": int(slot),
            "name": names.slots[time][slot] if names else "",
            "amount": float(amounts[slot]),
        }
        for slot in np.flatnonzero(written)
    ]
