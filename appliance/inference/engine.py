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
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, runtime_checkable

from appliance.records.rollouts import WeightSpan
from runtime.errors import HintedError, InfrastructureError

ModelFiles = Mapping[str, bytes]
"""A model as it was read into memory, by the names of its files: config.json, tokenizer.json, safetensors."""

if TYPE_CHECKING:
    from torch import nn

    Weights = ModelFiles | nn.Module
    """What is pushed: a model's files, or a live transformers model."""

T = TypeVar("T")

ADAPTER = "adapter_model.safetensors"
ADAPTER_CONFIG = "adapter_config.json"
"""Where an adapter of low rank lies among them, by the names of peft, so that other programs read it too."""


class ModelError(HintedError):
    """A model folder or an engine that cannot be used; the message says what is wrong and `hint` what to do."""


class NoProbabilitiesError(ModelError):
    """Weights that give no finite probabilities: training has diverged, or a file is damaged."""


class OutOfMemoryError(InfrastructureError):
    """Memory that does not suffice now: a failure of the machine. What can never fit is a ModelError."""


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
    group: str = ""
    """Requests of one group begin with the same tokens: where there are several engines, they go to one."""

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
    ended: Literal["stop", "length", "withdrawn"]
    """`length`: the budget is spent; the row is finished and cannot be resumed. `withdrawn`: the caller took the
    request back in the middle of the turn."""
    weights: tuple[WeightSpan, ...] = ()
    """Which version of the weights drew which of `ids`: spans in order, without gaps."""


@dataclass(frozen=True)
class EngineCapacity:
    """Says what an engine has room for."""

    rows: int
    """Conversations that it samples at once."""
    tokens: int | None = None
    """Tokens whose keys and values it holds at once; None where its rows cannot have more than it holds."""
    block: int = 1
    """Tokens of the smallest part of that memory: a conversation takes whole ones."""


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

    def push(self, weights: Weights, version: str) -> PushProof:
        """Takes new weights: a model's files, or a live transformers model, which may have an adapter beside frozen
        weights; an engine that keeps the two apart is not given the frozen ones again.

        Raises ModelError when they are missing, broken or foreign, RuntimeError while requests are unfinished. Where it
        fails, the engine has the weights that it had, or none: `version` says so."""

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

    def withdraw(self, request: int) -> Turn:
        """Takes an unfinished request back with what was sampled since its last forced token; its row is given back.

        Submitted again with those tokens at the end of its prompt, here or to another engine, it goes on. Works also
        after an engine has failed. Raises KeyError for a request that is not there."""

    def under_way(self, request: int) -> Turn:
        """Returns what was sampled by now of an unfinished request's turn, as far as is known without asking anybody;
        nothing of one that is not there. Nothing is changed."""

    @property
    def capacity(self) -> EngineCapacity:
        """Says what there is room for; the tokens only once there are weights."""

    def lengths(self) -> Mapping[int, int]:
        """Returns how many tokens each unfinished request has by now, where that is known without asking anybody."""

    def preemptions(self) -> int:
        """Counts conversations whose memory was taken while they ran, so that they had to be read again, since the
        engine was made."""

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


class SharedWeights(ExitStack):
    """Is a live model that several engines are given: what they need of it is made once, by the first that does. What
    has to end with the push is registered here. Not thread-safe."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self._made: dict[Hashable, Any] = {}

    def once(self, name: Hashable, make: Callable[[], T]) -> T:
        """Returns what was made under this name, or makes it."""
        if name not in self._made:
            self._made[name] = make()
        made: T = self._made[name]
        return made


class PushUnderWay(Protocol):
    """Is a push whose engine is there, and whose weights are ready to be taken."""

    def hand_over(self) -> None:
        """Has the engine take and prove them; may run in a thread beside those of other engines, and raises nothing."""

    def proved(self) -> PushProof:
        """Says what `hand_over` came to; an engine that failed in it is replaced first. Raises as `Engine.push`."""


@runtime_checkable
class WorksApart(Protocol):
    """Is what an engine in a process of its own can do besides: several of them work at once."""

    def begin_step(self) -> None:
        """Asks for a step without waiting for it. The next call is `step`, which raises what was wrong here, too."""

    def begin_push(self, weights: SharedWeights, version: str) -> PushUnderWay:
        """Begins what `push` does. Raises as that."""

    def pause(self) -> Sequence[Turn]:
        """Ends what samples now, and returns the turns that had ended: of the others, `withdraw` then returns all that
        was sampled. Raises InfrastructureError."""
