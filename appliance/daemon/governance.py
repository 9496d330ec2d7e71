"""What a person's word leads to: a new decision under the written policy, and only then another model in service.

What always holds: a word is on the decision that the person was shown, and is on record before it has any effect; an
alias moves only for a decision to promote, and only onto a model folder whose every byte hashes to the digest that was
decided on. Aliases move together or not at all.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from appliance.client.messages import Approved, Comparison
from appliance.daemon import views
from appliance.daemon.errors import NotThereError, RefusedByPolicyError
from appliance.learning.errors import CheckpointError
from appliance.learning.folders import verify
from appliance.ledger.ledger import Ledger
from appliance.promotion import (
    CANDIDATE,
    CHAMPION,
    PREVIOUS,
    PromotionError,
    aliases_on_promotion,
    aliases_on_rollback,
    decision_on,
)
from appliance.records import Approval, Event
from policies.decision import Decision, DecisionOutcome
from policies.policy import Policy


class Governance:
    """One judgement at a time, whoever asks."""

    def __init__(self, ledger: Ledger, policy: Policy, data: Path, now: Callable[[], str]) -> None:
        self._ledger = ledger
        self._policy = policy
        self._data = data
        self._now = now
        self._lock = threading.Lock()

    def judge(self, candidate: str, verdict: Literal["approve", "reject"], person: str, shown: str = "") -> Approved:
        """Records the word, decides again with it, and moves the aliases when that says so.

        `candidate` is an alias or the beginning of a digest; `shown` the digest of the decision that the person saw,
        empty for the newest. Raises RefusedByPolicyError with the gates' reasons when an approval does not suffice.
        """
        with self._lock:
            digest = self.digest_of(candidate)
            in_service = self._ledger.alias(CHAMPION)
            decisions = self._ledger.decisions(candidate=digest, limit=1000)
            newest = self._shown(digest, decisions, shown)
            if verdict == "approve":
                if digest == in_service:
                    raise RefusedByPolicyError(f"{digest[:12]} is in service already", hint="nothing has to be done")
                self._check_folder(digest)
            evaluation = self._ledger.evaluation(newest.evaluation)
            if evaluation is None:
                raise NotThereError(
                    f"the evaluation {newest.evaluation} behind the decision is not in the ledger",
                    hint="evaluate the candidate again",
                )
            now = self._now()
            approval = Approval(decision=newest.digest(), candidate=digest, verdict=verdict, person=person, created=now)
            self._ledger.put_approval(approval)
            decision = decision_on(
                evaluation,
                self._policy,
                in_service=in_service,
                approvals=self._ledger.approvals(candidate=digest),
                decisions=decisions,
                id=f"decision-{secrets.token_hex(6)}",
                made_at=now,
            )
            self._ledger.put_decision(decision)
            self._say(f"{person}: {verdict} {digest[:12]}; the decision is to {decision.outcome.value}")
            self._carry_out(decision, verdict, person, in_service)
            return Approved(approval=approval, decision=decision, aliases=views.aliases(self._ledger))

    def settle(self) -> None:
        """Carries out a decision to promote the candidate that has not been: the policy asked for nobody's approval, or
        the daemon was killed between a decision and its effect. What forbids it is put on record."""
        with self._lock:
            candidate, in_service = self._ledger.alias(CANDIDATE), self._ledger.alias(CHAMPION)
            newest = self._ledger.decisions(candidate=candidate, limit=1) if candidate else []
            if not newest or newest[0].outcome is not DecisionOutcome.PROMOTE:
                return
            decision = newest[0]
            try:
                moves = aliases_on_promotion(decision, in_service=in_service)
                self._check_folder(decision.candidate)
            except (PromotionError, CheckpointError) as error:
                self._say(f"{decision.candidate[:12]} was decided on and cannot go into service: {error}")
                return
            self._ledger.set_aliases(moves, f"decision {decision.id}", self._now())
            self._say(f"{decision.candidate[:12]} is in service: {decision.reason}")

    def rollback(self, person: str, reason: str) -> dict[str, str | None]:
        """Puts the previous champion back. Raises PromotionError when there is none."""
        with self._lock:
            moves = aliases_on_rollback(in_service=self._ledger.alias(CHAMPION), previous=self._ledger.alias(PREVIOUS))
            back = moves[CHAMPION]
            if back is not None:
                self._check_folder(back)
            why = f"rollback by {person}" + (f": {reason}" if reason else "")
            self._ledger.set_aliases(moves, why, self._now())
            self._say(why)
            return views.aliases(self._ledger)

    def compare(self, a: str, b: str) -> Comparison:
        """The newest evaluation that had both, in either role. Raises NotThereError when there is none."""
        first, second = self.digest_of(a), self.digest_of(b)
        if first == second:
            raise NotThereError(f"{a} and {b} are the same model", hint="name two different ones")
        for candidate, champion in ((first, second), (second, first)):
            for evaluation in self._ledger.evaluations(candidate=candidate, limit=100):
                if evaluation.champion.weights == champion:
                    return views.compare(evaluation, first, second)
        raise NotThereError(
            f"no evaluation in the ledger had both {first[:12]} and {second[:12]}",
            hint="models are compared where a cycle evaluated them; `assay cycle start` runs one",
        )

    def digest_of(self, name: str) -> str:
        """The model that an alias or the beginning of a digest stands for. Raises NotThereError."""
        if name in views.ALIASES:
            digest = self._ledger.alias(name)
            if digest is None:
                raise NotThereError(f"there is no {name}", hint="`assay model ls` shows what there is")
            return digest
        checkpoint = self._ledger.checkpoint(name)
        if checkpoint is None:
            raise NotThereError(
                f"no model is called {name!r}",
                hint="`assay model ls` shows what there is; give at least six digits, or an alias",
            )
        return checkpoint.manifest

    def _shown(self, digest: str, decisions: list[Decision], shown: str) -> Decision:
        if not decisions:
            raise NotThereError(
                f"there is no decision about {digest[:12]} to agree or disagree with",
                hint="a cycle evaluates its candidate and decides; see `assay model ls`",
            )
        newest = decisions[0]
        if shown and newest.digest() != shown:
            raise RefusedByPolicyError(
                f"there is a newer decision about {digest[:12]} than the one you were shown: {newest.reason}",
                hint="look at it, then say your word again",
            )
        return newest

    def _carry_out(
        self, decision: Decision, verdict: Literal["approve", "reject"], person: str, in_service: str | None
    ) -> None:
        why = f"{verdict} by {person}, decision {decision.id}"
        if verdict == "reject":
            if self._ledger.alias(CANDIDATE) == decision.candidate:
                self._ledger.set_aliases({CANDIDATE: None}, why, self._now())
            return
        if decision.outcome is not DecisionOutcome.PROMOTE:
            raise RefusedByPolicyError(
                f"the policy does not admit {decision.candidate[:12]}: {decision.outcome.value}: {decision.reason}",
                hint=decision.would_change,
            )
        self._ledger.set_aliases(aliases_on_promotion(decision, in_service=in_service), why, self._now())

    def _check_folder(self, digest: str) -> None:
        """Every byte, before it goes into service. Raises CheckpointError."""
        folder = self._data / "models" / digest
        found = verify(folder)
        if found != digest:
            raise CheckpointError(
                f"{folder} holds the model {found[:12]}, not {digest[:12]}", hint="it must not go into service"
            )

    def _say(self, text: str) -> None:
        self._ledger.put_event(Event(kind="governance", text=text, created=self._now()))
