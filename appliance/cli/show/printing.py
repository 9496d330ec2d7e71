"""How results look: JSON for programs, plain tables for people. Everything shown passes through `printable`."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

import typer
from pydantic import BaseModel

from appliance.cli.shell.live_line import LiveLine, columns_of
from appliance.cli.shell.wrapping import wrapped
from appliance.text.printable import printable

if TYPE_CHECKING:
    from appliance.client import Cycle

R = TypeVar("R", bound=BaseModel)
NARROWEST = 8
"""Characters of a column of a table."""
READABLE = 16
"""Characters below which a cut cell says nothing any more."""
NO_CHANGES: Mapping[str, Callable[[str], str] | None] = MappingProxyType({})
_PROGRESS = LiveLine()
_TIME = re.compile(r"(?:[a-z]+ )?(?:\d{4}-)?\d\d-\d\d[ T]\d\d:\d\d(?::\d\d)?")
"""A time, or a night by its kind and its time."""
_NIGHT = re.compile(r"([a-z]+)-\d{4}(\d\d)(\d\d)t(\d\d)(\d\d)\d\d-\w+")


def show_json(value: BaseModel | Sequence[BaseModel]) -> None:
    """One JSON document; ASCII only, so that no text in it can steer a terminal."""
    if isinstance(value, BaseModel):
        content: object = value.model_dump(mode="json", by_alias=True)
    else:
        content = [item.model_dump(mode="json", by_alias=True) for item in value]
    typer.echo(json.dumps(content, indent=2, ensure_ascii=True))


def show_json_line(value: BaseModel) -> None:
    """One line of JSON among several; ASCII only, too."""
    typer.echo(json.dumps(value.model_dump(mode="json", by_alias=True), ensure_ascii=True))


def show_progress(text: str) -> None:
    """One line on standard error that is written over, where that is a terminal; without text it is cleared."""
    columns = columns_of(sys.stderr)
    if columns is not None:
        _PROGRESS.show(sys.stderr, text, columns)


def show_line(text: str, *, indent: int | None = None, used: int = 0) -> None:
    """One line; on a terminal it is broken between words, and goes on as `wrapped` says."""
    typer.echo(wrapped(printable(text), columns_of(sys.stdout), indent=indent, used=used))


def age_text(seconds: float) -> str:
    """`42 s`, `12 min`, `30 h`, `4 d`."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def show_fields(fields: Iterable[tuple[str, object]]) -> None:
    """`name  value` lines, values aligned; a value of None or "" is left out."""
    rows = [(name, printable(str(value))) for name, value in fields if value is not None and value != ""]
    width = max((len(name) for name, _ in rows), default=0)
    columns = columns_of(sys.stdout)
    for name, value in rows:
        typer.echo(wrapped(f"{name:<{width}}  {value}", columns, indent=width + 2))


def show_table(
    headings: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    empty: str,
    screen: int | None = None,
    narrow: Mapping[str, Callable[[str], str] | None] = NO_CHANGES,
    whole: bool = False,
) -> None:
    """A line for each row. On a terminal (`screen` columns wide, asked of it unless given) the widest cells are cut
    until a line fits, but never the first, which is what other commands ask for, and never a time: where that leaves
    too little, the last of the other columns is left out. In a pipe nothing is cut.

    Before that, `narrow` gives shorter cells by heading, or None for a column that is then left out. With `whole`
    nothing is ever cut: the last column goes below each line instead."""
    cells = [[printable(str(cell)) for cell in row] for row in rows]
    if not cells:
        typer.echo(empty)
        return
    lines = [list(headings), *cells]
    widths = _widths(lines)
    screen = columns_of(sys.stdout) if screen is None else screen
    below: list[str] = []
    if screen is not None and _line_width(widths) > screen:
        if whole:
            below = [line.pop() for line in lines]
            widths.pop()
        else:
            lines = _narrowed(lines, narrow, screen)
            lines, widths = _fitted(lines, screen)
    for number, line in enumerate(lines):
        shown = (_cut(cell, width) for cell, width in zip(line, widths, strict=True))
        typer.echo("  ".join(cell.ljust(width) for cell, width in zip(shown, widths, strict=True)).rstrip())
        if below and number and below[number]:
            typer.echo(wrapped(f"    {below[number]}", screen))


def _widths(lines: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*lines, strict=True)]


def _line_width(widths: Sequence[int]) -> int:
    return sum(widths) + 2 * (len(widths) - 1)


def _narrowed(
    lines: list[list[str]], narrow: Mapping[str, Callable[[str], str] | None], screen: int
) -> list[list[str]]:
    """With the shorter cells, and without columns in their order until what remains can say something."""
    headings = lines[0]
    shorter = {headings.index(name): short for name, short in narrow.items() if short is not None}
    made = [
        headings,
        *([shorter[at](cell) if at in shorter else cell for at, cell in enumerate(line)] for line in lines[1:]),
    ]
    for name in (name for name, short in narrow.items() if short is None):
        first, *others = _widths(made)
        if _line_width([first, *(min(width, READABLE) for width in others)]) <= screen:
            break
        at = made[0].index(name)
        made = [[cell for place, cell in enumerate(line) if place != at] for line in made]
    return made


def _fitted(lines: list[list[str]], screen: int) -> tuple[list[list[str]], list[int]]:
    """The lines, and widths for their columns: the widest but the first, and but times, are made narrower, to no less
    than `NARROWEST`."""
    while True:
        widths, columns = _widths(lines), list(zip(*lines[1:], strict=True))
        times = {at for at, column in enumerate(columns) if _are_times(column)}
        others = [at for at in range(1, len(widths)) if at not in times]
        while _line_width(widths) > screen and any(widths[at] > NARROWEST for at in others):
            widths[max(others, key=lambda at: widths[at])] -= 1
        if _line_width(widths) <= screen or not times or not others:
            return lines, widths
        lines = [[*line[: others[-1]], *line[others[-1] + 1 :]] for line in lines]


def _are_times(cells: Sequence[str]) -> bool:
    return any(cells) and all(_TIME.fullmatch(cell) for cell in cells if cell)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def show_records(
    records: Sequence[R],
    headings: Sequence[str],
    row: Callable[[R], Sequence[object]],
    *,
    empty: str,
    as_json: bool,
    narrow: Mapping[str, Callable[[str], str] | None] = NO_CHANGES,
) -> None:
    """The records as JSON, or a line of a table for each."""
    if as_json:
        show_json(records)
    else:
        show_table(headings, [row(record) for record in records], empty=empty, narrow=narrow)


def cycle_state(cycle: Cycle) -> str:
    """Its state, and the phase that it is in or that it failed in."""
    return f"{cycle.id} {cycle.state.value}" + ("" if cycle.phase == cycle.state.value else f", {cycle.phase}")


def short(digest: str | None) -> str:
    """The first 12 digits: enough to name a model, and accepted wherever one is asked for."""
    return "-" if digest is None else digest[:12]


def short_time(at: str) -> str:
    """An ISO 8601 time without its year and its seconds: 11-24 02:00."""
    return at[5:16].replace("T", " ")


def short_cycle(name: str) -> str:
    """A cycle's id as its kind, day and minute: night 11-24 02:00."""
    found = _NIGHT.fullmatch(name)
    return name if found is None else "{} {}-{} {}:{}".format(*found.groups())


def points(share: float) -> str:
    return f"{100 * share:.1f} %"
