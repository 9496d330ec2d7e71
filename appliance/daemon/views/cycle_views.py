"""Reason that the candidate waits (evaluation, more evidence, a person, something else), and a cycle's training
figures. Read-only.

Invariants: it waits for a person only if that person's approval is all that is missing now.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from appliance.client.nights import HeldOutNight
from appliance.ledger.ledger import Ledger
from appliance.ledger.sqlite import SqliteLedger
from appliance.promotion.evidence import CANARY, CANDIDATE, CHAMPION
from appliance.records.cycles import Cycle
from appliance.records.evaluations import Evaluation
from appliance.reporting.night_report import family_changes
from common.counting import counted
from policies.contract.decision import Decision, DecisionOutcome, GateOutcome, hours_between
from policies.gates import approval, evidence, freshness
from policies.gates.evidence import asks_again
from policies.policy import Policy

MOST_DECISIONS = 200
"""Maximum decisions read about one candidate: a few each night, and one per statement of a person."""
YOURS = "waits for you: `assay model approve candidate`"
ASKED_ANEW = "`assay model evaluate candidate` compares it again"
NIGHT_MORE = "`assay cycle start` asks the same candidate fresh questions, which add to the evidence, and decides again"


class CandidateNeed(StrEnum):
    NOTHING = "nothing"
    """No candidate exists."""
    EVALUATION = "evaluation"
    PERSON = "person"
    EVIDENCE = "evidence"
    OTHER = "other"


class CandidateWait(NamedTuple):
    need: CandidateNeed
    text: str
    """Sentence for a person, with a hint."""


def candidate_wait(ledger: Ledger, policy: Policy, cycle: Cycle | None, now: str) -> CandidateWait:
    """Returns what the candidate model waits for before it may go into service. `cycle` is the unfinished one, if any;
    `now` is UTC in ISO 8601."""
    candidate = ledger.alias(CANDIDATE)
    if candidate is None:
        return CandidateWait(CandidateNeed.NOTHING, "")
    if cycle is not None and candidate in (cycle.plan.get("candidate"), cycle.plan.get("again")):
        return CandidateWait(CandidateNeed.EVALUATION, f"being evaluated by {cycle.id}: `assay cycle watch`")
    decisions = ledger.decisions(candidate=candidate, limit=MOST_DECISIONS)
    if not decisions:
        return CandidateWait(CandidateNeed.OTHER, f"not decided yet: {ASKED_ANEW}")
    if beside := ledger.alias(CANARY):
        text = f"waits until {beside[:12]}, tried beside the champion, is champion or out: `assay model ls`"
        return CandidateWait(CandidateNeed.OTHER, text)
    return _after(decisions, ledger.alias(CHAMPION), policy, now)


def _after(decisions: Sequence[Decision], champion: str | None, policy: Policy, now: str) -> CandidateWait:
    """Returns what a candidate model with these decisions, newest first, waits for."""
    newest = decisions[0]
    if newest.outcome in (DecisionOutcome.REJECT, DecisionOutcome.QUARANTINE):
        text = f"{newest.outcome.value}: no signature puts it into service; `assay model show candidate` says why"
        return CandidateWait(CandidateNeed.OTHER, text)
    if newest.champion != champion:
        return CandidateWait(CandidateNeed.OTHER, f"compared with another champion: {ASKED_ANEW}")
    if newest.policy != policy.digest:
        return CandidateWait(CandidateNeed.OTHER, f"decided under another policy: {ASKED_ANEW}")
    if is_worth_asking_again(decisions, policy):
        return CandidateWait(CandidateNeed.EVIDENCE, f"waits for evidence: {NIGHT_MORE}")
    if _is_stale(newest, policy, now):
        return CandidateWait(CandidateNeed.OTHER, f"its evaluation is too old to decide on: {ASKED_ANEW}")
    missing = [one for one in newest.findings if one.outcome is not GateOutcome.PASSED]
    if newest.outcome is DecisionOutcome.HOLD and [one.gate for one in missing] == [approval.GATE.name]:
        if missing[0].outcome is GateOutcome.UNDECIDED and not missing[0].figure:
            return CandidateWait(CandidateNeed.PERSON, YOURS)
        return CandidateWait(CandidateNeed.PERSON, f"waits for {missing[0].would_change}; {missing[0].reason}")
    if newest.outcome is DecisionOutcome.PROMOTE:
        return CandidateWait(CandidateNeed.OTHER, "is about to go into service")
    held = [one for one in missing if one.gate != approval.GATE.name]
    if not held:
        return CandidateWait(CandidateNeed.OTHER, f"held: {newest.reason}")
    text = f"held, and no signature changes that: {held[0].gate} wants {held[0].would_change}"
    more = f", and {counted(len(held) - 1, 'more gate')}" if len(held) > 1 else ""
    return CandidateWait(CandidateNeed.OTHER, f"{text}{more}: `assay model show candidate`")


def is_worth_asking_again(decisions: Sequence[Decision], policy: Policy) -> bool:
    """True if the next night evaluates this candidate again instead of training another. Decisions come newest
    first."""
    newest = decisions[0]
    if newest.outcome is not DecisionOutcome.HOLD or newest.policy != policy.digest:
        return False
    nights = len({one.evaluation for one in decisions if one.champion == newest.champion})
    return asks_again(newest.findings, nights, policy.rules_of(evidence.GATE))


def _is_stale(newest: Decision, policy: Policy, now: str) -> bool:
    """True if the decided evaluation was fresh when decided on and is too old now."""
    found = next((one for one in newest.findings if one.gate == freshness.GATE.name), None)
    if found is None or found.figure is None:
        return False
    return found.figure + hours_between(newest.made_at, now) > policy.rules_of(freshness.GATE).max_age_hours


def held_out_night(evaluation: Evaluation) -> HeldOutNight | None:
    """Returns an evaluation's held-out success over all tasksets, without a decision; None if both models answered no
    question."""
    changes = family_changes(evaluation)
    if not changes:
        return None
    whole = changes[0]
    return HeldOutNight(
        cycle=evaluation.cycle,
        at=evaluation.created,
        candidate=evaluation.candidate.weights,
        champion=evaluation.champion.weights,
        items=whole.items,
        before=whole.before,
        after=whole.after,
        change=whole.change,
        interval=whole.interval,
        decision=None,
    )


MOST_EVENTS = 20_000
PAGE = 1_000


def step_figures(ledger: SqliteLedger, cycle: Cycle) -> tuple[dict[str, float], ...]:
    """Returns the figures of each training step of a cycle, ascending. Each has `step` and, if the rollouts are known,
    `length` in tokens per rollout."""
    steps = {int(one["step"]): one for one in ledger.step_metrics(cycle.id)}
    told = event_figures(ledger, cycle)
    return tuple(_with_length({**told.get(step, {}), **figures}) for step, figures in sorted(steps.items()))


def newest_figures(ledger: SqliteLedger, cycle: Cycle) -> dict[str, float]:
    """Returns the figures of a cycle's newest trained step, or before the first one, of its newest recorded step.
    Cheap: only that step's event is read."""
    recorded = {int(one["step"]): one for one in ledger.step_metrics(cycle.id)}
    if not recorded:
        return {}
    event = ledger.newest_of_kind("step", MOST_EVENTS)
    told = event.figures if event is not None and event.created >= cycle.created else {}
    step = int(told.get("step", max(recorded)))
    return _with_length({**told, **recorded.get(step, {})})


def event_figures(ledger: SqliteLedger, cycle: Cycle) -> dict[int, dict[str, float]]:
    """Returns a cycle's training figures by step that are known only after the step and recorded only in events. A
    later event of the same step, from a restarted worker, counts."""
    found: dict[int, dict[str, float]] = {}
    after = last_event_before(ledger, cycle.created)
    for _ in range(MOST_EVENTS // PAGE):
        page = ledger.events(after=after, limit=PAGE)
        for number, event in page:
            if cycle.state.ended and event.created > cycle.updated:
                return found
            if event.kind == "step" and "step" in event.figures:
                found[int(event.figures["step"])] = dict(event.figures)
            elif event.kind == "watch" and "success" in event.figures:  # follows the event of its step
                found.setdefault(int(event.figures["step"]), {})["held_out_success"] = event.figures["success"]
            after = number
        if len(page) < PAGE:
            break
    return found


def last_event_before(ledger: SqliteLedger, moment: str) -> int:
    """Returns the sequence number of the last event before that time; events are numbered in order of time."""
    low, high = 0, ledger.newest_event()
    while low < high:
        middle = (low + high + 1) // 2
        page = ledger.events(after=middle - 1, limit=1)
        if page and page[0][0] <= high and page[0][1].created < moment:
            low = page[0][0]
        else:
            high = middle - 1
    return low


def _with_length(figures: dict[str, float]) -> dict[str, float]:
    rollouts = figures.get("rollouts", 0.0)
    return figures | ({"length": figures["tokens"] / rollouts} if rollouts and "tokens" in figures else {})
