"""A gate's figure and threshold in words. Pure."""

from __future__ import annotations

from policies.contract.decision import GateFinding

AT_LEAST = frozenset({"improvement", "evidence", "non_regression", "retention", "refusal", "approval"})
"""Gates whose threshold is a minimum; for the others it is a maximum."""
COUNTS = {"selftest": "wrong", "contamination": "seen before", "egress": "open"}
"""Gates whose figure counts violations, and the word for them."""
MOST_ODDS = 1_000_000
"""Odds beyond which exact digits are not shown."""
BOUND = "hacks"
"""The gate whose figure is an upper bound of a share."""


def figure_in_words(finding: GateFinding) -> str:
    """Formats a gate's figure: `+31.2 points [+25.0, +37.1]`, `at most 2.0 %`, `5 minutes`, `none wrong`; empty without
    one."""
    figure = finding.figure
    if figure is None:
        return ""
    if counted := COUNTS.get(_gate(finding)):
        return f"{figure:.0f} {counted}" if figure else f"none {counted}"
    if finding.unit == "percent":
        return f"at most {figure:.1f} %" if _gate(finding) == BOUND else f"{figure:.1f} %"
    if finding.unit == "points":
        known = finding.low is not None and finding.high is not None
        return f"{figure:+.1f} points" + (f" [{finding.low:+.1f}, {finding.high:+.1f}]" if known else "")
    return _amount(figure, finding.unit)


def change_in_words(change: float, interval: tuple[float, float], items: int, *, more_may_come: bool) -> str:
    """Formats a change of success with its interval, in points: `better: +17.2 points [+11.5, +22.9] on 511 questions`;
    without a clear sign, advises to wait if more questions may come."""
    low, high = interval
    sign = "better" if low > 0 else "worse" if high < 0 else "not better"
    said = f"{sign}: {change:+.1f} points [{low:+.1f}, {high:+.1f}] on {items} question{'' if items == 1 else 's'}"
    return f"{said}; wait" if sign == "not better" and more_may_come else said


def needed_in_words(finding: GateFinding) -> str:
    """Formats the gate's threshold; empty if it has none of its own."""
    if finding.threshold is None or _gate(finding) in COUNTS:
        return ""
    amount = _amount(finding.threshold, "%" if finding.unit == "percent" else finding.unit)
    return f"needs at least {amount}" if _gate(finding) in AT_LEAST else f"allowed: {amount}"


def _gate(finding: GateFinding) -> str:
    return finding.gate.split("/")[0]


def _amount(figure: float, unit: str) -> str:
    if unit == "hours":
        minutes = round(60 * figure)
        if figure >= 1:
            return f"{figure:.1f} hours" if figure < 10 else f"{figure:.0f} hours"
        return f"{minutes} minutes" if minutes > 1 else "a minute at most"
    if unit == "people":
        return f"{figure:.0f} {'person' if figure == 1 else 'people'}"
    if unit == "to 1" and figure >= MOST_ODDS:
        return f"over {MOST_ODDS:,} to 1"
    if unit == "points" and abs(figure) == 1:
        return f"{figure:.0f} point"
    return f"{figure:.4g} {unit}"
