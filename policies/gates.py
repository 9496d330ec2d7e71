"""The gates: each looks at evidence, gives its figure, and says what it saw and what would have changed it.

A gate is a pure function: it reads no clock, store or file. Three outcomes, because "not shown" is not "shown not to
be": undecided never lets anything through. No gate is passed for want of evidence.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime

from policies.decision import Finding, GateOutcome
from policies.evidence import Evidence, pairs
from policies.policy import ApprovalRules, ImprovementRules, IntegrityRules, NonRegressionRules
from policies.statistics import mcnemar_mid_p, non_inferiority_bounds, paired_difference

PASSED, FAILED, UNDECIDED = GateOutcome.PASSED, GateOutcome.FAILED, GateOutcome.UNDECIDED


def integrity(evidence: Evidence, rules: IntegrityRules) -> Finding:
    """Whether the evaluation can be believed. Failed: it contradicts itself. Undecided: too much of it was lost.

    The figure is the share of answers lost to broken infrastructure, in percent.
    """
    contradiction = _contradiction(evidence)
    answers = [passed for item in evidence.items for passed in (item.champion_passed, item.candidate_passed)]
    lost = 100 * sum(passed is None for passed in answers) / len(answers) if answers else 100.0
    reported = {"gate": "integrity", "figure": lost, "threshold": rules.max_infra_errors, "unit": "percent"}
    if contradiction:
        return Finding(
            **reported,
            outcome=FAILED,
            reason=f"the evaluation contradicts itself: {contradiction}",
            would_change="find out how this came about, then evaluate both models again on one sealed set",
        )
    if not answers:
        return Finding(
            **reported,
            outcome=UNDECIDED,
            reason="the evaluation holds no answers",
            would_change="an evaluation with answers of both models",
        )
    if lost > rules.max_infra_errors:
        return Finding(
            **reported,
            outcome=UNDECIDED,
            reason=f"{lost:.1f} % of the answers were lost to broken infrastructure, "
            f"more than the {rules.max_infra_errors:g} % allowed",
            would_change="repair what broke and evaluate again",
        )
    return Finding(
        **reported,
        outcome=PASSED,
        reason=f"both models were asked the same {len(evidence.items)} sealed questions; {lost:.1f} % was lost",
    )


def _contradiction(evidence: Evidence) -> str:
    """What cannot be in an honest evaluation; empty when nothing was found."""
    tasks = [item.task for item in evidence.items]
    if evidence.candidate_asked != evidence.sealed_set:
        return "the candidate was not asked exactly the sealed questions"
    if evidence.champion_asked != evidence.sealed_set:
        return "the champion was not asked exactly the sealed questions"
    if len(set(tasks)) != len(tasks):
        return "a question counts more than once"
    if evidence.candidate_temperature != evidence.champion_temperature:
        return "the models were sampled at different temperatures"
    return ""


def freshness(evidence: Evidence, rules: IntegrityRules, *, now: str) -> Finding:
    """Whether the evaluation is young enough and about the champion in service. The figure is its age in hours.

    Never failed: old evidence says nothing against a candidate. `now` is UTC in ISO 8601; raises ValueError if not.
    """
    age = (_moment(now) - _moment(evidence.evaluated_at)).total_seconds() / 3600
    reported = {"gate": "freshness", "figure": age, "threshold": rules.max_age_hours, "unit": "hours"}
    if evidence.in_service is not None and evidence.in_service != evidence.champion:
        return Finding(
            **reported,
            outcome=UNDECIDED,
            reason="another champion is in service by now",
            would_change="evaluate the candidate against the champion that is in service",
        )
    if age < 0:
        return Finding(
            **reported,
            outcome=UNDECIDED,
            reason="the evaluation claims to be made in the future",
            would_change="set the clock right and evaluate again",
        )
    if age > rules.max_age_hours:
        return Finding(
            **reported,
            outcome=UNDECIDED,
            reason=f"the evaluation is {age:.0f} hours old, more than the {rules.max_age_hours:g} allowed",
            would_change="evaluate again",
        )
    return Finding(**reported, outcome=PASSED, reason=f"evaluated {age:.1f} hours ago against the champion in service")


def improvement(evidence: Evidence, rules: ImprovementRules) -> Finding:
    """Whether the candidate is better: the interval's lower end and McNemar's test must both say so.

    Failed when the interval's upper end is below the gain asked for. The figure is the gain in points.
    """
    seen = pairs(evidence.items)
    if seen.items == 0:
        return Finding(
            gate="improvement",
            outcome=UNDECIDED,
            figure=None,
            threshold=rules.min_gain,
            reason="no question was answered by both models",
            would_change=f"at least {rules.min_items} questions answered by both",
        )
    low, high = (100 * end for end in paired_difference(seen.gained, seen.lost, seen.items, alpha=rules.alpha))
    p = mcnemar_mid_p(seen.gained, seen.lost)
    reported = {"gate": "improvement", "figure": seen.gain, "low": low, "high": high, "threshold": rules.min_gain}
    told = (
        f"{seen.gain:+.1f} points on {seen.items} questions ({seen.gained} gained, {seen.lost} lost), "
        f"{100 * (1 - rules.alpha):g} % interval {low:+.1f} to {high:+.1f}, p = {p:.2g}"
    )
    if evidence.candidate == evidence.champion:
        return Finding(
            **reported,
            outcome=FAILED,
            reason="the candidate is the champion itself",
            would_change="a candidate with weights of its own",
        )
    if seen.items < rules.min_items:
        return Finding(
            **reported,
            outcome=UNDECIDED,
            reason=f"{told}; {rules.min_items} questions are the least that may decide",
            would_change=f"at least {rules.min_items} questions answered by both",
        )
    if low >= rules.min_gain and p <= rules.alpha:
        return Finding(**reported, outcome=PASSED, reason=told)
    if high < rules.min_gain:
        return Finding(
            **reported,
            outcome=FAILED,
            reason=f"{told}; the gain asked for is {rules.min_gain:g}",
            would_change=f"a candidate that gains more than {rules.min_gain:g} points",
        )
    return Finding(
        **reported,
        outcome=UNDECIDED,
        reason=f"{told}; a gain of {rules.min_gain:g} is neither shown nor excluded",
        would_change=_more_items(seen.items, seen.gain, seen.gain - low, rules.min_gain),
    )


def non_regression(evidence: Evidence, rules: NonRegressionRules) -> tuple[Finding, ...]:
    """One finding for each family: whether it is not worse by more than the margin. The figure is its gain in points.

    Every family must pass, so no correction for many families is needed to let one through (intersection-union test,
    Berger 1982). Failed when even the upper bound is below minus the margin.
    """
    families = sorted({item.family for item in evidence.items})
    return tuple(_family(evidence, rules, family) for family in families)


def _family(evidence: Evidence, rules: NonRegressionRules, family: str) -> Finding:
    seen = pairs(evidence.items, family)
    gate = f"non_regression/{family}"
    if seen.items < rules.min_items:
        return Finding(
            gate=gate,
            outcome=UNDECIDED,
            figure=seen.gain if seen.items else None,
            threshold=-rules.margin,
            reason=f"{family}: both answered {seen.items} questions; {rules.min_items} are the least that may decide",
            would_change=f"at least {rules.min_items} questions of {family}",
        )
    low, high = (100 * end for end in non_inferiority_bounds(seen.gained, seen.lost, seen.items, alpha=rules.alpha))
    reported = {"gate": gate, "figure": seen.gain, "low": low, "high": high, "threshold": -rules.margin}
    told = f"{family}: {seen.gain:+.1f} points on {seen.items} questions, at least {low:+.1f}"
    if low >= -rules.margin:
        return Finding(**reported, outcome=PASSED, reason=told)
    if high < -rules.margin:
        return Finding(
            **reported,
            outcome=FAILED,
            reason=f"{family}: {seen.gain:+.1f} points on {seen.items} questions, at most {high:+.1f}; "
            f"{-rules.margin:+g} is the worst allowed",
            would_change=f"a candidate that keeps what the champion can do in {family}",
        )
    return Finding(
        **reported,
        outcome=UNDECIDED,
        reason=f"{told}; {-rules.margin:+g} is the worst allowed",
        would_change=_more_items(seen.items, seen.gain, seen.gain - low, -rules.margin, f" of {family}"),
    )


def approval(evidence: Evidence, rules: ApprovalRules) -> Finding:
    """Whether enough people approved of the decision that they were shown. A standing rejection fails the gate.

    A person's last word counts, and only words on this evaluation under this policy. The figure is the number of
    people who approve.
    """
    last = {word.person: word.verdict for word in evidence.words if word.decision in evidence.shown}
    approving = sorted(person for person, verdict in last.items() if verdict == "approve")
    rejecting = sorted(person for person, verdict in last.items() if verdict == "reject")
    reported = {
        "gate": "approval",
        "figure": float(len(approving)),
        "threshold": float(rules.people if rules.required else 0),
        "unit": "people",
    }
    if rejecting:
        return Finding(
            **reported,
            outcome=FAILED,
            reason=f"rejected by {', '.join(rejecting)}",
            would_change="a new word of the person who rejected",
        )
    if not rules.required:
        return Finding(**reported, outcome=PASSED, reason="the policy asks for no person's approval")
    if len(approving) < rules.people:
        missing = rules.people - len(approving)
        return Finding(
            **reported,
            outcome=UNDECIDED,
            reason=f"{len(approving)} of {rules.people} people approved",
            would_change=f"the approval of {missing} more {'person' if missing == 1 else 'people'}",
        )
    return Finding(**reported, outcome=PASSED, reason=f"approved by {', '.join(approving)}")


def _more_items(items: int, gain: float, reach: float, threshold: float, of: str = "") -> str:
    """About how many items would decide were the gain to stay; the interval shrinks with the root of their number.

    `gain`, `reach` (from the gain to the interval's lower end) and `threshold` in points.
    """
    distance = abs(gain - threshold)
    if distance < 0.05:
        return f"another candidate: this gain is so close to {threshold:+g} points that no number of questions decides"
    needed = max(items + 1, math.ceil(items * (reach / distance) ** 2))
    return f"about {needed} questions{of} would decide at this gain"


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
