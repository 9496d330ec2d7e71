"""Grants of workers: which ledger calls each phase may make, about its own work only.

Invariants: training writes no evaluation; evaluation writes no checkpoint and moves no alias; no worker decides,
approves, submits a job or changes what is in service. A call that is not listed here is refused.

The examined party writes nothing that its examiner reads. A process of its own, which trains nothing, fixes the exam
before training begins: champion, tasksets, sealed set, and whether an earlier candidate is asked again. The core checks
each entry against what it knows itself. Of training, the evaluation and the gates read only what no one else can know:

| written by training | read by | bound by |
|---|---|---|
| `plan.candidate`, alias `candidate` | evaluation, decision | `plan.again`, or a model made from the champion |
| `plan.start`, only while nothing is in service | evaluation | a recorded model |
| checkpoint: parent, stage | drift, promotion | attestation; the parent is the champion or a stage's model |
| training steps | contamination | appended only, one hash chain in the audit log |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from appliance.ledger.ledger import Ledger
from appliance.records.cycles import CORE_KINDS, KEPT_ROLLOUTS, SEALED, Checkpoint, Cycle, CycleState
from appliance.records.jobs import JobState, work_of
from appliance.records.rollouts import Purpose
from appliance.records.training import Judged
from policies.contract.decision import moment

if TYPE_CHECKING:  # a worker has no database
    from appliance.ledger.leases import Leases

Rule = Callable[[Any, Ledger], bool]
"""True if a call with these arguments is within the grant; the ledger tells what is on record."""

_DIGEST = re.compile(r"[0-9a-f]{64}")
_BUNDLE = re.compile(r"artifacts/[A-Za-z0-9_-][A-Za-z0-9._-]*")
_FIXED = frozenset({"again", "tasksets", "left_out", "start", SEALED})
"""Plan entries that fix the exam, written once, together and before training."""
_TRAINED_ONCE = frozenset({"start", "candidate"})
"""Plan entries that training writes once and nobody changes later; `start` only without a champion. `_ENDED` and
`_STAGE` match how each stage ended, and the level estimates before and after each stage."""
_TRAINED = ("training", "stage")
_ENDED = re.compile(r"stage_[1-9][0-9]?")
_STAGE = re.compile(rf"{_ENDED.pattern}|difficulty_[0-9]{{1,9}}")


@dataclass(frozen=True)
class Grant:
    """Ledger calls that a worker may make, by name, each with a rule for its arguments."""

    work: str
    """Name of the work in a refusal."""
    calls: Mapping[str, Rule]
    cycle: str = ""
    """Cycle that must be running for any write; empty for jobs."""

    def refusal(self, request: Any, ledger: Ledger) -> str:
        """Returns why a worker's ledger call is refused; empty if it is allowed."""
        rule = self.calls.get(request.call)
        if rule is None:
            return f"{self.work} may not call {request.call}"
        if rule not in (_any, _is_a_workers) and self.is_over(ledger):
            return f"{self.work} may not write this with {request.call}: {self.cycle} is not running"
        return "" if rule(request, ledger) else f"{self.work} may not write this with {request.call}"

    def is_over(self, ledger: Ledger) -> bool:
        """True if the grant's cycle has ended or is parked: its worker writes too late, which is not an attack."""
        known = ledger.cycle(self.cycle) if self.cycle else None
        return bool(self.cycle) and (known is None or known.state is not CycleState.RUNNING)


def _any(request: Any, ledger: Ledger) -> bool:
    return True


def _is_a_workers(request: Any, ledger: Ledger) -> bool:
    return request.event.kind not in CORE_KINDS


_BOTH = {
    **dict.fromkeys(("alias", "checkpoint", "rollouts", "decisions", "renew_leases"), _any),
    "put_event": _is_a_workers,
}
_OF_A_NIGHT = _BOTH | dict.fromkeys(
    ("cycle", "cycles", "recorded_steps", "step_tasks", "checkpoints", "evaluation", "evaluations"), _any
)


def grant_of(work: Sequence[str]) -> Grant:
    """Returns the ledger calls that a worker may make, from its arguments. They are `prepare`, `train` or `evaluate`
    and a cycle's id, or `jobs`."""
    if work[0] == "jobs":
        return jobs()
    return {"prepare": preparation, "train": training, "evaluate": evaluation}[work[0]](work[1])


def preparation(cycle: str) -> Grant:
    """Returns the grant of a worker that fixes a cycle's exam before anything is trained: tasksets, sealed set,
    champion."""

    def fixes(request: Any, ledger: Ledger) -> bool:
        known, given = ledger.cycle(cycle), request.cycle
        if not _goes_on(known, given) or known is None or given.state is not CycleState.RUNNING:
            return False
        added = {name: given.plan[name] for name in given.plan.keys() - known.plan.keys()}
        if not added:
            return True
        champion, candidate = ledger.alias("champion"), ledger.alias("candidate")
        names = known.plan.get("recipe", {}).get("tasksets", ())
        usable, left_out = given.plan.get("tasksets"), given.plan.get("left_out")
        return (
            added.keys() <= _FIXED
            and given.plan.keys() >= _FIXED - {"start"}
            and given.plan.get("start") == (known.plan.get("start") or champion)
            and ("again" not in added or added["again"] in (None, candidate))
            and isinstance(usable, list)
            and isinstance(left_out, dict)
            and bool(usable)
            and sorted(map(str, (*usable, *left_out))) == sorted(set(names))
            and str(given.plan[SEALED]) in ledger.sealed_sets()
        )

    return Grant("the preparation", {**_OF_A_NIGHT, "put_cycle": fixes, "put_sealed_set": lambda *_: True}, cycle)


def training(cycle: str) -> Grant:
    """Returns the grant of a training worker: steps, rollouts and attested checkpoints of this cycle, and its
    candidate."""

    def plan_of(ledger: Ledger) -> Mapping[str, Any]:
        known = ledger.cycle(cycle)
        return known.plan if known is not None else {}

    def made_from(plan: Mapping[str, Any]) -> tuple[object, ...]:
        """Returns the models from which the cycle's training may continue: the champion, and each stage's."""
        stages = [ended.get("checkpoint") for name, ended in plan.items() if _ENDED.fullmatch(name)]
        return (*filter(None, (plan.get("start"), *stages)),)

    def recorded(digest: object, ledger: Ledger) -> Checkpoint | None:
        return ledger.checkpoint(digest) if isinstance(digest, str) and _DIGEST.fullmatch(digest) else None

    def is_its_own(digest: object, plan: Mapping[str, Any], ledger: Ledger) -> bool:
        made = recorded(digest, ledger)
        if made is None or made.stage not in _TRAINED:
            return False
        return made.cycle == cycle or made.parent in made_from(plan)  # equal weights keep an earlier cycle's record

    def updates(request: Any, ledger: Ledger) -> bool:
        known, given = ledger.cycle(cycle), request.cycle
        if not _goes_on(known, given, KEPT_ROLLOUTS) or known is None:
            return False
        plan, added = given.plan, given.plan.keys() - known.plan.keys() - {KEPT_ROLLOUTS}
        named = all(name in _TRAINED_ONCE or _STAGE.fullmatch(name) for name in added)
        if "start" in added:
            named = named and ledger.alias("champion") is None and recorded(plan["start"], ledger) is not None
        if "candidate" in added:
            again, own = plan.get("again"), plan["candidate"]
            named = named and SEALED in plan and "start" in plan
            named = named and (own == again if again else own == plan.get("start") or is_its_own(own, plan, ledger))
        return named and _are_digests(plan.get(KEPT_ROLLOUTS, []))

    def is_a_first(made: Checkpoint, ledger: Ledger) -> bool:
        """True for a model without a parent, or for the warm start of an imported one."""
        own = recorded(made.parent, ledger)
        return made.parent is None or (made.stage == "warm_start" and own is not None and own.stage == "imported")

    def adds(request: Any, ledger: Ledger) -> bool:
        made, plan = request.checkpoint, plan_of(ledger)
        named = _DIGEST.fullmatch(made.manifest) is not None and made.folder == f"models/{made.manifest}"
        if made.stage in _TRAINED:
            begins = made.parent in made_from(plan)
        else:
            begins = "start" not in plan and ledger.alias("champion") is None and is_a_first(made, ledger)
        return bool(named and begins and made.cycle == cycle and ledger.is_attested(made.manifest))

    def moves(request: Any, ledger: Ledger) -> bool:
        plan, digest = plan_of(ledger), request.aliases.get("candidate")
        own = is_its_own(digest, plan, ledger) and plan.get("candidate", digest) == digest
        return own and len(request.aliases) == 1 and request.reason == f"trained by {cycle}"

    def steps(request: Any, ledger: Ledger) -> bool:
        return request.record.cycle == cycle and _are_of(request.record.judged, cycle, Purpose.TRAIN)

    return Grant(
        "training",
        {
            **_OF_A_NIGHT,
            "step": _any,
            "put_cycle": updates,
            "put_checkpoint": adds,
            "set_aliases": moves,
            "commit_step": steps,
            "put_rollouts": lambda request, ledger: _are_of(request.judged, cycle, Purpose.VALIDATION),
        },
        cycle,
    )


def evaluation(cycle: str) -> Grant:
    """Returns the grant of an evaluation worker: the answers of this cycle's two models, and their one evaluation."""

    def updates(request: Any, ledger: Ledger) -> bool:
        known, given = ledger.cycle(cycle), request.cycle
        ends = given.state is not CycleState.RUNNING or given.failure
        return _goes_on(known, given) and known is not None and given.plan == known.plan and not ends

    def is_the_one(request: Any, ledger: Ledger) -> bool:
        known, made = ledger.cycle(cycle), request.evaluation
        if known is None or (made.id, made.cycle) != (f"{cycle}.evaluation", cycle):
            return False
        if made.sealed_set != known.plan.get(SEALED) or not _is_since(made.created, known.created):
            return False
        asked = [results.weights for results in (made.champion, made.champion_greedy)]
        asked += [results.weights for results in (made.candidate, made.candidate_greedy)]
        start = known.plan.get("start")
        champion = ledger.checkpoint(start) if isinstance(start, str) else None
        if made.base is not None and (champion is None or made.base.weights != champion.parent):
            return False
        families = {item.family for item in made.champion.items} | made.anchored.keys()
        anchors = {family: ledger.alias(f"anchor/{family}") or start for family in families}
        true = all(made.anchored.get(family, start) == model for family, model in anchors.items())
        return true and asked == [known.plan.get("start")] * 2 + [known.plan.get("candidate")] * 2

    return Grant(
        "the evaluation",
        {
            **_OF_A_NIGHT,
            "put_cycle": updates,
            "put_rollouts": lambda request, ledger: _are_of(request.judged, cycle, Purpose.EVALUATION),
            "put_evaluation": is_the_one,
        },
        cycle,
    )


def jobs() -> Grant:
    """Returns the grant of a jobs worker: attempts at recorded, unended jobs, and one bundle under each job's name.

    A job counts as solved once its bundle, with a passing verdict, is on record.
    """

    def is_open(job: str, ledger: Ledger) -> bool:
        known = ledger.job(job)
        return known is not None and not known.state.ended and _holds(job, ledger)

    def are_attempts(request: Any, ledger: Ledger) -> bool:
        return all(
            is_open(one.rollout.cycle, ledger) and _are_of([one], one.rollout.cycle, Purpose.JOB)
            for one in request.judged
        )

    def goes_on(request: Any, ledger: Ledger) -> bool:
        given = request.job
        solved = given.state is not JobState.SOLVED or (
            given.artifact == given.id and ledger.artifact(given.id) is not None
        )
        return solved and ledger.job(given.id) is not None and _holds(given.id, ledger)

    def is_its_bundle(request: Any, ledger: Ledger) -> bool:
        made = request.artifact
        named = _BUNDLE.fullmatch(made.folder) is not None and made.folder == f"artifacts/{made.job}"
        return named and made.id == made.job and made.verdict.passed and is_open(made.job, ledger)

    return Grant(
        "work on jobs",
        {
            **_BOTH,
            **dict.fromkeys(
                ("job", "job_steps", "next_job", "claim_job", "rollout_counts", "artifact", "canaries"), _any
            ),
            # An ended job never changes, even for a late worker; see `Ledger.put_job`.
            "put_job": goes_on,
            "put_rollouts": are_attempts,
            "put_artifact": is_its_bundle,
        },
    )


def _holds(job: str, ledger: Ledger) -> bool:
    """True if the calling worker has the job's lease, or the ledger uses no leases."""
    leases: Leases | None = getattr(ledger, "leases", None)
    return leases is None or leases.holds(work_of(job))


def _is_since(later: str, earlier: str) -> bool:
    try:
        return moment(later) >= moment(earlier)
    except (ValueError, OverflowError):
        return False


def _are_digests(given: object) -> bool:
    """True for a list of at most two SHA-256 digests: the current file of kept rollouts and its replacement."""
    return isinstance(given, list) and len(given) <= 2 and all(_DIGEST.fullmatch(str(one)) for one in given)


def _goes_on(known: Cycle | None, given: Cycle, changes: str = "") -> bool:
    """True if the new record of a running cycle only adds progress: identity and existing plan entries stay, except
    `changes`."""
    if known is None or known.state is not CycleState.RUNNING:
        return False
    same = (known.id, known.kind, known.seed, known.created) == (given.id, given.kind, given.seed, given.created)
    stays = {name: value for name, value in known.plan.items() if name != changes}
    return same and all(name in given.plan and given.plan[name] == value for name, value in stays.items())


def _are_of(judged: Sequence[Judged], work: str, purpose: Purpose) -> bool:
    """True if all rollouts belong to this cycle or job and purpose, with ids that cannot collide with another's."""
    examined = f"{work}.{Purpose.EVALUATION.value}."
    return all(
        (one.rollout.cycle, one.rollout.purpose) == (work, purpose)
        and one.rollout.id.startswith(f"{work}.")
        and one.rollout.id.startswith(examined) == (purpose is Purpose.EVALUATION)
        for one in judged
    )
