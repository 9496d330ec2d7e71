"""vLLM engine: a separate process samples, and its tokens count only after a proof.

Invariants: token ids go in and come out; nothing is tokenised. Tokens are accepted only from a process proved to have
the weights of their version (`supervisor`), and never from one that contradicts itself. When a process is replaced,
each conversation continues from its tokens as a new request; an engine failure is never an answer of the model.

One request at a time samples a conversation, under one weight version. When new weights arrive midway, the caller
withdraws the request (`pause`, `withdraw`) and resubmits it to any engine, which reads it again, so no conversation
continues under outdated weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import nn

from appliance.inference.engine import (
    EngineCapacity,
    GenerationRequest,
    ModelFiles,
    PushProof,
    PushUnderWay,
    SharedWeights,
    Turn,
)
from appliance.inference.folder import open_model
from appliance.inference.vllm.placement import VllmSettings, require_environment
from appliance.inference.vllm.process import EngineFault, VllmProcess
from appliance.inference.vllm.supervisor import Start, VllmSupervisor
from appliance.records.rollouts import WeightSpan
from appliance.system.patience import Patience

SCORE_TOKENS = 1 << 16
"""Maximum tokens per scoring request."""


@dataclass
class _Row:
    """One conversation that vLLM samples."""

    request: GenerationRequest
    known: list[int]
    ids: list[int] = field(default_factory=list)
    """Tokens of the current turn, as `logprobs` and `spans`."""
    logprobs: list[float] = field(default_factory=list)
    spans: list[WeightSpan] = field(default_factory=list)
    dispatch: int | None = None
    """Number of the request that samples; None while waiting for the caller."""
    version: str = ""
    """Weight version of this request."""
    sampled: int = 0
    """Tokens sampled by this request so far."""

    def forget(self) -> None:
        """Removes from the conversation the tokens that the current request sampled."""
        kept = len(self.ids) - self.sampled
        del self.known[len(self.known) - self.sampled :], self.ids[kept:], self.logprobs[kept:]
        spans = [span for span in self.spans if span.start < kept]
        self.spans = [span.model_copy(update={"end": min(span.end, kept)}) for span in spans]
        self.sampled = 0


class VllmEngine:
    """`Engine` in which vLLM samples up to `rows` concurrent conversations of at most `slots` tokens."""

    def __init__(
        self,
        rows: int,
        slots: int,
        threads: int | None = None,
        *,
        dtype: str = "",
        patience: Patience | None = None,
        start: Start | None = None,
        settings: VllmSettings | None = None,
        gpu: bool = False,
        place: tuple[int, int] = (0, 1),
    ) -> None:
        """Prepares an engine whose vLLM process starts with the first push. `dtype` is the computing type, by default
        float32 on a CPU and bfloat16 on a GPU. `place` is (index, count) of the engines that share the GPUs of
        `settings`. `start` replaces the vLLM process of this machine, and `gpu` says if its replacement has a GPU.
        Raises ModelError if vLLM's environment is missing or this machine lacks what `settings` require."""
        if rows < 1 or slots < 2:
            raise ValueError(f"an engine needs at least 1 row and 2 slots, not {rows} and {slots}")
        settings = settings or VllmSettings()
        if start is None:
            environment = require_environment()
            settings.require(environment)
            gpu = environment.package == "vllm" and torch.cuda.is_available()
            waits = patience or Patience()
            gpus = settings.gpus_of(*place)
            network: Literal["own", "shared"] = "shared" if settings.transfer == "nccl" else "own"
            start = lambda asked: VllmProcess(  # noqa: E731
                environment, asked, threads=threads, patience=waits, gpus=gpus, network=network
            )
        dtype = dtype or ("bfloat16" if gpu else "float32")
        self._count, self._slots = rows, slots
        self.supervisor = VllmSupervisor(rows, slots, start, dtype=dtype, gpu=gpu, settings=settings)
        """Manages the process; records replacements with their reasons."""
        self._rows: dict[int, _Row] = {}
        self._by_dispatch: dict[int, int] = {}
        self._submit: list[dict[str, Any]] = []
        self._abort: list[int] = []
        self._begun: bool | EngineFault = False
        """True if a step was requested and not yet answered, or the error of the request."""
        self.tokens_sampled = 0

    @property
    def version(self) -> str:
        return self.supervisor.version

    @property
    def unfinished(self) -> int:
        return len(self._rows)

    @property
    def runnable(self) -> int:
        return len(self._by_dispatch)

    def push(self, weights: ModelFiles | nn.Module, version: str) -> PushProof:
        """Loads new weights into vLLM; see `Engine`. Raises ModelError also for a model unsupported by vLLM,
        InfrastructureError if no process could be proved."""
        if self._rows:
            raise RuntimeError(f"{len(self._rows)} requests are unfinished: new weights would answer half of each")
        return self.supervisor.push(_opened(weights, version), version)

    def begin_push(self, weights: SharedWeights, version: str) -> PushUnderWay:
        """Begins to push weights to vLLM; see `WorksApart`."""
        if self._rows:
            raise RuntimeError(f"{len(self._rows)} requests are unfinished: new weights would answer half of each")
        return self.supervisor.begin_push(weights, version)

    def sleep(self) -> None:
        """Frees vLLM's GPU memory for training; see `Engine`. Raises InfrastructureError if no process stays alive."""
        if self._rows:
            raise RuntimeError(f"{len(self._rows)} requests are unfinished: they would never be answered")
        self._submit, self._abort = [], []
        self.supervisor.sleep()

    def submit(self, request: GenerationRequest) -> None:
        """Queues a generation request. Raises ValueError for an unservable one, RuntimeError before the first push."""
        if not self.version:
            raise RuntimeError("no weights are loaded")
        if request.id in self._rows:
            raise ValueError(f"request {request.id} is unfinished already")
        request.require_fit(self._slots)
        self._check(request.prompt)
        row = self._rows[request.id] = _Row(request, list(request.prompt))
        self._dispatch(row)

    def resume(self, request: int, forced: Sequence[int]) -> None:
        """Continues a waiting request after forced tokens. Raises ValueError if the request does not wait, or the
        tokens exhaust its budget."""
        row = self._rows.get(request)
        if row is None or row.dispatch is not None:
            raise ValueError(f"request {request} does not wait")
        if len(row.known) + len(forced) >= row.request.max_tokens:
            raise ValueError(f"{len(forced)} tokens leave no room in the budget of request {request}")
        self._check(forced)
        row.known += forced
        self._dispatch(row)

    def finish(self, request: int) -> None:
        """Ends a request and frees its row, also if it is running or queued; ignores an unknown one."""
        row = self._rows.pop(request, None)
        if row is not None and row.dispatch is not None:
            del self._by_dispatch[row.dispatch]
            known = len(self._submit)
            self._submit = [one for one in self._submit if one["number"] != row.dispatch]
            if len(self._submit) == known:  # else vLLM never received it
                self._abort.append(row.dispatch)

    def withdraw(self, request: int) -> Turn:
        """Withdraws an unfinished request and returns its sampled tokens; see `Engine`. Tokens sampled since the last
        step are lost, unless paused."""
        if request not in self._rows:
            raise KeyError(request)
        turn = self.under_way(request)
        self.finish(request)
        return turn

    def pause(self) -> list[Turn]:
        """Interrupts sampling and returns the turns that had ended; see `WorksApart`."""
        self._submit, self._abort = [], []
        if not self._by_dispatch:
            return []
        try:
            return self._taken(self.supervisor.ask("drain")["reports"])
        except EngineFault as fault:
            self.supervisor.replace(fault)
            return []

    def under_way(self, request: int) -> Turn:
        row = self._rows.get(request)
        if row is None:
            return Turn(request, (), (), "withdrawn")
        return Turn(request, tuple(row.ids), tuple(row.logprobs), "withdrawn", tuple(row.spans))

    @property
    def capacity(self) -> EngineCapacity:
        tokens, block = self.supervisor.cache
        return EngineCapacity(self._count, tokens, block)

    def lengths(self) -> dict[int, int]:
        return {number: len(row.known) for number, row in self._rows.items()}

    def preemptions(self) -> int:
        """Returns vLLM's preemptions since the engine was created; a dead process counts as last reported."""
        return self.supervisor.preemptions()

    def step(self) -> list[Turn]:
        """Takes at least one decoding step and returns the turns that ended. Raises ModelError for non-finite
        probabilities, InfrastructureError if no process stays alive."""
        turns: list[Turn] = []
        if not self._begun and not self._by_dispatch:
            return turns
        try:
            reports = self._progress()["reports"]
        except EngineFault as fault:
            self.supervisor.replace(fault)
            self._dispatch_again()
        else:
            turns = self._taken(reports)
        if turns:
            self.supervisor.succeeded()
        return turns

    def begin_step(self) -> None:
        """Requests a decoding step from vLLM without waiting; see `WorksApart`."""
        if self._begun or not self._by_dispatch:
            return
        self._begun = True
        try:
            self.supervisor.begin("step", **self._changes())
        except EngineFault as fault:
            self._begun = fault

    def score(self, conversations: Sequence[Sequence[int]], temperature: float = 1.0) -> list[tuple[float, ...]]:
        """Returns log-probabilities of conversations' tokens under the current weights; see `Engine`. Raises
        InfrastructureError if no process stays alive."""
        if not self.version:
            raise RuntimeError("no weights are loaded")
        for ids in conversations:
            if not 0 < len(ids) <= self._slots:
                raise ValueError(f"a conversation of {len(ids)} tokens does not fit: 1 to {self._slots} do")
            self._check(ids)
        scores: list[tuple[float, ...]] = []
        for some in _portions([list(ids) for ids in conversations]):
            asked = [ids for ids in some if len(ids) > 1]
            given = iter(self._scored(asked, temperature) if asked else ())
            scores += [tuple(next(given)) if len(ids) > 1 else () for ids in some]
        return scores

    def close(self) -> None:
        """Ends the vLLM process and removes its files. Closing again does nothing."""
        self.supervisor.close()
        self._rows, self._by_dispatch = {}, {}
        self._submit, self._abort, self._begun = [], [], False

    def _progress(self) -> dict[str, Any]:
        begun, self._begun = self._begun, False
        if isinstance(begun, EngineFault):
            raise begun
        return self.supervisor.answer("step") if begun else self.supervisor.ask("step", **self._changes())

    def _changes(self) -> dict[str, list[Any]]:
        """Returns and clears the submissions and aborts to send to vLLM."""
        changes: dict[str, list[Any]] = {"submit": self._submit, "abort": self._abort}
        self._submit, self._abort = [], []
        return changes

    def _scored(self, conversations: list[list[int]], temperature: float) -> list[list[float]]:
        while True:
            adapter = self.supervisor.request((), (), 1, 0.0, 0)["adapter"]
            try:
                given = self.supervisor.ask(
                    "score", conversations=conversations, temperature=temperature, adapter=adapter
                )["scores"]
                if [len(row) + 1 for row in given] != [len(ids) for ids in conversations]:
                    raise EngineFault("the engine scored other tokens than requested")
                return list(given)
            except EngineFault as fault:
                self.supervisor.replace(fault)
                self._dispatch_again()

    def _dispatch_again(self) -> None:
        rows = [self._rows[number] for number in self._by_dispatch.values()]
        self._by_dispatch, self._submit, self._abort = {}, [], []
        for row in rows:
            self._dispatch(row)

    def _dispatch(self, row: _Row) -> None:
        """Requests from vLLM the rest of the row's turn, with the conversation's tokens so far as the prompt."""
        request, known = row.request, row.known
        left = request.max_tokens - len(known)
        asked = self.supervisor.request(known, request.stops, left, request.temperature, request.seed)
        row.dispatch, row.version, row.sampled = asked["number"], self.version, 0
        self._by_dispatch[asked["number"]] = request.id
        self._submit.append(asked)

    def _taken(self, reports: Sequence[dict[str, Any]]) -> list[Turn]:
        """Records vLLM's reports of sampled tokens and returns finished turns. If the engine contradicts itself, drops
        its tokens of unfinished turns, which another process samples again."""
        turns: list[Turn] = []
        try:
            for report in reports:
                turns += self._take(report)
        except EngineFault as fault:
            for number in self._by_dispatch.values():
                self._rows[number].forget()
            self.supervisor.replace(fault)
            self._dispatch_again()
        return turns

    def _take(self, report: dict[str, Any]) -> list[Turn]:
        """Records the tokens that vLLM reports for a request; returns its turn if finished. Raises EngineFault for an
        impossible report."""
        number = report["number"]
        if number not in self._by_dispatch:
            return []
        row = self._rows[self._by_dispatch[number]]
        self._book(row, report["ids"], report["logprobs"])
        if not report["ended"]:
            return []
        self.supervisor.check_version(report, row.sampled)
        stopped = bool(row.ids) and row.ids[-1] in row.request.stops
        if not (stopped or len(row.known) >= row.request.max_tokens):
            raise EngineFault(f"the engine ended a turn ({report['ended']}) that neither stopped nor filled its budget")
        return [self._end(row, stopped=stopped)]

    def _book(self, row: _Row, ids: list[int], logprobs: list[float]) -> None:
        if not ids:
            return
        if len(ids) != len(logprobs) or len(row.known) + len(ids) > row.request.max_tokens:
            raise EngineFault("the engine returned too many tokens, or not one log-probability per token")
        if not all(0 <= token < self.supervisor.vocabulary for token in ids):
            raise EngineFault("the engine returned a token outside the vocabulary")
        start = len(row.ids)
        row.ids += ids
        row.logprobs += logprobs
        row.known += ids
        row.sampled += len(ids)
        self.tokens_sampled += len(ids)
        if row.spans and row.spans[-1].version == row.version:
            start = row.spans.pop().start
        row.spans.append(WeightSpan(version=row.version, start=start, end=len(row.ids)))

    def _end(self, row: _Row, *, stopped: bool) -> Turn:
        request = row.request
        assert row.dispatch is not None
        del self._by_dispatch[row.dispatch]
        ended = "stop" if stopped else "length"
        turn = Turn(request.id, tuple(row.ids), tuple(row.logprobs), ended, tuple(row.spans))  # type: ignore[arg-type]
        row.ids, row.logprobs, row.spans, row.dispatch = [], [], [], None
        if not stopped:
            del self._rows[request.id]
        return turn

    def _check(self, ids: Sequence[int]) -> None:
        vocabulary = self.supervisor.vocabulary
        if ids and not 0 <= min(ids) <= max(ids) < vocabulary:
            raise ValueError(f"a token is outside the vocabulary of {vocabulary}")


def _opened(weights: ModelFiles | nn.Module, version: str) -> Any:
    return open_model(weights, version[:12]) if isinstance(weights, Mapping) else weights


def _portions(conversations: list[list[int]]) -> list[list[list[int]]]:
    """Splits conversations into parts of at most about `SCORE_TOKENS` tokens."""
    parts: list[list[list[int]]] = [[]]
    tokens = 0
    for ids in conversations:
        if tokens + len(ids) > SCORE_TOKENS and parts[-1]:
            parts.append([])
            tokens = 0
        parts[-1].append(ids)
        tokens += len(ids)
    return parts
