"""The audit log on disk: `audit/log.jsonl` in the data folder; the ledger has its newest line as well.

Invariants: an entry is stored in the ledger first (one transaction, on disk), then appended to the file (synced), and
`append` returns after both. A kill or power cut in between leaves a file that ends in a prefix of the ledger's line;
the next start completes it. If either write fails, the entry is taken back and `append` raises: the logged action must
then not happen. Any other difference was not caused by this program: the log is refused and left as it is.

Statements about entries refer to the bytes that were checked: the file is read once, and if it is exchanged, grows or
shrinks, nothing more is appended. After each entry its head is written outside the data folder.

One process has the log open (the holder of the data folder's lock); its threads may share it. Not promised: an entry
says what was about to happen, and a kill may follow immediately.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import JsonValue

from appliance.audit.kept_heads import MOVED, KeptHeads
from appliance.system.durable_file import sync_folder
from common.errors import HintedError
from policies import audit
from policies.audit import START, AuditEntry, Head
from policies.in_force import InForce

REPAIR = (
    "`assay audit verify` says what is wrong; restore an earlier copy of the data folder, or begin a new log with "
    "`assay audit renew`, which keeps this one and forgets all known keys"
)


class AuditError(HintedError):
    """The audit log is unusable or an entry could not be logged: the action must then not happen."""


class AuditBroken(AuditError):
    """Another program changed the audit log; `number` is the first bad entry."""

    def __init__(self, message: str, number: int, *, hint: str) -> None:
        super().__init__(message, hint=hint)
        self.number = number


class Heads(Protocol):
    """Storage of the audit log's newest line apart from the log file."""

    def audit_head(self) -> bytes | None: ...

    def put_audit_head(self, line: bytes | None) -> None:
        """Stores the audit log's newest line on disk before returning; None for a log without entries."""


def log_file(data: Path) -> Path:
    return data / "audit" / "log.jsonl"


def lines_of(path: Path) -> Iterator[bytes]:
    """Yields the lines of an audit log file with their line feeds. Raises OSError."""
    with path.open("rb") as source:
        yield from source


class AuditLog:
    """The audit log in the file `path`: opening it completes an interrupted last entry and checks the whole chain.

    `now` gives UTC in ISO 8601. `in_force` gets each entry once, in order; `kept` are the copies of the head outside
    the data folder, which `accept` overwrites with the log's. Raises AuditBroken for a log that was changed, AuditError
    if it cannot be read or written.
    """

    def __init__(
        self,
        path: Path,
        key: Ed25519PrivateKey,
        heads: Heads,
        now: Callable[[], str],
        in_force: InForce | None = None,
        kept: KeptHeads | None = None,
        *,
        accept: bool = False,
    ) -> None:
        self.path = path
        self.in_force = in_force or InForce()
        self._key = key
        self._heads = heads
        self._kept = kept or KeptHeads()
        self._accept = accept
        self._now = now
        self.lock = threading.RLock()
        """Lock under which no entry is half recorded."""
        self._unsure = ""
        self.latest = ""
        """Latest time of any entry; empty without entries."""
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
            self._file = os.open(path, flags, 0o600)
            sync_folder(path.parent)
        except OSError as error:
            raise _failed(path, error) from error
        try:
            self._open()
        except BaseException:
            os.close(self._file)
            raise

    def close(self) -> None:
        """Closes the audit log's file and the copies of its head. Every later append raises AuditError."""
        with self.lock:
            if self._file >= 0:
                os.close(self._file)
                self._kept.close()
                self._file = -1

    def append(self, kind: str, **what: JsonValue) -> AuditEntry:
        """Appends a signed entry of a kind (`decision`, `key.admitted`) to the audit log and returns it. Raises
        AuditError or what the ledger raises; then nothing is recorded and the action must not happen."""
        return self.append_with(self._heads.put_audit_head, self._heads.put_audit_head, kind, **what)

    def append_with(
        self, put: Callable[[bytes], None], take_back: Callable[[bytes | None], None], kind: str, **what: JsonValue
    ) -> AuditEntry:
        """Appends an entry to the audit log together with its effect on the ledger, and returns it. `put` writes the
        newest line and the effect in one transaction, so that a kill leaves both or neither. `take_back` undoes both
        and gets the previous line."""
        with self.lock:
            self._require_usable()
            entry = AuditEntry(number=self._number, previous=self._previous, at=self._now(), kind=kind, what=what)
            line = audit.write(entry, self._key)
            before = self.newest
            put(line)
            try:
                self._write(line)
            except OSError as error:
                self._take_back(take_back, before, error)
                raise _failed(self.path, error) from error
            self._count(entry, line)
            self._put_kept()
            return entry

    def entries(self) -> Iterator[AuditEntry]:
        """Yields every entry of the audit log from the first on. Raises AuditError if it cannot be read."""
        try:
            for line in lines_of(self.path):
                yield audit.read(line)
        except OSError as error:
            raise _failed(self.path, error) from error

    @property
    def head(self) -> Head | None:
        """Number and digest of the audit log's newest entry; None without entries."""
        return Head(self._number - 1, self._previous) if self._number else None

    @property
    def first(self) -> str:
        """SHA-256 of the audit log's first line, which identifies the log. Raises AuditError without an entry."""
        if not self._number:
            raise AuditError(f"{self.path} has no entry yet", hint=REPAIR)
        return self._first

    def _open(self) -> None:
        self._number, self._previous, self._bytes = 0, START, 0
        self._first = START
        self.newest: bytes | None = None
        """The newest line."""
        try:
            content = list(lines_of(self.path))
        except OSError as error:
            raise _failed(self.path, error) from error
        newest = self._heads.audit_head()
        if newest is None:
            if content:
                raise self._broken(0, "the ledger knows of no entry: it, or this file, was exchanged")
            self._require_kept([])
            return
        try:
            head = audit.read(newest)
        except ValueError as error:
            raise self._broken(len(content), f"the ledger's copy of the newest entry: {error}") from error
        content, missing = _completed(content, newest, head)
        known = Head(head.number, audit.digest_of(newest))
        entries: list[AuditEntry] = []
        found = audit.check(content, self._key.public_key(), known=[known], signatures=False, entries=entries)
        if found.bad is not None:
            # The chain alone is fast, but may detect a changed entry only at the next one.
            found = audit.check(content, self._key.public_key(), known=[known])
        if found.bad is not None:
            raise self._broken(found.bad, found.problem)
        if found.head != known:
            raise self._broken(head.number + 1, "the ledger does not know of it")
        for entry, line in zip(entries, content, strict=True):
            self._count(entry, line)
        self._require_kept(content)
        if missing:
            self._bytes -= len(missing)
            try:
                self._write(missing)
            except OSError as error:
                raise _failed(self.path, error) from error
            self._bytes += len(missing)
            self.append("audit.completed", bytes=len(missing))
        elif content:
            self._put_kept()

    def _require_kept(self, content: list[bytes]) -> None:
        """Checks the audit log against the copies of its head outside the data folder, and opens them for writing.
        Raises AuditBroken if one belongs to another log, AuditError if one cannot be read or written."""
        try:
            found = self._kept.problem(content, self._key.public_key(), expected=self.in_force.adopted)
            if found is None or self._accept:
                self._kept.open()
                return
        except OSError as error:
            raise AuditError(
                f"audit.head: the head of the log cannot be written: {error.filename}: {error.strerror}",
                hint="make its folder writable for the daemon's user, or name another file with audit.head "
                "(ASSAY_AUDIT__HEAD), the same one for the daemon and for commands",
            ) from error
        raise AuditBroken(
            f"the audit log {self.path} does not hold: entry {found[0]}: {found[1]}", found[0], hint=MOVED
        )

    def _put_kept(self) -> None:
        """Writes the audit log's head to its copies outside the data folder. After a failure recorded entries stay, but
        nothing more is logged."""
        try:
            self._kept.put(self._first, Head(self._number - 1, self._previous), self._key)
        except OSError as error:
            self._unsure = f"its head cannot be written: {error.filename or ''} {error.strerror}"

    def _broken(self, number: int, problem: str) -> AuditBroken:
        return AuditBroken(f"the audit log {self.path} does not hold: entry {number}: {problem}", number, hint=REPAIR)

    def _write(self, line: bytes) -> None:
        left = memoryview(line)
        while left:
            left = left[os.write(self._file, left) :]
        os.fsync(self._file)

    def _take_back(self, undo: Callable[[bytes | None], None], before: bytes | None, error: OSError) -> None:
        """Removes an audit log entry that could not be written, from the file and the ledger. If that fails too,
        nothing more is logged before the next start."""
        try:
            os.ftruncate(self._file, self._bytes)
            os.fsync(self._file)
            undo(before)
        except Exception as second:  # noqa: BLE001 - whatever it is, this log is not sure of itself any more
            self._unsure = f"{error.strerror}, and then {second}"

    def _count(self, entry: AuditEntry, line: bytes) -> None:
        self._number, self._previous, self.newest = entry.number + 1, audit.digest_of(line), line
        if entry.number == 0:
            self._first = self._previous
        self._bytes += len(line)
        self.latest = max(self.latest, entry.at)
        self.in_force.add(entry)

    def _require_usable(self) -> None:
        if self._file < 0:
            raise AuditError("the audit log is closed", hint="the daemon is stopping: start it again")
        if self._unsure:
            raise AuditError(
                f"the audit log {self.path} could not be written: {self._unsure}",
                hint="check the disk, then restart the daemon",
            )
        if problem := self.changed():
            raise self._broken(self._number, problem)

    def changed(self) -> str:
        """Returns what another program did to the audit log file since it was read; empty if inode and length match."""
        try:
            mine, there = os.fstat(self._file), self.path.lstat()
        except OSError as error:
            return f"the file cannot be found: {error.strerror}"
        if (mine.st_dev, mine.st_ino) != (there.st_dev, there.st_ino):
            return "another file was put in its place"
        return "" if mine.st_size == self._bytes else f"the file has {mine.st_size} bytes instead of {self._bytes}"


def _completed(content: list[bytes], newest: bytes, head: AuditEntry) -> tuple[list[bytes], bytes]:
    """Returns the audit log's lines with the end that a kill left out, and that missing end. The lines are unchanged
    for any other difference."""
    torn = content[-1] if content and not content[-1].endswith(b"\n") else b""
    whole = content[:-1] if torn else content
    previous = audit.digest_of(whole[-1]) if whole else START
    if not newest.startswith(torn) or (head.number, head.previous) != (len(whole), previous):
        return content, b""
    return [*whole, newest], newest[len(torn) :]


def _failed(path: Path, error: OSError) -> AuditError:
    return AuditError(
        f"the audit log {path} cannot be used: {error.strerror}",
        hint="free some space, or make it writable for the daemon's user: what cannot be logged does not happen",
    )
