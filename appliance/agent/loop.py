"""Runs many rollouts concurrently over one engine, each with a sandbox session of its own.

Invariants: the policy model's tokens are kept as sampled, with log-probabilities, and never tokenised again
(`conversation`). Code runs only in the given session pool. A tool call never blocks the batch: its row waits while
others continue. A rollout with an infrastructure error, or without a free slot, ends as `infra_error` without a reward;
one that lost its host is first replayed on another (`keeping`). A rollout that ends or is dropped frees its session
immediately. Without isolation (`RefusedError`) nothing runs. A task's other tools call a world (`worlds`), which the
rollout owns like its session; if the world submits the answer, it is requested after the last turn. An attempt may
branch (`branching`): the branch starts with the attempt's tokens before the branch point, unchanged, and with session
and world as they were then. Running rollouts can be saved (`keeping`) so that another process resumes them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence

from appliance.agent.answers import NO_ANSWER, Final, final_answer
from appliance.agent.assignment import Assignment, Ending, LiveRollout, is_of, needs_world
from appliance.agent.branching import Branching, BranchPoint, joined
from appliance.agent.budget import AgentBudget
from appliance.agent.calls import LOST, RolloutBranches, ToolCalls, WorldEnd, call_of
from appliance.agent.conversation import Conversation
from appliance.agent.keeping import Replay, RolloutKeeper, can_repeat
from appliance.agent.texts import shown
from appliance.inference.engine import Engine, GenerationRequest, Turn
from appliance.records.rollouts import Message, PartialRollout, Purpose, Role, Rollout, RolloutEnd, ToolCall, ToolStatus
from appliance.rendering.renderer import Malformed, Renderer, ToolRequest
from appliance.scheduling.joining import joined as continued
from curriculum.contract.task import Task
from curriculum.seeds import derive
from runtime.errors import HostLostError
from runtime.sandbox import SessionPool
from verifiers.contract.kinds import AnswerForm

AHEAD = 64
"""Rollouts begun beyond the engine's rows, so that it reads prompts in batches. They have no session yet."""

POLL_SECONDS = 0.25
"""Seconds between checks for a stop."""

MOVES = 3
"""Hosts that a rollout may lose before it ends as `infra_error`: its own call may crash them."""

OnFinish = Callable[[Rollout], bool | None]


def never_stop() -> str:
    """Returns an empty reason to stop: rollouts always continue."""
    return ""


class Agent:
    """Runs rollouts as an awaited batch (`roll`), as a stream (`add`, `advance`), or both together. Not thread-safe;
    owns the engine while rollouts run."""

    def __init__(
        self, engine: Engine, sessions: SessionPool, renderer: Renderer, budget: AgentBudget, clock: Callable[[], float]
    ) -> None:
        self._engine = engine
        self._calls = ToolCalls(sessions)
        self.renderer = renderer
        self._budget = budget
        self._clock = clock
        self._live: dict[int, LiveRollout] = {}
        self._next = 0
        self._finished: dict[int, Rollout] = {}
        self._order: list[int] = []
        self._waiting: deque[Assignment] = deque()
        self._streamed: deque[Assignment] = deque()
        self._ended: list[Rollout] = []
        """Finished rollouts of the stream, not yet returned."""
        self._replayed: deque[Turn] = deque()
        """Turns of replayed rollouts, not yet handled."""
        self._on_finish: OnFinish | None = None
        self._stop_reason: Callable[[], str] = never_stop
        self._polled_at = 0.0
        self._branches = RolloutBranches(None)
        self.keeper: RolloutKeeper | None = None
        """Storage of training rollouts that do not branch."""
        self.last_failure = ""
        """Last error that ended a rollout as `infra_error`."""
        self.stopped = ""
        """Reason that `stop_reason` gave to stop the last `roll`; empty otherwise."""
        self.on_poll: Callable[[int, int], object] = lambda ended, asked: None
        """Receives, every quarter of a second, how many of how many rollouts of the running `roll` have ended."""
        self.moved = 0
        """Times that a rollout lost its host and moved."""

    def roll(
        self,
        assignments: Sequence[Assignment],
        on_finish: OnFinish | None = None,
        *,
        stop_reason: Callable[[], str] = never_stop,
        branching: Branching | None = None,
    ) -> list[Rollout]:
        """Runs all these rollouts and returns them in order, followed by branches in order of leaving.

        `on_finish` receives each finished rollout; if it returns True, no more are started, running ones are dropped,
        and only finished ones are returned. `stop_reason` is polled every quarter of a second, also during calls; a
        reason is stored in `stopped`, with the same effect. With `branching`, rollouts at a temperature above 0 branch
        by that rule.

        Raises RefusedError if code cannot be isolated, and RenderingError for a task that the model's format cannot
        write.
        """
        self._waiting = deque(assignments)
        self._order, self._finished, self.stopped = [], {}, ""
        self._on_finish, self._stop_reason, self._polled_at = on_finish, stop_reason, self._clock()
        self._branches = RolloutBranches(branching, assignments)
        try:
            while (self._waiting or any(not live.streamed for live in self._live.values())) and not self._advance():
                pass
        finally:
            self._waiting.clear()
            self._stop_reason = never_stop
            self._abandon(streamed=False)
        return [self._finished[number] for number in self._order if number in self._finished]

    def add(self, assignments: Sequence[Assignment]) -> None:
        """Adds rollouts to the agent's stream; `advance` runs them, and `roll` beside its own."""
        self._streamed.extend(assignments)

    def advance(self) -> list[Rollout]:
        """Takes a step with the stream of rollouts and returns finished ones, in order of finishing. Waits at most a
        quarter of a second if everything waits for tool calls. Raises as `roll`."""
        self._advance()
        ended, self._ended = self._ended, []
        return ended

    @property
    def unfinished(self) -> int:
        """Number of the stream's rollouts not yet returned."""
        return len(self._streamed) + len(self._ended) + sum(live.streamed for live in self._live.values())

    def drop(self) -> None:
        """Drops the stream's rollouts and frees their sessions."""
        self._streamed.clear()
        self._ended = []
        self._abandon(streamed=True)

    def _advance(self) -> bool:
        """Starts rollouts that fit, takes an engine step, and handles its results; True asks `roll` to stop."""
        stopped = False
        while (self._waiting or self._streamed) and not stopped:
            if len(self._live) >= self._engine.capacity.rows + AHEAD:
                break
            streamed = not self._waiting
            if needs_world((self._waiting or self._streamed)[0].task) and self._world_rollouts >= self._budget.worlds:
                break
            assignment = (self._waiting or self._streamed).popleft()
            if (whole := self._kept_whole(assignment)) is not None:
                stopped = self._hand_out(whole, streamed=streamed)
                continue
            live = self._live_of(assignment)
            live.streamed = streamed
            self._take_up(live)
            stopped = self._begin(live)
        stopped = stopped or self._has_to_stop()
        stopped = stopped or self._take_replayed()
        stopped = stopped or any(self._take(turn) for turn in self._engine.step()) or self._collect()
        if self._keeper is not None:
            self._keeper.look(self.under_way)
        return stopped

    def _kept_whole(self, assignment: Assignment) -> Rollout | None:
        keeper = self._keeper
        found = keeper.whole(assignment.id) if keeper is not None else None
        if found is None or keeper is None or is_of(found, assignment, self.renderer):
            return found
        keeper.began_anew(assignment.id)
        return None

    @property
    def _keeper(self) -> RolloutKeeper | None:
        return self.keeper if self._branches.wanted is None else None

    def under_way(self) -> list[PartialRollout]:
        """Returns the current state of running training rollouts."""
        return [
            self._partial(number, live)
            for number, live in self._live.items()
            if live.assignment.purpose is Purpose.TRAIN
        ]

    def _partial(self, number: int, live: LiveRollout) -> PartialRollout:
        if live.replay is not None:
            return live.replay.part
        made, turn = live.assignment, continued(live.begun, self._engine.under_way(number))
        begun = Message(
            parent=len(live.said.nodes) - 1,
            role=Role.ASSISTANT,
            ids=turn.ids,
            sampled=True,
            logprobs=turn.logprobs,
            weights=turn.weights,
            routes=turn.routes,
        )
        return PartialRollout(
            id=made.id,
            cycle=made.cycle,
            step=made.step,
            nodes=tuple(live.said.nodes),
            begun=begun if turn.ids else None,
        )

    def _take_up(self, live: LiveRollout) -> None:
        """Prepares the replay of a rollout that an earlier process left unfinished, if its calls are repeatable."""
        keeper = self._keeper
        part = keeper.part(live.assignment.id) if keeper is not None else None
        if part is None or keeper is None:
            return
        replay = Replay(part)
        if not needs_world(live.assignment.task) and can_repeat(part) and not replay.diverges(live.said.nodes[0]):
            live.replay = replay
        else:
            keeper.began_anew(live.assignment.id)

    def _begin_anew(self, number: int) -> bool:
        """Restarts a rollout that cannot be replayed; True asks the loop to stop."""
        old = self._live[number]
        old.close()
        if self._keeper is not None:
            self._keeper.began_anew(old.assignment.id)
        self._replace(number)
        return self._submit(number)

    def _replace(self, number: int) -> LiveRollout:
        """Replaces a running rollout by a fresh one of the same assignment."""
        old = self._live[number]
        new = self._live[number] = self._live_of(old.assignment)
        new.streamed, new.moves = old.streamed, old.moves
        return new

    def _hand_out(self, rollout: Rollout, *, streamed: bool) -> bool:
        """Accepts a rollout finished by an earlier process; True asks the loop to stop."""
        if streamed:
            self._ended.append(rollout)
            return False
        self._order.append(self._next)
        self._finished[self._next] = rollout
        self._next += 1
        return bool(self._on_finish and self._on_finish(rollout))

    def _live_of(self, assignment: Assignment) -> LiveRollout:
        """Creates the running state of a rollout at its start. A task's budget is its own, capped by the agent's."""
        task, budget = assignment.task, self._budget
        calls = [one for one in (budget.max_calls, task.turns, assignment.max_calls) if one is not None]
        said = Conversation.begin(self.renderer, task)
        tokens = [budget.max_tokens, task.tokens or budget.max_tokens]
        if assignment.max_completion is not None:
            tokens.append(len(said.ids) + assignment.max_completion)
        return LiveRollout(assignment, min(tokens), min(calls), self._clock(), said)

    @property
    def _world_rollouts(self) -> int:
        return sum(needs_world(live.assignment.task) for live in self._live.values())

    def _has_to_stop(self) -> bool:
        now = self._clock()
        if now - self._polled_at >= POLL_SECONDS:
            self._polled_at = now
            self.on_poll(len(self._finished), len(self._order) + len(self._waiting))
            self.stopped = self._stop_reason()
        return bool(self.stopped)

    def _begin(self, live: LiveRollout) -> bool:
        """Numbers a rollout and submits it to the engine; True asks the loop to stop."""
        number = self._number(live)
        if not live.streamed:
            self._order.append(number)
        return self._submit(number)

    def _number(self, live: LiveRollout) -> int:
        self._next += 1
        self._live[self._next - 1] = live
        return self._next - 1

    def _submit(self, number: int) -> bool:
        """Submits a rollout's input to the engine, or its next replayed turn; True asks the loop to stop."""
        live = self._live[number]
        if live.replay is not None:
            if (turn := live.replay.turn(number)) is not None:
                self._replayed.append(turn)
                return False
            live.begun, live.replay = live.replay.begun(number), None
        said, seed = live.said, live.assignment.seed
        prompt = said.ids + (live.begun.ids if live.begun is not None else ())
        if len(prompt) >= live.max_tokens:
            return self._end(number, RolloutEnd.TOKENS)
        self._engine.submit(
            GenerationRequest(
                id=number,
                prompt=prompt,
                stop=self.renderer.stop,
                max_tokens=live.max_tokens,
                temperature=live.assignment.temperature,
                # A new training sample draws other random numbers than the previous one.
                seed=seed if said.samples == 1 else derive(seed, "sample", said.samples),
                other_stops=self.renderer.other_stops,
                group=live.assignment.task.id,
            )
        )
        return False

    def _take_replayed(self) -> bool:
        while self._replayed:
            turn = self._replayed.popleft()
            if turn.request in self._live and self._take(turn):  # else it was dropped
                return True
        return False

    def _take(self, turn: Turn) -> bool:
        """Handles a finished turn: starts its tool call, or ends the rollout. True asks the loop to stop."""
        number, live = turn.request, self._live[turn.request]
        # A branch's spans show its branch point.
        turn, live.begun = (continued if live.branch_of is None else joined)(live.begun, turn), None
        read = live.said.take(turn)
        self._branches.look(live, turn)
        if turn.ended == "length":
            return self._end(number, RolloutEnd.TOKENS)
        if isinstance(read, str):
            self._engine.finish(number)
            return self._end(number, RolloutEnd.ANSWERED, final_answer(read, live.assignment.task.form))
        if live.calls >= live.max_calls:
            self._engine.finish(number)
            return self._end(number, RolloutEnd.TURNS)
        live.calls += 1
        if isinstance(read, ToolRequest) and not live.assignment.task.tools:
            read = Malformed(read.code, "no tool can be called here")
        if isinstance(read, Malformed):
            call = ToolCall(code=read.code, status=ToolStatus.PARSE_ERROR, error=read.reason)
            return self._return(number, call, f"error: {read.reason}"[: self._budget.max_result_chars])
        try:
            self._calls.start(number, live, read, keep=self._branches.keeps(live, read))
        except LOST as error:
            return self._lose(number, error)
        return False

    def _collect(self) -> bool:
        """Appends finished tool calls to their rollouts; waits, briefly, only if the engine has nothing to run. True
        asks the loop to stop."""
        stopped = False
        while self._live and (self._calls.arrived or self._engine.runnable == 0) and not stopped:
            if not self._calls.arrived and (self._replayed or not any(live.waits for live in self._live.values())):
                break
            back = self._calls.take(POLL_SECONDS)
            if back is None:
                return self._has_to_stop() or stopped
            number, future = back
            live = self._live.get(number)
            if live is None:  # it was dropped
                continue
            error = future.exception()
            if isinstance(error, LOST):
                stopped |= self._lose(number, error)
                continue
            result = future.result()
            live.waits = False
            if isinstance(result, WorldEnd):
                stopped |= self._finish_after_world(number, result)
                continue
            assert live.running is not None
            stopped |= self._return(number, call_of(live.running, result), shown(result, self._budget.max_result_chars))
        return stopped

    def _return(self, number: int, call: ToolCall, text: str) -> bool:
        """Appends a tool result to the rollout in the engine; submits it anew if the model's format rewrites the
        conversation. True asks the loop to stop."""
        live = self._live[number]
        stopped = self._branch(live, self._branches.before(live, call))
        live.running = None
        forced = live.said.give_back(call, text)
        stopped |= self._branch(live, self._branches.behind(live, call))
        if live.replay is not None and live.replay.diverges(live.said.nodes[-1]):
            return self._begin_anew(number)
        if forced is None:
            self._engine.finish(number)
            again = self._number(self._live.pop(number))
            if not live.streamed:
                self._order[self._order.index(number)] = again
            return self._submit(again) or stopped
        if len(live.said.ids) >= live.max_tokens:
            self._engine.finish(number)
            return self._end(number, RolloutEnd.TOKENS) or stopped
        if live.replay is not None:
            return self._submit(number) or stopped
        self._engine.resume(number, forced)
        return stopped

    def _branch(self, live: LiveRollout, point: BranchPoint | None) -> bool:
        """Starts the rollout's branches at the branch point, if any; True asks the loop to stop."""
        if point is None:
            return False
        worlds = self._budget.worlds + self._budget.worlds // 2 - self._world_rollouts
        begun = self._branches.begin(live, point, self._calls, worlds, self._clock())
        return any([self._begin(branch) for branch in begun])  # noqa: C419 - all of them

    def _lose(self, number: int, error: Exception) -> bool:
        """Ends a rollout with an infrastructure error, or moves it to another host. True asks the loop to stop."""
        if isinstance(error, HostLostError) and self._can_move(self._live[number]):
            return self._move(number)
        self.last_failure = str(error)
        self._engine.finish(number)
        return self._finish(number, RolloutEnd.INFRA_ERROR)

    def _can_move(self, live: LiveRollout) -> bool:
        """True if a rollout that lost its host may be replayed on another; not a branch, and not with a world."""
        alone = self._branches.wanted is None and live.branch_of is None
        return alone and not needs_world(live.assignment.task) and live.moves < MOVES

    def _move(self, number: int) -> bool:
        """Replays a rollout on another host, or restarts it if its calls are not repeatable; True asks the loop to
        stop."""
        old = self._live[number]
        part = self._partial(number, old)
        self._engine.finish(number)
        self.moved += 1
        old.moves += 1
        replay = Replay(part)
        if not can_repeat(part) or replay.diverges(old.said.nodes[0]):
            return self._begin_anew(number)
        old.close()
        new = self._replace(number)
        new.started, new.replay = old.started, replay
        return self._submit(number)

    def _end(self, number: int, ended: RolloutEnd, final: Final = NO_ANSWER) -> bool:
        """Ends a rollout, after a submission or digest of its world if needed; True asks the loop to stop."""
        live = self._live[number]
        live.ending = Ending(
            ended, final, ended is RolloutEnd.ANSWERED and live.assignment.task.form is AnswerForm.WORLD
        )
        try:
            if self._calls.end(number, live, submits=live.ending.submits):
                return False
        except LOST as error:
            return self._lose(number, error)
        return self._finish(number, ended, final.answer, final.answers)

    def _finish_after_world(self, number: int, came: WorldEnd) -> bool:
        ending = self._live[number].ending
        assert ending is not None
        answer = came.submission if ending.submits else ending.final.answer
        answers = int(answer is not None) if ending.submits else ending.final.answers
        return self._finish(number, ending.ended, answer, answers)

    def _finish(self, number: int, ended: RolloutEnd, answer: str | None = None, answers: int = 0) -> bool:
        live = self._live.pop(number)
        lost = ended is RolloutEnd.INFRA_ERROR
        stopped = not lost and self._branch(live, live.point)
        rollout = live.end(ended, self._clock(), answer, answers)
        if self._keeper is not None and not lost:
            self._keeper.ended(rollout)
        self._free_world(live.assignment.task)
        if live.streamed:
            self._ended.append(rollout)
            return False
        self._finished[number] = rollout
        return bool(self._on_finish and self._on_finish(rollout)) or stopped

    def _abandon(self, *, streamed: bool) -> None:
        """Frees running rollouts after a stop or an error, so that the engine is free."""
        dropped = {number: live for number, live in self._live.items() if live.streamed is streamed}
        for number, live in dropped.items():
            del self._live[number]
            self._engine.finish(number)
            live.close()
        for live in dropped.values():  # last, so that no world is opened for a dropped rollout
            self._free_world(live.assignment.task)

    def _free_world(self, task: Task) -> None:
        """Frees prepared worlds of a task that no rollout needs any more."""
        if not needs_world(task):
            return
        assigned = (*(live.assignment for live in self._live.values()), *self._waiting, *self._streamed)
        self._calls.worlds.free(task.id, wanted=any(one.task.id == task.id for one in assigned))


def calls_outside_sandbox(rollouts: Iterable[Rollout]) -> int:
    """Counts tool calls that ran without a recorded sandbox; the product asserts 0. A world's failed call without one
    was refused before it reached the world."""
    calls = (call for r in rollouts for call in r.calls)
    return sum(call.status.ran and not call.sandbox and not (call.asks_world and call.status.failed) for call in calls)
