"""The agent: many rollouts at once over one engine, each with a sandbox session of its own.

What always holds. The policy model's tokens are kept as sampled, with their log-probabilities, and are never tokenised
again. The only way to run code is the session pool that is handed in. A tool call never blocks the batch: its row waits
while the others go on. A rollout that meets an infrastructure failure, or finds no place, ends as `infra_error` and
earns nothing, good or bad. A rollout that ends or is dropped frees its session at once. Without isolation
(`RefusedError`) nothing runs at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import SimpleQueue

from appliance.agent.dialect import Codec
from appliance.agent.turns import Final, Malformed, ToolRequest, read_turn, shown
from appliance.inference.engine import Engine, Request, Turn
from appliance.isolation import priority_of
from appliance.learning.recipe import AgentBudget
from appliance.records import Ended, Message, Purpose, Role, Rollout, ToolCall, ToolStatus
from runtime.errors import BusyError, InfrastructureError, LimitError
from runtime.sandbox import CallResult, Session, SessionPool, Tier, Usage

AHEAD = 64
"""Rollouts that the engine knows of beyond its rows: it reads their prompts together. They hold no session yet."""

LOST = (InfrastructureError, BusyError, LimitError)
"""What says nothing about the policy model: a broken sandbox, no place for one, a quota that is used up."""


@dataclass(frozen=True)
class Assignment:
    """One rollout to make."""

    id: str
    task: str
    prompt: str
    cycle: str
    step: int
    sample: int
    purpose: Purpose
    temperature: float
    seed: int
    tier: Tier = Tier.SHARED
    """The least isolation that the policy and the task's family ask for."""


@dataclass
class _Live:
    """A rollout under way."""

    assignment: Assignment
    started: float
    nodes: list[Message] = field(default_factory=list)
    session: Session | None = None
    calls: int = 0
    tokens: int = 0
    asked: ToolRequest | None = None


class Agent:
    """Makes rollouts. Not thread-safe; the engine belongs to it while `roll` runs."""

    def __init__(
        self,
        engine: Engine,
        sessions: SessionPool,
        codec: Codec,
        budget: AgentBudget,
        clock: Callable[[], float],
    ) -> None:
        self._engine = engine
        self._sessions = sessions
        self._codec = codec
        self._budget = budget
        self._clock = clock
        self._done: SimpleQueue[tuple[int, Future[CallResult]]] = SimpleQueue()
        self._live: dict[int, _Live] = {}
        self._next = 0
        self._finished: dict[int, Rollout] = {}
        self.last_failure = ""
        """What the last rollout that ended as `infra_error` met."""

    def roll(
        self,
        assignments: Sequence[Assignment],
        on_finish: Callable[[Rollout], bool | None] | None = None,
    ) -> list[Rollout]:
        """Makes all rollouts and returns them in the order asked for.

        `on_finish` sees each one as it ends; when it returns True no further ones are started, those under way are
        dropped, and only what has ended is returned.

        Raises RefusedError when code cannot be isolated.
        """
        waiting = list(reversed(assignments))
        order: list[int] = []
        self._finished = {}
        stopped = False
        try:
            while (waiting or self._live) and not stopped:
                while waiting and len(self._live) < self._budget.concurrent + AHEAD:
                    order.append(self._begin(waiting.pop()))
                stopped = any(self._take(turn, on_finish) for turn in self._engine.step()) or self._collect(on_finish)
        finally:
            self._abandon()
        return [self._finished[number] for number in order if number in self._finished]

    def _begin(self, assignment: Assignment) -> int:
        number = self._next
        self._next += 1
        prompt = self._codec.prompt(assignment.prompt)
        live = _Live(assignment, self._clock(), tokens=len(prompt))
        live.nodes.append(Message(parent=None, role=Role.USER, ids=prompt, sampled=False))
        self._live[number] = live
        if len(prompt) >= self._budget.max_tokens:
            self._finish(number, Ended.TOKENS, None, 0, None)
            return number
        self._engine.submit(
            Request(
                id=number,
                prompt=prompt,
                stop=self._codec.stop,
                max_tokens=self._budget.max_tokens,
                temperature=assignment.temperature,
                seed=assignment.seed,
            )
        )
        return number

    def _take(self, turn: Turn, on_finish: Callable[[Rollout], bool | None] | None) -> bool:
        """Acts on a turn that ended; True asks the loop to stop."""
        number, live = turn.request, self._live[turn.request]
        live.tokens += len(turn.ids)
        live.nodes.append(
            Message(parent=len(live.nodes) - 1, role=Role.ASSISTANT, ids=turn.ids, sampled=True, logprobs=turn.logprobs)
        )
        if turn.ended == "length":
            return self._finish(number, Ended.TOKENS, None, 0, on_finish)
        meaning = read_turn(self._codec.text(turn.ids[:-1]), self._codec.dialect)
        if isinstance(meaning, Final):
            self._engine.finish(number)
            return self._finish(number, Ended.ANSWERED, meaning.answer, meaning.answers, on_finish)
        if live.calls >= self._budget.max_calls:
            self._engine.finish(number)
            return self._finish(number, Ended.TURNS, None, 0, on_finish)
        live.calls += 1
        if isinstance(meaning, Malformed):
            call = ToolCall(code=meaning.code, status=ToolStatus.PARSE_ERROR, error=meaning.reason)
            return self._answer(number, call, f"error: {meaning.reason}"[: self._budget.max_result_chars], on_finish)
        try:
            if live.session is None:
                live.session = self._open(live.assignment)
            live.asked = meaning
            future = live.session.start(meaning.code)
        except LOST as error:
            return self._break(number, error, on_finish)
        arrivals = self._done
        future.add_done_callback(lambda done: arrivals.put((number, done)))
        return False

    def _open(self, asked: Assignment) -> Session:
        """Each rollout is a caller of its own, so that none waits behind all the calls of another."""
        return self._sessions.open(tier=asked.tier, caller=asked.id, priority=priority_of(asked.purpose))

    def _collect(self, on_finish: Callable[[Rollout], bool | None] | None) -> bool:
        """Hands finished tool calls back to their rows; waits only when no row could go on without."""
        stopped = False
        while self._live and (not self._done.empty() or self._engine.runnable == 0) and not stopped:
            if self._done.empty() and not any(live.asked for live in self._live.values()):
                break
            number, future = self._done.get()
            live = self._live[number]
            error = future.exception()
            if isinstance(error, LOST):
                stopped |= self._break(number, error, on_finish)
                continue
            result = future.result()
            assert live.asked is not None
            call = ToolCall(
                code=live.asked.code,
                status=ToolStatus(result.status.value),
                output=result.output,
                error=result.error,
                seconds=result.seconds,
                tier=result.tier,
                sandbox=result.sandbox,
            )
            stopped |= self._answer(number, call, shown(result, self._budget.max_result_chars), on_finish)
        return stopped

    def _answer(
        self, number: int, call: ToolCall, text: str, on_finish: Callable[[Rollout], bool | None] | None
    ) -> bool:
        """Forces a tool result on the row, so that it goes on with its next turn."""
        live = self._live[number]
        live.asked = None
        forced = self._codec.result(text)
        live.nodes.append(Message(parent=len(live.nodes) - 1, role=Role.TOOL, ids=forced, sampled=False, call=call))
        live.tokens += len(forced)
        if live.tokens >= self._budget.max_tokens:
            self._engine.finish(number)
            return self._finish(number, Ended.TOKENS, None, 0, on_finish)
        self._engine.resume(number, forced)
        return False

    def _break(self, number: int, error: Exception, on_finish: Callable[[Rollout], bool | None] | None) -> bool:
        self.last_failure = str(error)
        self._engine.finish(number)
        return self._finish(number, Ended.INFRA_ERROR, None, 0, on_finish)

    def _finish(
        self,
        number: int,
        ended: Ended,
        answer: str | None,
        answers: int,
        on_finish: Callable[[Rollout], bool | None] | None,
    ) -> bool:
        live = self._live.pop(number)
        usage = Usage()
        if live.session is not None:
            usage = live.session.usage
            live.session.close()
        asked = live.assignment
        rollout = Rollout(
            id=asked.id,
            cycle=asked.cycle,
            step=asked.step,
            task=asked.task,
            sample=asked.sample,
            purpose=asked.purpose,
            weights=self._engine.weights,
            temperature=asked.temperature,
            nodes=tuple(live.nodes),
            ended=ended,
            answer=answer,
            answers=answers,
            seconds=self._clock() - live.started,
            usage=usage,
        )
        self._finished[number] = rollout
        return bool(on_finish(rollout)) if on_finish else False

    def _abandon(self) -> None:
        """Frees what is still held after a stop or an error, so that the engine can serve the next batch."""
        for number, live in self._live.items():
            self._engine.finish(number)
            if live.session is not None:
                live.session.close()
        self._live = {}
        self._done = SimpleQueue()


def calls_outside_sandbox(rollouts: Iterable[Rollout]) -> int:
    """Calls that ran without a sandbox's identity on them. The product asserts that this is 0."""
    return sum(call.status.ran and not call.sandbox for r in rollouts for call in r.calls)
