"""The transformer itself: shape, causality, positions, carrying on, and plain-PyTorch loading."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from example_models import lookup_model, lookups  # noqa: E402
from executor.checkpoint import save_checkpoint  # noqa: E402
from executor.config import ModelConfig  # noqa: E402
from executor.loading import load_model  # noqa: E402
from executor.model import VanillaTransformer  # noqa: E402
from executor.torch_engine import make_model  # noqa: E402


@pytest.fixture
def model() -> VanillaTransformer:
    """A small model with random weights: what holds for any weights."""
    torch.manual_seed(1)
    return VanillaTransformer(20, d_model=8, n_heads=4, n_layers=3, d_ffn=5).eval()


@pytest.fixture
def tokens() -> torch.Tensor:
    return torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6, 5, 3], [2, 7, 1, 8, 2, 8, 1, 8, 2, 8]])


def test_default_shape_is_36_18_7_36_in_float64() -> None:
    model = VanillaTransformer(100)
    state = model.state_dict()
    shapes = {name: tuple(array.shape) for name, array in state.items()}
    assert shapes == ModelConfig(100).shapes
    assert shapes["attn.6.in_proj_weight"] == (108, 36)
    assert {array.dtype for array in state.values()} == {torch.float64}
    assert all(isinstance(layer, torch.nn.MultiheadAttention) for layer in model.attn)
    assert model.attn[0].num_heads == 18


def test_logits_have_one_row_per_token(model: VanillaTransformer, tokens: torch.Tensor) -> None:
    assert model(tokens).shape == (2, 10, 20)


def test_a_token_does_not_see_the_future(model: VanillaTransformer, tokens: torch.Tensor) -> None:
    edited = tokens.clone()
    edited[:, 6] = 11
    before, after = model(tokens), model(edited)
    assert torch.equal(before[:, :6], after[:, :6])
    assert not torch.allclose(before[:, 6:], after[:, 6:])


def test_an_edited_prefix_changes_what_follows(
    model: VanillaTransformer, tokens: torch.Tensor
) -> None:
    edited = tokens.clone()
    edited[:, 0] = 11
    assert (model(tokens) != model(edited)).any(dim=-1)[:, 1:].all()


@pytest.mark.parametrize("chunks", [[1] * 10, [4, 6], [3, 1, 6], [9, 1]])
def test_any_division_into_chunks_gives_the_same_logits(
    model: VanillaTransformer, tokens: torch.Tensor, chunks: list[int]
) -> None:
    cache: list[torch.Tensor] = []
    parts = [model(part, cache) for part in tokens.split(chunks, dim=1)]
    assert torch.allclose(torch.cat(parts, dim=1), model(tokens), rtol=1e-12, atol=1e-12)
    assert [layer.shape for layer in cache] == [(2, 10, 8)] * 3


def test_a_wrong_position_changes_the_logits(
    model: VanillaTransformer, tokens: torch.Tensor
) -> None:
    cache: list[torch.Tensor] = []
    model(tokens[:, :5], cache)
    shifted = [layer[:, 1:] for layer in cache]  # as if the sequence had begun one token later
    assert not torch.allclose(model(tokens[:, 5:], cache), model(tokens[:, 5:], shifted))


def test_positions_and_squares_enter_their_slots() -> None:
    model = VanillaTransformer(5, d_model=4, n_heads=2, n_layers=1, d_ffn=1, position_slots=(2, 1))
    features = model.position_features(3, 2)
    assert features.tolist() == [[0, 9, 3, 0], [0, 16, 4, 0]]


def test_gradients_reach_every_weight(model: VanillaTransformer, tokens: torch.Tensor) -> None:
    model(tokens).square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and parameter.grad.abs().sum() > 0, name


def test_softmax_weights_look_up_the_latest_value() -> None:
    tokens, expected = lookups(seed=2, length=300)
    best = make_model(lookup_model(512))(torch.tensor([tokens]))[0].argmax(dim=-1)
    assert len(expected) > 50
    assert {at: int(best[at]) for at in expected} == expected


def test_without_a_tie_break_softmax_mixes_old_values_in() -> None:
    checkpoint = lookup_model(512)
    checkpoint.weights["attn.1.in_proj_weight"][11, 0] = 0
    tokens, expected = lookups(seed=2, length=300)
    best = make_model(checkpoint)(torch.tensor([tokens]))[0].argmax(dim=-1)
    assert {at: int(best[at]) for at in expected} != expected


def test_a_folder_loads_in_plain_pytorch(tmp_path: Path) -> None:
    folder = save_checkpoint(lookup_model(512), tmp_path / "model")

    from safetensors.torch import load_file

    config = json.loads((folder / "config.json").read_text())
    model = VanillaTransformer(**config["model"])
    model.load_state_dict(load_file(folder / "model.safetensors"))
    tokens = torch.tensor([[1, 12, 3, 9, 1]])
    assert model(tokens)[0, -1].argmax() == 12
    assert torch.equal(load_model(folder)(tokens), model(tokens))
