"""Pictures of a night report and of the promotion history, by file name. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from appliance.client.nights import PromotionView
from appliance.reporting.drawing import BLUE, ORANGE, Bar, Picture, Series, bars, curves
from appliance.reporting.night_report import NightReport

SHORT = {"tool errors in correct rollouts": "tool errors"}
"""Short names for curves whose full name does not fit; the title has it."""


def report_pictures(report: NightReport) -> dict[str, Picture]:
    """Draws a night report's pictures, by file name. They show curves, time spent, and change by taskset, as far as
    there are figures."""
    found: dict[str, Picture] = {}

    def lines(name: str, title: str, keys: Sequence[str], **more: float) -> None:
        series = [Series(SHORT.get(key, key), report.curves[key]) for key in keys if report.curves.get(key)]
        if series:
            found[name] = curves(title, series, **more)  # type: ignore[arg-type]

    lines(
        "success",
        "Success, and tool errors in correct rollouts",
        ("success", "tool errors in correct rollouts"),
        top=1.0,
    )
    lines("entropy", "Entropy, nats a token", ("entropy",))
    lines("lengths", "Tokens of a rollout", ("tokens of a rollout",))
    if report.seconds:
        rows = [Bar(name, seconds / 60, f"{seconds / 60:.1f}") for name, seconds in report.seconds.items()]
        found["time"] = bars("Where the time went, in minutes", rows)
    if report.families:
        found["families"] = bars(
            "Change by taskset, in points, with 95 % intervals",
            [
                Bar(one.name, one.change, f"{one.change:+.1f}", *one.interval, colour=_colour(one.change))
                for one in report.families
            ],
        )
    return found


def history_pictures(promotions: Sequence[PromotionView]) -> dict[str, Picture]:
    """Draws the gains and losses of each promotion as a picture, oldest first. Gains go to the right, losses to the
    left."""
    found = {}
    for number, one in enumerate(sorted(promotions, key=lambda made: made.at), 1):
        rows = [
            row
            for change in one.families
            for row in (
                Bar(change.family, 100 * change.gained / change.items, f"+{change.gained} of {change.items}"),
                Bar("", -100 * change.lost / change.items, f"-{change.lost}", colour=ORANGE),
            )
            if change.items
        ]
        title = f"{number}. {one.candidate[:12]}, {one.at[:10]}: gained and forgot, in points"
        found[f"{number:03d}-{one.candidate[:12]}"] = bars(title, rows)
    return found


def _colour(change: float) -> str:
    return BLUE if change >= 0 else ORANGE
