"""The engine seam: token ids in, token ids and log-probabilities out.

An engine knows nothing of tools, tasks or text. It advances a batch of rows; a row that ends its turn is handed out and
waits, at no cost to the others, until the caller forces more tokens on it or finishes it. Sampled ids are returned as
they were drawn and are never re-tokenised.

    engine.submit(request)          a new row; it starts as soon as there is room
    for turn in engine.step():      one decoding step for every row that can go on
        engine.resume(turn.request, forced)     or    engine.finish(turn.request)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol


@dataclass(frozen=True)
class Request:
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


@dataclass(frozen=True)
class Turn:
    request: int
    ids: tuple[int, ...]
    """Sampled since the last forced token, the stop token included."""
    logprobs: tuple[float, ...]
    """One for each id, under the distribution at the request's temperature."""
    ended: Literal["stop", "length"]
    """`length`: the budget is spent; the row is finished and cannot be resumed."""


class Engine(Protocol):
    @property
    def weights(self) -> str:
        """Digest of the weights in use; empty before the first load."""
        ...

    @property
    def tokens_sampled(self) -> int:
        """Since the engine was made."""
        ...

    def load(self, folder: Path, digest: str) -> None:
        """Loads a model folder (config.json, safetensors). Raises ModelError when it is missing, broken or foreign."""
        ...

    def submit(self, request: Request) -> None: ...

    def step(self) -> Sequence[Turn]:
        """One decoding step. Returns the turns that ended; [] also when every row waits."""
        ...

    def resume(self, request: int, forced: Sequence[int]) -> None:
        """Appends tokens to a waiting row and lets it go on. They are consumed by the running loop, one a step."""
        ...

    def finish(self, request: int) -> None:
        """Gives the row back; the next submitted request takes its place."""
        ...

    @property
    def unfinished(self) -> int:
        """Rows running, waiting or queued."""
        ...

    @property
    def runnable(self) -> int:
        """Rows that the next step would advance (running or queued): 0 means that all wait for the caller."""
        ...


class ModelError(Exception):
    """A model folder that cannot be used; the message says what is wrong and `hint` what to do."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint
