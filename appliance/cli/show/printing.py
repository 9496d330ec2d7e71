"""Prints what commands return: JSON for programs, plain tables for people. All text passes through `printable`.

A command is a function that returns `Output`, or yields the documents of a stream:

  @prints
  def cancel(job: JobId) -> Output[Job]:
      ended = api_client().cancel(job)
      return Output(ended, f"job {ended.id} is cancelled")

Invariants: its return annotation is the schema of its JSON (`show/schema.py`). Types that only the annotation names are
imported when a schema is requested.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import typer
from pydantic import BaseModel

from appliance.cli.shell.live_line import LiveLine, columns_of
from appliance.cli.shell.options import DATA, JSON_ASKED, Data, Json
from appliance.cli.shell.wrapping import wrapped
from appliance.text.printable import printable

if TYPE_CHECKING:
    from appliance.client import Cycle

R = TypeVar("R", bound=BaseModel)
NARROWEST = 8
"""Minimum characters of a table column."""
READABLE = 16
"""Characters below which a cut cell is useless."""
NO_CHANGES: Mapping[str, Callable[[str], str] | None] = MappingProxyType({})
_PROGRESS = LiveLine()
_TIME = re.compile(r"(?:[a-z]+ )?(?:\d{4}-)?\d\d-\d\d[ T]\d\d:\d\d(?::\d\d)?")
"""Matches a time, or a night's kind and time."""
_NIGHT = re.compile(r"([a-z]+)-\d{4}(\d\d)(\d\d)t(\d\d)(\d\d)\d\d-\w+")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True)
class Output(Generic[T_co]):
    """Result of a command: a document for programs, the same for people, and an exit code."""

    document: T_co
    """A model, or a list of models; None if the command has printed all."""
    text: str | Sequence[str] | Callable[[], object] = ()
    """Lines for people, or a function that prints them."""
    code: int = 0


Command = Callable[..., Output[Any] | Iterator[Any] | None]
_DATA = inspect.Parameter("data", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Data)
_JSON = inspect.Parameter("as_json", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Json)


def prints(command: Command, returned: Callable[[], Any] | None = None) -> Callable[..., None]:
    """Makes a function a command with --data and --json. A parameter that is a pydantic model takes its options.
    `returned` replaces the return annotation if that is known only at run time."""
    run = _with(command, _DATA, _JSON)
    run.returned = returned or run.returned  # type: ignore[attr-defined]
    return run


def prints_without_data(command: Command) -> Callable[..., None]:
    """Makes a function a command with --json that reads no data folder."""
    return _with(command, _JSON)


def in_data_folder(command: Callable[..., None]) -> Callable[..., None]:
    """Makes a function a command with --data that prints no document."""
    return _with(command, _DATA)


def for_people() -> bool:
    """True if the running command prints text: without --json."""
    return not JSON_ASKED.get()


def _with(command: Command, *injected: inspect.Parameter) -> Callable[..., None]:
    returned = command.__annotations__.pop("return", None)
    models: dict[str, type[BaseModel]] = {}
    parameters: list[inspect.Parameter] = []
    for one in inspect.signature(command, eval_str=True).parameters.values():
        if hasattr(one.annotation, "model_fields"):
            from appliance.cli.shell.model_options import parameters_of

            models[one.name] = one.annotation
            parameters += parameters_of(one.annotation)
        else:
            variable = one.kind is inspect.Parameter.VAR_KEYWORD
            parameters.append(one if variable else one.replace(kind=inspect.Parameter.KEYWORD_ONLY))
    named = [one for one in parameters if one.kind is not inspect.Parameter.VAR_KEYWORD]
    every = [*named, *injected, *parameters[len(named) :]]

    def run(**values: Any) -> None:
        if (data := values.pop("data", None)) is not None:
            DATA.set(data)
        values.pop("as_json", None)
        for name, model in models.items():
            from appliance.cli.shell.model_options import read_options

            values[name] = read_options(model, {field: values.pop(field) for field in model.model_fields})
        _print(command(**values))

    run.__name__, run.__module__, run.__doc__ = command.__name__, command.__module__, command.__doc__
    run.__signature__ = inspect.Signature(every)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in every}
    run.returned = returned  # type: ignore[attr-defined]
    return run


def _print(result: Output[Any] | Iterator[Any] | None) -> None:
    """Prints a command's output, or every document of a stream. Raises Exit for a code other than 0."""
    if isinstance(result, Output):
        if JSON_ASKED.get():
            if result.document is not None:
                show_json(result.document)
        else:
            show_lines(result.text)
        if result.code:
            raise typer.Exit(result.code)
    elif result is not None:
        for one in result:
            if isinstance(one, str):
                if for_people():
                    show_line(one)
            elif JSON_ASKED.get():
                show_json_line(one)


def show_json(value: BaseModel | Sequence[BaseModel]) -> None:
    """Prints records as one JSON document; ASCII only, so that no text in it can control a terminal."""
    if isinstance(value, BaseModel):
        content: object = value.model_dump(mode="json", by_alias=True)
    else:
        content = [item.model_dump(mode="json", by_alias=True) for item in value]
    typer.echo(json.dumps(content, indent=2, ensure_ascii=True))


def show_json_line(value: BaseModel) -> None:
    """Prints a record as one line of JSON among several; ASCII only."""
    typer.echo(json.dumps(value.model_dump(mode="json", by_alias=True), ensure_ascii=True))


def show_lines(text: str | Sequence[str] | Callable[[], object]) -> None:
    """Prints a line, several, or what a function prints."""
    if callable(text):
        text()
    else:
        for line in [text] if isinstance(text, str) else text:
            show_line(line)


def show_progress(text: str) -> None:
    """Overwrites the progress line on standard error if that is a terminal; an empty text clears it."""
    columns = columns_of(sys.stderr)
    if columns is not None:
        _PROGRESS.show(sys.stderr, text, columns)


def show_line(text: str, *, indent: int | None = None, used: int = 0) -> None:
    """Prints one escaped line, wrapped between words on a terminal."""
    typer.echo(wrapped(printable(text), columns_of(sys.stdout), indent=indent, used=used))


def age_text(seconds: float) -> str:
    """Formats a duration in seconds as `42 s`, `12 min`, `30 h` or `4 d`."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def show_fields(fields: Iterable[tuple[str, object]]) -> None:
    """Prints aligned `name value` lines; skips fields that are None or empty. Further lines of a value are indented, so
    that none looks like a field."""
    rows = [(name, printable(str(value), lines=True)) for name, value in fields if value is not None and value != ""]
    width = max((len(name) for name, _ in rows), default=0)
    columns = columns_of(sys.stdout)
    for name, value in rows:
        first, *others = value.rstrip("\n").split("\n")
        for line in (f"{name:<{width}}  {first}", *(f"{'':{width}}  {line}" for line in others)):
            typer.echo(wrapped(line, columns, indent=width + 2))


def show_table(
    headings: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    empty: str,
    screen: int | None = None,
    narrow: Mapping[str, Callable[[str], str] | None] = NO_CHANGES,
    whole: bool = False,
) -> None:
    """Prints a table, a line per row. In a pipe nothing is cut. On a terminal of `screen` columns (default: its own)
    the widest cells are cut until a line fits, but never the first column, which other commands take as input, nor
    times; if that leaves too little, the last other column is dropped. Before that, `narrow` gives shorter cells by
    heading, or None to drop a column. With `whole` nothing is cut: the last column moves below its line instead."""
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
    """Returns a table's lines with the shorter cells that `narrow` gives, dropping columns in order until the rest is
    readable."""
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
    """Fits table lines to `screen` columns by shrinking the widest columns, except the first and times. A column keeps
    at least `NARROWEST`. If times leave too little room, drops the last other column, repeatedly. Returns lines and
    column widths."""
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


def records(
    found: Sequence[R],
    headings: Sequence[str],
    row: Callable[[R], Sequence[object]],
    *,
    empty: str,
    narrow: Mapping[str, Callable[[str], str] | None] = NO_CHANGES,
) -> Output[Sequence[R]]:
    """Returns records as output: a list for programs, a table for people."""
    return Output(found, lambda: show_table(headings, map(row, found), empty=empty, narrow=narrow))


def cycle_state(cycle: Cycle) -> str:
    """Formats a cycle's state, and the phase it is in or failed in."""
    return f"{cycle.id} {cycle.state.value}" + ("" if cycle.phase == cycle.state.value else f", {cycle.phase}")


def short(digest: str | None) -> str:
    """Returns the first 12 digits of a digest, which are accepted wherever a model is named."""
    return "-" if digest is None else digest[:12]


def short_time(at: str) -> str:
    """Formats an ISO 8601 time without year and seconds: 11-24 02:00."""
    return at[5:16].replace("T", " ")


def short_cycle(name: str) -> str:
    """Formats a cycle's id as kind, day and minute: night 11-24 02:00."""
    found = _NIGHT.fullmatch(name)
    return name if found is None else "{} {}-{} {}:{}".format(*found.groups())


def points(share: float) -> str:
    return f"{100 * share:.1f} %"
