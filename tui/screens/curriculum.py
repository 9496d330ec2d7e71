"""The screen Curriculum: tasksets by level with their newest pass rates and their history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.text import Text
from textual.app import ComposeResult

from appliance.client import HIGH, LOW, Cycle, PassCount, Purpose, RateLine, Status, block, lines_of, zone
from tui.widgets.panels import Detail, PlainText
from tui.widgets.text import CARE, DIM, FAINT, GOOD, STRONG, plain
from tui.widgets.view import Answers, ApiQuestion, Pane

NIGHTS = 14
NONE_YET = "No rollout of a training yet. Each night adds a pass rate to every taskset's line: `assay cycle start`."
COUNTING_SECONDS = 15.0
ZONES = {"hard": ("▼", CARE), "": ("●", GOOD), "easy": ("▲", DIM)}
"""Signs for pass rates below, within and above the range worth training on."""


class CurriculumPane(Pane):
    FILTER = "part of a taskset's name"
    KEYS = (("up, down", "scroll the map"),)

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._cycles: Sequence[Cycle] = ()
        self._answers: Answers = {}

    def compose(self) -> ComposeResult:
        yield PlainText(classes="pane-line")
        yield Detail(id="map")

    def questions(self) -> Mapping[str, ApiQuestion]:
        asked = {"cycles": ApiQuestion(("cycles", NIGHTS), lambda client, _: client.cycles(NIGHTS))}
        for cycle in self._cycles:
            if cycle.kind != "evaluation":
                asked[cycle.id] = _counting(cycle)
        return asked

    def show(self, status: Status, answers: Answers) -> None:
        self._answers = answers
        self._cycles = answers.get("cycles", self._cycles)
        known = [one.id for one in reversed(self._cycles) if one.id in answers]
        nights = [name for name in known if any(one.purpose is Purpose.TRAIN for one in answers[name])]
        counts = [one for name in nights for one in answers[name]]
        waits = "cycles" not in answers or any(
            one.kind != "evaluation" and one.id not in answers for one in self._cycles
        )
        head = head_text(len(nights), waits)
        if self.filtered_by:
            head.append_text(plain(f"/ {self.filtered_by}", STRONG, limit=60))
        self.query_one(".pane-line", PlainText).show(head)
        dates = [one.created[5:10] for one in reversed(self._cycles) if one.id in nights]
        span = " to ".join(dict.fromkeys((*dates[:1], *dates[-1:])))
        shown = map_text(counts, nights, self.filtered_by, waits=waits, span=span)
        self.query_one("#map", Detail).show_detail(shown, moved=False)


def _counting(cycle: Cycle) -> ApiQuestion:
    name, ended = cycle.id, cycle.state.ended
    return ApiQuestion(
        ("passes", name, ended), lambda client, _: client.pass_counts(name), fixed=ended, seconds=COUNTING_SECONDS
    )


def head_text(nights: int, waits: bool) -> Text:
    """Returns the line above the map: number of nights, legend of the zones, and a note while `waits`. `nights` counts
    nights with training; `waits` is true until all are counted."""
    text = plain(f"{nights} night{'' if nights == 1 else 's'}   ")
    for name, (sign, style) in ZONES.items():
        words = {
            "hard": f"hard, below {100 * LOW:.0f} %",
            "": "worth training on",
            "easy": f"easy, above {100 * HIGH:.0f} %",
        }
        text.append(f"{sign} ", style)
        text.append(f"{words[name]}   ", DIM)
    if waits:
        text.append("counting …   ", CARE)
    return text


def map_text(
    counts: Sequence[PassCount], nights: Sequence[str], wanted: str = "", *, waits: bool = False, span: str = ""
) -> Text:
    """Draws pass rates: a line for each taskset with a cell for each level, then the nightly rate over all levels.
    `span` names the first and the last night."""
    lines = lines_of(
        [one for one in counts if one.purpose is Purpose.TRAIN and wanted.casefold() in one.family.casefold()]
    )
    if not lines:
        return plain("" if waits else "Nothing matches." if wanted else NONE_YET, DIM)
    families: dict[str, dict[int, RateLine]] = {}
    for line in lines:
        families.setdefault(line.family, {})[-1 if line.level is None else line.level] = line
    levels = sorted({level for cells in families.values() for level in cells})
    width = min(22, max(len(name) for name in families))
    text = Text()
    heads = "".join(f"{'-' if level < 0 else f'level {level}':>9}" for level in levels)
    text.append_text(plain(f"{'taskset':<{width}}{heads}   {span or 'nights'}, ▁ 0 to █ 100 %\n", DIM, lines=True))
    for family, cells in families.items():
        text.append_text(plain(f"{family:<{width}}", STRONG, limit=width))
        for level in levels:
            text.append_text(_cell(cells.get(level), nights))
        text.append("   ")
        text.append("".join(block(_rate(cells.values(), night)) for night in nights), GOOD)
        total = sum(sum(line.rollouts.values()) for line in cells.values())
        text.append(f"  {total:,} rollouts\n", DIM)
    return text


def _cell(line: RateLine | None, nights: Sequence[str]) -> Text:
    rates = [rate for night in nights if line is not None and (rate := line.rate(night)) is not None]
    if not rates:
        return Text(f"{'·':>9}", FAINT)
    sign, style = ZONES[zone(rates[-1])]
    text = Text(f"{100 * rates[-1]:5.0f} % ")
    text.append(f"{sign} ", style)
    return text


def _rate(lines: Any, night: str) -> float | None:
    rollouts = sum(line.rollouts[night] for line in lines)
    return sum(line.passed[night] for line in lines) / rollouts if rollouts else None
