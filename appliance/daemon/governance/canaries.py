"""Life of a canary, a promoted model beside the champion: started, followed job by job, and ended.

Invariants: a canary's record states the goal and is written before any alias moves; `reconcile` completes what is
missing, so a kill at any moment changes nothing. The aliases of one step move in one transaction. The audit log has the
figures behind the end: the canary's entry, and the decision that bars a withdrawn model until a new evaluation. Calls
are serialized (`Governance` has the lock).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from appliance.client.status import CanaryView
from appliance.daemon.contract import EventLog
from appliance.daemon.governance.trust import Trust
from appliance.jobs.lifecycle import asked_again
from appliance.learning.errors import CheckpointError
from appliance.ledger.audited import AuditedLedger
from appliance.promotion.evidence import CANARY, CANDIDATE, CHAMPION, PREVIOUS
from appliance.records.jobs import Job, JobState
from appliance.records.nights import Canary, CanaryState
from policies.canary import Counts, describe, is_wanted, odds_of_drop, step_of
from policies.contract.decision import Decision
from policies.contract.evidence import TakenBack
from policies.decide import after_service

LOOKED_AT = 2_000
"""Newest jobs of the champion searched for informative ones."""
BY_MODEL = ("", "policy model")
COUNTED = (JobState.SOLVED, JobState.UNSOLVED)


@dataclass(frozen=True)
class Canaries:
    """Starts, advances and ends trials of a promoted model beside the champion. `check` raises CheckpointError for a
    folder that does not match its digest."""

    ledger: AuditedLedger
    trust: Trust
    now: Callable[[], str]
    events: EventLog
    check: Callable[[str], None]

    @property
    def current(self) -> Canary | None:
        """The unfinished trial of a model beside the champion, or None."""
        newest = self.ledger.canaries(limit=1)
        return newest[0] if newest and not newest[0].state.ended else None

    def is_wanted(self, champion: str | None) -> bool:
        """True if a model promoted now must first pass a trial beside this champion."""
        rules = self.trust.policy.service
        return champion is not None and is_wanted(rules, len(self._worked(champion, rules.min_jobs)))

    def begin(self, decision: Decision, champion: str) -> Canary:
        canary = Canary(
            id=f"canary-{secrets.token_hex(6)}",
            candidate=decision.candidate,
            champion=champion,
            decision=decision.id,
            rules=self.trust.policy.service,
            state=CanaryState.REPLAY,
            started=self.now(),
        )
        self.trust.log(
            "canary.began",
            canary=canary.id,
            candidate=canary.candidate,
            champion=champion,
            decision=decision.id,
            rules=canary.rules.model_dump_json(),
        )
        self.ledger.put_canary(canary)
        self._carry_on(canary)
        self.events.add(
            "canary",
            f"{canary.candidate[:12]} is tried beside the champion: on its last jobs, then on "
            f"{100 * canary.rules.share:g} % of the new ones",
        )
        self.next_step()
        return canary

    def reconcile(self) -> None:
        """Completes the alias moves and jobs that the newest canary's record requires, for example after a kill."""
        newest = self.ledger.canaries(limit=1)
        if not newest:
            return
        if newest[0].state.ended:
            self._carry_out_end(newest[0])
        else:
            self._carry_on(newest[0])

    def next_step(self) -> Canary | None:
        """Checks the approvals and jobs of the current canary, then starts its share of jobs, withdraws or passes it.
        Returns the canary if it ended."""
        canary = self.current
        if canary is None:
            return None
        if person := self._rejected_by(canary):
            return self.take_back(canary, f"reject by {person}")
        if missing := self._unapproved(canary):
            return self.take_back(canary, missing)
        counts, now = self.counts(canary), self.now()
        step = step_of(counts, canary.rules, share_since=canary.share_since, now=now)
        if step == "share" and canary.state is CanaryState.REPLAY:
            self.ledger.put_canary(canary.model_copy(update={"state": CanaryState.SHARE, "share_since": now}))
            self.trust.log("canary.share", canary=canary.id, figures=describe(counts, canary.rules))
            self.events.add(
                "canary", f"{canary.candidate[:12]} answers {100 * canary.rules.share:g} % of the jobs from now on"
            )
            return None
        if step == "dropped":
            return self.take_back(canary, f"taken back by itself: {describe(counts, canary.rules)}", counts)
        if step == "passed":
            try:
                self.check(canary.candidate)
            except CheckpointError as error:
                return self.take_back(canary, f"it cannot go into service: {error}", counts)
            return self._end(canary, CanaryState.PASSED, describe(counts, canary.rules), counts)
        return None

    def _rejected_by(self, canary: Canary) -> str:
        """Returns who rejected the canary, signed, since it began and without effect because of a kill; empty if
        nobody."""
        began = self._began(canary)
        rejections = [
            one
            for one in self.ledger.approvals(candidate=canary.candidate)
            if one.verdict == "reject"
            and (said := self.ledger.in_force.bound("approvals", one.digest())) is not None
            and said.number > began >= 0
        ]
        counted = self.trust.valid_approvals(rejections, at=self.trust.decision_time())
        return counted[0].person if counted else ""

    def _unapproved(self, canary: Canary) -> str:
        """Returns a sentence if approvals that the canary's promotion requires are missing, for example after a revoked
        key; empty if none are.

        Approvals that expire during the canary still count.
        """
        rules = self.trust.policy.approval
        if not rules.required:
            return ""
        decisions = self.ledger.decisions(candidate=canary.candidate, limit=1_000)
        evaluation = next((one.evaluation for one in decisions if one.id == canary.decision), "")
        shown = {one.digest() for one in decisions if one.evaluation == evaluation}
        given = [one for one in self.ledger.approvals(candidate=canary.candidate) if one.decision in shown]
        counted = self.trust.valid_approvals(given, at=canary.started)
        people = {one.person for one in counted if one.verdict == "approve"}
        if len(people) >= rules.people:
            return ""
        return f"it cannot go into service: {len(people)} of {rules.people} approvals count now"

    def take_back(self, canary: Canary, reason: str, counts: Counts | None = None) -> Canary:
        return self._end(canary, CanaryState.TAKEN_BACK, reason, counts or self.counts(canary))

    def counts(self, canary: Canary) -> Counts:
        """Counts passes and failures of the canary and the champion, over jobs whose end was logged since the canary
        began."""
        asked = self._replays(canary)
        ended = {job.id: job for job in self.ledger.ended_jobs(after=self._began(canary))}
        replays = [(original, ended[name]) for name, original in asked.items() if name in ended]
        pairs = [
            (original.state is JobState.SOLVED, job.state is JobState.SOLVED)
            for original, job in replays
            if job.weights == canary.candidate and _counts(job) and _asks_the_same(job, original)
        ]
        real = [
            (job.weights == canary.candidate, job.state is JobState.SOLVED)
            for job in ended.values()
            if canary.share_since and job.created >= canary.share_since and job.replay_of is None and _counts(job)
            if job.weights in (canary.candidate, canary.champion)
        ]
        return Counts(
            replayed=len(pairs),
            to_replay=len(asked) - len(replays) if canary.state is CanaryState.REPLAY else 0,
            gained=pairs.count((False, True)),
            lost=pairs.count((True, False)),
            canary_passed=real.count((True, True)),
            canary_failed=real.count((True, False)),
            champion_passed=real.count((False, True)),
            champion_failed=real.count((False, False)),
        )

    def _began(self, canary: Canary) -> int:
        bound = self.ledger.in_force.bound("canaries", canary.id)
        return -1 if bound is None else bound.number

    def _replays(self, canary: Canary) -> dict[str, Job]:
        """Returns the champion's last jobs before the canary began, each by the id of the canary's repetition."""
        began = self._began(canary)
        worked = self._worked(canary.champion, canary.rules.replay, before=began)
        return {f"{_prefix(canary)}{job.id}": job for job in worked}

    def view(self) -> CanaryView | None:
        """Returns counts, odds and deadlines of the current canary for people; None without one."""
        canary = self.current
        if canary is None:
            return None
        counts, rules = self.counts(canary), canary.rules
        return CanaryView(
            canary=canary,
            counts=counts,
            odds=odds_of_drop(counts, rules.share),
            needed=1 / rules.alpha,
            closes=_later(canary.share_since, rules.window_hours) if canary.share_since else None,
            closes_latest=_later(canary.share_since, rules.max_hours) if canary.share_since else None,
        )

    def _carry_on(self, canary: Canary) -> None:
        """Sets the alias of a running canary, and queues the champion's jobs that it has to repeat."""
        if self.ledger.alias(CANARY) != canary.candidate:
            moves: dict[str, str | None] = {CANARY: canary.candidate}
            if self.ledger.alias(CANDIDATE) == canary.candidate:
                moves[CANDIDATE] = None
            self.ledger.set_aliases(moves, f"{canary.id}, decision {canary.decision}", self.now())
        if canary.state is not CanaryState.REPLAY:
            return
        for name, job in self._replays(canary).items():
            if self.ledger.job(name) is None:
                # After everybody's jobs, and without solvers: the model is on trial.
                again = asked_again(job, self.now(), id=name, priority=0, solvers_done=True, replay_of=job.id)
                self.ledger.put_job(again)

    def _end(self, canary: Canary, state: CanaryState, reason: str, counts: Counts) -> Canary:
        ended = canary.model_copy(update={"state": state, "reason": reason, "counts": counts, "ended": self.now()})
        self.trust.log(f"canary.{state.value}", canary=ended.id, candidate=ended.candidate, message=reason)
        self.ledger.put_canary(ended)
        self._carry_out_end(ended)
        self.events.add(
            "canary", f"{ended.candidate[:12]} {'is champion' if state is CanaryState.PASSED else 'is out'}: {reason}"
        )
        return ended

    def _carry_out_end(self, canary: Canary) -> None:
        if canary.state is CanaryState.TAKEN_BACK:
            odds = odds_of_drop(canary.counts, canary.rules.share)
            taken = TakenBack(at=canary.ended, reason=canary.reason, figure=odds, threshold=1 / canary.rules.alpha)
            record_taken_back(canary.candidate, taken, self.ledger, self.trust, name=f"{canary.id}.taken-back")
        if self.ledger.alias(CANARY) == canary.candidate:
            moves: dict[str, str | None] = {CANARY: None}
            if canary.state is CanaryState.PASSED:
                moves |= {CHAMPION: canary.candidate, PREVIOUS: canary.champion}
            self.ledger.set_aliases(moves, f"{canary.id}: {canary.reason}", self.now())
        for job in self.ledger.unended_jobs():
            if job.replay_of is not None:
                gone = {"state": JobState.CANCELLED, "reason": f"{canary.id} has ended", "updated": self.now()}
                self.ledger.put_job(job.model_copy(update=gone))

    def _worked(self, champion: str, most: int, before: int | None = None) -> list[Job]:
        """Returns the newest ended jobs of these weights that say something about them, at most `most`. With `before`,
        only those that ended up to that log entry."""
        found: list[Job] = []
        for job in self.ledger.ended_jobs(weights=champion, before=before, limit=LOOKED_AT):
            if len(found) < most and job.replay_of is None and _counts(job):
                found.append(job)
        return found


def record_taken_back(candidate: str, taken: TakenBack, ledger: AuditedLedger, trust: Trust, *, name: str) -> None:
    """Records, once under `name`, the decision that bars a withdrawn model until a new evaluation. Does nothing for a
    model without decisions."""
    decisions = ledger.decisions(candidate=candidate, limit=1_000)
    if decisions and not any(decision.id == name for decision in decisions):
        ledger.put_decision(after_service(decisions[0], taken, trust.policy, id=name))


def _prefix(canary: Canary) -> str:
    return f"replay-{canary.id.removeprefix('canary-')}-"


def _counts(job: Job) -> bool:
    """True if the job's end says something about its weights: solved by the model, or not at all."""
    return job.state in COUNTED and job.solved_by in BY_MODEL


def _asks_the_same(job: Job, original: Job) -> bool:
    return all(getattr(job, name) == getattr(original, name) for name in ("question", "spec", "files", "attempts"))


def _later(moment: str, hours: float) -> str:
    return (datetime.fromisoformat(moment) + timedelta(hours=hours)).isoformat(timespec="seconds")
