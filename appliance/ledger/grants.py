"""What a worker may ask of the ledger: the calls of its phase, about its own work, and nothing else.

What always holds: who trains writes no evaluation, who evaluates writes no checkpoint and moves no alias, and no worker
decides, approves, asks for a job, or says what is in service. A call that is not listed here is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from appliance.ledger.ledger import Ledger
from appliance.records.cycles import KEPT_ROLLOUTS, Cycle, CycleState
from appliance.records.jobs import JobState, work_of
from appliance.records.rollouts import Purpose
from appliance.records.training import Judged

if TYPE_CHECKING:  # a worker has no database
    from appliance.ledger.leases import Leases

Rule = Callable[[Any, Ledger], bool]
"""Whether a call with these arguments is within the grant; `ledger` says what is on record."""

_DIGEST = re.compile(r"[0-9a-f]{64}")
_BUNDLE = re.compile(r"artifacts/[A-Za-z0-9_-][A-Za-z0-9._-]*")
_DECIDED_ONCE = frozenset({"again", "tasksets", "left_out", "start", "candidate"})
"""What training adds to a cycle's plan, and nobody changes afterwards; and how each of its stages ended, and what it
knew of levels before and after them."""
_TRAINED = ("training", "stage")
_ENDED = re.compile(r"stage_[1-9][0-9]?")
_STAGE = re.compile(rf"{_ENDED.pattern}|difficulty_[0-9]{{1,9}}")


@dataclass(frozen=True)
class Grant:
    """The calls that a connection takes, by name; each with the rule that its arguments have to meet."""

    work: str
    """What it is for, in a refusal."""
    calls: Mapping[str, Rule]

    def refusal(self, request: Any, ledger: Ledger) -> str:
        """Says why the call is refused; empty when it is not."""
        rule = self.calls.get(request.call)
        if rule is None:
            return f"{self.work} does not call {request.call}"
        return "" if rule(request, ledger) else f"{self.work} may not write this with {request.call}"


def _any(request: Any, ledger: Ledger) -> bool:
    return True


_BOTH = dict.fromkeys(("put_event", "alias", "checkpoint", "rollouts", "decisions", "renew_leases"), _any)
_OF_A_NIGHT = _BOTH | dict.fromkeys(
    ("cycle", "cycles", "recorded_steps", "step_tasks", "checkpoints", "evaluation", "evaluations", "put_sealed_set"),
    _any,
)


def grant_of(work: Sequence[str]) -> Grant:
    """The grant of what a worker is started for: `train` or `evaluate` and a cycle's id, or `jobs`."""
    return jobs() if work[0] == "jobs" else {"train": training, "evaluate": evaluation}[work[0]](work[1])


def training(cycle: str) -> Grant:
    """Steps, rollouts and attested checkpoints of this cycle; its candidate."""

    def updates(request: Any, ledger: Ledger) -> bool:
        known, given = ledger.cycle(cycle), request.cycle
        added = given.plan.keys() - known.plan.keys() - {KEPT_ROLLOUTS} if known is not None else set()
        known_names = all(name in _DECIDED_ONCE or _STAGE.fullmatch(name) for name in added)
        return _goes_on(known, given, KEPT_ROLLOUTS) and known_names and _are_digests(given.plan.get(KEPT_ROLLOUTS, []))

    def adds(request: Any, ledger: Ledger) -> bool:
        made = request.checkpoint
        named = _DIGEST.fullmatch(made.manifest) is not None and made.folder == f"models/{made.manifest}"
        return bool(named and made.cycle == cycle and ledger.is_attested(made.manifest))

    def moves(request: Any, ledger: Ledger) -> bool:
        digest = request.aliases.get("candidate")
        made = ledger.checkpoint(digest) if digest and _DIGEST.fullmatch(digest) else None
        if len(request.aliases) != 1 or made is None or made.stage not in _TRAINED:
            return False
        if made.cycle == cycle:
            return True
        known = ledger.cycle(cycle)  # of equal weights, an earlier cycle's record is the only one
        plan = known.plan if known is not None else {}
        stages = [ended.get("checkpoint") for name, ended in plan.items() if _ENDED.fullmatch(name)]
        return made.parent is not None and made.parent in (plan.get("start"), *stages)

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
    )


def evaluation(cycle: str) -> Grant:
    """The answers of this cycle's two models, and the one evaluation of them."""

    def updates(request: Any, ledger: Ledger) -> bool:
        known = ledger.cycle(cycle)
        return _goes_on(known, request.cycle) and known is not None and request.cycle.plan == known.plan

    def is_the_one(request: Any, ledger: Ledger) -> bool:
        known, made = ledger.cycle(cycle), request.evaluation
        if known is None or (made.id, made.cycle) != (f"{cycle}.evaluation", cycle):
            return False
        asked = [results.weights for results in (made.champion, made.champion_greedy)]
        asked += [results.weights for results in (made.candidate, made.candidate_greedy)]
        return asked == [known.plan.get("start")] * 2 + [known.plan.get("candidate")] * 2

    return Grant(
        "the evaluation",
        {
            **_OF_A_NIGHT,
            "put_cycle": updates,
            "put_rollouts": lambda request, ledger: _are_of(request.judged, cycle, Purpose.EVALUATION),
            "put_evaluation": is_the_one,
        },
    )


def jobs() -> Grant:
    """The attempts at jobs that are on record and have not ended, and their bundles, each under its job's name. Solved
    is a job whose bundle, with a verdict that passed, is on record."""

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
            **dict.fromkeys(("job", "next_job", "claim_job", "rollout_counts", "artifact", "canaries"), _any),
            # One that has ended stays as it ended, whoever is late; see `Ledger.put_job`.
            "put_job": goes_on,
            "put_rollouts": are_attempts,
            "put_artifact": is_its_bundle,
        },
    )


def _holds(job: str, ledger: Ledger) -> bool:
    """Whether the worker that asks has the job's lease; what has no leases asks for none."""
    leases: Leases | None = getattr(ledger, "leases", None)
    return leases is None or leases.holds(work_of(job))


def _are_digests(given: object) -> bool:
    """Whether these are the file of kept rollouts that is there, and the one that is to replace it."""
    return isinstance(given, list) and len(given) <= 2 and all(_DIGEST.fullmatch(str(one)) for one in given)


def _goes_on(known: Cycle | None, given: Cycle, changes: str = "") -> bool:
    """Whether an unfinished cycle says only how far it has come: what it is stays, and so does what is in its plan but
    for what `changes`."""
    if known is None or known.state is not CycleState.RUNNING:
        return False
    same = (known.id, known.kind, known.seed, known.created) == (given.id, given.kind, given.seed, given.created)
    stays = {name: value for name, value in known.plan.items() if name != changes}
    return same and all(name in given.plan and given.plan[name] == value for name, value in stays.items())


def _are_of(judged: Sequence[Judged], work: str, purpose: Purpose) -> bool:
    """Whether these are rollouts of this work, for this purpose; their ids cannot take the place of another's."""
    examined = f"{work}.{Purpose.EVALUATION.value}."
    return all(
        (one.rollout.cycle, one.rollout.purpose) == (work, purpose)
        and one.rollout.id.startswith(f"{work}.")
        and one.rollout.id.startswith(examined) == (purpose is Purpose.EVALUATION)
        for one in judged
    )
