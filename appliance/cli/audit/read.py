"""Checks a data folder's audit log and ledger without the daemon, and exports the log."""

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

from appliance.audit.kept_heads import KeptHeads, head_files
from appliance.audit.log import AuditError, lines_of, log_file
from appliance.audit.machine_keys import load_key, public_file
from appliance.errors import AssayError, ExitCode, UsageError
from appliance.system.clock import utc_now
from policies import audit
from policies.audit import AuditEntry, Head, LogCheck
from policies.envelopes import PublicKey
from policies.in_force import InForce


def entries_of(data: Path, limit: int) -> list[AuditEntry]:
    """Returns the newest entries of a data folder's audit log, newest first, unchecked. Raises AssayError if the log
    cannot be read."""
    newest = deque(lines_in(log_file(data)), maxlen=limit)
    try:
        return [audit.read(line) for line in newest][::-1]
    except ValueError as error:
        raise AssayError(
            f"the audit log cannot be read: {error}",
            "`assay audit verify` names the first bad entry",
            ExitCode.FAILED_VERDICT,
        ) from error


def lines_in(path: Path) -> list[bytes]:
    """Returns all lines of an audit log. Raises UsageError if it is unreadable."""
    try:
        return list(lines_of(path))
    except OSError as error:
        raise UsageError(
            f"{path}: {error.strerror}", "name a log or an export, or a data folder with --data"
        ) from error


ATTEMPTS = 5
"""Reads of a log that seems bad, since the daemon may be writing to it."""


class Checked(NamedTuple):
    found: LogCheck
    fingerprint: str
    """Fingerprint of the key that the signatures were checked with."""
    notes: list[str]
    """Limits of this check."""
    differs: list[str]
    """Ledger records that contradict the log."""

    @property
    def holds(self) -> bool:
        return self.found.holds and not self.differs


def verified(
    data: Path, file: Path | None, key: Path | None, known: Sequence[str], kept: Sequence[Path] | None = None
) -> Checked:
    """Checks an audit log or an export. The data folder's own log is also checked against the heads in `kept`, and its
    ledger against the log. Raises AssayError if there is nothing to check."""
    try:
        heads = [Head.read(text) for text in known]
    except ValueError as error:
        raise UsageError(str(error), "note the head as `assay audit verify` prints it") from error
    if key is None and file is None and public_file(data, "daemon").exists():
        key = public_file(data, "daemon")
    if file is not None:
        found, public, notes = _in_file(file, key, heads)
        differs: list[str] = []
    else:
        found, public, notes, differs = _in_folder(data, key, heads, kept_files(data, kept))
    if key is None:
        notes.append("the key comes from the log itself: compare it with one that you noted, or give --key")
    return Checked(found, PublicKey.of(public).fingerprint, notes, differs)


def _in_file(file: Path, key: Path | None, heads: Sequence[Head]) -> tuple[LogCheck, Ed25519PublicKey, list[str]]:
    lines = lines_in(file)
    public = _public(key, lines)
    if lines and audit.is_export(lines[-1]):
        return audit.check_export(lines, public, known=heads), public, []
    notes = [] if heads else ["this is a log, not an export: missing entries at its end cannot be detected"]
    return audit.check(lines, public, known=heads), public, notes


def _in_folder(
    data: Path, key: Path | None, heads: Sequence[Head], kept: Sequence[Path]
) -> tuple[LogCheck, Ed25519PublicKey, list[str], list[str]]:
    for attempt in range(ATTEMPTS):
        head = _head_in_ledger(data)
        lines = lines_in(log_file(data))
        public = _public(key, lines)
        entries: list[AuditEntry] = []
        found = audit.check(lines, public, known=[*heads, *_head_of(head)], entries=entries)
        in_force = InForce()
        for entry in entries:
            in_force.add(entry)
        problem = KeptHeads(kept).problem(lines, public, expected=False) if found.holds else None
        if problem is not None:
            found = LogCheck(found.entries, found.head, *problem, found.back)
        differs = _differs(data, in_force) if found.holds and in_force.adopted else []
        if found.holds and entries and not in_force.adopted:
            differs = ["the log does not list the ledger's records: run `assay audit renew` again"]
        if found.holds and not differs:
            break
        if attempt < ATTEMPTS - 1:
            time.sleep(0.05)
    notes = [] if head else ["the ledger has no entry: a truncated log cannot be detected"]
    if kept and in_force.adopted and not any(file.exists() for file in kept):
        notes.append(f"no head at {kept[0]}: an old copy of the whole folder cannot be detected")
    return found, public, notes, differs


def _differs(data: Path, in_force: InForce) -> list[str]:
    """Lists the ledger records that contradict the audit log; reads beside a running daemon. Raises AuditError."""
    from appliance.ledger.comparison import mismatches

    path = data / "ledger.sqlite3"
    if not path.exists():
        return [f"{path} does not exist"]
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=5.0)) as reading:
            return list(mismatches(lambda query, *of: reading.execute(query, of).fetchall(), in_force, texts=None))
    except sqlite3.Error as error:
        raise AuditError(f"the ledger {path} cannot be read: {error}", hint="restore a backup of it") from error


def write_export(data: Path, file: Path, kept: Sequence[Path] | None = None) -> Head:
    """Writes the data folder's audit log with a signed end into a new file, and returns its head. Raises AssayError,
    and AuditError: an invalid log is not signed."""
    checked = verified(data, None, None, [], kept)
    if not checked.found.holds or checked.found.head is None:
        raise AssayError(
            f"the log is invalid and was not exported: entry {checked.found.bad}: {checked.found.problem}",
            "run `assay audit verify`; copy the file as it is with cp",
            ExitCode.FAILED_VERDICT,
        )
    lines = list(lines_in(log_file(data)))[: checked.found.entries]
    try:
        with file.open("xb") as out:
            for line in audit.export(lines, load_key(data, "daemon"), utc_now()):
                out.write(line)
            out.flush()
            os.fsync(out.fileno())
    except OSError as error:
        raise UsageError(
            f"{file} cannot be written: {error.strerror}", "choose another file; existing ones are not overwritten"
        ) from error
    return checked.found.head


def kept_files(data: Path, files: Sequence[Path] | None) -> Sequence[Path]:
    """Returns the files that keep the audit log's head outside the data folder: the given ones, or the default ones."""
    from appliance.settings.client_config import ClientSettings

    return head_files(ClientSettings(data=data), data) if files is None else files


def _public(key: Path | None, lines: Sequence[bytes]) -> Ed25519PublicKey:
    """Returns the public key in a file, or the one in the audit log's first entry. Raises AssayError if neither has a
    key."""
    try:
        if key is not None:
            return PublicKey.read(key.read_text(encoding="utf-8")).key()
        first = audit.read(lines[0] if lines else b"")
        return PublicKey.read(str(first.what.get("daemon"))).key()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(
            f"no usable key: {key or 'the first entry'}: {reason}", "name the daemon's public key with --key"
        ) from error


def _head_of(line: bytes | None) -> list[Head]:
    try:
        return [] if line is None else [Head.of(line)]
    except ValueError as error:
        raise AssayError(
            f"the ledger's copy of the newest entry was changed: {error}",
            "restore a backup of the ledger, or run `assay audit renew`",
            ExitCode.FAILED_VERDICT,
        ) from error


def _head_in_ledger(data: Path) -> bytes | None:
    """Returns the ledger's copy of the audit log's newest line, read beside the daemon; None without a ledger. Raises
    AuditError."""
    path = data / "ledger.sqlite3"
    if not path.exists():
        return None
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=5.0)) as connection:
            row = connection.execute("SELECT line FROM audit_head").fetchone()
    except sqlite3.Error as error:
        raise AuditError(
            f"the ledger {path} cannot be read: {error}", hint="start the daemon once, or see its log"
        ) from error
    return str(row[0]).encode("ascii", "replace") if row else None
