"""Whether a backup is of the same history as the data folder whose place it is to take.

What always holds: where a folder, or a head outside of it, says whose log was here, a backup counts only if it was
signed with the same key and one of the two logs begins with the whole other one. For anything else a person has to name
the fingerprint of the backup's key: a backup that holds in itself may have been made by whoever had the disk.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from appliance.audit.log import log_file
from appliance.audit.machine_keys import public_file
from appliance.backup.store import BackupError
from policies import audit
from policies.envelopes import PublicKey


class OtherHistoryError(BackupError):
    """The backup is of another history than the folder that it would replace."""

    exit_code = 1


def decided_since(log: bytes, key: str, data: Path, kept: Sequence[Path], accepted: str | None) -> int:
    """How many entries are younger than the backup whose log and public key (a line) these are; `accepted` is the
    fingerprint that a person named. Raises OtherHistoryError, OSError."""
    fingerprint = _fingerprint(key)
    if accepted is not None and accepted != fingerprint:
        raise OtherHistoryError(
            f"the backup was signed with the key {fingerprint}, not with {accepted}", hint="use another backup"
        )
    lines = log.splitlines(keepends=True)
    problem, since = _beside_folder(log, fingerprint, data)
    for file in kept:
        if file.exists() and (content := file.read_bytes()):
            why, more = _beside_head(lines, key, content, file)
            problem, since = problem or why, max(since, more)
    if problem and accepted is None:
        raise OtherHistoryError(
            f"{problem}, and nothing was changed",
            hint="use a backup of this folder; if you know the key of this one, "
            f"`--accept-key {fingerprint}` takes it all the same",
        )
    return since


def _beside_folder(log: bytes, fingerprint: str, data: Path) -> tuple[str, int]:
    """What speaks against the backup in the folder, and the entries that it has more. Raises OSError."""
    path, public = log_file(data), public_file(data, "daemon")
    if public.exists() and _fingerprint(public.read_text(errors="replace")) != fingerprint:
        return f"the backup was signed with another key ({fingerprint}) than {public}", 0
    now = path.read_bytes() if path.exists() else b""
    if not now.startswith(log) and not (now and log.startswith(now)):
        return (f"the backup's log is not the beginning of {path}", 0) if now else ("", 0)
    return "", max(0, now.count(b"\n") - log.count(b"\n"))


def _beside_head(lines: Sequence[bytes], key: str, content: bytes, file: Path) -> tuple[str, int]:
    try:
        first, head = audit.read_head(content, PublicKey.read(key).key())
    except ValueError as error:
        return f"the head in {file} is not one of the backup's key: {error}", 0
    if not lines or audit.digest_of(lines[0]) != first:
        return f"{file} is the head of another log than the backup's", 0
    if head.number < len(lines) and audit.digest_of(lines[head.number]) != head.digest:
        return f"the backup's log says something else than {file} at entry {head.number}", 0
    return "", max(0, head.number + 1 - len(lines))


def _fingerprint(line: str) -> str:
    try:
        return PublicKey.read(line).fingerprint
    except ValueError:
        return ""
