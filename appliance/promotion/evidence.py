"""Turns an evaluation into a decision, and a decision into alias moves.

Pure: records in, records out. The caller reads the ledger, writes the decision there, and only then moves the aliases
named here. `policies` does the judging; this module only collects the evidence.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from appliance.promotion.anchors import paired, retained
from appliance.records.evaluations import Approval, Evaluation, ModelResults
from common.errors import HintedError
from policies.contract.decision import Decision, DecisionOutcome, GateOutcome, moment
from policies.contract.evidence import (
    Budget,
    CostReport,
    EarlierNight,
    Evidence,
    PairCounts,
    RecordedApproval,
    TakenBack,
)
from policies.decide import decide, is_sound
from policies.gates import evidence as evidence_gate
from policies.gates import service
from policies.gates.evidence import odds_outcome
from policies.policy import Policy
from policies.statistics import quarter_of

CHAMPION, PREVIOUS, CANDIDATE, CANARY = "champion", "previous", "candidate", "canary"
"""Names of the aliases: in service, in service before, waiting for a decision, on trial beside the champion."""


class PromotionError(HintedError):
    """A requested promotion or rollback is not allowed; `hint` says what must come first."""

    exit_code = 4


def decision_on(
    evaluation: Evaluation,
    policy: Policy,
    *,
    in_service: str | None,
    history: Sequence[Evaluation],
    approvals: Sequence[Approval] = (),
    decisions: Sequence[Decision] = (),
    id: str,  # noqa: A002 - the record's own name
    made_at: str,
) -> Decision:
    """Decides, under the policy, whether an evaluation's candidate is promoted, and returns the decision.

    `in_service` is the current champion, None before the first. `history` are the evaluations of the quarter and of the
    candidate, in any order, with or without this one (`appliance.ledger.history`). `approvals` and `decisions` are
    those recorded about the candidate, in any order: an approval counts if it is for a decision about this evaluation
    under this policy. `made_at` is UTC in ISO 8601.
    """
    evidence = evidence_of(
        evaluation, in_service=in_service, history=history, approvals=approvals, decisions=decisions, policy=policy
    )
    return decide(evidence, policy, policy_digest=policy.digest, id=id, made_at=made_at)


def evidence_of(
    evaluation: Evaluation,
    *,
    in_service: str | None,
    history: Sequence[Evaluation],
    approvals: Sequence[Approval],
    decisions: Sequence[Decision],
    policy: Policy,
) -> Evidence:
    """Collects the evidence on an evaluation's candidate that the policy's gates judge. Only sampled results count;
    greedy ones are reported elsewhere."""
    candidate, champion = evaluation.candidate, evaluation.champion
    earlier = earlier_nights(evaluation, history, policy)
    return _of_night(evaluation, in_service=in_service).model_copy(
        update={
            "earlier": tuple(
                EarlierNight(evaluation=night.id, items=paired(night.champion.items, night.candidate.items))
                for night in earlier
            ),
            "retained": retained(evaluation, [*earlier, evaluation]),
            "rows": evaluation.rows,
            "not_askable": evaluation.not_askable,
            "budget": budget_of(evaluation, history, policy),
            "cost": CostReport(
                answers=len(candidate.items),
                tokens=candidate.tokens,
                tokens_champion=champion.tokens,
                calls=sum(item.calls for item in candidate.items),
                calls_champion=sum(item.calls for item in champion.items),
            ),
            "approvals": tuple(
                RecordedApproval(
                    person=approval.person, verdict=approval.verdict, decision=approval.decision, at=approval.created
                )
                for approval in sorted(approvals, key=lambda one: (one.created, one.verdict == "reject"))
                if approval.candidate == candidate.weights
            ),
            "other_policies": tuple(
                sorted(
                    {one.policy for one in (*history, evaluation) if one.candidate.weights == candidate.weights}.union(
                        one.policy for one in decisions if one.candidate == candidate.weights
                    ).difference({"", policy.digest})
                )
            ),
            "shown": tuple(
                decision.digest()
                for decision in decisions
                if (decision.evaluation, decision.candidate, decision.policy)
                == (evaluation.id, candidate.weights, policy.digest)
            ),
            "taken_back": taken_back(evaluation, decisions),
        }
    )


def _of_night(evaluation: Evaluation, *, in_service: str | None) -> Evidence:
    """Collects the evidence on a candidate from one night's evaluation alone."""
    candidate, champion = evaluation.candidate, evaluation.champion
    return Evidence(
        evaluation=evaluation.id,
        candidate=candidate.weights,
        champion=champion.weights,
        in_service=in_service,
        sealed_set=evaluation.sealed_set,
        candidate_asked=_asked(candidate),
        champion_asked=_asked(champion),
        candidate_temperature=candidate.temperature,
        champion_temperature=champion.temperature,
        items=paired(champion.items, candidate.items),
        evaluated_at=evaluation.created,
        measurements=evaluation.measurements,
    )


def taken_back(evaluation: Evaluation, decisions: Sequence[Decision]) -> TakenBack | None:
    """Returns the latest withdrawal of the candidate from service that counts against it; None if there was none.

    A withdrawal counts after promotion on this evaluation, or on another one made since this one.
    """
    first: dict[str, TakenBack] = {}
    own: list[TakenBack] = []
    for decision in sorted(decisions, key=lambda one: one.made_at):
        for finding in decision.findings:
            if finding.gate != service.GATE.name or decision.candidate != evaluation.candidate.weights:
                continue
            out = TakenBack(
                at=decision.made_at, reason=finding.reason, figure=finding.figure, threshold=finding.threshold
            )
            if decision.evaluation == evaluation.id:
                own.append(out)
            else:  # later decisions on that evaluation repeat the finding
                first.setdefault(decision.evaluation, out)
    since = [one for one in first.values() if moment(one.at) >= moment(evaluation.created)]
    return max([*own, *since], key=lambda one: one.at, default=None)


def meetings(evaluation: Evaluation, history: Sequence[Evaluation]) -> list[Evaluation]:
    """Returns all evaluations of the same candidate against the same champion, this one included; oldest first."""
    among = {one.id: one for one in (*history, evaluation) if _models(one) == _models(evaluation)}
    return sorted(among.values(), key=lambda one: (one.created, one.id))


def earlier_nights(evaluation: Evaluation, history: Sequence[Evaluation], policy: Policy) -> list[Evaluation]:
    """Returns earlier evaluations of the same two models whose answers count in this decision; oldest first.

    A night whose evidence the policy's gates would have rejected at the time is left out.
    """
    return [
        night
        for night in meetings(evaluation, history)
        if night.created < evaluation.created
        and is_sound(_of_night(night, in_service=None), policy.gates)
        and not (night.measurements.contamination is not None and night.measurements.contamination.found)
    ]


def budget_of(evaluation: Evaluation, history: Sequence[Evaluation], policy: Policy) -> Budget:
    """Returns the quarter in which an evaluation's two models first met, how many pairs met in it before, and of how
    many of those the candidate was shown to be better.

    A model that was evaluated against itself does not count.
    """
    met: dict[tuple[str, str], list[Evaluation]] = {}
    for one in {one.id: one for one in (*history, evaluation)}.values():
        if one.candidate.weights != one.champion.weights:
            met.setdefault(_models(one), []).append(one)
    firsts = {models: min((one.created, one.id) for one in nights) for models, nights in met.items()}
    own = firsts.pop(_models(evaluation), (evaluation.created, evaluation.id))
    quarter = quarter_of(own[0])
    before = [models for models, first in firsts.items() if first < own and quarter_of(first[0]) == quarter]
    rules = policy.rules_of(evidence_gate.GATE)
    better = [models for models in before if odds_outcome(_counts(met[models]), 0, rules) is GateOutcome.PASSED]
    return Budget(quarter=quarter, before=len(before), better=len(better))


def _counts(nights: Sequence[Evaluation]) -> PairCounts:
    """Counts gained and lost answers of a pair's evaluations; a repeated question counts each time."""
    items = gained = lost = 0
    for night in nights:
        answers = {item.task: item.passed for item in night.champion.items}
        for item in night.candidate.items:
            was = answers.get(item.task)
            if was is not None and item.passed is not None:
                items, gained, lost = items + 1, gained + (item.passed > was), lost + (item.passed < was)
    return PairCounts(items, gained, lost)


def _models(evaluation: Evaluation) -> tuple[str, str]:
    return evaluation.candidate.weights, evaluation.champion.weights


def aliases_on_promotion(decision: Decision, *, in_service: str | None) -> dict[str, str | None]:
    """Returns the alias moves that carry out a decision to promote, for `Ledger.set_aliases`.

    Raises PromotionError unless the decision promotes and was made against the model in service.
    """
    if decision.outcome is not DecisionOutcome.PROMOTE:
        raise PromotionError(
            f"the decision about {decision.candidate[:12]} is to {decision.outcome.value}: {decision.reason}",
            hint=decision.would_change or "evaluate the candidate again",
        )
    if in_service not in (None, decision.champion):
        raise PromotionError(
            f"the decision about {decision.candidate[:12]} was made against another champion",
            hint="evaluate the candidate against the champion that is in service",
        )
    return {CHAMPION: decision.candidate, PREVIOUS: in_service, CANDIDATE: None}


def aliases_on_rollback(*, in_service: str | None, previous: str | None) -> dict[str, str | None]:
    """Returns the alias moves that put the previous champion back. Raises PromotionError if there is none.

    `previous` becomes empty: a second rollback must not bring back, past every gate, the model that the first removed.
    """
    if previous is None:
        raise PromotionError(
            "no earlier champion to roll back to", hint="promote another candidate instead; `assay model ls` lists them"
        )
    if previous == in_service:
        raise PromotionError("the earlier champion is already in service", hint="nothing to do")
    return {CHAMPION: previous, PREVIOUS: None}


def _asked(results: ModelResults) -> str:
    """Returns one SHA-256 over a model's evaluation questions in the order asked, computed as for a sealed set."""
    return hashlib.sha256("\n".join(item.task for item in results.items).encode()).hexdigest()
