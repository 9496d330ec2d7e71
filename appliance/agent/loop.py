"""The agent: many rollouts at once over one engine, each with a sandbox session of its own.

What always holds. The policy model's tokens are kept as sampled, with their log-probabilities, and are never tokenised
again. The only way to run code is the session pool that is handed in. A tool call never blocks the batch: its row waits
while the others go on. A rollout that meets an infrastructure failure, or finds no place, ends as `infra_error` and
earns nothing, good or bad. A rollout that ends or is dropped frees its session at once. Without isolation
(`RefusedError`) nothing runs at all. An attempt may branch (`branching`): the branch begins with the tokens of its
attempt before the failed call, unchanged, and with a session that is as it was then.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from queue import Empty, SimpleQueue

from appliance.agent.answers import AnswerForm, Final
from appliance.agent.branching import Branching, branch_id, branch_seed, has_come_some_way
from appliance.agent.dialect import Codec
from appliance.agent.turns import Malformed, ToolRequest, read_turn, shown
from appliance.inference.engine import Engine, Request, Turn
from appliance.isolation import priority_of
from appliance.learning.recipe import AgentBudget
from appliance.records import Ended, Message, Purpose, Role, Rollout, ToolCall, ToolStatus
from runtime.errors import BusyError, InfrastructureError, LimitError, SandboxError
from runtime.sandbox import CallResult, Session, SessionPool, Tier, Usage

log = logging.getLogger(__name__)
AHEAD = 64
"""Rollouts that the engine knows of beyond its rows: it reads their prompts together. They hold no session yet."""

LOOK_SECONDS = 0.25
"""How often it is asked whether to go on."""

LOST = (InfrastructureError, BusyError, LimitError)
"""What says nothing about the policy model: a broken sandbox, no place for one, a quota that is used up."""


OnFinish = Callable[[Rollout], bool | None]


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
    form: AnswerForm = AnswerForm.BOXED
    """Of the final answer."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """What lies in the session's working folder at first, by name; then it has a sandbox of its own."""


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
    branch_of: str | None = None
    branch_at: int = 0
    branches: int = 0
    """That left it."""


def _go_on() -> str:
    return ""


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
        self._order: list[int] = []
        self._on_finish: OnFinish | None = None
        self._keep_on: Callable[[], str] = _go_on
        self._looked_at = 0.0
        self._branching: Branching | None = None
        self._branches = 0
        self._samples = 0
        self.last_failure = ""
        """What the last rollout that ended as `infra_error` met."""
        self.stopped = ""
        """Why the last `roll` was stopped by `keep_on`; empty when it was not."""

    def roll(
        self,
        assignments: Sequence[Assignment],
        on_finish: OnFinish | None = None,
        *,
        keep_on: Callable[[], str] = _go_on,
        branching: Branching | None = None,
    ) -> list[Rollout]:
        """Makes all rollouts and returns them in the order asked for, then branches in the order in which they left.

        `on_finish` sees each one as it ends; when it returns True no further ones are started, those under way are
        dropped, and only what has ended is returned. `keep_on` is asked every quarter of a second, also while calls are
        waited for; once it says a reason to stop, that is in `stopped`, and the same happens. With `branching`, what
        is sampled at a temperature above 0 goes on in several ways after a failure.

        Raises RefusedError when code cannot be isolated.
        """
        waiting = list(reversed(assignments))
        self._order, self._finished, self.stopped = [], {}, ""
        self._on_finish, self._keep_on, self._looked_at = on_finish, keep_on, self._clock()
        self._branching, self._branches = branching, 0
        self._samples = max((asked.sample for asked in assignments), default=-1) + 1
        stopped = False
        try:
            while (waiting or self._live) and not stopped:
                while waiting and len(self._live) < self._budget.concurrent + AHEAD and not stopped:
                    asked = waiting.pop()
                    prompt = self._codec.prompt(asked.prompt)
                    node = Message(parent=None, role=Role.USER, ids=prompt, sampled=False)
                    stopped = self._begin(_Live(asked, self._clock(), nodes=[node], tokens=len(prompt)))
                stopped = stopped or self._asked_to_stop()
                stopped = stopped or any(self._take(turn) for turn in self._engine.step()) or self._collect()
        finally:
            self._abandon()
        return [self._finished[number] for number in self._order if number in self._finished]

    def _asked_to_stop(self) -> bool:
        now = self._clock()
        if now - self._looked_at >= LOOK_SECONDS:
            self._looked_at = now
            self.stopped = self._keep_on()
        return bool(self.stopped)

    def _begin(self, live: _Live) -> bool:
        """Has the engine go on from its nodes; True asks the loop to stop."""
        number = self._next
        self._next += 1
        self._live[number] = live
        self._order.append(number)
        if live.tokens >= self._budget.max_tokens:
            return self._finish(number, Ended.TOKENS)
        self._engine.submit(
            Request(
                id=number,
                prompt=tuple(token for node in live.nodes for token in node.ids),
                stop=self._codec.stop,
                max_tokens=self._budget.max_tokens,
                temperature=live.assignment.temperature,
                seed=live.assignment.seed,
            )
        )
        return False

    def _take(self, turn: Turn) -> bool:
        """Acts on a turn that ended; True asks the loop to stop."""
        number, live = turn.request, self._live[turn.request]
        live.tokens += len(turn.ids)
        live.nodes.append(
            Message(parent=len(live.nodes) - 1, role=Role.ASSISTANT, ids=turn.ids, sampled=True, logprobs=turn.logprobs)
        )
        if turn.ended == "length":
            return self._finish(number, Ended.TOKENS)
        meaning = read_turn(self._codec.text(turn.ids[:-1]), self._codec.dialect, live.assignment.form)
        if isinstance(meaning, Final):
            self._engine.finish(number)
            return self._finish(number, Ended.ANSWERED, meaning.answer, meaning.answers)
        if live.calls >= self._budget.max_calls:
            self._engine.finish(number)
            return self._finish(number, Ended.TURNS)
        live.calls += 1
        if isinstance(meaning, Malformed):
            call = ToolCall(code=meaning.code, status=ToolStatus.PARSE_ERROR, error=meaning.reason)
            return self._answer(number, call, f"error: {meaning.reason}"[: self._budget.max_result_chars])
        try:
            if live.session is None:
                live.session = self._open(live.assignment)
            live.asked = meaning
            keep = {"keep": True} if self._ways(live) else {}
            future = live.session.start(meaning.code, **keep)
        except LOST as error:
            return self._break(number, error)
        arrivals = self._done
        future.add_done_callback(lambda done: arrivals.put((number, done)))
        return False

    def _open(self, asked: Assignment) -> Session:
        """Each rollout is a caller of its own, so that none waits behind all the calls of another."""
        priority = priority_of(asked.purpose)
        if asked.files:
            return self._sessions.open(tier=asked.tier, caller=asked.id, priority=priority, files=asked.files)
        return self._sessions.open(tier=asked.tier, caller=asked.id, priority=priority)

    def _collect(self) -> bool:
        """Hands finished tool calls back to their rows; waits only when no row could go on without."""
        stopped = False
        while self._live and (not self._done.empty() or self._engine.runnable == 0) and not stopped:
            if self._done.empty() and not any(live.asked for live in self._live.values()):
                break
            try:
                number, future = self._done.get(timeout=LOOK_SECONDS)
            except Empty:
                stopped = self._asked_to_stop()
                continue
            live = self._live[number]
            error = future.exception()
            if isinstance(error, LOST):
                stopped |= self._break(number, error)
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
            stopped |= self._answer(number, call, shown(result, self._budget.max_result_chars))
        return stopped

    def _answer(self, number: int, call: ToolCall, text: str) -> bool:
        """Forces a tool result on the row, so that it goes on with its next turn."""
        live = self._live[number]
        stopped = call.status.failed and self._branch(live, undo=live.asked is not None)
        live.asked = None
        forced = self._codec.result(text)
        live.nodes.append(Message(parent=len(live.nodes) - 1, role=Role.TOOL, ids=forced, sampled=False, call=call))
        live.tokens += len(forced)
        if live.tokens >= self._budget.max_tokens:
            self._engine.finish(number)
            return self._finish(number, Ended.TOKENS) or stopped
        self._engine.resume(number, forced)
        return stopped

    def _ways(self, live: _Live) -> int:
        """In how many more ways it goes on if its next call fails."""
        if self._branching is None or live.branch_of is not None or live.branches or not live.assignment.temperature:
            return 0
        return self._branching.left(self._branches) if has_come_some_way(live.nodes) else 0

    def _branch(self, live: _Live, *, undo: bool) -> bool:
        """Begins the branches of a call that failed, whose turn is the last node; True asks the loop to stop.

        `undo`: the call was run, so that the session is not any more as it was before."""
        ways = self._ways(live)
        if not ways or live.session is None:
            return False
        try:
            sessions = live.session.fork(ways, undo=True) if undo else live.session.fork(ways)
        except SandboxError as error:  # the attempt itself goes on as it would without
            log.warning("%s could not branch: %s", live.assignment.id, error)
            live.branches = ways
            return False
        self._branches += len(sessions)
        return any([self._begin(self._branch_of(live, session)) for session in sessions])  # noqa: C419 - all of them

    def _branch_of(self, live: _Live, session: Session) -> _Live:
        """One more rollout that goes on in this session, as if the last turn had not been."""
        live.branches += 1
        self._samples += 1
        asked, nodes = live.assignment, live.nodes[:-1]
        own = replace(
            asked,
            id=branch_id(asked.id, live.branches),
            sample=self._samples - 1,
            seed=branch_seed(asked.seed, live.branches),
        )
        return _Live(
            own,
            self._clock(),
            nodes=nodes,
            session=session,
            calls=live.calls - 1,
            tokens=sum(len(node.ids) for node in nodes),
            branch_of=asked.id,
            branch_at=len(nodes),
        )

    def _break(self, number: int, error: Exception) -> bool:
        self.last_failure = str(error)
        self._engine.finish(number)
        return self._finish(number, Ended.INFRA_ERROR)

    def _finish(self, number: int, ended: Ended, answer: str | None = None, answers: int = 0) -> bool:
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
            branch_of=live.branch_of,
            branch_at=live.branch_at,
        )
        self._finished[number] = rollout
        return bool(self._on_finish(rollout)) if self._on_finish else False

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
