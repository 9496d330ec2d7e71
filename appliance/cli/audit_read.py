"""Reading a data folder's audit log from beside the daemon, and beginning a new one without it."""

from __future__ import annotations

import os
import sqlite3
import time
from collections import deque
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from appliance import __version__
from appliance.audit.log import AuditError, AuditLog, lines_of, log_file
from appliance.audit.machine_keys import MACHINES, load_key, load_or_make, public_file
from appliance.clock import file_stamp, utc_now
from appliance.errors import AssayError, ExitCode, UsageError
from appliance.ledger.lock import data_lock
from appliance.ledger.sqlite import SqliteLedger
from policies import audit
from policies.audit import AuditEntry, Head, LogCheck
from policies.envelopes import PublicKey

ATTEMPTS = 5
"""Times that a log which seems bad is read again: the daemon may be writing to it."""


class Checked(NamedTuple):
    found: LogCheck
    fingerprint: str
    """Of the key that the signatures were checked with."""
    notes: list[str]
    """What this check could not see."""


def entries_of(data: Path, limit: int) -> list[AuditEntry]:
    """The newest, newest first; nothing is checked. Raises AssayError."""
    newest = deque(_lines(log_file(data)), maxlen=limit)
    try:
        return [audit.read(line) for line in newest][::-1]
    except ValueError as error:
        raise AssayError(
            f"the audit log cannot be read: {error}",
            "`assay audit verify` names the first bad entry",
            ExitCode.FAILED_VERDICT,
        ) from error


def verified(data: Path, file: Path | None, key: Path | None, known: Sequence[str]) -> Checked:
    """Checks a log, or an export. Raises AssayError where there is nothing to check."""
    try:
        heads = [Head.read(text) for text in known]
    except ValueError as error:
        raise UsageError(str(error), "`assay audit verify` prints the head as it is to be noted") from error
    if key is None and file is None and public_file(data, "daemon").exists():
        key = public_file(data, "daemon")
    found, public, notes = _in_file(file, key, heads) if file is not None else _in_folder(data, key, heads)
    if key is None:
        notes.append("the key is the one that the log itself names: compare it with one that you noted, or give --key")
    return Checked(found, PublicKey.of(public).fingerprint, notes)


def _in_file(file: Path, key: Path | None, heads: Sequence[Head]) -> tuple[LogCheck, Ed25519PublicKey, list[str]]:
    lines = _lines(file)
    public = _public(key, lines)
    if lines and audit.is_export(lines[-1]):
        return audit.check_export(lines, public, known=heads), public, []
    notes = [] if heads else ["this is a log and no export: entries that are missing at its end are not seen"]
    return audit.check(lines, public, known=heads), public, notes


def _in_folder(data: Path, key: Path | None, heads: Sequence[Head]) -> tuple[LogCheck, Ed25519PublicKey, list[str]]:
    for attempt in range(ATTEMPTS):
        head = _head_in_ledger(data)
        lines = _lines(log_file(data))
        public = _public(key, lines)
        found = audit.check(lines, public, known=[*heads, *_head_of(head)])
        if found.holds:
            break
        if attempt < ATTEMPTS - 1:
            time.sleep(0.05)
    return found, public, [] if head else ["the ledger knows of no entry: a cut end would not be seen"]


def write_export(data: Path, file: Path) -> Head:
    """Raises AssayError, AuditError: a log that does not hold is not signed."""
    checked = verified(data, None, None, [])
    if not checked.found.holds or checked.found.head is None:
        raise AssayError(
            f"the log does not hold, and is not exported: entry {checked.found.bad}: {checked.found.problem}",
            "`assay audit verify`; a copy of the file as it is can be made with cp",
            ExitCode.FAILED_VERDICT,
        )
    lines = list(_lines(log_file(data)))[: checked.found.entries]
    try:
        with file.open("xb") as out:
            for line in audit.export(lines, load_key(data, "daemon"), utc_now()):
                out.write(line)
            out.flush()
            os.fsync(out.fileno())
    except OSError as error:
        raise UsageError(
            f"{file} cannot be written: {error.strerror}", "choose another file; none is overwritten"
        ) from error
    return checked.found.head


def begin_anew(data: Path, reason: str) -> Path | None:
    """Sets the log aside and begins another, whose first entry says why; returns where the old one is. Raises
    LedgerError while a daemon works on the folder."""
    path = log_file(data)
    stamp = file_stamp()
    aside = path.with_name(f"log.before-{stamp}.jsonl")
    with data_lock(data), SqliteLedger(data / "ledger.sqlite3") as ledger:
        before: dict[str, str | None] = {"file": None, "sha256": None, "ledger": None}
        head = ledger.audit_head()
        if head is not None:
            before["ledger"] = audit.digest_of(head)
        if path.exists():
            before |= {"file": aside.name, "sha256": audit.digest_of(path.read_bytes())}
            path.rename(aside)
        ledger.put_audit_head(None)
        keys = {name: load_or_make(data, name) for name in MACHINES}
        log = AuditLog(path, keys["daemon"], ledger, utc_now)
        try:
            lines = {name: PublicKey.of(key.public_key()).line for name, key in keys.items()}
            log.append("log.begin", version=__version__, renewed=reason, before={**before}, **lines)
        finally:
            log.close()
    return aside if before["file"] else None


def _public(key: Path | None, lines: Sequence[bytes]) -> Ed25519PublicKey:
    """The key in a file, otherwise the one that the log's first entry names. Raises AssayError."""
    try:
        if key is not None:
            return PublicKey.read(key.read_text(encoding="utf-8")).key()
        first = audit.read(lines[0] if lines else b"")
        return PublicKey.read(str(first.what.get("daemon"))).key()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(
            f"there is no key to check with: {key or 'the first entry'}: {reason}",
            "name the daemon's public key with --key",
        ) from error


def _lines(path: Path) -> list[bytes]:
    try:
        return list(lines_of(path))
    except OSError as error:
        raise UsageError(
            f"{path}: {error.strerror}", "name a log or an export, or a data folder with --data"
        ) from error


def _head_of(line: bytes | None) -> list[Head]:
    try:
        return [] if line is None else [Head.of(line)]
    except ValueError as error:
        raise AssayError(
            f"the ledger's copy of the newest entry was changed: {error}",
            "put back a copy of the ledger, or `assay audit renew`",
            ExitCode.FAILED_VERDICT,
        ) from error


def _head_in_ledger(data: Path) -> bytes | None:
    """The newest line as the ledger keeps it, read beside the daemon. Raises AuditError."""
    path = data / "ledger.sqlite3"
    if not path.exists():
        return None
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=5.0)) as connection:
            row = connection.execute("SELECT line FROM audit_head").fetchone()
    except sqlite3.Error as error:
        raise AuditError(
            f"the ledger {path} cannot be read: {error}", hint="start the daemon once, or see its log"
        ) from error
    return str(row[0]).encode("ascii", "replace") if row else None
