"""The gates on the evaluation itself, on each family and on people's words. `gates_gain` and `gates_conduct` have the
others. Each looks at evidence, gives its figure, and says what it saw and what would have changed it.

A gate is a pure function: it reads no clock, store or file. Three outcomes, because "not shown" is not "shown not to
be": undecided never lets anything through. No gate is passed for want of evidence.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime

from policies.decision import Finding, GateOutcome
from policies.evidence import Evidence, Pairs, all_nights, pairs
from policies.rules import ApprovalRules, IntegrityRules, NonRegressionRules
from policies.statistics import non_inferiority_bounds

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
    """Whether the evaluation is young enough, about the champion in service, and under this policy. The figure is its
    age in hours.

    Never failed: old evidence says nothing against a candidate. `now` is UTC in ISO 8601; raises ValueError if not.
    """
    age = hours_between(evidence.evaluated_at, now)
    reported = {"gate": "freshness", "figure": age, "threshold": rules.max_age_hours, "unit": "hours"}
    if evidence.in_service is not None and evidence.in_service != evidence.champion:
        return Finding(
            **reported,
            outcome=UNDECIDED,
            reason="another champion is in service by now",
            would_change="evaluate the candidate against the champion that is in service",
        )
    if evidence.other_policies:
        return Finding(
            **reported,
            outcome=UNDECIDED,
            reason=f"the candidate was evaluated under another policy ({evidence.other_policies[0][:12]})",
            would_change="a candidate evaluated under this policy only: an edit never applies to an earlier one",
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


def non_regression(evidence: Evidence, rules: NonRegressionRules) -> tuple[Finding, ...]:
    """One finding for each family: whether it is not worse by more than the margin. The figure is its gain in points,
    over all nights on which the two met.

    Every family must pass, so no correction for many families is needed to let one through (intersection-union test,
    Berger 1982). Failed when even the upper bound is below minus the margin.
    """
    items = all_nights(evidence)
    families = sorted({item.family for item in evidence.items})
    return tuple(_family(pairs(items, family), rules, family) for family in families)


def family_outcome(seen: Pairs, rules: NonRegressionRules) -> GateOutcome:
    """What the counts of one family say."""
    if seen.items < rules.min_items:
        return UNDECIDED
    low, high = non_inferiority_bounds(seen.gained, seen.lost, seen.items, alpha=rules.alpha)
    if 100 * low >= -rules.margin:
        return PASSED
    return FAILED if 100 * high < -rules.margin else UNDECIDED


def _family(seen: Pairs, rules: NonRegressionRules, family: str) -> Finding:
    outcome = family_outcome(seen, rules)
    reported = {"gate": f"non_regression/{family}", "outcome": outcome, "threshold": -rules.margin}
    if seen.items < rules.min_items:
        return Finding(
            **reported,
            figure=seen.gain if seen.items else None,
            reason=f"{family}: both answered {seen.items} questions; {rules.min_items} are the least that may decide",
            would_change=f"at least {rules.min_items} questions of {family}",
        )
    low, high = (100 * end for end in non_inferiority_bounds(seen.gained, seen.lost, seen.items, alpha=rules.alpha))
    reported = {**reported, "figure": seen.gain, "low": low, "high": high}
    told = f"{family}: {seen.gain:+.1f} points on {seen.items} questions, at least {low:+.1f}"
    if outcome is PASSED:
        return Finding(**reported, reason=told)
    if outcome is FAILED:
        return Finding(
            **reported,
            reason=f"{family}: {seen.gain:+.1f} points on {seen.items} questions, at most {high:+.1f}; "
            f"{-rules.margin:+g} is the worst allowed",
            would_change=f"a candidate that keeps what the champion can do in {family}",
        )
    return Finding(
        **reported,
        reason=f"{told}; {-rules.margin:+g} is the worst allowed",
        would_change=more_items(seen.items, seen.gain, seen.gain - low, -rules.margin, f" of {family}"),
    )


def approval(evidence: Evidence, rules: ApprovalRules, *, now: str) -> Finding:
    """Whether enough people approved of the decision that they were shown. A standing rejection fails the gate.

    A person's last word counts, and only words on this evaluation under this policy; an approval that is older than
    the policy allows does not. The figure is the number of people who approve. `now` is UTC in ISO 8601.
    """
    last = {word.person: word for word in evidence.words if word.decision in evidence.shown}
    rejecting = sorted(person for person, word in last.items() if word.verdict == "reject")
    willing = sorted(person for person, word in last.items() if word.verdict == "approve")
    approving = [person for person in willing if hours_between(last[person].at, now) <= rules.max_age_hours]
    expired = [person for person in willing if person not in approving]
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
        late = f"; the word of {', '.join(expired)} is more than {rules.max_age_hours:g} hours old" if expired else ""
        return Finding(
            **reported,
            outcome=UNDECIDED,
            reason=f"{len(approving)} of {rules.people} people approved{late}",
            would_change=f"the approval of {missing} more {'person' if missing == 1 else 'people'}",
        )
    return Finding(**reported, outcome=PASSED, reason=f"approved by {', '.join(approving)}")


def more_items(items: int, gain: float, reach: float, threshold: float, of: str = "") -> str:
    """About how many items would decide were the gain to stay; the interval shrinks with the root of their number.

    `gain`, `reach` (from the gain to the interval's lower end) and `threshold` in points.
    """
    distance = abs(gain - threshold)
    if distance < 0.05:
        return f"another candidate: this gain is so close to {threshold:+g} points that no number of questions decides"
    needed = max(items + 1, math.ceil(items * (reach / distance) ** 2))
    return f"about {needed} questions{of} would decide at this gain"


def hours_between(earlier: str, later: str) -> float:
    """Of two times in ISO 8601; negative when `later` is the earlier one. Raises ValueError if one is no time."""
    return (_moment(later) - _moment(earlier)).total_seconds() / 3600


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
