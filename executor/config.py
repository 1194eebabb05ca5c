"""What a model is besides its weights: sizes, slots, head modes, stop tokens. Needs no torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from compiler.errors import TransputerError

Mode = Literal["latest", "mean"]
MODES: tuple[Mode, ...] = get_args(Mode)
"""What a hard head does with keys of equal score: take the latest position, or average all."""
ATTENTIONS = ("hard", "softmax")
ENGINES = ("native", "hull", "standard", "torch")
"""Names for :func:`executor.decode.make_engine`, besides ``AUTO``."""
AUTO = "auto"
PROMPTS = ("programs", "tokens")
LIMITS = ("max_tokens", "max_memory", "max_locals", "max_stack", "max_calls")
"""The fields that bound what a model is used for; a model folder need not have any of them."""
WORDS = ("prompts", "exactness")
"""The fields that say what a model is for and what is known of it; a folder need not have them."""


@dataclass(frozen=True)
class ModelConfig:
    """Shape and conventions of one model; the weights fill exactly this shape.

    Attributes:
        vocab_size: number of tokens.
        d_model, n_heads, n_layers, d_ffn: width of the residual stream, heads per layer (each
            ``d_model / n_heads`` wide), layers, neurons per layer.
        position_slots: ``(i, j)``: slot i of the stream receives the position p, slot j p².
        head_modes: one of ``MODES`` for every head of every layer; empty means all ``latest``.
        stop_tokens: ids after which decoding ends.
        attention: ``hard`` weights score q·k exactly and take the greatest; ``softmax`` weights
            carry a temperature and suit ``nn.MultiheadAttention``.
        max_tokens: longest sequence, prompt included, that the model is made for; None if no
            limit is known.
        max_memory, max_locals, max_stack, max_calls: bytes of memory, locals (and globals),
            entries of the operand stack that programs may use, and the depth at which calls
            trap, in weights that are exact only within limits; None for no limit of its own.
        prompts: ``programs`` for a machine that runs programs, ``tokens`` for one whose prompts
            are any tokens of its vocabulary.
        exactness: what ``max_tokens`` rests on, or why nothing is certified, in words.

    Raises:
        TransputerError: where the numbers contradict each other.
    """

    vocab_size: int
    d_model: int = 36
    n_heads: int = 18
    n_layers: int = 7
    d_ffn: int = 36
    position_slots: tuple[int, int] = (0, 1)
    head_modes: tuple[tuple[Mode, ...], ...] = ()
    stop_tokens: tuple[int, ...] = ()
    attention: str = "hard"
    max_tokens: int | None = None
    max_memory: int | None = None
    max_locals: int | None = None
    max_stack: int | None = None
    max_calls: int | None = None
    prompts: str = "programs"
    exactness: str = ""

    def __post_init__(self) -> None:
        if not self.head_modes:
            modes = (("latest",) * self.n_heads,) * self.n_layers
            object.__setattr__(self, "head_modes", modes)
        problem = self._problem()
        if problem:
            raise TransputerError(f"model configuration: {problem}")

    def _problem(self) -> str:
        sizes = (self.vocab_size, self.d_model, self.n_heads, self.n_layers, self.d_ffn)
        if not all(_is_index(size, 1 << 31) and size > 0 for size in sizes):
            return "a size is not a positive integer"
        if self.d_model % self.n_heads:
            return "d_model is not divisible by n_heads"
        if [len(layer) for layer in self.head_modes] != [self.n_heads] * self.n_layers:
            return "head_modes does not list every head of every layer"
        if any(mode not in MODES for layer in self.head_modes for mode in layer):
            return f"a head mode is none of {', '.join(MODES)}"
        if self.attention not in ATTENTIONS:
            return f"attention is none of {', '.join(ATTENTIONS)}"
        if self.prompts not in PROMPTS or not isinstance(self.exactness, str):
            return f"prompts is none of {', '.join(PROMPTS)}, or exactness is no text"
        slots = self.position_slots
        if len(slots) != 2 or not all(_is_index(slot, self.d_model) for slot in slots):
            return "position_slots are not two slots of the residual stream"
        if not all(_is_index(token, self.vocab_size) for token in self.stop_tokens):
            return "a stop token is not in the vocabulary"
        for name in LIMITS:
            limit = getattr(self, name)
            if limit is not None and (not _is_index(limit, 1 << 62) or limit == 0):
                return f"{name} is not a positive integer"
        return ""

    @property
    def d_head(self) -> int:
        """Width of one head."""
        return self.d_model // self.n_heads

    @property
    def shapes(self) -> dict[str, tuple[int, int]]:
        """Name and shape of every weight array, in the order of the model's ``state_dict``."""
        d, f, v, layers = self.d_model, self.d_ffn, self.vocab_size, range(self.n_layers)
        shapes = {"tok.weight": (v, d)}
        for layer in layers:
            shapes[f"attn.{layer}.in_proj_weight"] = (3 * d, d)
            shapes[f"attn.{layer}.out_proj.weight"] = (d, d)
        for name, shape in {"gate": (f, d), "value": (f, d), "down": (d, f)}.items():
            shapes |= {f"{name}.{layer}.weight": shape for layer in layers}
        return shapes | {"head.weight": (v, d)}

    def model_arguments(self) -> dict[str, Any]:
        """The arguments of ``VanillaTransformer``."""
        return {
            "vocab": self.vocab_size,
            "d_model": self.d_model,
            "n_heads": self.n_heads,
            "n_layers": self.n_layers,
            "d_ffn": self.d_ffn,
            "position_slots": list(self.position_slots),
        }

    def to_mapping(self) -> dict[str, Any]:
        """All fields by name, for :meth:`from_mapping`."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> ModelConfig:
        """A config from a plain mapping of its fields, lists allowed for tuples."""
        given = dict(values)
        for name in ("position_slots", "stop_tokens"):
            if name in given:
                given[name] = tuple(_sequence(given[name], name))
        if "head_modes" in given:
            layers = _sequence(given["head_modes"], "head_modes")
            given["head_modes"] = tuple(tuple(_sequence(m, "head_modes")) for m in layers)
        try:
            return cls(**given)
        except TypeError as error:
            raise TransputerError(f"model configuration: {error}") from error


def _is_index(value: object, below: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < below


def _sequence(value: object, name: str) -> Sequence[Any]:
    if not isinstance(value, list | tuple):
        raise TransputerError(f"model configuration: {name} is not a list")
    return value
