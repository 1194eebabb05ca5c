"""The transformer: nothing but PyTorch's own layers. Only its weights are special.

Token ids go in, logits come out. Everything a machine knows is in the weights; this file knows
nothing of it, and no other file of ours is needed to run one.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class VanillaTransformer(nn.Module):
    """A decoder of ``n_layers`` layers: attention, then a gated (ReGLU) feed-forward.

    Both add to the residual stream, which starts as the token's embedding plus two fixed
    features: the position p in slot ``position_slots[0]`` and p² in slot ``position_slots[1]``.
    No norm, no bias, no learned position. Numbers are float64: the machine's addresses and
    squares are exact integers that float32 cannot hold.
    """

    def __init__(
        self,
        vocab: int,
        d_model: int = 36,
        n_heads: int = 18,
        n_layers: int = 7,
        d_ffn: int = 36,
        position_slots: Sequence[int] = (0, 1),
    ) -> None:
        super().__init__()
        self.position_slots = tuple(position_slots)
        layers = range(n_layers)
        self.tok = nn.Embedding(vocab, d_model)
        self.attn = nn.ModuleList(
            nn.MultiheadAttention(d_model, n_heads, batch_first=True, bias=False) for _ in layers
        )
        self.gate = nn.ModuleList(nn.Linear(d_model, d_ffn, bias=False) for _ in layers)
        self.value = nn.ModuleList(nn.Linear(d_model, d_ffn, bias=False) for _ in layers)
        self.down = nn.ModuleList(nn.Linear(d_ffn, d_model, bias=False) for _ in layers)
        self.head = nn.Linear(d_model, vocab, bias=False)
        self.double()

    def forward(self, tokens: Tensor, cache: list[Tensor] | None = None) -> Tensor:
        """Logits (B, T, vocab) for token ids (B, T); row t predicts the token after t.

        ``cache`` carries on a sequence: an empty list on the first call, then the same list. It
        holds each layer's input so far, (B, T_past, d_model), from which the layer's own
        projections give the keys and values again.
        """
        past = cache[0].shape[1] if cache else 0
        time = tokens.shape[1]
        x = self.tok(tokens) + self.position_features(past, time)  # (B, T, d_model)
        future = tokens.new_ones((time, past + time), dtype=torch.bool).triu(past + 1)
        layers = zip(self.attn, self.gate, self.value, self.down, strict=True)
        for layer, (attn, gate, value, down) in enumerate(layers):
            seen = x  # (B, T_past + T, d_model)
            if cache is not None:
                if past:
                    seen = torch.cat((cache[layer], x), dim=1)
                cache[layer : layer + 1] = [seen]
            mixed, _ = attn(
                x, seen, seen, attn_mask=future, is_causal=past == 0, need_weights=False
            )
            x = x + mixed
            x = x + down(torch.relu(gate(x)) * value(x))
        logits: Tensor = self.head(x)
        return logits

    def position_features(self, past: int, time: int) -> Tensor:
        """Rows (T, d_model) for positions past .. past + T - 1: p and p² in their two slots."""
        weight = self.tok.weight
        p = torch.arange(past, past + time, dtype=weight.dtype, device=weight.device)
        features = weight.new_zeros(time, weight.shape[1])
        features[:, self.position_slots[0]] = p
        features[:, self.position_slots[1]] = p * p
        return features
