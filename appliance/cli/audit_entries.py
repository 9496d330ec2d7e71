"""Reading the entries of a data folder's audit log from beside the daemon; nothing is checked here."""

from __future__ import annotations

from collections import deque
from pathlib import Path

from appliance.audit.log import lines_of, log_file
from appliance.errors import AssayError, ExitCode, UsageError
from policies import audit
from policies.audit import AuditEntry


def entries_of(data: Path, limit: int) -> list[AuditEntry]:
    """The newest, newest first; nothing is checked. Raises AssayError."""
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
    """All of them. Raises UsageError where it cannot be read."""
    try:
        return list(lines_of(path))
    except OSError as error:
        raise UsageError(
            f"{path}: {error.strerror}", "name a log or an export, or a data folder with --data"
        ) from error
