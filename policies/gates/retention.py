"""Gate `retention`: on each taskset the candidate is not worse than the taskset's anchor by more than a margin.

The anchor is the best champion confirmed there. It stays when later champions lose a little, so that many promotions
together cannot lose more than one may; a champion takes its place only when shown to be better there. The candidates of
a quarter that were shown to be better share alpha (`policies.statistics.sequential`).
"""

from __future__ import annotations

from policies.contract.decision import GateFinding
from policies.contract.evidence import Evidence, by_family
from policies.gates import evidence as evidence_gate
from policies.gates.gate import EVALUATE_AGAIN, Gate, GateContext, GateFigure
from policies.gates.tasksets import Nights, NonRegressionRules, TasksetJudge
from policies.statistics.sequential import level_of


def judge(evidence: Evidence, rules: NonRegressionRules, context: GateContext) -> tuple[GateFinding, ...]:
    """Returns one finding for each taskset that was asked or has an anchor. One that tonight cannot ask is named; one
    that merely was not asked is undecided. The figure is the gain over the anchor in points, over all nights."""
    if evidence.budget is None:
        missing = GateFigure(GATE.name, None, -rules.margin).not_on_record("the quarter's number of candidates")
        return (missing,)
    asked: dict[str, Nights] = {**by_family([*(night.items for night in evidence.earlier), evidence.items])}
    reference: dict[str, str] = {}
    found: list[GateFinding] = []
    for one in evidence.retained:
        figure = GateFigure(f"{GATE.name}/{one.family}", None, -rules.margin)
        answers = by_family(one.nights).get(one.family)
        asked.pop(one.family, None)
        anchor = f"the anchor {one.anchor[:12]}"
        if one.anchor == evidence.candidate:
            found.append(figure.passed(f"{one.family}: the candidate is the anchor"))
        elif answers is not None:
            asked[one.family], reference[one.family] = answers, anchor
        elif one.family in evidence.not_askable:
            reason = evidence.not_askable[one.family]
            found.append(figure.passed(f"left out: {one.family} cannot be asked: {reason}"))
        else:
            found.append(figure.undecided(f"{one.family}: {anchor} was not asked beside the candidate", EVALUATE_AGAIN))
    level = level_of(rules.alpha, evidence.budget.better + 1)
    nights = context.gates[evidence_gate.GATE].nights
    tasksets = TasksetJudge(GATE.name, rules, level, evidence.rows, nights, reference)
    return (*tasksets.findings(dict(sorted(asked.items()))), *found)


GATE = Gate("retention", NonRegressionRules, judge)
