"""How results look: JSON for programs, plain tables for people. Everything shown passes through `printable`."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

import typer
from pydantic import BaseModel

from appliance.printable import printable

if TYPE_CHECKING:
    from appliance.client import Cycle

R = TypeVar("R", bound=BaseModel)
NARROWEST = 8
"""Characters of a column of a table."""


def show_json(value: BaseModel | Sequence[BaseModel]) -> None:
    """One JSON document; ASCII only, so that no text in it can steer a terminal."""
    if isinstance(value, BaseModel):
        content: object = value.model_dump(mode="json", by_alias=True)
    else:
        content = [item.model_dump(mode="json", by_alias=True) for item in value]
    typer.echo(json.dumps(content, indent=2, ensure_ascii=True))


def show_progress(text: str) -> None:
    """One line on standard error that is written over, where that is a terminal; without text it is cleared."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{printable(text)}")  # also with NO_COLOR: it is no colour
        sys.stderr.flush()


def show_line(text: str) -> None:
    typer.echo(printable(text))


def show_fields(fields: Iterable[tuple[str, object]]) -> None:
    """`name  value` lines, values aligned; a value of None or "" is left out."""
    rows = [(name, printable(str(value))) for name, value in fields if value is not None and value != ""]
    width = max((len(name) for name, _ in rows), default=0)
    for name, value in rows:
        typer.echo(f"{name:<{width}}  {value}")


def show_table(
    headings: Sequence[str], rows: Iterable[Sequence[object]], *, empty: str, screen: int | None = None
) -> None:
    """A line for each row. On a terminal (`screen` columns wide, asked of it unless given) the widest cells are cut
    until a line fits, but never the first: it is what other commands ask for. In a pipe nothing is cut."""
    cells = [[printable(str(cell)) for cell in row] for row in rows]
    if not cells:
        typer.echo(empty)
        return
    lines = [list(headings), *cells]
    widths = [max(len(line[i]) for line in lines) for i in range(len(headings))]
    if screen is None and sys.stdout.isatty():
        screen = shutil.get_terminal_size().columns
    if screen is not None:
        _fit(widths, screen)
    for line in lines:
        shown = (_cut(cell, width) for cell, width in zip(line, widths, strict=True))
        typer.echo("  ".join(cell.ljust(width) for cell, width in zip(shown, widths, strict=True)).rstrip())


def _fit(widths: list[int], screen: int) -> None:
    """Makes the widest columns but the first narrower, to no less than `NARROWEST`."""
    while sum(widths) + 2 * (len(widths) - 1) > screen:
        widest = max(range(1, len(widths)), key=lambda i: widths[i], default=0)
        if widest == 0 or widths[widest] <= NARROWEST:
            return
        widths[widest] -= 1


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def show_records(
    records: Sequence[R], headings: Sequence[str], row: Callable[[R], Sequence[object]], *, empty: str, as_json: bool
) -> None:
    """The records as JSON, or a line of a table for each."""
    if as_json:
        show_json(records)
    else:
        show_table(headings, [row(record) for record in records], empty=empty)


def cycle_state(cycle: Cycle) -> str:
    """Its state, and the phase that it is in or that it failed in."""
    return f"{cycle.id} {cycle.state.value}" + ("" if cycle.phase == cycle.state.value else f", {cycle.phase}")


def short(digest: str | None) -> str:
    """The first 12 digits: enough to name a model, and accepted wherever one is asked for."""
    return "-" if digest is None else digest[:12]


def points(share: float) -> str:
    return f"{100 * share:.1f} %"
