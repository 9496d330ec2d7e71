"""Reads rows of problems from files: JSON lines, JSON, CSV, Parquet, a folder of these, or Harbor task folders.

Invariants: a row carries its file and line number, or its position in a file without lines. An unreadable row is
reported like any refused row. A name that occurs twice in an object makes the row invalid. A new format is one function
and one row of `READERS`. Solutions in task folders run in the sandbox for a person's code.
"""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from appliance.cli.curriculum.parquet_rows import MEMORY, SECONDS
from appliance.cli.shell.broker_target import patient_sessions
from appliance.cli.show.printing import show_progress
from appliance.errors import UsageError
from common import strict_json
from common.strict_json import Bounds, NotJsonError
from runtime.extra_packages import install_command

if TYPE_CHECKING:
    from curriculum.own.harbor import HarborRow
    from curriculum.own.rows import OwnRow


MOST_BYTES = 1 << 30
LONGEST_LINE = 16 << 20
MOST_COLUMNS = 1_000
BOUNDS = Bounds(LONGEST_LINE, values=200_000, depth=500)
"""Bounds of a line, and of a whole file of JSON, which is in memory at once."""
AS_LINES = "write one object a line and end the name with .jsonl, as `jq -c '.[]' FILE.json > FILE.jsonl` does"
PARQUET = b"PAR1"
"""Magic bytes at the beginning and end of a Parquet file."""
_DECODER = (sys.executable, "-I", "-m", "appliance.cli.curriculum.parquet_rows")


class ReadRow(NamedTuple):
    """A row of a file of problems; `values` is None if it is unreadable, with the reason in `problem`."""

    origin: str
    values: dict[str, Any] | None
    problem: str = ""


def rows_in(place: Path) -> Iterator[ReadRow]:
    """Yields the rows of a file of problems, or of a folder's files by name. Raises UsageError for an unsupported file,
    OSError."""
    if place.is_dir():
        files = [path for path in sorted(place.iterdir()) if path.suffix.lower() in READERS and not path.is_dir()]
        if not files:
            raise UsageError(f"{place}: no file of problems", f"use files that end with {_endings()}")
        for path in files:
            yield from rows_in(path)
        return
    reader = READERS.get(place.suffix.lower())
    if not place.exists():
        raise UsageError(f"no such file or folder: {place}", "name a file or a folder")
    if reader is None:
        raise UsageError(f"{place}: unsupported file type", f"use a file that ends with {_endings()}")
    if not place.is_file():
        raise UsageError(f"{place}: not a regular file", "name a file, not a pipe or device")
    if place.stat().st_size > MOST_BYTES:
        raise UsageError(f"{place} is larger than {MOST_BYTES >> 30} GiB", "split it")
    yield from reader(place)


def _endings() -> str:
    return ", ".join(READERS)


def _read(content: bytes) -> Any:
    """Parses strict JSON, with or without a byte order mark. Raises NotJsonError."""
    try:
        return strict_json.read(content.decode(json.detect_encoding(content)), BOUNDS)
    except UnicodeDecodeError as error:
        raise NotJsonError(f"not text at byte {error.start}") from None


def _json_lines(path: Path) -> Iterator[ReadRow]:
    with path.open("rb") as stream:
        for number, line in enumerate(iter(lambda: stream.readline(LONGEST_LINE + 1), b""), 1):
            if len(line) > LONGEST_LINE or line.strip():
                yield _json_line(f"{path.name}:{number}", line)


def _json_line(origin: str, line: bytes) -> ReadRow:
    """Reads a row from a line of JSON. Raises UsageError for one that is too long."""
    if len(line) > LONGEST_LINE:
        raise UsageError(f"{origin} is longer than {LONGEST_LINE >> 20} MiB", "write one problem a line")
    try:
        found = _read(line)
    except NotJsonError as error:
        return ReadRow(origin, None, str(error))
    return ReadRow(origin, found) if isinstance(found, dict) else ReadRow(origin, None, "not a JSON object")


def _json(path: Path) -> Iterator[ReadRow]:
    if path.stat().st_size > BOUNDS.size:
        raise UsageError(f"{path} is larger than {BOUNDS.size >> 20} MiB", AS_LINES)
    try:
        found = _read(path.read_bytes())
    except NotJsonError as error:
        raise UsageError(f"{path} is unusable: {error}", AS_LINES) from error
    if not isinstance(found, list):
        raise UsageError(f"{path} is not a list of problems", "write a list of objects, or end the name with .jsonl")
    for number, one in enumerate(found, 1):
        origin = f"{path.name}:{number}"
        yield ReadRow(origin, one) if isinstance(one, dict) else ReadRow(origin, None, "not a JSON object")


def _table(path: Path) -> Iterator[ReadRow]:
    csv.field_size_limit(LONGEST_LINE)
    number = 0
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            lines = _bounded(stream, path)
            reader = csv.reader(lines, delimiter="\t" if path.suffix.lower() == ".tsv" else ",", strict=True)
            names: list[str] | None = None
            for cells in reader:
                origin, number = f"{path.name}:{number + 1}", reader.line_num
                if names is None:
                    names = cells
                    _require_names(path, names)
                elif len(cells) == len(names):
                    yield ReadRow(origin, dict(zip(names, cells, strict=True)))
                elif cells:
                    yield ReadRow(origin, None, "its number of columns differs from the first line")
    except (csv.Error, UnicodeDecodeError) as error:
        raise UsageError(
            f"{path} is not UTF-8 CSV after line {number}: {error}", "save it as UTF-8 CSV with names in the first line"
        ) from error


def _bounded(stream: TextIO, path: Path) -> Iterator[str]:
    """Yields the lines of a table. Raises UsageError for one that is too long, before it is split into cells."""
    for number, line in enumerate(iter(lambda: stream.readline(LONGEST_LINE + 1), ""), 1):
        if len(line) > LONGEST_LINE:
            raise UsageError(f"{path}:{number} is longer than {LONGEST_LINE >> 20} MiB", "write one problem a line")
        yield line


def _require_names(path: Path, names: list[str]) -> None:
    """Raises UsageError for too many columns of a table, or two of one name; unnamed columns do not count."""
    if len(names) > MOST_COLUMNS:
        raise UsageError(f"{path} has more than {MOST_COLUMNS:,} columns", "keep the question and its check")
    told = [name.strip().casefold() for name in names]
    if twice := next((name for name, one in zip(names, told, strict=True) if one and told.count(one) > 1), ""):
        raise UsageError(f"{path} has two columns called {twice[:40]!a}", "rename or remove one")


def _parquet(path: Path, memory: int = MEMORY) -> Iterator[ReadRow]:
    """Yields the rows of a Parquet file, which a child with limited memory decodes (`parquet_rows`)."""
    if find_spec("arro3") is None:
        raise UsageError(
            "arro3-io, which reads Parquet, is not installed", f"{install_command('parquet')}, or save it as .jsonl"
        )
    with path.open("rb") as stream:
        whole = stream.read(4) == PARQUET and stream.seek(-4, os.SEEK_END) > 0 and stream.read() == PARQUET
    if not whole:
        raise UsageError(f"{path} is not a complete Parquet file", "copy it again")
    command = [*_DECODER, str(path), str(memory)]
    number = size = 0
    with Popen(command, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL) as child:
        assert child.stdout is not None
        try:
            for line in iter(partial(child.stdout.readline, LONGEST_LINE + 1), b"true\n"):
                size += len(line)
                if size > MOST_BYTES:
                    raise UsageError(f"the rows of {path} take more than {MOST_BYTES >> 30} GiB", "split it")
                if line.startswith(b'"'):
                    try:
                        reason = _read(line)
                    except NotJsonError as error:
                        reason = f"its decoder was cut off ({error})"
                    raise UsageError(f"{path} cannot be read as Parquet after {number} rows: {reason}", "copy it again")
                if not line:
                    raise UsageError(
                        f"{path}: after {number} rows its decoder stopped: they need more than {memory >> 20:,} MiB, "
                        f"more than {SECONDS} s, or it crashed",
                        "write smaller row groups, or save it as .jsonl",
                    )
                number += 1
                yield _json_line(f"{path.name}:{number}", line)
        finally:
            child.kill()


READERS: dict[str, Callable[[Path], Iterator[ReadRow]]] = {
    ".jsonl": _json_lines,
    ".json": _json,
    ".csv": _table,
    ".tsv": _table,
    ".parquet": _parquet,
}


ONLY_FOREIGN = (
    "scored only by its own test, a foreign reward that is never trained on: add such folders separately, to try "
    "them and to measure with them"
)

Refusal = tuple[str, str]
"""A folder and the reason of its refusal."""


def harbor_rows(folders: Sequence[Path], *, without_network: bool = False) -> tuple[list[OwnRow], list[Refusal]]:
    """Reads Harbor task folders into rows: installs their packages, and runs their solutions in sandboxes. Also returns
    the refused folders, with reasons."""
    from curriculum.certification.certify import scored_elsewhere
    from curriculum.own.columns import RowError
    from curriculum.own.harbor import row_of_folder

    found: list[HarborRow] = []
    refused: list[Refusal] = []
    for folder in folders:
        try:
            found.append(row_of_folder(folder, without_network=without_network))
        except RowError as error:
            refused.append((folder.name or str(folder), str(error)))
    foreign = [one for one in found if scored_elsewhere(one.row.spec)]
    if len(foreign) < len(found):
        refused += [(one.row.origin, ONLY_FOREIGN) for one in foreign]
        found = [one for one in found if one not in foreign]
    if all(one.is_ready for one in found):
        return [one.row for one in found], refused
    return list(_with_answers(found, refused)), refused


def _with_answers(found: Sequence[HarborRow], refused: list[Refusal]) -> Iterator[OwnRow]:
    from curriculum.own.columns import RowError
    from curriculum.own.harbor import solved

    with patient_sessions() as pool:
        for number, one in enumerate(found, 1):
            try:
                yield solved(pool, one)
            except RowError as error:
                refused.append((one.row.origin, str(error)))
            show_progress(f"prepared {number} of {len(found)} folders, and ran their solutions")
