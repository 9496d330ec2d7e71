"""Copies of the audit log's head outside the data folder: one file, and optionally a witness.

Invariants: a file is at most one entry behind the log and never ahead of it; so a log that ends earlier, differs at
that entry or is signed with another key was exchanged, and is refused. A file is one sector, overwritten whole and not
synced: after a power cut it may be some entries behind, which is no error.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from policies import audit
from policies.audit import Head

MOVED = (
    "restore the previous data folder; or run `assay audit accept` if you moved it here or restored an old copy "
    "yourself, `assay audit renew --reason TEXT` if you removed the one that was here"
)


class KeptHeads:
    """Reads and writes copies of the audit log's head in files outside the data folder. Without files, no head is
    stored outside, as in tests of the log alone."""

    def __init__(self, files: Sequence[Path] = ()) -> None:
        self._files = tuple(files)
        self._open: list[int] = []

    def problem(self, lines: Sequence[bytes], public: Ed25519PublicKey, *, expected: bool) -> tuple[int, str] | None:
        """Compares the stored heads with the audit log. Returns the number of the first entry that contradicts one, and
        the problem; None if all agree.

        `lines` are the log's, whose chain was checked; `expected` requires that a file exists. Raises OSError.
        """
        known = [(file, content) for file in self._files if file.exists() and (content := file.read_bytes())]
        for file, content in known:
            try:
                log, head = audit.read_head(content, public)
            except ValueError as error:
                return 0, f"the head in {file} cannot be read: {error}"
            if head.number >= len(lines):
                return len(lines), f"the log ends here, and {file} knows of entry {head.number}: its end was cut off"
            if log != audit.digest_of(lines[0]) or head.digest != audit.digest_of(lines[head.number]):
                return head.number, f"it is another one than {file} knows: another log was put in its place"
        if expected and self._files and not known:
            return 0, f"{self._files[0]} is not there, and this log has a head outside the data folder"
        return None

    def open(self) -> None:
        """Opens the files of the audit log's head for writing, creating missing ones. Raises OSError."""
        for file in self._files:
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if file.parent.stat().st_uid not in (0, os.geteuid()):
                raise PermissionError(errno.EPERM, "its folder is another user's", str(file))
            flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            self._open.append(os.open(file, flags, 0o600))

    def put(self, log: str, head: Head, key: Ed25519PrivateKey) -> None:
        """Signs the audit log's head and writes it to all its files outside the data folder. Raises OSError."""
        content = audit.write_head(log, head, key) if self._open else b""
        for number in self._open:
            os.pwrite(number, content, 0)

    def close(self) -> None:
        while self._open:
            os.close(self._open.pop())
