"""How results look: JSON for programs, plain tables for people. Everything shown passes through `printable`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import typer
from pydantic import BaseModel

from appliance.printable import printable

R = TypeVar("R", bound=BaseModel)


def show_json(value: BaseModel | Sequence[BaseModel] | dict[str, object]) -> None:
    """One JSON document; ASCII only, so that no text in it can steer a terminal."""
    if isinstance(value, BaseModel):
        content: object = value.model_dump(mode="json")
    elif isinstance(value, dict):
        content = value
    else:
        content = [item.model_dump(mode="json") for item in value]
    typer.echo(json.dumps(content, indent=2, ensure_ascii=True))


def show_progress(text: str) -> None:
    """One line on standard error that is written over, where that is a terminal; without text it is cleared."""
    if sys.stderr.isatty():
        typer.echo(f"\r\x1b[K{printable(text)}", nl=False, err=True)


def show_line(text: str) -> None:
    typer.echo(printable(text))


def show_fields(fields: Iterable[tuple[str, object]]) -> None:
    """`name  value` lines, values aligned; a value of None or "" is left out."""
    rows = [(name, printable(str(value))) for name, value in fields if value is not None and value != ""]
    width = max((len(name) for name, _ in rows), default=0)
    for name, value in rows:
        typer.echo(f"{name:<{width}}  {value}")


def show_table(headings: Sequence[str], rows: Iterable[Sequence[object]], *, empty: str) -> None:
    """Columns as wide as their longest cell; a cell is at most 60 characters, the last column 100."""
    last = len(headings) - 1
    cells = [[printable(str(cell), limit=100 if i == last else 60) for i, cell in enumerate(row)] for row in rows]
    if not cells:
        typer.echo(empty)
        return
    widths = [max(len(row[i]) for row in [list(headings), *cells]) for i in range(len(headings))]
    for row in [list(headings), *cells]:
        typer.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def show_records(
    records: Sequence[R], headings: Sequence[str], row: Callable[[R], Sequence[object]], *, empty: str, as_json: bool
) -> None:
    """The records as JSON, or a line of a table for each."""
    if as_json:
        show_json(records)
    else:
        show_table(headings, [row(record) for record in records], empty=empty)


def short(digest: str | None) -> str:
    """The first 12 digits: enough to name a model, and accepted wherever one is asked for."""
    return "-" if digest is None else digest[:12]


def points(share: float) -> str:
    return f"{100 * share:.1f} %"
