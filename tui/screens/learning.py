"""The screen Learning: a night's curves step by step, success by taskset with intervals, and the time spent."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Grid, VerticalScroll
from textual_plotext import PlotextPlot

from appliance.client import Cycle, CycleCurves, PassCount, Status, rates_of
from tui.widgets.panels import PlainText
from tui.widgets.progress import duration
from tui.widgets.text import CARE, DIM, FAINT, GOOD, STRONG, bar, percent, plain
from tui.widgets.view import Answers, ApiQuestion, Pane

CYCLES = 50
COUNTING_SECONDS = 15.0
"""Interval between counts of a running night, in seconds; counting a large night takes seconds."""
PLOTS = (
    ("success", "success of attempts, dots: 95 % interval; ● held-out tasks", 1.0),
    ("tool_errors_in_correct", "tool errors in correct rollouts, share of calls", None),
    ("learning_entropy", "entropy, nats a token", None),
    ("length", "length, tokens a rollout", None),
)
AXES = 3
"""Lines of a plot taken by its axes and tick labels."""
PARTS = (5, 4, 3, 2)
"""Numbers of axis divisions to try, in this order, until one fits the rows."""
LEAST = 1e-9
"""Lower bound of an axis's upper end; smaller curves count as zero."""
ROUND = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
SPENT = {
    "watch_seconds": "held-out tasks",
    "checkpoint_seconds": "checkpoints",
    "push_seconds": "pushes",
    "sampling_seconds": "sampling",
    "verifying_seconds": "verifying",
    "learning_seconds": "learning",
    "ledger_seconds": "ledger",
}


class LearningPane(Pane):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left_square_bracket,p", "other(1)", "previous night", key_display="p"),
        Binding("right_square_bracket,n", "other(-1)", "next night", key_display="n"),
    ]
    KEYS = (("p, n", "previous and next night"), ("up, down", "scroll the page"))

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._cycles: Sequence[Cycle] = ()
        self._wanted = ""
        self._drawn: dict[str, object] = {}
        self._there = [False, False]

    def compose(self) -> ComposeResult:
        yield PlainText(classes="pane-line")
        with VerticalScroll(id="learning-page"):
            with Grid(id="plots"):
                for name, title, _ in PLOTS:
                    plot = PlotextPlot(id=f"plot-{name}")
                    plot.border_title = title
                    yield plot
            yield PlainText(id="tasksets")
            yield PlainText(id="spent")

    def questions(self) -> Mapping[str, ApiQuestion]:
        asked = {"cycles": ApiQuestion(("cycles", CYCLES), lambda client, _: client.cycles(CYCLES))}
        cycle = self._cycle
        if cycle is not None:
            name, ended = cycle.id, cycle.state.ended
            asked["curves"] = ApiQuestion(
                ("curves", name, ended), lambda client, _: client.curves(name), fixed=ended, seconds=3.0
            )
            asked["passes"] = ApiQuestion(
                ("passes", name, ended),
                lambda client, _: client.pass_counts(name),
                fixed=ended,
                seconds=COUNTING_SECONDS,
            )
        return asked

    @property
    def _cycle(self) -> Cycle | None:
        """Training cycle that the person chose, or the newest one."""
        trained = [one for one in self._cycles if one.kind != "evaluation"]
        return next((one for one in trained if one.id == self._wanted), next(iter(trained), None))

    def show(self, status: Status, answers: Answers) -> None:
        self._cycles = answers.get("cycles", self._cycles)
        cycle = self._cycle
        self._show_keys()
        line = self.query_one(".pane-line", PlainText)
        if cycle is None:
            line.show(
                plain(
                    "No night yet. Its curves appear here while it trains: `assay cycle start`."
                    if "cycles" in answers
                    else "reading …",
                    DIM,
                )
            )
            return
        text = plain(cycle.id, STRONG, limit=50)
        text.append_text(
            plain(f"  {cycle.kind}, {cycle.state.value}, began {cycle.created[:16].replace('T', ' ')} UTC", DIM)
        )
        line.show(text)
        curves: CycleCurves | None = answers.get("curves")
        self._draw(curves)
        self.query_one("#tasksets", PlainText).show(tasksets_text(answers.get("passes")))
        self.query_one("#spent", PlainText).show(spent_text(cycle, curves))

    def _draw(self, curves: CycleCurves | None) -> None:
        for name, _, high in PLOTS:
            points = points_of(curves, name)
            plot = self.query_one(f"#plot-{name}", PlotextPlot)
            drawn = (points, plot.size)
            if self._drawn.get(name) == drawn:
                continue
            self._drawn[name] = drawn
            plot.plt.clear_data()
            plot.border_subtitle = subtitle_of(points)
            if points:
                steps, values = zip(*points, strict=True)
                for bound in bounds_of(curves) if name == "success" else ():
                    plot.plt.scatter(*zip(*bound, strict=True), marker="·", color="orange")
                if name == "success" and (held_out := points_of(curves, "held_out_success")):
                    plot.plt.scatter(*zip(*held_out, strict=True), marker="●", color="green+")
                plot.plt.plot(steps, values, marker="braille", color="cyan+")
                heights = heights_of(plot.size.height - AXES, max(values), high)
                plot.plt.ylim(0, max(heights))
                plot.plt.yticks(heights, labels_of(heights))
                plot.plt.xticks(ticks := ticks_of(steps), [f"{tick:.0f}" for tick in ticks])
            plot.refresh()

    def _other(self, step: int) -> Cycle | None:
        """Returns the training cycle `step` places before the shown one (negative: after), or None."""
        trained = [one for one in self._cycles if one.kind != "evaluation"]
        place = trained.index(self._cycle) + step if self._cycle is not None else -1
        return trained[place] if 0 <= place < len(trained) else None

    def _show_keys(self) -> None:
        there = [self._other(step) is not None for step in (1, -1)]
        if there != self._there:
            self._there = there
            self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enables the keys for the previous and next night only if there is one."""
        if action == "other":
            return self._there[0 if parameters == (1,) else 1]
        return super().check_action(action, parameters)

    def action_other(self, step: int) -> None:
        other = self._other(step)
        if other is not None:
            self._wanted = other.id
            self.host.ask()


def subtitle_of(points: Sequence[tuple[float, float]]) -> str:
    """Returns a note that a curve has no point, or a single invisible one; empty otherwise."""
    if not points:
        return "no point so far"
    return f"one point so far: {points[0][1]:.3g}" if len(points) == 1 else ""


def ticks_of(steps: Sequence[float]) -> list[float]:
    """Returns at most six equidistant training steps as ticks of an axis, beginning with the first."""
    first, last = int(steps[0]), int(steps[-1])
    return [float(step) for step in range(first, last + 1, max(1, -(-(last - first) // 5)))]


def heights_of(rows: int, most: float, high: float | None) -> list[float]:
    """Returns the ticks of an axis from 0, drawn in `rows` rows, each tick exactly on a row. The last tick is `high`,
    or a round figure of at least `most`."""
    parts = next((count for count in PARTS if rows > 1 and (rows - 1) % count == 0), 1)
    if high is not None:
        return [high * place / parts for place in range(parts + 1)]
    step = (most if most > LEAST else 1.0) / parts
    power = 10.0 ** math.floor(math.log10(step))
    step = power * next(one for one in ROUND if one * power >= step * (1 - 1e-9))
    return [step * place for place in range(parts + 1)]


def labels_of(heights: Sequence[float]) -> list[str]:
    """Formats an axis's ticks, all with as many decimals as the first one above 0 needs."""
    first = heights[1]
    decimals = next((count for count in range(12) if abs(first - round(first, count)) < 1e-6 * first), 12)
    return [f"{one:,.{decimals}f}" for one in heights]


def points_of(curves: CycleCurves | None, name: str) -> list[tuple[float, float]]:
    """Returns a curve's points (step, figure) for the training steps that have the figure."""
    return [(one["step"], one[name]) for one in (curves.steps if curves is not None else ()) if name in one]


def bounds_of(curves: CycleCurves | None) -> list[list[tuple[float, float]]]:
    """Returns (step, low) and (step, high) of each step's success interval; empty if the steps have none."""
    return [found for name in ("success_low", "success_high") if (found := points_of(curves, name))]


def tasksets_text(passes: Sequence[PassCount] | None) -> Text:
    """Shows the success of training attempts by taskset; its 95 % intervals allow for correlation within a task."""
    text = plain("\nsuccess by taskset, with 95 % intervals\n", DIM, lines=True)
    if passes is None:
        text.append("counting …\n", DIM)
        return text
    counts = rates_of(passes)
    if not counts:
        text.append("nothing was trained on yet\n", DIM)
    for family, sums in sorted(counts.items()):
        (low, high), passed, rollouts = sums.interval, sums.passed, sums.attempts
        text.append_text(plain(f"{family:<16} ", limit=17))
        text.append_text(interval_bar(passed / max(1, rollouts), low, high, 18))
        text.append(f" {percent(passed / max(1, rollouts)):>7} ", STRONG)
        text.append(f"[{percent(low)}, {percent(high)}] of {rollouts:,}, {sums.questions:,} tasks\n", DIM)
    return text


def interval_bar(share: float, low: float, high: float, width: int) -> Text:
    """Draws a share as `●` on its interval `━`, on a scale from 0 to 1."""
    places = [min(int(one * width), width - 1) for one in (low, share, high)]
    text = Text()
    for place in range(width):
        if place == places[1]:
            text.append("●", GOOD)
        elif places[0] <= place <= places[2]:
            text.append("━", CARE)
        else:
            text.append("·", FAINT)
    return text


def spent_text(cycle: Cycle, curves: CycleCurves | None) -> Text:
    """Shows the time that a training cycle spent in each phase, and in each part of its training steps."""
    text = plain("\nwhere the time went\n", DIM, lines=True)
    parts = {name.replace("_", " "): seconds for name, seconds in cycle.seconds.items()}
    _shares(text, parts)
    inside: dict[str, float] = defaultdict(float)
    for step in curves.steps if curves is not None else ():
        for name, shown in SPENT.items():
            inside[shown] += step.get(name, 0.0)
    if any(inside.values()):
        text.append("\nin the training steps\n", DIM)
        _shares(text, inside)
    return text


def _shares(text: Text, parts: Mapping[str, float]) -> None:
    whole = sum(parts.values())
    for name, seconds in parts.items():
        text.append_text(plain(f"{name:<16} ", limit=17))
        text.append_text(bar(seconds / whole if whole else 0.0, 30, "bold"))
        text.append(f" {percent(seconds / whole if whole else 0.0):>7}  ", STRONG)
        text.append(f"{duration(seconds)}\n", DIM)
