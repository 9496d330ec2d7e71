"""Carries out approvals: a new decision under the written policy, and only then another model in service.

Invariants: a statement takes effect only with a person's signature over the decision that was shown, and is recorded
first; an alias moves only for a promoting decision that was made again from the evidence and re-verified statements,
and only onto a model folder in which every byte matches the decided digest. Aliases move together or not at all.
Refusals are in the audit log, by name.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from appliance.audit.log import AuditError
from appliance.client.messages import Approved, ModelComparison, PolicyInForce
from appliance.client.status import CanaryView
from appliance.daemon.contract import EventLog, NotThereError, RefusedByPolicyError
from appliance.daemon.governance.canaries import Canaries, record_taken_back
from appliance.daemon.governance.trust import Trust
from appliance.daemon.views import ledger_views as views
from appliance.daemon.views.cycle_views import ASKED_ANEW, MOST_DECISIONS, NIGHT_MORE, is_worth_asking_again
from appliance.daemon.views.ledger_views import no_model
from appliance.learning.errors import CheckpointError
from appliance.learning.folders import verify
from appliance.ledger.audited import AuditedLedger
from appliance.ledger.history import history_of
from appliance.promotion.anchors import anchors_without
from appliance.promotion.evidence import (
    CANDIDATE,
    CHAMPION,
    PREVIOUS,
    PromotionError,
    aliases_on_promotion,
    aliases_on_rollback,
    decision_on,
)
from appliance.records.evaluations import Approval, Evaluation
from appliance.records.jobs import Job, JobState
from policies.approvals import ApprovalSubject
from policies.contract.decision import Decision, DecisionOutcome, moment
from policies.contract.evidence import TakenBack

CHANGED = "changed checkpoint"
"""Name of the refusal, in the log, of a folder that differs from what was decided on."""


class Governance:
    """Approves, rejects, promotes and withdraws models, one judgement at a time across threads."""

    def __init__(
        self, ledger: AuditedLedger, trust: Trust, data: Path, now: Callable[[], str], events: EventLog
    ) -> None:
        self._ledger = ledger
        self._trust = trust
        self._data = data
        self._now = now
        self._events = events
        self._lock = threading.RLock()  # reentrant: cancelling a job calls job_ended
        self._canaries = Canaries(ledger, trust, now, events, self._check_folder)

    def approve(self, candidate: str, envelope: bytes) -> Approved:
        return self._record(candidate, "approve", envelope)

    def reject(self, candidate: str, envelope: bytes) -> Approved:
        return self._record(candidate, "reject", envelope)

    def change_policy(self, content: bytes, envelope: bytes) -> PolicyInForce:
        """Puts a signed policy into force, and reports that as an event. Raises what `Trust.change_policy` raises."""
        changed = self._trust.change_policy(content, envelope)
        self._say(f"the policy {changed.digest[:12]} is in force")
        return changed

    def _record(self, candidate: str, verdict: Literal["approve", "reject"], envelope: bytes) -> Approved:
        """Verifies and records a person's signed approval or rejection, decides again with it, and moves the aliases
        accordingly.

        `candidate` is an alias or a digest prefix. Raises RefusedByPolicyError for a statement that does not count,
        with the reason's name, or an insufficient approval, with the gates' reasons.
        """
        with self._lock:
            self._ledger.require_whole()
            digest = self.digest_of(candidate)
            in_service = self._ledger.alias(CHAMPION)
            decisions = self._ledger.decisions(candidate=digest, limit=1000)
            newest = _newest(digest, decisions)
            rules = self._trust.policy.approval
            question = ApprovalSubject(
                verdict=verdict,
                candidate=digest,
                decision=newest.digest(),
                policy=self._trust.policy.digest,
                valid_hours=rules.max_age_hours,
                who=rules.who,
            )
            known = self._ledger.approvals(candidate=digest)
            signed, key = self._trust.verify_approval(envelope, question, known)
            if verdict == "approve":
                if digest == in_service:
                    raise RefusedByPolicyError(f"{digest[:12]} is already in service", hint="nothing to do")
                self._require_no_canary()
                self._require_folder(digest)
            evaluation = self._evaluation(newest)
            now = self._now()
            approval = Approval(
                decision=signed.decision,
                candidate=digest,
                verdict=verdict,
                person=signed.person,
                created=now,
                key=key.fingerprint,
                nonce=signed.nonce,
                envelope=envelope.decode("ascii"),
            )
            self._ledger.put_approval(approval)
            decision = self._decide(evaluation, decisions, in_service, now)
            self._ledger.put_decision(decision)
            self._say(f"{signed.person}: {verdict} {digest[:12]}; the decision is to {decision.outcome.value}")
            self._carry_out(decision, verdict, signed.person, in_service)
            return Approved(approval=approval, decision=decision, aliases=views.aliases(self._ledger))

    def reconcile(self) -> None:
        """Carries out a pending decision to promote the candidate: no approval was required, or the daemon was killed
        in between. Advances a canary first; while one is on trial, nothing is promoted.

        The decision is first made again, as of now, from the evidence and the signed statements: a recorded decision is
        no reason by itself, and an approval may have expired. An obstacle is recorded.
        """
        with self._lock:
            self._ledger.require_whole()
            self._canaries.reconcile()
            self._canaries.next_step()
            if self._canaries.current is not None:
                return
            candidate, in_service = self._ledger.alias(CANDIDATE), self._ledger.alias(CHAMPION)
            decisions = self._ledger.decisions(candidate=candidate, limit=1000) if candidate else []
            if not decisions or decisions[0].outcome is not DecisionOutcome.PROMOTE:
                return
            decision = decisions[0]
            try:
                anew = self._decide(self._evaluation(decision), decisions, in_service, self._trust.decision_time())
                aliases_on_promotion(anew, in_service=in_service)
                self._check_folder(decision.candidate)
            except (PromotionError, CheckpointError, NotThereError) as error:
                reason = f"{decision.candidate[:12]} was decided on and cannot go into service: {error}"
                self._trust.log("promotion.refused", decision=decision.digest(), message=reason)
                self._say(reason)
                return
            self._put_into_service(decision, in_service, f"decision {decision.id}")
            self._say(f"{decision.candidate[:12]} is in service: {decision.reason}")

    def check_canary(self) -> None:
        """Starts the canary's next step, or ends its trial, as its jobs so far require. Called after every job, and
        periodically."""
        with self._lock:
            canary = self._canaries.current
            if canary is None:
                return
            ended = self._canaries.next_step()
        if ended is not None:
            self.reconcile()

    def job_ended(self, job: Job) -> None:
        """Advances the canary after an ended job. A canary whose job failed is withdrawn if its model folder is
        damaged."""
        with self._lock:
            canary = self._canaries.current
            if (
                canary is not None
                and job.state in (JobState.FAILED, JobState.SET_ASIDE)
                and job.weights == canary.candidate
            ):
                try:
                    self._check_folder(canary.candidate)
                except CheckpointError as error:
                    self._canaries.take_back(canary, f"it cannot be in service: {error}")
        self.check_canary()

    def canary(self) -> CanaryView | None:
        """Returns the state of the model on trial beside the champion, or None."""
        return self._canaries.view()

    def rollback(self, person: str, reason: str = "", going: str = "") -> dict[str, str | None]:
        """Withdraws the canary, or without one puts the previous champion back, and returns the aliases. A withdrawn
        model needs a new evaluation. Raises PromotionError if another model than `going` would be withdrawn, if there
        is no previous champion, or if a person rejected it since it came into service."""
        with self._lock:
            self._ledger.require_whole()
            why = f"rollback by {person}" + (f": {reason}" if reason else "")
            canary = self._canaries.current
            would_go = canary.candidate if canary is not None else self._ledger.alias(CHAMPION)
            if going and going != would_go:
                raise PromotionError(
                    f"a rollback would no longer withdraw {going[:12]}: nothing was done",
                    hint="`assay model ls` shows the model in service; repeat the rollback if that one should go",
                )
            if canary is not None:
                self._canaries.take_back(canary, why)
                self._say(why)
                return views.aliases(self._ledger)
            moves = aliases_on_rollback(in_service=self._ledger.alias(CHAMPION), previous=self._ledger.alias(PREVIOUS))
            back = moves[CHAMPION]
            if back is not None:
                self._require_not_rejected(back)
                self._check_folder(back)
            gone = self._ledger.alias(CHAMPION)
            if gone is not None:
                name = f"rollback-{secrets.token_hex(6)}"
                record_taken_back(gone, TakenBack(at=self._now(), reason=why), self._ledger, self._trust, name=name)
                moves |= anchors_without(gone, self._ledger.in_force.aliases, self._ledger.in_force.moves)
            self._ledger.set_aliases(moves, why, self._now())
            self._say(why)
            return views.aliases(self._ledger)

    def compare(self, a: str, b: str) -> ModelComparison:
        """Compares two models by their newest common evaluation, in either role. Raises NotThereError if there is
        none."""
        first, second = self.digest_of(a), self.digest_of(b)
        if first == second:
            raise NotThereError(f"{a} and {b} are the same model", hint="name two different ones")
        for candidate, champion in ((first, second), (second, first)):
            for evaluation in self._ledger.evaluations(candidate=candidate, limit=100):
                if evaluation.champion.weights == champion:
                    return views.compare(evaluation, first, second)
        raise NotThereError(
            f"no evaluation compares {first[:12]} and {second[:12]}",
            hint="models are compared where a cycle evaluated them; `assay cycle start` runs one",
        )

    def digest_of(self, name: str) -> str:
        """Returns the full digest of the model with this alias or digest prefix. Raises NotThereError."""
        if name in views.ALIASES:
            digest = self._ledger.alias(name)
            if digest is None:
                raise NotThereError(f"the alias {name} is not set", hint="`assay model ls` lists models")
            return digest
        checkpoint = self._ledger.checkpoint(name)
        if checkpoint is None:
            raise no_model(name)
        return checkpoint.manifest

    def _evaluation(self, decision: Decision) -> Evaluation:
        evaluation = self._ledger.evaluation(decision.evaluation)
        if evaluation is None:
            raise NotThereError(
                f"the evaluation {decision.evaluation} behind the decision is not in the ledger",
                hint="evaluate the candidate again",
            )
        return evaluation

    def _decide(
        self, evaluation: Evaluation, decisions: list[Decision], in_service: str | None, made_at: str
    ) -> Decision:
        """Makes the promotion decision on an evaluation as of `made_at`, with the recorded statements whose signatures
        are valid now."""
        approvals = self._ledger.approvals(candidate=evaluation.candidate.weights)
        return decision_on(
            evaluation,
            self._trust.policy,
            in_service=in_service,
            history=history_of(evaluation, self._ledger),
            approvals=self._trust.valid_approvals(approvals, at=made_at),
            decisions=decisions,
            id=f"decision-{secrets.token_hex(6)}",
            made_at=made_at,
        )

    def _carry_out(
        self, decision: Decision, verdict: Literal["approve", "reject"], person: str, in_service: str | None
    ) -> None:
        why = f"{verdict} by {person}, decision {decision.id}"
        if verdict == "reject":
            if self._ledger.alias(CANDIDATE) == decision.candidate:
                self._ledger.set_aliases({CANDIDATE: None}, why, self._now())
            canary = self._canaries.current
            if canary is not None and canary.candidate == decision.candidate:
                self._canaries.take_back(canary, why)
            return
        if decision.outcome is not DecisionOutcome.PROMOTE:
            known = self._ledger.decisions(candidate=decision.candidate, limit=MOST_DECISIONS)
            more = NIGHT_MORE if is_worth_asking_again([decision, *known], self._trust.policy) else ASKED_ANEW
            raise RefusedByPolicyError(
                f"the policy does not admit {decision.candidate[:12]}: {decision.outcome.value}: {decision.reason}. "
                "Your approval is on record; it counts for this evaluation alone",
                hint=f"{decision.would_change}. {more}: sign that decision then",
            )
        self._put_into_service(decision, in_service, why)

    def _put_into_service(self, decision: Decision, in_service: str | None, why: str) -> None:
        """Makes the decided model champion, or a canary if the policy says so. Raises PromotionError."""
        moves = aliases_on_promotion(decision, in_service=in_service)
        if in_service is not None and self._canaries.is_wanted(in_service):
            self._canaries.begin(decision, in_service)
        else:
            self._ledger.set_aliases(moves, why, self._now())

    def _require_not_rejected(self, previous: str) -> None:
        """Raises PromotionError if a person's last signed statement on a former champion, since it came into service,
        is a rejection."""
        came = max((str(one["at"]) for one in self._ledger.in_force.moves if one.get(CHAMPION) == previous), default="")
        said = self._trust.valid_approvals(self._ledger.approvals(candidate=previous), at=self._trust.decision_time())
        last = {one.person: one for one in reversed(said)}
        for one in last.values():
            if one.verdict == "reject" and (not came or moment(one.created) >= moment(came)):
                raise PromotionError(
                    f"{previous[:12]}, the champion before, was rejected by {one.person} at {one.created[:19]}",
                    hint="promote another candidate; or roll back once the person who rejected it has signed an "
                    "approval of it, which is on record though it puts nothing into service",
                )

    def _require_no_canary(self) -> None:
        canary = self._canaries.current
        if canary is not None:
            raise RefusedByPolicyError(
                f"{canary.candidate[:12]} is on trial beside the champion since {canary.started[:19]}",
                hint="wait until it is champion or withdrawn (`assay model ls`), or run `assay model rollback`",
            )

    def _require_folder(self, digest: str) -> None:
        """Verifies every byte of a model and its attestation, and logs a mismatch. Raises CheckpointError."""
        try:
            self._check_folder(digest)
        except CheckpointError as error:
            self._trust.log("promotion.refused", name=CHANGED, candidate=digest, message=str(error))
            raise

    def _check_folder(self, digest: str) -> None:
        """Verifies every byte of a model and its attestation. Raises CheckpointError."""
        folder = self._data / "models" / digest
        found = verify(folder)
        if found != digest:
            raise CheckpointError(
                f"{folder} holds the model {found[:12]}, not {digest[:12]}", hint="do not put it into service"
            )
        try:
            self._ledger.require_attested(digest)
        except AuditError as error:
            raise CheckpointError(str(error), hint=error.hint) from error

    def _say(self, text: str) -> None:
        self._events.add("governance", text)


def _newest(digest: str, decisions: list[Decision]) -> Decision:
    if not decisions:
        raise NotThereError(
            f"no decision about {digest[:12]} to approve or reject",
            hint="a cycle evaluates its candidate and decides; see `assay model ls`",
        )
    return decisions[0]
