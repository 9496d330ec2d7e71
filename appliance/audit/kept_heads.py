"""The audit log's head outside the data folder, where whoever can write the log cannot: in one file, and in a witness.

What always holds: a file is at most one entry behind the log and never before it, so a log that ends earlier, says
something else there or is signed with another key is not the one that was written here; such a log is refused. A file
is one sector, overwritten whole and not synced: after a power cut it may be some entries behind, which is no fault.
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
    "put the data folder of then back; `assay audit accept` if you moved it here or put an old copy back yourself, "
    "`assay audit renew --reason TEXT` if you removed the one that was here"
)


class KeptHeads:
    """No file: nothing is kept outside, as in a test of the log alone."""

    def __init__(self, files: Sequence[Path] = ()) -> None:
        self._files = tuple(files)
        self._open: list[int] = []

    def problem(self, lines: Sequence[bytes], public: Ed25519PublicKey, *, expected: bool) -> tuple[int, str] | None:
        """The number of the first entry that is not as a file knows it, and what is wrong. `lines` are those of the
        log, whose chain was checked; `expected` says that a file has to be there. Raises OSError."""
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
        """Raises OSError."""
        for file in self._files:
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if file.parent.stat().st_uid not in (0, os.geteuid()):
                raise PermissionError(errno.EPERM, "its folder is another user's", str(file))
            flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            self._open.append(os.open(file, flags, 0o600))

    def put(self, log: str, head: Head, key: Ed25519PrivateKey) -> None:
        """Raises OSError."""
        content = audit.write_head(log, head, key) if self._open else b""
        for number in self._open:
            os.pwrite(number, content, 0)

    def close(self) -> None:
        while self._open:
            os.close(self._open.pop())
