"""The engine seam takes token ids and gives token ids, log-probabilities and the version of the weights that drew them.

An engine knows nothing of tools, tasks or text. It advances a batch of rows; a row that ends its turn is handed out and
waits, at no cost to the others, until the caller forces more tokens on it or finishes it. Sampled ids are returned as
they were drawn and are never re-tokenised.

    engine.submit(request)          a new row; it starts as soon as there is room
    for turn in engine.step():      one decoding step for every row that can go on
        engine.resume(turn.request, forced)     or    engine.finish(turn.request)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from appliance.records.rollouts import WeightSpan
from runtime.errors import HintedError

if TYPE_CHECKING:
    from torch import nn


ModelFiles = Mapping[str, bytes]
"""A model as it was read into memory, by the names of its files: config.json, tokenizer.json, safetensors."""

ADAPTER = "adapter_model.safetensors"
ADAPTER_CONFIG = "adapter_config.json"
"""Where an adapter of low rank lies among them, by the names of peft, so that other programs read it too."""


class ModelError(HintedError):
    """A model folder or an engine that cannot be used; the message says what is wrong and `hint` what to do."""


@dataclass(frozen=True)
class GenerationRequest:
    id: int
    """Unique among the engine's unfinished requests."""
    prompt: tuple[int, ...]
    stop: int
    """The token that ends a turn; it is part of the turn."""
    max_tokens: int
    """Budget of the whole conversation: prompt, sampled and forced tokens together."""
    temperature: float
    """0 is greedy; log-probabilities are then those of the untempered distribution."""
    seed: int
    """What is drawn depends on the weights, the tokens so far and this seed, not on the other rows of the batch
    (up to the rounding of a batched matrix product)."""
    other_stops: tuple[int, ...] = ()
    """Further tokens that end a turn as `stop` does; chat models have several."""

    @property
    def stops(self) -> tuple[int, ...]:
        """Lists every token that ends a turn."""
        return (self.stop, *self.other_stops)

    def require_fit(self, slots: int) -> None:
        """Raises ValueError where an engine whose conversations have at most so many tokens cannot serve it."""
        if not 0 < len(self.prompt) < self.max_tokens <= slots:
            raise ValueError(
                f"a prompt of {len(self.prompt)} tokens with a budget of {self.max_tokens} does not fit: "
                f"both must be positive, the budget larger than the prompt and at most {slots}"
            )
        if not (math.isfinite(self.temperature) and self.temperature >= 0):
            raise ValueError(f"the temperature must be 0 or more, not {self.temperature}")


@dataclass(frozen=True)
class Turn:
    request: int
    ids: tuple[int, ...]
    """Sampled since the last forced token, the stop token included."""
    logprobs: tuple[float, ...]
    """One for each id, under the distribution at the request's temperature."""
    ended: Literal["stop", "length"]
    """`length`: the budget is spent; the row is finished and cannot be resumed."""
    weights: tuple[WeightSpan, ...] = ()
    """Which version of the weights drew which of `ids`: spans in order, without gaps."""


@dataclass(frozen=True)
class PushProof:
    """Says what an engine holds after a push; `appliance.inference.weights.proof_of` says what it should hold."""

    version: str
    digest: str
    """`appliance.inference.weights.weights_digest` of what it holds; with an adapter, `adapter_digest` of that."""
    base: str = ""
    """Digest of the frozen weights that the adapter lies beside; empty without one."""


class Engine(Protocol):
    @property
    def version(self) -> str:
        """Names the weights in use, as they were pushed; empty before the first push."""

    @property
    def tokens_sampled(self) -> int:
        """Counts since the engine was made."""

    def push(self, weights: ModelFiles | nn.Module, version: str) -> PushProof:
        """Takes new weights: a model's files, or a live transformers model, which may have an adapter beside frozen
        weights; an engine that keeps the two apart is not given the frozen ones again.

        Raises ModelError when they are missing, broken or foreign, RuntimeError while requests are unfinished."""

    def score(self, conversations: Sequence[Sequence[int]], temperature: float = 1.0) -> list[tuple[float, ...]]:
        """Returns log-probabilities of given tokens under the weights in use: one for each token of a conversation but
        its first, given those before it. Raises ValueError for one that is empty or does not fit, RuntimeError without
        weights."""

    def submit(self, request: GenerationRequest) -> None: ...

    def step(self) -> Sequence[Turn]:
        """Takes one decoding step and returns the turns that ended; [] also when every row waits."""

    def resume(self, request: int, forced: Sequence[int]) -> None:
        """Appends tokens to a waiting row and lets it go on. They are consumed by the running loop, one a step."""

    def finish(self, request: int) -> None:
        """Gives the row back; the next submitted request takes its place."""

    @property
    def unfinished(self) -> int:
        """Counts rows that run, wait or are queued."""

    @property
    def runnable(self) -> int:
        """Counts rows that the next step would advance (running or queued): 0 means that all wait for the caller."""

    def sleep(self) -> None:
        """Gives back memory that training may need, where the configuration asks for it; the next push wakes it, and
        until then it has no version. Raises RuntimeError while requests are unfinished."""

    def close(self) -> None:
        """Frees the weights and all rows. Closing again does nothing."""
