"""Ledger records arranged for people. Read-only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from appliance.client.messages import (
    CheckpointView,
    CycleDetail,
    FamilyComparison,
    ModelComparison,
    NumberedEvent,
    RolloutDetail,
    RolloutView,
    TreeRollout,
    TurnText,
)
from appliance.curriculum.kept_files import kept_questions
from appliance.curriculum.level_states import states_in
from appliance.daemon.contract import NotThereError
from appliance.daemon.views.cycle_views import MOST_DECISIONS
from appliance.learning.errors import CheckpointError
from appliance.learning.folders import read_verified
from appliance.ledger.audited import AuditedLedger
from appliance.ledger.ledger import Ledger
from appliance.ledger.rows import LEAST, is_prefix, only_one, too_short
from appliance.ledger.sqlite import SqliteLedger
from appliance.ledger.sqlite_jobs import JOB, JobRows
from appliance.promotion.anchors import paired
from appliance.records.cycles import Checkpoint, Cycle, CycleState
from appliance.records.evaluations import Evaluation, ItemResult
from appliance.records.jobs import Job
from appliance.records.rollouts import Purpose, Rollout
from appliance.records.training import Group, Judged, PassCount, RolloutFilter
from appliance.rendering.renderer import Renderer, RenderingError
from curriculum.contract.task import Task
from policies.contract.evidence import pairs

SESSION = "gs-"
"""Prefix of gateway session ids."""


def job_named(ledger: JobRows, name: str) -> Job:
    """Returns a job by id or unique prefix. Raises NotThereError, AmbiguousPrefixError."""
    job = ledger.find_job(name)
    if job is None:
        why = _needs_more(name.removeprefix(JOB))
        raise NotThereError(f"no such job: {name!r}{why}", hint="`assay jobs ls` lists jobs")
    return job


def cycle_named(ledger: SqliteLedger, name: str) -> Cycle:
    """Returns a cycle by id or unique prefix. Raises NotThereError, AmbiguousPrefixError."""
    cycle = ledger.find_cycle(name)
    if cycle is None:
        why = _needs_more(name.partition("-")[2])
        raise NotThereError(f"no such cycle: {name!r}{why}", hint="`assay cycle ls` lists cycles")
    return cycle


def session_named(names: Sequence[str], name: str) -> str:
    """Returns the gateway session among `names` with that name or unique prefix; the name itself if none matches.
    Raises AmbiguousPrefixError."""
    digits = name.lower().removeprefix(SESSION)
    if not is_prefix(digits):
        return name
    typed = f"{SESSION}{digits}"
    return only_one("session", typed, [one for one in names if one.startswith(typed)]) or name


def no_model(name: str) -> NotThereError:
    return NotThereError(
        f"no such model: {name!r}{_needs_more(name)}",
        hint=f"`assay model ls` lists models; give at least {LEAST} digits, or an alias",
    )


def _needs_more(digits: str) -> str:
    count = "1 digit is" if len(digits) == 1 else f"{len(digits)} digits are"
    return f": {count} too few, {LEAST} are needed" if too_short(digits) else ""


MOST_ATTEMPTS = 2_000
"""Attempts of one job searched for a rollout's tree."""
ALIASES = ("champion", "candidate", "previous", "canary")


def aliases(ledger: Ledger) -> dict[str, str | None]:
    return {name: ledger.alias(name) for name in ALIASES}


PRUNED = "its tokens were dropped (`assay prune`)"


def unfinished_cycle(ledger: Ledger) -> Cycle | None:
    """Returns the running cycle, of which there is at most one."""
    return next((cycle for cycle in ledger.cycles(limit=200) if cycle.state is CycleState.RUNNING), None)


def cycle_detail(ledger: Ledger, cycle: Cycle) -> CycleDetail:
    checkpoints = ledger.checkpoints(cycle=cycle.id)
    # A night that re-evaluates an earlier candidate did not make it.
    models = dict.fromkeys([*(one.manifest for one in checkpoints), *filter(None, [cycle.plan.get("candidate")])])
    evaluations = [one for model in models for one in ledger.evaluations(candidate=model) if one.cycle == cycle.id]
    about = {one.id for one in evaluations}
    decisions = [one for model in models for one in ledger.decisions(candidate=model, limit=MOST_DECISIONS)]
    return CycleDetail(
        cycle=cycle,
        rollouts=ledger.rollout_counts(cycle.id),
        steps=tuple(ledger.step_metrics(cycle.id)),
        checkpoints=tuple(checkpoints),
        evaluations=tuple(evaluations),
        decisions=tuple(one for one in decisions if one.evaluation in about),
    )


def checkpoint_views(
    ledger: AuditedLedger, *, cycle: str | None, limit: int, before: str | None = None
) -> list[CheckpointView]:
    """Returns checkpoints with their aliases and newest decisions, newest first, optionally older than `before`. Raises
    NotThereError."""
    if before is None:
        return checkpoint_views_of(ledger, ledger.checkpoints(cycle=cycle, limit=limit))
    keys = ledger.in_force.keys("checkpoints", cycle)
    if before not in keys:
        raise NotThereError(f"no such checkpoint: {before[:12]!r}", hint="`assay model ls` lists checkpoints")
    after = keys.index(before) + 1
    found = (ledger.checkpoint(key) for key in keys[after : after + limit])
    return checkpoint_views_of(ledger, [one for one in found if one is not None])


def checkpoint_views_of(ledger: AuditedLedger, checkpoints: Sequence[Checkpoint]) -> list[CheckpointView]:
    """Returns each checkpoint with its aliases and its newest decision."""
    names = aliases(ledger)
    newest = {bound.group: key for key, bound in ledger.in_force.records.get("decisions", {}).items()}
    return [
        CheckpointView(
            checkpoint=one,
            aliases=tuple(name for name, digest in names.items() if digest == one.manifest),
            decision=ledger.decision(newest[one.manifest]) if one.manifest in newest else None,
        )
        for one in checkpoints
    ]


def numbered_events(ledger: Ledger, *, after: int, limit: int) -> list[NumberedEvent]:
    return [NumberedEvent(number=number, event=event) for number, event in ledger.events(after=after, limit=limit)]


class Rollouts:
    """Shows rollouts as text, and counts them. Questions come from the ledger: training steps contain their tasks, a
    job is its question."""

    def __init__(self, ledger: SqliteLedger) -> None:
        self._ledger = ledger
        # Steps and files of held-out questions never change, and reading one costs milliseconds.
        self._step_questions = lru_cache(maxsize=8)(self._questions_of)
        self._kept_questions = lru_cache(maxsize=2)(_kept)
        self._counted: dict[str, list[PassCount]] = {}

    def rollout_views(self, where: RolloutFilter, *, limit: int) -> list[RolloutView]:
        """Returns the rollouts that match a filter, with their questions. Raises NotThereError for an unknown `before`,
        AmbiguousPrefixError."""
        if where.before is not None:
            where = where.model_copy(update={"before": self._known(where.before).rollout.id})
        if where.cycle is not None and (cycle := self._ledger.find_cycle(where.cycle)) is not None:
            where = where.model_copy(update={"cycle": cycle.id})
        if where.job is not None and (job := self._ledger.find_job(where.job)) is not None:
            where = where.model_copy(update={"job": job.id})
        return [self._view(one) for one in self._ledger.rollouts(where, limit=limit)]

    def pass_counts(self, cycle: str, data: Path) -> list[PassCount]:
        """Counts a cycle's rollouts, and the passed ones, by purpose, taskset and level. Held-out questions come from
        the data folder. Raises NotThereError, AmbiguousPrefixError."""
        known = cycle_named(self._ledger, cycle)
        cycle = known.id
        if cycle in self._counted:
            return self._counted[cycle]
        states = states_in(known.plan)
        found = self._ledger.pass_counts(cycle, {task.id: task.level for task in kept_questions(data, cycle)})
        counts = [one.model_copy(update={"state": states.get((one.family, one.level), "")}) for one in found]
        if known.state.ended:  # final; counting 10,000 rollouts takes a second
            self._counted[cycle] = counts
        return counts

    def rollout_detail(self, name: str, data: Path) -> RolloutDetail:
        """Returns a rollout, its conversation as text, and its branches. Raises NotThereError, AmbiguousPrefixError."""
        judged = self._known(name)
        rollout = judged.rollout
        question = self._question(rollout) or self._kept_question(rollout, data)
        view, tree = RolloutView.of(judged, question), self._tree(rollout)
        if not judged.rollout.tokens:
            return RolloutDetail(rollout=view, turns=(), tree=tree, unread=PRUNED)
        try:
            renderer = self._renderer(judged.rollout, data)
        except (CheckpointError, RenderingError) as error:
            return RolloutDetail(rollout=view, turns=(), tree=tree, unread=str(error))
        turns = [
            TurnText(role=node.role, sampled=node.sampled, text=renderer.text(node.ids))
            for node in judged.rollout.nodes
        ]
        return RolloutDetail(rollout=view, turns=tuple(turns), tree=tree)

    def _tree(self, rollout: Rollout) -> tuple[TreeRollout, ...]:
        """Returns the rollout's original attempt and all branches of it, by sample; empty if it did not branch."""
        record = self._ledger.step(rollout.cycle, rollout.step) if rollout.purpose is Purpose.TRAIN else None
        if record is not None:
            return tree_of(rollout, record.judged, record.groups)
        if rollout.purpose is not Purpose.JOB:
            return ()
        where = RolloutFilter(cycle=rollout.cycle, purpose=Purpose.JOB)
        return tree_of(rollout, self._ledger.rollouts(where, limit=MOST_ATTEMPTS), ())

    def _known(self, name: str) -> Judged:
        judged = self._ledger.find_rollout(name)
        if judged is None:
            raise NotThereError(f"no such rollout: {name!r}", hint="`assay rollouts ls` lists rollouts")
        return judged

    def _view(self, judged: Judged) -> RolloutView:
        return RolloutView.of(judged, self._question(judged.rollout))

    def _renderer(self, rollout: Rollout, data: Path) -> Renderer:
        """Loads the text renderer of the model that sampled a rollout; during training, of the model that the night
        began with. Raises CheckpointError."""
        from appliance.rendering.formats import FILES, load_renderer  # lazy: imports tokenizers

        model = self._ledger.checkpoint(rollout.weights)
        if model is None and (cycle := self._ledger.cycle(rollout.cycle)) is not None:
            model = self._ledger.checkpoint(str(cycle.plan.get("start")))
        if model is None:
            raise CheckpointError(f"the model {rollout.weights!r} is not on record", hint="")
        return load_renderer(read_verified(data / model.folder, expect=model.manifest, names=FILES))

    def _question(self, rollout: Rollout) -> str:
        if rollout.purpose is Purpose.JOB:
            job = self._ledger.job(rollout.cycle)
            return job.question if job is not None else ""
        if rollout.purpose is not Purpose.TRAIN:
            return ""
        return self._step_questions(rollout.cycle, rollout.step).get(rollout.task, "")

    def _kept_question(self, rollout: Rollout, data: Path) -> str:
        """Returns the held-out question of an evaluation's rollout; empty if unknown. A task's id is a digest of its
        question, so a changed file has no question under this id."""
        if rollout.purpose not in (Purpose.EVALUATION, Purpose.VALIDATION):
            return ""
        return self._kept_questions(data, rollout.cycle).get(rollout.task, "")

    def _questions_of(self, cycle: str, step: int) -> dict[str, str]:
        found = self._ledger.step(cycle, step)
        return {str(task["id"]): Task.model_validate(task).question for task in found.tasks} if found else {}


def _kept(data: Path, cycle: str) -> dict[str, str]:
    """Returns a cycle's held-out questions by task id; the file exists before the first of them is asked."""
    return {task.id: task.question for task in kept_questions(data, cycle)}


def tree_of(rollout: Rollout, judged: Sequence[Judged], groups: Sequence[Group]) -> tuple[TreeRollout, ...]:
    """Arranges a rollout's attempt and its branches, with outcomes and advantages, by sample; empty if the attempt did
    not branch."""
    root = rollout.branch_of or rollout.id
    members = sorted(
        (one for one in judged if root in (one.rollout.id, one.rollout.branch_of)), key=lambda one: one.rollout.sample
    )
    if len(members) < 2:
        return ()
    advantages = {
        group.rollouts[index]: advantage
        for group in groups
        for index, advantage in zip(group.kept, group.advantages, strict=True)
    }
    shared = {one.rollout: one.advantage for group in groups for one in group.shared}
    return tuple(
        TreeRollout(
            id=one.rollout.id,
            leaves_at=None if one.rollout.branch_of is None else one.rollout.branch_turn,
            shared_tokens=one.rollout.shared_tokens,
            sampled_tokens=one.rollout.sampled_tokens,
            outcome=one.verdict.outcome,
            advantage=advantages.get(one.rollout.id),
            shared_advantage=shared.get(one.rollout.id),
        )
        for one in members
    )


def compare(evaluation: Evaluation, a: str, b: str) -> ModelComparison:
    """Compares the passes of the two models `a` and `b` of an evaluation, in either order. Items with an infrastructure
    error on either side are left out, as in the decision."""
    sampled = {evaluation.candidate.weights: evaluation.candidate, evaluation.champion.weights: evaluation.champion}
    greedy = {
        evaluation.candidate_greedy.weights: evaluation.candidate_greedy,
        evaluation.champion_greedy.weights: evaluation.champion_greedy,
    }
    both = [item for item in paired(sampled[a].items, sampled[b].items) if item.counts]
    counts = pairs(both)
    items = Counter(item.family for item in both)
    passed_a = Counter(item.family for item in both if item.champion_passed)
    passed_b = Counter(item.family for item in both if item.candidate_passed)
    return ModelComparison(
        a=a,
        b=b,
        evaluation=evaluation.id,
        sealed_set=evaluation.sealed_set,
        items=counts.items,
        passed_a=passed_a.total(),
        passed_b=passed_b.total(),
        gained=counts.gained,
        lost=counts.lost,
        greedy_a=_success(greedy[a].items),
        greedy_b=_success(greedy[b].items),
        families=tuple(
            FamilyComparison(family=family, items=count, passed_a=passed_a[family], passed_b=passed_b[family])
            for family, count in sorted(items.items())
        ),
    )


def _success(items: Sequence[ItemResult]) -> float:
    counted = [item for item in items if item.passed is not None]
    return sum(bool(item.passed) for item in counted) / len(counted) if counted else 0.0
