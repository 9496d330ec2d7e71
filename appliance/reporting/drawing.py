"""Charts as lists of shapes, rendered as SVG, which needs no further package.

Invariants: every text is escaped. No chart relies on colour alone (lines end with a mark and a name, bars have their
figure); the two colours are from Okabe and Ito (2008), distinguishable with any colour vision.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

from appliance.client.nights import HeldOutNight, PromotionView
from appliance.reporting.night_report import ALPHA, NightReport
from appliance.text.printable import printable
from policies.statistics import wilson

WIDTH, HEIGHT, MARGIN, LEFT, RIGHT, LETTER = 640, 240, 36, 60, 120, 12
BLUE, ORANGE, INK, QUIET, PAPER = "#0072b2", "#d55e00", "#1c2026", "#8a949e", "#ffffff"
LONGEST = 40
"""Maximum characters of a name."""


@dataclass(frozen=True)
class Line:
    points: tuple[tuple[float, float], ...]
    colour: str = QUIET
    width: int = 1


@dataclass(frozen=True)
class Box:
    x: float
    y: float
    width: float
    height: float
    colour: str


@dataclass(frozen=True)
class Label:
    x: float
    y: float
    text: str
    colour: str = INK
    at: str = "start"
    """Part of the text at `x`: `start`, `middle` or `end`."""


Shape = Line | Box | Label


@dataclass
class Picture:
    """Picture made of shapes on a sheet; sizes in pixels."""

    title: str
    width: int = WIDTH
    height: int = HEIGHT
    shapes: list[Shape] = field(default_factory=list)

    def svg(self) -> str:
        """Returns the picture as one SVG element for a page."""
        drawn = "".join(_svg(shape) for shape in self.shapes)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" role="img" '
            f'width="100%" style="max-width:{self.width}px;background:{PAPER}"><title>{_text(self.title)}</title>'
            f"{drawn}</svg>"
        )


def _svg(shape: Shape) -> str:
    if isinstance(shape, Line):
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in shape.points)
        return f'<polyline points="{points}" fill="none" stroke="{shape.colour}" stroke-width="{shape.width}"/>'
    if isinstance(shape, Box):
        low = min(shape.x, shape.x + shape.width)
        place = f'x="{low:.1f}" y="{shape.y:.1f}" width="{abs(shape.width):.1f}" height="{shape.height:.1f}"'
        return f'<rect {place} fill="{shape.colour}"/>'
    place = f'x="{shape.x:.1f}" y="{shape.y:.1f}" fill="{shape.colour}" text-anchor="{shape.at}"'
    return f'<text {place} font-family="sans-serif" font-size="{LETTER}">{_text(shape.text)}</text>'


def _text(text: str) -> str:
    return escape(printable(text, limit=LONGEST * 2))


@dataclass(frozen=True)
class Series:
    name: str
    points: tuple[tuple[float, float], ...]
    """Points (x, y); non-finite ones are not drawn."""
    bounds: tuple[tuple[float, float, float], ...] = ()
    """Intervals (x, low, high)."""


def curves(
    title: str,
    series: Sequence[Series],
    *,
    unit: str = "",
    top: float | None = None,
    ends: tuple[str, str] | None = None,
) -> Picture:
    """Draws a chart of lines on shared axes, from 0 or below to `top`. The first is blue, the second orange. `ends` are
    the texts at the ends of the horizontal axis, instead of its figures."""
    picture = Picture(title)
    points = [point for one in series for point in one.points if all(map(math.isfinite, point))]
    picture.shapes.append(Label(MARGIN / 2, 18, f"{title}{f' ({unit})' if unit else ''}"))
    if not points:
        picture.shapes.append(Label(WIDTH / 2, HEIGHT / 2, "no figures", QUIET, "middle"))
        return picture
    left, right = min(x for x, _ in points), max(x for x, _ in points)
    low = min(0.0, *(y for _, y in points))
    high = top if top is not None else max((y for _, y in points), default=1.0) * 1.05
    high = high if high > low else low + 1.0

    def at(x: float, y: float) -> tuple[float, float]:
        across = (x - left) / (right - left) if right > left else 0.5
        up = (min(max(y, low), high) - low) / (high - low)
        return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - MARGIN - up * (HEIGHT - 2 * MARGIN)

    for share in (0.0, 0.5, 1.0):
        value = low + share * (high - low)
        y = at(left, value)[1]
        picture.shapes.append(Line(((LEFT, y), (WIDTH - RIGHT, y)), "#d9dde2"))
        picture.shapes.append(Label(LEFT - 6, y + 4, shown(value), QUIET, "end"))
    for edge, text in zip((LEFT, WIDTH - RIGHT), ends or (shown(left), shown(right)), strict=True):
        picture.shapes.append(Label(edge, HEIGHT - 12, text, QUIET, "middle"))
    for number, one in enumerate(series):
        places = tuple(at(x, y) for x, y in one.points if math.isfinite(x) and math.isfinite(y))
        if not places:
            continue
        colour = (BLUE, ORANGE, INK)[number % 3]
        if len(places) > 1:
            picture.shapes.append(Line(places, colour, 2))
        picture.shapes += [Line((at(x, least), at(x, most)), colour) for x, least, most in one.bounds]
        x, y = places[-1]
        picture.shapes.append(Box(x - 3, y - 3, 6, 6, colour))
        picture.shapes.append(Label(x + 8, y + 4 + 13 * number, one.name[:LONGEST], colour))
    return picture


@dataclass(frozen=True)
class Bar:
    name: str
    value: float
    text: str
    """Figure written beside the bar."""
    low: float | None = None
    high: float | None = None
    """Upper end of the interval; `low` is the lower one."""
    colour: str = BLUE


def bars(title: str, rows: Sequence[Bar]) -> Picture:
    """Draws a chart of bars, each with interval and figure. They go from 0 to the right, or to the left if negative."""
    step, top, names = 24, 34, 170
    picture = Picture(title, height=max(80, top + step * len(rows) + 16))
    picture.shapes.append(Label(MARGIN / 2, 18, title))
    ends = [end for row in rows for end in (0.0, row.value, row.low or 0.0, row.high or 0.0) if math.isfinite(end)]
    low, high = min(ends, default=0.0), max(ends, default=1.0)
    scale = (WIDTH - names - RIGHT) / ((high - low) or 1.0)
    zero = names - low * scale
    for number, row in enumerate(rows):
        y = top + step * number
        picture.shapes.append(Label(names - 8, y + 13, printable(row.name, limit=24), INK, "end"))
        picture.shapes.append(Box(zero, y + 3, row.value * scale, 12, row.colour))
        if row.low is not None and row.high is not None:
            ends_at = (zero + row.low * scale, y + 9), (zero + row.high * scale, y + 9)
            picture.shapes.append(Line(ends_at, INK, 1))
        edge = zero + max(row.value, row.high or 0.0, 0.0) * scale
        picture.shapes.append(Label(edge + 6, y + 13, row.text, INK))
    picture.shapes.append(Line(((zero, top - 4), (zero, top + step * len(rows))), QUIET))
    if not rows:
        picture.shapes.append(Label(WIDTH / 2, 50, "nothing to show", QUIET, "middle"))
    return picture


def shown(value: float) -> str:
    """Formats a figure with at most three significant digits."""
    return f"{value:.3g}"


def night_picture(nights: Sequence[HeldOutNight]) -> Picture:
    """Draws the candidate's held-out success with its intervals, and the champion's, by night."""
    places = [(float(place), one) for place, one in enumerate(nights, 1)]
    bounds = tuple((place, *wilson(one.after, one.items, alpha=ALPHA)) for place, one in places)
    after = Series("candidate", tuple((place, one.after / one.items) for place, one in places), bounds)
    before = Series("champion", tuple((place, one.before / one.items) for place, one in places))
    title = "Success on held-out questions by night, with 95 % intervals"
    return curves(title, (after, before), top=1.0, ends=(nights[0].at[:10], nights[-1].at[:10]))


SHORT = {"tool errors in correct rollouts": "tool errors"}
"""Short names for curves whose full name does not fit; the title has it."""


def report_pictures(report: NightReport) -> dict[str, Picture]:
    """Draws a night report's pictures, by file name. They show curves, time spent, and change by taskset, as far as
    there are figures."""
    found: dict[str, Picture] = {"nights": night_picture(report.nights)} if report.nights else {}

    def lines(name: str, title: str, keys: Sequence[str], **more: float) -> None:
        series = [Series(SHORT.get(key, key), report.curves[key]) for key in keys if report.curves.get(key)]
        if series:
            found[name] = curves(title, series, **more)  # type: ignore[arg-type]

    lines(
        "success",
        "Success in training and on held-out tasks, and tool errors in correct rollouts",
        ("success", "held-out success", "tool errors in correct rollouts"),
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
