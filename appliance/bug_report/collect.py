"""Collects the parts of a bug report, removes secrets, and writes one archive.

Invariants: every part is redacted, and an archive in which a known secret remains is not written; a part that fails is
replaced by its error and ends nothing; questions, answers and rollouts are included only if rollouts were requested.
The archive is 0600, complete or absent, and never overwrites a file.

A given secret value appears in no result, in any surroundings, not even in base64 or with JSON escapes. Other secrets
are removed by patterns, which cannot know every form.
"""

from __future__ import annotations

import base64
import gzip
import importlib.metadata
import io
import json
import os
import platform
import re
import sqlite3
import sys
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from appliance import __version__
from appliance.backup.create import is_secret
from appliance.config.configuration import Settings
from appliance.errors import AssayError, ExitCode, UsageError, explain
from appliance.nights.settings import ReportSettings
from appliance.system.durable_file import expanded, write_private

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


REMOVED = "[removed]"
_END = re.compile(r"-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----")
_OF_A_KEY = re.compile(r"[A-Za-z0-9+/=]{1,80}\r?\n")
SHORTEST = 6
"""Minimum length of a secret in characters; shorter ones would remove ordinary words."""
LARGEST_BYTES = 64 << 10
SECRET_NAME = re.compile(
    r"(pass(word|phrase|wd)?|secret|token(?!s)|api[_-]?key|credential|authorization|cookie|webhook|ntfy|private"
    r"|redact(?!ed)|pwd|(access|signing|encryption)[_-]?key)",
    re.IGNORECASE,
)
_NAMED = (
    r"(?:pass(?:word|phrase|wd)|secret|token(?!s|iz)|credential|(?:api|private|access|signing|encryption)[_-]?key"
    r"|(?<=[_-])pass(?![\w-])|(?<![A-Za-z])pwd(?=\s*[=:]\s*[^/\s]))[\w-]{0,40}"
)
"""End of a name that denotes a secret, from the telling word on."""
_QUOTED = r"""(?P<quote>\\*["'])(?:(?!(?P=quote))(?:\\.|[^\\\n]))+(?:(?P=quote))?"""
"""Quoted text up to the matching quotation mark or the end of the line; inner marks have one more backslash."""
_PATTERNS = (
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?s:.*?)(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\Z)",
    r"(?P<kept>\b(?:authorization|cookie)\\*[\"']?\s*[=:]\s*\\*[\"']?)[^\n\"'\\]{3,}",
    r"(?P<kept>\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{6,}",
    r"\b(?:sk|pk|rk)(?:-|_live_|_test_)[A-Za-z0-9_-]{12,}",
    r"\b(?:gh[oprsu]_[A-Za-z0-9]|github_pat_\w|hf_[A-Za-z0-9]|npm_[A-Za-z0-9]|gl(?:pat|rt|dt|cbt|ptt)-[\w-])[\w-]{12,}",
    r"\b(?:xox[abeprs]|xapp)-[A-Za-z0-9-]{8,}|\bA(?:KI|SI)A[0-9A-Z]{16}\b|\bAIza[\w-]{20,}|\bya29\.[\w.-]{10,}",
    r"\bSG\.[\w-]{16,}\.[\w-]{16,}|\bpypi-Ag[\w-]{16,}|\bdo[opr]_v1_\w{20,}|\bAGE-SECRET-KEY-1\w{16,}",
    r"(?P<kept>\b(?:hooks\.slack\.com/services|discord(?:app)?\.com/api/webhooks)/)[^\s\"'<>]+",
    r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*",
    r"(?P<kept>[a-z][a-z0-9+.-]{1,20}://)(?:[^\s/@]{0,200}:[^\s/]{1,200}|[^\s/@:]{12,200})@",
    r"(?P<kept>[?&](?:sig|signature|key|code|auth|x-(?:amz|goog)-signature)=)[^\s&#\"']{4,}",
    r"\b[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,8}\b",
    rf"""(?P<kept>{_NAMED}\\*["']?\s*(?::=|=>|[=:]|%3[ad])\s*(?:[|>][+-]?\s+)?b?)(?:{_QUOTED}|[^\s,;}}"']{{3,}})""",
    rf"""(?P<kept>{_NAMED}\\*["']\s*,\s*b?){_QUOTED}""",
    rf"(?P<kept>(?<!-)--(?=\w)[\w-]{{0,40}}?{_NAMED}\s+)[^\s-]\S{{2,}}|(?P<kept2><[\w:-]{{0,40}}?{_NAMED}>)[^<\n]+",
    r"(?P<kept>\blogin\s+\S{1,200}\s+password\s+)\S+",
)
LOOKS = tuple(re.compile(one, re.IGNORECASE if "kept" in one else 0) for one in _PATTERNS)
"""Patterns of secrets: private keys, headers, service keys, addresses with a password, mail, and values of telling
names."""


class Redactor:
    """Removes from text these `secrets` and text that looks like one; `home` becomes `~`."""

    def __init__(self, secrets: Iterable[str], home: str = "") -> None:
        forms = {form for secret in secrets if len(secret) >= SHORTEST for form in _forms(secret)}
        self._secrets = sorted(forms, key=lambda form: (-len(form), form))
        self._home = home if len(home) > 1 else ""

    def text(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, REMOVED)
        text = _without_ends_of_keys(LOOKS[0].sub(REMOVED, text))  # whole keys first
        for look in LOOKS[1:]:
            text = look.sub(_removed, text)
        return text.replace(self._home, "~") if self._home else text

    def value(self, value: Any, name: str = "") -> Any:
        """Redacts a JSON value; a string whose key names a secret is removed whole, numbers stay."""
        if isinstance(value, Mapping):
            return {self.text(str(key)): self.value(one, f"{name}.{key}") for key, one in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(one, name) for one in value]
        if isinstance(value, str):
            return REMOVED if value and SECRET_NAME.search(name) else self.text(value)
        return value

    def found_in(self, content: bytes) -> bool:
        """True if a known secret remains in these bytes."""
        return any(secret.encode() in content for secret in self._secrets)


def _without_ends_of_keys(text: str) -> str:
    """Removes the remaining lines of a private key whose beginning is missing or malformed."""
    parts, taken = [], 0
    for end in _END.finditer(text):
        start = end.start()
        while start > taken:
            line = text.rfind("\n", taken, start - 1) + 1 or taken
            if not _OF_A_KEY.fullmatch(text, line, start):
                break
            start = line
        if start < end.start():
            parts += [text[taken:start], REMOVED]
            taken = end.end()
    return "".join([*parts, text[taken:]])


def _removed(found: re.Match[str]) -> str:
    groups = found.groupdict()
    return f"{groups.get('kept') or groups.get('kept2') or ''}{REMOVED}"


def known_secrets(data: Path, environ: Mapping[str, str], more: Iterable[Path] = ()) -> set[str]:
    """Returns the secret values of this appliance, which a bug report must not contain. They are the lines of its key
    and token files and of the files `more`, and variables with a telling name. Unreadable files are skipped."""
    found = {value for name, value in environ.items() if SECRET_NAME.search(name) or name.upper().endswith("_KEY")}
    for path in (*_secret_files(data), *more):
        try:
            text = path.read_bytes()[:LARGEST_BYTES].decode(errors="replace")
        except OSError:
            continue
        found |= {line.strip() for line in text.splitlines() if line.strip() and not line.startswith("-----")}
    return {one for one in found if len(one) >= SHORTEST}


def secrets_of_reports(report: ReportSettings, environ: Mapping[str, str]) -> tuple[set[str], list[Path]]:
    """Returns the secret URLs that receive night reports, and the paths of the files with their tokens and password."""
    found: list[Path] = []
    for place in filter(None, (report.webhook_token, report.ntfy_token, report.email.password)):
        if "/" in place:
            found.append(expanded(place))
        elif folder := environ.get("CREDENTIALS_DIRECTORY"):
            found.append(Path(folder, place))
    return {one for one in (report.webhook, report.ntfy) if one}, found


def _secret_files(data: Path) -> Iterable[Path]:
    for folder in (data, data / "keys"):
        if folder.is_dir():
            yield from (Path(one.path) for one in os.scandir(folder) if one.is_file() and is_secret(one.name))


def _forms(secret: str) -> set[str]:
    """Returns the forms in which a secret may appear in text: plain, escaped for JSON or URLs, base64, hexadecimal."""
    raw = secret.encode()
    coded = {code(raw).decode().rstrip("=") for code in (base64.b64encode, base64.urlsafe_b64encode)}
    return {secret, json.dumps(secret)[1:-1], quote(secret, safe=""), raw.hex(), *coded}
