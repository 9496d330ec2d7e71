"""Engine interface: token ids in; token ids, log-probabilities and weight versions out.

An engine knows no tools, tasks or text. It advances a batch of rows; a row that ends its turn is returned and waits, at
no cost to the others, until the caller forces more tokens on it or finishes it. Sampled ids are returned as drawn and
never re-tokenised.

  engine.submit(request)          a new row; it starts as soon as there is room
  for turn in engine.step():      one decoding step for every runnable row
      engine.resume(turn.request, forced)     or    engine.finish(turn.request)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, runtime_checkable

from appliance.records.rollouts import WeightSpan
from common.errors import HintedError
from runtime.errors import InfrastructureError

ModelFiles = Mapping[str, bytes]
"""Model in memory, by file name: config.json, tokenizer.json, safetensors."""

if TYPE_CHECKING:
    from torch import nn

    Weights = ModelFiles | nn.Module
    """Pushable weights: a model's files, or a live transformers model."""

T = TypeVar("T")

ADAPTER = "adapter_model.safetensors"
ADAPTER_CONFIG = "adapter_config.json"
"""File names of a low-rank adapter, as peft uses them, so that other programs can read it."""


class ModelError(HintedError):
    """Unusable model folder or engine; the message states the problem and `hint` the remedy."""


class NoProbabilitiesError(ModelError):
    """Weights give no finite probabilities: training diverged, or a file is damaged."""


class OutOfMemoryError(InfrastructureError):
    """Insufficient memory at present: a failure of the machine. A model that can never fit is a ModelError."""


@dataclass(frozen=True)
class DrawRule:
    """Restriction of a turn's draws. The log-probabilities are then those of the restricted distribution."""

    grammar: str = ""
    """Grammar of llguidance, as its Lark text, of the turn before its stop token; empty for any text."""
    top_p: float = 1.0
    """Draws come from the most probable tokens, the fewest whose probabilities sum to so much."""
    top: int = 0
    """Number of the most probable tokens whose log-probabilities are returned with each draw."""
    drawn: int = 0
    """Number of the prompt's last tokens that the turn begins with: it began on another engine."""


@dataclass(frozen=True)
class GenerationRequest:
    id: int
    """Unique among the engine's unfinished requests."""
    prompt: tuple[int, ...]
    stop: int
    """Token that ends a turn; part of the turn."""
    max_tokens: int
    """Token budget of the whole conversation: prompt, sampled and forced tokens."""
    temperature: float
    """0 is greedy; log-probabilities are then those of the untempered distribution."""
    seed: int
    """Seed of the draws, which depend on weights, previous tokens and this seed, not on other rows of the batch (up to
    rounding of a batched matrix product)."""
    other_stops: tuple[int, ...] = ()
    """More tokens that end a turn, as `stop`; chat models have several."""
    group: str = ""
    """Requests of one group share their first tokens: with several engines, they go to the same one."""
    rule: DrawRule | None = None
    """Restriction of the first turn; None for draws from the whole distribution."""

    @property
    def stops(self) -> tuple[int, ...]:
        """All tokens that end a turn of the model."""
        return (self.stop, *self.other_stops)

    def require_fit(self, slots: int) -> None:
        """Raises ValueError if the generation request does not fit an engine with `slots` tokens per conversation."""
        if not 0 < len(self.prompt) < self.max_tokens <= slots:
            raise ValueError(
                f"a prompt of {len(self.prompt)} tokens with a budget of {self.max_tokens} does not fit: "
                f"both must be positive, the budget larger than the prompt and at most {slots}"
            )
        if not (math.isfinite(self.temperature) and self.temperature >= 0):
            raise ValueError(f"the temperature must be 0 or more, not {self.temperature}")
        if self.rule is not None and not 0 < self.rule.top_p <= 1:
            raise ValueError(f"top_p must be above 0 and at most 1, not {self.rule.top_p}")


@dataclass(frozen=True)
class Turn:
    request: int
    ids: tuple[int, ...]
    """Tokens sampled since the last forced token, including the stop token."""
    logprobs: tuple[float, ...]
    """Log-probability per id, under the distribution at the request's temperature."""
    ended: Literal["stop", "length", "withdrawn"]
    """`length`: the budget is spent; the row is finished and cannot resume. `withdrawn`: the caller withdrew the
    request during the turn."""
    weights: tuple[WeightSpan, ...] = ()
    """Weight version of each part of `ids`: spans in order, without gaps."""
    routes: bytes = b""
    """Experts that a mixture chose, layer by layer, in the pass that drew each id; empty if unknown. A number takes
    one byte, or two (little-endian) where a layer has over 256 experts."""
    read: bytes = b""
    """The same for tokens before: at least those given since the last turn, without a conversation's first."""
    top: tuple[tuple[tuple[int, float], ...], ...] = ()
    """The most probable tokens and their log-probabilities at each of `ids`, if the rule asks for them."""

    def routes_after(self, part: Turn) -> tuple[bytes, bytes]:
        """Returns `routes` and `read` of the turn that begins with `part` and continues with this one; empty unless
        both are known."""
        if not self.ids:
            return part.routes, part.read
        each = len(self.routes) // len(self.ids)
        if not each or len(part.routes) != each * len(part.ids):
            return b"", b""
        return part.routes + self.routes, part.read or self.read[: -len(part.routes)]


@dataclass(frozen=True)
class EngineCapacity:
    """Capacity of an engine: concurrent conversations and tokens."""

    rows: int
    """Conversations sampled concurrently."""
    tokens: int | None = None
    """Tokens in the KV cache; None if the rows' limit fits."""
    block: int = 1
    """Tokens per block of that memory: a conversation takes whole blocks."""


@dataclass(frozen=True)
class PushProof:
    """Weights of an engine after a push; `appliance.inference.adapters.proof_of` returns the expected value."""

    version: str
    digest: str
    """`appliance.inference.adapters.weights_digest` of the engine's weights; with an adapter, `adapter_digest`."""
    base: str = ""
    """Digest of the frozen weights beside the adapter; empty without one."""


class Engine(Protocol):
    @property
    def version(self) -> str:
        """Version of the current weights, as pushed; empty before the first push."""

    @property
    def tokens_sampled(self) -> int:
        """Number of tokens sampled since the engine was created."""

    def push(self, weights: Weights, version: str) -> PushProof:
        """Loads new weights into the engine: a model's files, or a live transformers model, which may have an adapter
        beside frozen weights; an engine that separates them does not receive the frozen ones again. Raises ModelError
        for missing, damaged or foreign weights, RuntimeError while requests are unfinished. After a failure the engine
        has its previous weights, or none: see `version`."""

    def score(self, conversations: Sequence[Sequence[int]], temperature: float = 1.0) -> list[tuple[float, ...]]:
        """Returns log-probabilities of conversations' tokens under the current weights: per conversation, one for each
        token but the first. Raises ValueError for an empty or oversized conversation, RuntimeError without weights."""

    def submit(self, request: GenerationRequest) -> None: ...

    def step(self) -> Sequence[Turn]:
        """Takes one decoding step for all running requests and returns the turns that ended; [] also if every row
        waits."""

    def resume(self, request: int, forced: Sequence[int]) -> None:
        """Appends tokens to a request that waits after its turn, which continues. The running loop consumes them one
        per step."""

    def finish(self, request: int) -> None:
        """Ends a request that waits after its turn, and frees its row for the next submitted one."""

    def withdraw(self, request: int) -> Turn:
        """Withdraws an unfinished request and frees its row; returns the tokens sampled since its last forced token.
        Resubmitted with those tokens appended to its prompt, to any engine, the request continues. Works also after an
        engine failure. Raises KeyError for an unknown request."""

    def under_way(self, request: int) -> Turn:
        """Returns the tokens sampled so far in an unfinished turn, as known locally; empty for an unknown request.
        Changes nothing."""

    @property
    def capacity(self) -> EngineCapacity:
        """Capacity of the engine; tokens are known only once weights are loaded."""

    def lengths(self) -> Mapping[int, int]:
        """Returns current token counts of unfinished requests, as known locally."""

    def preemptions(self) -> int:
        """Returns preemptions since the engine was created: conversations that lost their KV cache while running and
        were recomputed."""

    @property
    def unfinished(self) -> int:
        """Number of requests that run, wait or are queued."""

    @property
    def runnable(self) -> int:
        """Number of requests that the next step would advance (running or queued); 0 means that all wait for the
        caller."""

    def sleep(self) -> None:
        """Frees the engine's memory for training, if so configured; the engine has no version until the next push.
        Raises RuntimeError while requests are unfinished."""

    def close(self) -> None:
        """Closes the engine: frees the weights and all rows. Closing again does nothing."""


class SharedWeights(ExitStack):
    """Live model pushed to several engines, with derived data computed once. Resources that end with the push are
    registered here. Not thread-safe."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self._made: dict[Hashable, Any] = {}

    def once(self, name: Hashable, make: Callable[[], T]) -> T:
        """Returns the value that was derived from the model under this name, creating it on first use."""
        if name not in self._made:
            self._made[name] = make()
        made: T = self._made[name]
        return made


class PushUnderWay(Protocol):
    """Begun push of weights to an engine: the engine is ready and the weights are prepared."""

    def hand_over(self) -> None:
        """Loads the pushed weights into the engine and proves them; may run in a thread beside other engines' pushes,
        and raises nothing."""

    def proved(self) -> PushProof:
        """Returns the proof of the weights that `hand_over` loaded; replaces an engine that failed in it first. Raises
        as `Engine.push`."""


@runtime_checkable
class WorksApart(Protocol):
    """Additional interface of an engine in another process, so that several engines work concurrently."""

    def begin_step(self) -> None:
        """Requests a decoding step of the engine without waiting. The next call must be `step`, which also raises
        errors from here."""

    def begin_push(self, weights: SharedWeights, version: str) -> PushUnderWay:
        """Begins to push weights to the engine. Raises as `push`."""

    def pause(self) -> Sequence[Turn]:
        """Interrupts sampling and returns the turns that had ended; `withdraw` then returns everything sampled of the
        others. Raises InfrastructureError."""
