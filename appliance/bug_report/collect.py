"""Collects the parts of a bug report and writes them as one archive.

Invariants: every part is redacted, and an archive in which a known secret remains is not written; a part that fails is
replaced by its error and ends nothing; questions, answers and rollouts are included only if rollouts were requested.
The archive is 0600, complete or absent, and never overwrites a file.
"""

from __future__ import annotations

import gzip
import importlib.metadata
import io
import json
import os
import platform
import sqlite3
import sys
import tarfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from appliance import __version__
from appliance.bug_report.redaction import Redactor
from appliance.config.configuration import Settings
from appliance.errors import AssayError, ExitCode, UsageError, explain
from appliance.system.durable_file import write_private

LOG_LINES = 500
LOG_BYTES = 256 << 10
LINE_CHARACTERS = 2_000
ROLLOUTS = 20
SAID = (
    "A bug report of Assay. Read it before you send it: keys, tokens and passwords were removed by value and by\n"
    "pattern, and log lines may still name your files and programs. It has no model text except in rollouts.jsonl.\n"
)
Part = Callable[[], object]


def parts(settings: Settings, checks: Part, status: Part, *, rollouts: bool) -> dict[str, Part]:
    """Returns, by file name, the functions that collect the parts of a bug report. `checks` are the doctor's, `status`
    the daemon's; `rollouts` adds the newest rollouts."""
    data = settings.data
    found: dict[str, Part] = {
        "README.txt": lambda: SAID,
        "versions.json": versions,
        "doctor.json": checks,
        "config.json": lambda: json.loads(settings.render_json()),
        "variables.json": lambda: sorted(name for name in os.environ if name.startswith("ASSAY_")),
        "ledger.json": lambda: ledger(data / "ledger.sqlite3"),
        "status.json": status,
        "events.jsonl": lambda: "".join(_rows(data / "ledger.sqlite3", "events", 500)),
    }
    for name in ("worker", "broker"):
        found[f"logs/{name}.log"] = lambda name=name: last_lines(data / "logs" / f"{name}.log")  # type: ignore[misc]
    if rollouts:
        found["rollouts.jsonl"] = lambda: "".join(_rows(data / "ledger.sqlite3", "rollouts", ROLLOUTS))
    return found


def write(target: Path, found: Mapping[str, Part], redactor: Redactor, seconds: float) -> list[str]:
    """Collects and redacts the parts of a bug report, writes them as one archive, and returns the file names. `seconds`
    since the epoch is their time. Raises AssayError if a secret would be in it, or the file exists."""
    names, out = [], io.BytesIO()
    with (
        gzip.GzipFile(fileobj=out, mode="wb", mtime=int(seconds)) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name, part in found.items():
            content = _content(name, part, redactor)
            if redactor.found_in(content):
                raise AssayError(
                    f"{name} would contain a secret of this appliance; no report was written",
                    "report this as a bug of `assay bug-report`, without the file",
                    ExitCode.INFRASTRUCTURE,
                )
            info = tarfile.TarInfo(f"assay-bug-report/{name}")
            info.size, info.mode, info.mtime = len(content), 0o600, int(seconds)
            archive.addfile(info, io.BytesIO(content))
            names.append(name)
    try:
        write_private(target, out.getvalue())
    except FileExistsError as error:
        raise UsageError(f"{target} already exists", "name another file with --out") from error
    return names


def _content(name: str, part: Part, redactor: Redactor) -> bytes:
    try:
        value = part()
    except Exception as error:  # noqa: BLE001 - said in its place: the rest of the report is needed all the more
        value = {"problem": explain(error).message}
    if isinstance(value, str):
        if not name.endswith(".jsonl"):
            safe = redactor.text(value)
            return (cut_lines(safe) if name.endswith(".log") else safe).encode()
        # Not splitlines(): JSON text may contain characters that it treats as line ends.
        rows = filter(None, value.split("\n"))
        lines = (json.dumps(redactor.value(_row(line)), ensure_ascii=True) for line in rows)
        return "".join(f"{line}\n" for line in lines).encode()
    return json.dumps(redactor.value(value), indent=1, ensure_ascii=True, default=str).encode() + b"\n"


def _row(line: str) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):  # an edited ledger; the report should show it
        return {"problem": "this row is not valid JSON"}


def versions() -> dict[str, object]:
    """Returns the versions of this program, of Python, SQLite and all packages, and facts about the machine."""
    packages = {one.metadata["Name"]: one.version for one in importlib.metadata.distributions()}
    return {
        "assay": __version__,
        "python": sys.version,
        "sqlite": sqlite3.sqlite_version,
        "system": platform.platform(),
        "machine": platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "packages": dict(sorted(packages.items())),
    }


def ledger(path: Path) -> dict[str, object]:
    """Returns the ledger's schema revision, size, row counts and aliases. Raises sqlite3.Error."""
    if not path.exists():
        return {"problem": "no ledger found"}
    with closing(_opened(path)) as sql:
        tables = [
            str(row[0]) for row in sql.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
        ]
        return {
            "schema_revision": sql.execute("SELECT version_num FROM alembic_version").fetchone()[0],
            "bytes": path.stat().st_size,
            "rows": {one: sql.execute(f'SELECT count(*) FROM "{one}"').fetchone()[0] for one in tables},  # noqa: S608
            "aliases": dict(sql.execute("SELECT name, manifest FROM aliases").fetchall()),
        }


def last_lines(path: Path) -> str:
    """Returns the last complete lines of a log file; no partial one, since a truncated secret could not be recognised.
    Raises OSError."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - LOG_BYTES - 1))
        content = file.read(LOG_BYTES + 1)
    if size > LOG_BYTES:
        content = content.partition(b"\n")[2]
    lines = content.decode(errors="replace").splitlines()
    return "".join(f"{line}\n" for line in lines[-LOG_LINES:])


def cut_lines(text: str) -> str:
    """Truncates each line of a redacted log to `LINE_CHARACTERS`."""
    return "".join(f"{line[:LINE_CHARACTERS]}\n" for line in text.splitlines())


def status_of(status: Any) -> dict[str, object]:
    """Returns the daemon's status without plans, questions or decision texts."""
    whole = status.model_dump(mode="json")
    cycle = whole.get("cycle") or {}
    kept = {name: whole.get(name) for name in ("version", "uptime_seconds", "worker", "broker_news", "jobs", "aliases",
            "cycles_wait_for", "next_cycle", "policy", "last_event", "tampered", "step_metrics")}  # fmt: skip
    return kept | {"cycle": {name: cycle.get(name) for name in ("id", "kind", "state", "phase", "seconds", "failure")}}


def _rows(path: Path, table: str, limit: int) -> Iterator[str]:
    if not path.exists():
        return
    with closing(_opened(path)) as sql:
        query = f"SELECT payload FROM {table} ORDER BY sequence DESC LIMIT ?"  # noqa: S608 - a name of ours
        for row in reversed(sql.execute(query, (limit,)).fetchall()):
            yield f"{row[0]}\n"


def _opened(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=5.0)
