"""Decides and ends an evaluated cycle, outside the processes that trained or evaluated it.

Invariants: a cycle has one decision, recorded before the cycle is "done". The first champion is the starting model of
the first cycle that got this far: a model that was never trained from and evaluated is never in service.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Literal

from appliance.ledger.audited import AuditedLedger
from appliance.ledger.history import history_of
from appliance.ledger.ledger import Ledger
from appliance.promotion.anchors import anchor_moves
from appliance.promotion.evidence import CHAMPION, budget_of, decision_on
from appliance.records.cycles import SEALED, Cycle, CycleState, Event
from appliance.records.evaluations import CANDIDATE_RUN, Evaluation
from appliance.system.clock import utc_now
from policies.contract.decision import Decision
from policies.policy import Policy


def evaluation_of(cycle: Cycle, ledger: Ledger) -> Evaluation | None:
    return ledger.evaluation(f"{cycle.id}.evaluation")


def next_phase(cycle: Cycle, ledger: Ledger) -> Literal["prepare", "train", "evaluate", "decide"]:
    """Returns the next phase of an unfinished cycle. Each runs in its own process: who trains does not fix the exam."""
    if evaluation_of(cycle, ledger) is not None:
        return "decide"
    if SEALED not in cycle.plan:
        return "prepare"
    return "evaluate" if "candidate" in cycle.plan else "train"


def has_answers(cycle: Cycle, ledger: AuditedLedger) -> bool:
    """True if an unfinished cycle has asked its candidate the sealed questions: people may have seen the result."""
    return (
        "candidate" in cycle.plan
        and next_phase(cycle, ledger) != "decide"
        and ledger.in_force.bound("rollouts", f"{cycle.id}/{CANDIDATE_RUN}") is not None
    )


def decide_cycle(cycle: Cycle, ledger: Ledger, policy: Policy, data: Path) -> Decision:
    """Makes and records the promotion decision on a cycle's evaluation, once, and ends the cycle. Raises LookupError
    without an evaluation."""
    evaluation, name = evaluation_of(cycle, ledger), f"{cycle.id}.decision"
    if evaluation is None:
        raise LookupError(f"{cycle.id} has no evaluation")
    decisions = ledger.decisions(candidate=evaluation.candidate.weights, limit=1000)
    known = [one for one in decisions if one.id == name]
    if not known:
        ledger.put_event(Event(kind="phase", text="decision", created=utc_now()))
        if ledger.alias(CHAMPION) is None:
            reason = "the first policy model: there was none before"
            ledger.set_aliases({CHAMPION: evaluation.champion.weights}, reason, utc_now())
        history = history_of(evaluation, ledger)
        # The decision rests on the anchors that were asked; these are for the next evaluation.
        moves = anchor_moves(evaluation, history, budget_of(evaluation, history, policy).better, policy)
        if moves := {name: model for name, model in moves.items() if ledger.alias(name) != model}:
            reason = f"the champion was first or better there, evaluation {evaluation.id}"
            ledger.set_aliases(moves, reason, utc_now())
        known = [
            decision_on(
                evaluation,
                policy,
                in_service=ledger.alias(CHAMPION),
                history=history,
                decisions=decisions,
                id=name,
                made_at=utc_now(),
            )
        ]
        ledger.put_decision(known[0])
    # Models are published and rollouts recorded: files for resuming the training may go.
    shutil.rmtree(data / "cycles" / cycle.id, ignore_errors=True)
    if cycle.state is CycleState.RUNNING:
        done = {"phase": "done", "state": CycleState.DONE, "updated": utc_now()}
        ledger.put_cycle(cycle.model_copy(update=done))
        ledger.put_event(Event(kind="phase", text="done", created=utc_now()))
    return known[0]
