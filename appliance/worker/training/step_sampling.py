"""Samples rollouts for training steps, one step at a time or looking ahead.

Invariants: a step's tasks depend only on the cycle's seed, the step and its executed or proved proposals, however far
ahead they are sampled; with `screening`, also on the outcomes of earlier groups and of its own first blocks. A group
without signal stays recorded and is replaced by a fresh task, for a few rounds at most. A round has one block of
rollouts, or with `screening` two, with no more rollouts than whole groups of its tasks would have.

Look-ahead: with staleness bound S, rollouts of step t begin once the weights have learned t - S steps, and continue
under newer weights as these arrive; each token records the version that drew it. So step t never learns from a token of
weights older than t - S, and no rollout is dropped for its age. The learner takes steps in order, each from its own
rollouts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

import torch

from appliance.agent.assignment import Assignment
from appliance.agent.branching import Branching
from appliance.agent.judging import judge, require_sound
from appliance.agent.loop import Agent
from appliance.jobs.success_model import SuccessModel
from appliance.learning.recipes.recipe import TrainingRecipe
from appliance.learning.signal.grouping import enough, is_masked, of_attempts, reward_of
from appliance.learning.signal.roc import carry_signal
from appliance.records.rollouts import Purpose, Rollout
from appliance.records.training import Judged
from appliance.worker.evaluation.evaluate import NO_LIMITS, assignments
from appliance.worker.setup.context import WorkContext
from appliance.worker.setup.cycle_setup import CycleSetup
from appliance.worker.training.screening import GroupCounts, Screen
from curriculum.contract.errors import ExhaustedError
from curriculum.contract.task import Task
from curriculum.difficulty import Difficulty, Place, Seen
from curriculum.proposing.kind import is_generated
from curriculum.proposing.labels import ProvenTask, proven_tasks
from curriculum.sealed import TaskStream
from curriculum.seeds import derive

T = TypeVar("T")


class StepSample:
    """Tasks and judged rollouts of one training step, collected round by round."""

    def __init__(
        self,
        step: int,
        setup: CycleSetup,
        context: WorkContext,
        stream: TaskStream,
        *,
        refilled: bool = True,
        known: Difficulty | None = None,
        groups: GroupCounts | None = None,
        proposed: Sequence[ProvenTask] = (),
        max_calls: int | None = None,
        max_completion: Mapping[str, int] = NO_LIMITS,
    ) -> None:
        """Begins the sample of one training step, whose tasks come from `stream`. `refilled` replaces tasks without
        signal by fresh ones. `known` weights the choice of levels. `groups` of earlier steps decide which tasks get
        whole groups; without, all do. `proposed` tasks replace as many of the stream.
        `max_calls` per rollout and `max_completion` by taskset lower the agent's limits."""
        self._known, self._groups = known, groups
        self._screen: Screen | None = None
        """Blocks of the current round's tasks, until their second blocks are chosen."""
        self._continued: list[Task] = []
        """Tasks of the current round that get a second block, before it is made."""
        self._max_calls, self._max_completion = max_calls, max_completion
        self._proposed = proven_tasks(proposed)
        self._drawn = 0
        self.step = step
        self.tasks: list[Task] = []
        self.judged: list[Judged] = []
        self.verifying_seconds = 0.0
        self._setup, self._context = setup, context
        self._stream = stream.without(task.key for task in self._proposed)
        self._training = setup.recipe.training
        self._fresh: list[Task] = []
        self._missing = self._training.tasks_per_step
        self._made = 0
        """Rollouts of earlier rounds."""
        self._rounds = 1 + (self._training.refills if refilled else 0)

    def next_round(self) -> list[Assignment]:
        """Returns the assignments of the next rollouts to make for the step; empty when the step is complete."""
        whole = self._training.rollouts_per_task
        if self._continued:
            continued, self._continued = self._continued, []
            return self._assignments(continued, self._training.screening, whole)
        if not self._missing or not self._rounds:
            return []
        self._rounds -= 1
        own = [] if self.tasks else self._proposed
        wanted = self._drawn + self._missing - len(own)
        # Tasks beside those of whole groups are drawn as far as there are some, and a refill may find none behind them.
        asked = self._most(wanted, self._drawn) if self.tasks and self._groups else self._stream_tasks(wanted)
        self._fresh = own + asked[self._drawn :]
        if not self._fresh:
            return []
        if self._groups is not None:
            self._screen = Screen.of(self._models(self._fresh), self._training.screening, whole)
            asked = self._most(len(asked) + self._screen.tasks - len(self._fresh), len(asked))
            self._fresh = own + asked[self._drawn :]
        self._drawn = len(asked)
        first = self._training.screening if self._screen is not None else whole
        return self._assignments(self._fresh, 0, first - self._training.branching.places(first))

    def _stream_tasks(self, count: int) -> list[Task]:
        return list(self._stream.tasks(self.step, count, self._known))

    def _most(self, wanted: int, least: int) -> list[Task]:
        """Returns the step's first tasks, as many as wanted or as there are, at least `least`, which are known to be
        there."""
        for count in range(wanted, least, -1):
            with suppress(ExhaustedError):
                return self._stream_tasks(count)
        return self._stream_tasks(least)

    def _models(self, tasks: Sequence[Task]) -> list[SuccessModel]:
        assert self._groups is not None
        return [self._groups.model(Place(task.taskset, task.level)) for task in tasks]

    def _assignments(self, tasks: Sequence[Task], first: int, end: int) -> list[Assignment]:
        """Returns the assignments of these tasks' rollouts with numbers from `first` up to `end`, exclusive."""
        cycle, step = self._setup.cycle, self.step
        every = assignments(
            tasks,
            self._context.policy,
            f"{cycle}.{Purpose.TRAIN.value}.{step}",
            cycle=cycle,
            step=step,
            purpose=Purpose.TRAIN,
            temperature=self._training.temperature,
            seed=lambda task, sample: derive("train", self._setup.seed, step, task.id, sample),
            samples=end,
            max_calls=self._max_calls,
            max_completion=self._max_completion,
        )
        return [one for one in every if one.sample >= first]

    @property
    def branching(self) -> Branching | None:
        """Rule by which a round's rollouts branch; None without branching."""
        return self._training.branching.of_task(self._training.rollouts_per_task)

    def judge(self, rollouts: Sequence[Rollout], cause: str) -> None:
        """Judges a round's rollouts and adds them to the step. Raises InfrastructureError, with this cause, if most
        were lost."""
        started = self._context.clock()
        some = judge(rollouts, {task.id: task for task in self._fresh}, self._context.checker)
        self.verifying_seconds += self._context.clock() - started
        require_sound(some, cause)
        if len(self.judged) == self._made:  # else this is a second block
            self.tasks += self._fresh
        self.judged += some
        if self._screen is not None:
            self._continued, self._screen = self._worth_more(self._screen, some), None
        if not self._continued:
            self._missing = max(0, self._missing - tasks_with_signal(self.judged[self._made :], self._training))
            self._made = len(self.judged)

    def _worth_more(self, screen: Screen, judged: Sequence[Judged]) -> list[Task]:
        """Returns the tasks that get a second block after these rollouts of first blocks."""
        outcomes = Counter((one.rollout.task, one.verdict.passed) for one in judged if not is_masked(one))
        blocks = [
            (model, outcomes[task.id, True], outcomes[task.id, False])
            for model, task in zip(self._models(self._fresh), self._fresh, strict=True)
        ]
        return [self._fresh[at] for at in screen.continued(blocks, self._missing * screen.whole)]


@dataclass(frozen=True)
class SamplingTook:
    """Seconds of sampling and of verifying, and the tokens that engines sampled in that time."""

    sampling: float = 0.0
    verifying: float = 0.0
    tokens: int = 0

    def figures(self) -> dict[str, float]:
        """Returns a training step's sampling metrics; omits `tokens_per_second` if nothing was sampled."""
        rate = {"tokens_per_second": self.tokens / self.sampling} if self.tokens and self.sampling > 0 else {}
        return {"sampling_seconds": self.sampling, "verifying_seconds": self.verifying, **rate}


class LookAhead:
    """Samples the rollouts of several steps concurrently, also while the learner works. Not thread-safe: the learner's
    work runs in one dedicated thread, everything else in the caller's."""

    def __init__(
        self,
        agent: Agent,
        sample_of: Callable[[int], StepSample],
        clock: Callable[[], float],
        tokens: Callable[[], int],
    ) -> None:
        """Prepares to sample rollouts of later steps while the learner works. `tokens` returns the total tokens that
        the engines have sampled."""
        self._agent = agent
        self._sample_of = sample_of
        self._clock, self._tokens = clock, tokens
        self._took = SamplingTook()
        """Totals since the last `take_took`."""
        self._samples: dict[int, StepSample] = {}
        self._asked: dict[int, list[str]] = {}
        """Rollouts of the current round by step; empty when the step is complete."""
        self._came: dict[int, dict[str, Rollout]] = {}
        self._learner = ThreadPoolExecutor(
            1, "learner", initializer=torch.set_num_threads, initargs=(torch.get_num_threads(),)
        )

    def begin(self, steps: Iterable[int]) -> None:
        """Begins to sample the rollouts of these steps, unless already begun."""
        for step in steps:
            if step not in self._samples:
                self._samples[step] = self._sample_of(step)
                self._ask(step)

    def take(self, step: int) -> StepSample:
        """Samples rollouts until the step is complete, and returns it. Raises as `Agent.advance`, and
        InfrastructureError."""
        while self._asked[step]:
            self._advance()
        del self._asked[step], self._came[step]
        return self._samples.pop(step)

    def during(self, work: Callable[[], T]) -> T:
        """Runs this work of the learner in a thread while sampling continues, and returns the work's result."""
        learned = self._learner.submit(work)
        try:
            while self._agent.unfinished and not learned.done():
                self._advance()
        finally:
            wait([learned])
        return learned.result()

    def take_took(self) -> SamplingTook:
        """Returns and resets the total time and tokens of sampling, over all steps: concurrent steps cannot be
        separated."""
        taken, self._took = self._took, SamplingTook()
        return taken

    def close(self) -> None:
        """Drops running rollouts and ends the learner's thread."""
        self._agent.drop()
        self._learner.shutdown()

    def _ask(self, step: int) -> None:
        asked = self._samples[step].next_round()
        self._asked[step], self._came[step] = [one.id for one in asked], {}
        self._agent.add(asked)

    def _advance(self) -> None:
        started, verified, tokens = self._clock(), 0.0, self._tokens()
        for rollout in self._agent.advance():
            step, came = rollout.step, self._came[rollout.step]
            came[rollout.id] = rollout
            if len(came) == len(self._asked[step]):
                sample = self._samples[step]
                verified -= sample.verifying_seconds
                sample.judge([came[name] for name in self._asked[step]], self._agent.last_failure)
                verified += sample.verifying_seconds
                self._ask(step)
        self._took = SamplingTook(
            self._took.sampling + self._clock() - started - verified,
            self._took.verifying + verified,
            self._took.tokens + self._tokens() - tokens,
        )


def tasks_with_signal(judged: Sequence[Judged], recipe: TrainingRecipe) -> int:
    """Counts tasks whose rollouts earned different rewards. Ignores infrastructure errors, and tasks that lost too many
    rollouts."""
    rewards: dict[str, list[float]] = {}
    for one in judged:
        earned = rewards.setdefault(one.rollout.task, [])
        if not is_masked(one):
            earned.append(reward_of(one, recipe))
    sampled = Counter(one.rollout.task for one in judged)
    return sum(carry_signal(found) and enough(len(found), sampled[task]) for task, found in rewards.items())


def seen_of(tasks: Iterable[Task], judged: Sequence[Judged]) -> list[Seen]:
    """Counts passes per generated task of a step, for the difficulty estimates. Ignores infrastructure errors, and
    branches, which would make a level look harder."""
    passed: dict[str, list[bool]] = {}
    for one in of_attempts(judged):
        if not is_masked(one):
            passed.setdefault(one.rollout.task, []).append(one.verdict.passed)
    return [
        Seen(Place(task.taskset, task.level, task.topic), sum(passed.get(task.id, ())), len(passed.get(task.id, ())))
        for task in tasks
        if is_generated(task)
    ]


def staleness(judged: Sequence[Judged], cycle: str, step: int) -> list[int]:
    """Returns, per sampled token, the age in steps of the weights that drew it."""
    return [
        step - int(span.version.removeprefix(f"{cycle}@"))
        for one in judged
        for node in one.rollout.nodes
        for span in node.weights
        for _ in range(span.end - span.start)
    ]
