"""Lets the policy model propose tasks, and scores each proposal.

Invariants: a step's prompts and seeds depend on the cycle's seed and earlier records, and a recorded step never
proposes again. Only executed or proved proposals become tasks, never known ones or copies of held-out questions
(`curriculum.separation.rules`). The memory of proposals is read from the ledger, over all cycles. Advantages compare
proposers across a step's problems, solvers within one problem.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from appliance.agent.assignment import Assignment, tier_of
from appliance.agent.judging import require_sound
from appliance.agent.loop import Agent
from appliance.learning.signal.grouping import enough, is_masked, of_attempts
from appliance.ledger.ledger import Ledger
from appliance.records.rollouts import Purpose, Role, Rollout, RolloutEnd
from appliance.records.training import Group, Judged
from appliance.worker.setup.context import WorkContext
from appliance.worker.setup.cycle_setup import CycleSetup
from curriculum.contract.errors import CurriculumError
from curriculum.contract.task import Split, Task
from curriculum.proposing.calculations import is_phrased
from curriculum.proposing.execution import Executor
from curriculum.proposing.kind import PROPOSER, Precedents, Provers
from curriculum.proposing.labels import PROPOSED, ProvenTask, proposed_at, provenance
from curriculum.proposing.near_duplicates import THRESHOLD, NearDuplicates, NoveltyMemory, substance
from curriculum.proposing.refusals import Reason, RefusedProposal
from curriculum.proposing.registry import kind_named
from curriculum.proposing.rewards import advantages, reward
from curriculum.registry import stable_random
from curriculum.sealed import ceil_share
from curriculum.seeds import derive, split_of_question
from curriculum.separation.rules import Check, Match
from policies.permissions import EVERY
from runtime.errors import InfrastructureError
from verifiers.contract.verdict import Ground, Outcome, Verdict

VERSION = "1"
SURE = 0.5
"""Pass share below which an earlier task counts as failed, and proposals may vary it."""


@dataclass(frozen=True)
class StepProposal:
    """One task proposal of the model and its outcome: a task, a refusal or an infrastructure error."""

    prompt: Task
    rollout: Rollout
    made: ProvenTask | RefusedProposal | InfrastructureError
    similarity: float = 0.0
    copied: Match | None = None
    """Evidence that it copies a held-out question; unnamed where only names were exchanged."""


@dataclass(frozen=True)
class Settled:
    """Records of a step's task proposals: prompts, verdicts, groups and metrics."""

    prompts: tuple[Task, ...]
    judged: tuple[Judged, ...]
    groups: tuple[Group, ...]
    metrics: dict[str, float]


class Proposer:
    """Lets the model propose tasks for the steps of one training, in order."""

    def __init__(self, setup: CycleSetup, context: WorkContext, agent: Agent, held_out: Sequence[Task]) -> None:
        """Prepares for the model to propose tasks. `held_out` are the tasks that watch training. Raises CurriculumError
        if the policy forbids proposed tasks, or a kind cannot be proved on this machine."""
        self._setup, self._context, self._agent = setup, context, agent
        self._recipe = setup.recipe.proposer
        self._count = allowed(setup, context)
        self._near_sealed = NearDuplicates(THRESHOLD)
        for task in [*setup.sealed.tasks, *held_out]:
            self._near_sealed.add(task.id, substance(task))
        self._memory = NoveltyMemory()
        self._precedents = Precedents()

    def restore(self, step: int) -> None:
        """Loads task proposals of earlier cycles, and of this cycle before that step."""
        ledger, cycle = self._context.ledger, self._setup.cycle
        self._memory = remembered(ledger, cycle, step)
        before = ledger.step(cycle, step - 1) if step else None
        if before is not None:
            self._precedents = precedents_of(map(Task.model_validate, before.tasks), before.judged)

    def observe(self, tasks: Sequence[Task], judged: Sequence[Judged]) -> None:
        """Remembers a recorded step's tasks: later proposals must be new, and may vary or combine these."""
        for task in tasks:
            self._memory.add(task)
        self._precedents = precedents_of(tasks, judged)

    def propose(self, step: int) -> list[StepProposal]:
        """Samples task proposals for that step with the engine's current weights. Raises InfrastructureError if most
        were lost."""
        rng = stable_random("proposer", self._setup.seed, step)
        kinds = [kind_named(self._recipe.kinds[at % len(self._recipe.kinds)]) for at in range(self._count)]
        prompts = [kind.ask(rng, self._precedents.for_kind(kind)) for kind in kinds]
        rollouts = self._agent.roll([self._assignment(task, step, at) for at, task in enumerate(prompts)])
        provers = self._provers(step)
        fresh = NoveltyMemory()
        for task in (*self._precedents.failed, *self._precedents.solved):
            fresh.add_any(task)  # a copy of what a prompt shows is not a variant
        found: list[StepProposal] = []
        for kind, task, rollout in zip(kinds, prompts, rollouts, strict=True):
            copied: Match | None = None
            try:
                if rollout.ended is RolloutEnd.INFRA_ERROR:
                    raise InfrastructureError(self._agent.last_failure or "the rollout was lost")
                made = kind.make(self._said(rollout), provers)
                nearest, copied = self._met(made)
                if copied is not None:
                    raise RefusedProposal(Reason.SEALED, "the model is judged by it")
                similarity = max(nearest, self._memory.require_new(made), fresh.require_new(made))
                fresh.add(made.task)
                found.append(StepProposal(task, rollout, made, similarity))
            except (RefusedProposal, InfrastructureError) as error:
                found.append(StepProposal(task, rollout, error, copied=copied))
        require_sound([self._judged(one, []) for one in found], self._agent.last_failure)
        return found

    def settle(self, step: int, found: Sequence[StepProposal], solved: Sequence[Judged]) -> Settled:
        """Scores each task proposal by its solvers' results, and builds the training group of the proposers."""
        judged = tuple(self._judged(one, solved) for one in found)
        alive = [one for one in judged if not is_masked(one)]
        rewards = [one.verdict.score for one in alive]
        worth = advantages(rewards)
        informative = any(worth)
        refused = Counter(one.made.reason for one in found if isinstance(one.made, RefusedProposal))
        cycle = self._setup.cycle
        group = Group(
            id=f"{cycle}/{step}/{PROPOSER}",
            cycle=cycle,
            step=step,
            task=PROPOSER,
            rollouts=tuple(one.rollout.id for one in alive),
            rewards=tuple(rewards),
            kept=tuple(range(len(alive))) if informative else (),
            advantages=tuple(worth) if informative else (),
            selector=f"proposers by {self._recipe.reward}",
            reason=f"{sum(one.verdict.passed for one in alive)} of {len(alive)} proposals became tasks"
            + ("" if informative else "; dropped: all earned the same"),
        )
        metrics = {
            "proposals": float(len(found)),
            "proposals_accepted": float(sum(isinstance(one.made, ProvenTask) for one in found)),
            "proposals_reward": sum(rewards) / max(1, len(rewards)),
            **{f"proposals_refused_{reason.value}": float(refused[reason]) for reason in sorted(refused)},
        }
        prompts = tuple({one.prompt.id: one.prompt for one in found}.values())
        return Settled(prompts, judged, (group,) if alive else (), metrics)

    def _provers(self, step: int) -> Provers:
        caller = f"{self._setup.cycle}.{PROPOSER}"
        return Provers(
            Executor(self._context.sessions, caller), self._context.checker, provenance(self._setup.cycle, step)
        )

    def _assignment(self, task: Task, step: int, place: int) -> Assignment:
        cycle = self._setup.cycle
        return Assignment(
            id=f"{cycle}.{Purpose.TRAIN.value}.{step}.{task.id}.{place}",
            task=task,
            cycle=cycle,
            step=step,
            sample=place,
            purpose=Purpose.TRAIN,
            temperature=self._setup.recipe.training.temperature,
            seed=derive("proposal", self._setup.seed, step, place),
            tier=tier_of(self._context.policy, Purpose.TRAIN, task.taskset),
        )

    def _said(self, rollout: Rollout) -> str:
        """Returns the proposal that the model wrote: its answer, or the code of a call beyond its turns."""
        last = rollout.nodes[-1]
        if rollout.ended is not RolloutEnd.TURNS or last.role is not Role.ASSISTANT:
            return rollout.answer or ""
        read = self._agent.renderer.read(last.ids)
        return read if isinstance(read, str) else read.code

    def _met(self, made: ProvenTask) -> tuple[float, Match | None]:
        """Returns a proposed task's similarity to held-out tasks, independent of names, and the evidence if it is a
        copy."""
        nearest, ours = self._near_sealed.similarity(substance(made.task)), is_phrased(made.task)
        if ours and split_of_question(made.task.key) is not Split.TRAIN:
            return nearest, Match("", Check.KEY)  # a sealed set may ask it
        kept = self._setup.kept if ours else self._setup.kept_of_recent
        if (match := kept.met_by(made.task, written=not ours)) is not None:
            return nearest, match
        return nearest, Match("", Check.NEAR, nearest) if nearest >= THRESHOLD else None

    def _judged(self, one: StepProposal, solved: Sequence[Judged]) -> Judged:
        return Judged(rollout=one.rollout, verdict=verdict_of(one, solved, self._recipe.reward), family=PROPOSER)


def precedents_of(tasks: Iterable[Task], judged: Sequence[Judged]) -> Precedents:
    """Returns a step's tasks by the share of their rollouts that passed, without prompts for proposals and tasks that
    were lost."""
    passed: dict[str, list[bool]] = {}
    for one in judged:
        if not is_masked(one):
            passed.setdefault(one.rollout.task, []).append(one.verdict.passed)
    tried = [task for task in tasks if task.taskset != PROPOSER and task.id in passed]
    share = {task.id: sum(passed[task.id]) / len(passed[task.id]) for task in tried}
    tried.sort(key=lambda task: (share[task.id], task.id))
    return Precedents(
        failed=[task for task in tried if share[task.id] < SURE],
        solved=[task for task in tried if share[task.id] >= SURE],
    )


def allowed(setup: CycleSetup, context: WorkContext) -> int:
    """Returns the number of task proposals per step: the recipe's, capped by the policy's share per taskset. Raises
    CurriculumError if the policy allows none, or a kind cannot be proved here."""
    data, recipe = context.policy.data, setup.recipe
    if EVERY not in data.families:
        raise CurriculumError(
            "the policy's [data] lists the families allowed in training, which excludes proposed tasks",
            hint='set recipe.proposer.proposals to 0, or families = ["*"] in [data]',
        )
    for name in recipe.proposer.kinds:
        if why := kind_named(name).missing():
            raise CurriculumError(f"proposals of the kind {name} cannot be proved here: {why}", hint="name other kinds")
    return min(recipe.proposer.proposals, ceil_share(data.max_share, recipe.training.tasks_per_step))


def remembered(ledger: Ledger, cycle: str, step: int) -> NoveltyMemory:
    """Reads the task proposals of all cycles, and of this one before that step, without reading other tasks."""
    known = [one.id for one in ledger.cycles(limit=100_000)]
    recorded = (one for name in sorted({*known, cycle}) for one in ledger.step_tasks(name))
    proposed = (Task.model_validate(one) for one in recorded if one["taskset"] == PROPOSED)
    own = f"{provenance(cycle, 0).rpartition('@')[0]}@"
    return NoveltyMemory(
        task for task in proposed if not (task.provenance.startswith(own) and proposed_at(task) >= step)
    )


def verdict_of(one: StepProposal, solved: Sequence[Judged], rule: str) -> Verdict:
    """Returns the verdict of a task proposal under this reward rule, from its task's attempts without branches. If more
    than half were lost, the verdict is an infrastructure error."""
    made = one.made
    if isinstance(made, ProvenTask):
        own = [each for each in of_attempts(solved) if each.rollout.task == made.task.id]
        mine = [each for each in own if not is_masked(each)]
        if not enough(len(mine), len(own)):
            made = InfrastructureError(f"{len(own) - len(mine)} of {len(own)} rollouts of its task were lost")
    match made:
        case ProvenTask(task=task, label=label):
            passed = sum(each.verdict.passed for each in mine)
            return Verdict(
                outcome=Outcome.PASS,
                score=reward(rule, passed, len(mine), one.similarity),
                reason=f"became a task, which {passed} of {len(mine)} rollouts passed",
                ground=Ground.TESTED if label.basis.value == "executed" else Ground.PROVED,
                evidence={"task": task.id, "basis": label.basis.value, "similarity": round(one.similarity, 4)},
                verifier=PROPOSER,
                version=VERSION,
                seconds=0.0,
            )
        case RefusedProposal(reason=reason, detail=detail):
            return Verdict(
                outcome=Outcome.FAIL,
                score=0.0,
                reason=f"refused, {reason.value}: {detail}",
                ground=Ground.UNREADABLE if reason is Reason.UNREADABLE else Ground.REFUTED,
                evidence={"refused": reason.value},
                verifier=PROPOSER,
                version=VERSION,
                seconds=0.0,
            )
        case broken:
            return Verdict(
                outcome=Outcome.INFRA_ERROR,
                score=0.0,
                reason=str(broken)[:1000],
                ground=Ground.BROKEN,
                verifier=PROPOSER,
                version=VERSION,
                seconds=0.0,
            )


def of_solvers(judged: Sequence[Judged]) -> list[Judged]:
    """Returns the rollouts that solve a task, without those that propose one."""
    return [one for one in judged if one.family != PROPOSER]
