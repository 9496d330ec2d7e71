"""Verifies a backup and restores it as a data folder.

Invariants: every byte is read and compared with its digest before a folder counts. A folder in use is never
overwritten: it is moved aside whole, only on request, and only while no daemon works on it. If interrupted, the data
folder is unchanged; if killed, it is the old or the restored one, complete. Only on file systems that cannot exchange
two names (NFS) it may be left aside, and the same command continues from there.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

from appliance.audit.log import log_file
from appliance.audit.machine_keys import public_file
from appliance.backup.create import LEDGER, LedgerFacts
from appliance.backup.store import (
    SESSIONS,
    BackupError,
    BackupManifest,
    BackupStore,
    DamagedBackupError,
    NoBackupError,
    copy,
    digest_of,
)
from appliance.backup.undone import require_confirmed, undone
from appliance.learning.errors import CheckpointError
from appliance.learning.folders import verify as verify_folder
from appliance.ledger.lock import data_lock
from appliance.system.durable_file import CANNOT_EXCHANGE, exchange, sync_folder
from policies import audit
from policies.audit import Head
from policies.envelopes import PublicKey


class OtherHistoryError(BackupError):
    """The backup belongs to another history than the folder it would replace."""

    exit_code = 1


def decided_since(
    log: bytes, key: str, data: Path, kept: Sequence[Path], accepted: str | None
) -> tuple[int, list[str]]:
    """Checks that a backup belongs to a data folder's history. Returns the number of audit log entries younger than it,
    and each governance act among them.

    `log` and `key` are the backup's log and public key line, `kept` the files outside with the folder's log head.
    `accepted` is the key fingerprint that a person named, which permits another history. Raises OtherHistoryError,
    OSError.
    """
    fingerprint = _fingerprint(key)
    if accepted is not None and accepted != fingerprint:
        raise OtherHistoryError(
            f"the backup was signed with the key {fingerprint}, not with {accepted}", hint="use another backup"
        )
    lines = log.splitlines(keepends=True)
    problem, since = _beside_folder(log, fingerprint, data)
    outside = 0
    for file in kept:
        if file.exists() and (content := file.read_bytes()):
            why, more = _beside_head(lines, key, content, file)
            problem, outside = problem or why, max(outside, more)
    if problem and accepted is None:
        raise OtherHistoryError(
            f"{problem}, and nothing was changed",
            hint="use a backup of this folder; if you know the key of this one, "
            f"`--accept-key {fingerprint}` accepts it anyway",
        )
    acts = undone(log, _log_in(data))
    if outside > since:
        acts.append(f"{outside - since} newest entries, which are in no log here: revocations may be among them")
    return max(since, outside), acts


def _log_in(data: Path) -> bytes:
    path = log_file(data)
    return path.read_bytes() if path.exists() else b""


def _beside_folder(log: bytes, fingerprint: str, data: Path) -> tuple[str, int]:
    """Compares a backup's key and audit log with those of the data folder. Returns the contradiction (empty if none),
    and the folder's number of additional entries. Raises OSError."""
    path, public = log_file(data), public_file(data, "daemon")
    if public.exists() and _fingerprint(public.read_text(errors="replace")) != fingerprint:
        return f"the backup was signed with another key ({fingerprint}) than {public}", 0
    now = _log_in(data)
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


Said = Callable[[str], None]
OTHER = "use another backup: `assay backup ls` lists them"
LOG, PUBLIC = "audit/log.jsonl", "keys/daemon.pub"


class Restored(NamedTuple):
    aside: Path | None
    """The previous folder, complete; None if there was none."""
    since: int
    """Audit log entries younger than the backup."""
    undone: tuple[str, ...]
    """Governance acts among them, each as a sentence."""


def check(store: BackupStore, manifest: BackupManifest, *, said: Said = lambda text: None) -> None:
    """Verifies a backup: the bytes of every file, its ledger and its audit log's chain. Raises BackupError for the
    first difference."""
    for name, recorded in manifest.files.items():
        said(name)
        path = store.object(recorded.sha256)
        if not store.has(recorded.sha256, recorded.bytes):
            raise DamagedBackupError(f"{name} of the backup is missing or has another size: {path}", hint=OTHER)
        if digest_of(path) != recorded.sha256:
            raise DamagedBackupError(f"{name} of the backup was changed: {path}", hint=OTHER)
    if LEDGER not in manifest.files:
        raise DamagedBackupError("the backup has no ledger", hint=OTHER)
    _check_log(store, manifest, LedgerFacts(store.object(manifest.files[LEDGER].sha256)))


def _check_log(store: BackupStore, manifest: BackupManifest, facts: LedgerFacts) -> None:
    head = str(Head.of(facts.line)) if facts.line is not None else ""
    if (head, facts.aliases.get("champion", "")) != (manifest.head, manifest.champion):
        raise DamagedBackupError("the ledger of the backup does not match its manifest", hint=OTHER)
    for model in facts.aliases.values():
        if f"models/{model}/manifest.json" not in manifest.files:
            raise DamagedBackupError(f"the backup lacks the model {model[:12]}, which was in service", hint=OTHER)
    if not head:
        return
    if LOG not in manifest.files or PUBLIC not in manifest.files:
        raise DamagedBackupError("the backup lacks its audit log, or the key that it was signed with", hint=OTHER)
    lines = store.object(manifest.files[LOG].sha256).read_bytes().splitlines(keepends=True)
    try:
        key = PublicKey.read(store.object(manifest.files[PUBLIC].sha256).read_text(errors="replace")).key()
    except ValueError as error:
        raise DamagedBackupError(f"{PUBLIC} of the backup is not a valid key: {error}", hint=OTHER) from error
    found = audit.check(lines, key, known=[Head.read(head)])
    if not found.holds or str(found.head) != head:
        raise DamagedBackupError(f"the audit log of the backup is invalid: {found.problem or 'its end'}", hint=OTHER)


def restore(
    store: BackupStore,
    manifest: BackupManifest,
    data: Path,
    *,
    stamp: str,
    replace: bool,
    kept: Sequence[Path] = (),
    accept_key: str | None = None,
    confirm: Callable[[Sequence[str]], None] = lambda acts: require_confirmed(acts, None),
    accept: Callable[[Path], None] = lambda folder: None,
    said: Said = lambda text: None,
) -> Restored:
    """Verifies a backup and restores it as the data folder; with `replace`, an existing folder is moved aside.

    `kept` are the files outside with heads of its log, `accept_key` the fingerprint of a key of another history that a
    person accepts; `confirm` is called with the governance acts that the restore undoes, and raises unless a person
    agrees; `accept` is called with the new folder once it is in place. Raises BackupError, OSError, and LedgerError
    while a daemon works there.
    """
    used = data.is_dir() and any(data.iterdir())
    if data.is_symlink() or (data.exists() and not data.is_dir()):
        raise NoBackupError(f"{data} is not a folder", hint="name another one with --data")
    if used and not replace:
        raise NoBackupError(
            f"{data} is in use and is never overwritten",
            hint="name a new folder with --data, or move this one aside with --replace",
        )
    check(store, manifest, said=said)
    owner = data.stat() if data.exists() else None
    data.parent.mkdir(parents=True, exist_ok=True)
    made = data.with_name(f".{data.name}.restoring")
    aside = data.with_name(f"{data.name}.before-restore-{stamp}")
    with data_lock(data) if used else nullcontext():
        log, key = (_text(store, manifest, name) for name in (LOG, PUBLIC))
        since, acts = decided_since(log, key.decode(errors="replace"), data, kept, accept_key)
        confirm(acts)
        try:
            if made.exists():
                shutil.rmtree(made)
            _fill(made, store, manifest, said)
            if owner is not None and os.geteuid() == 0:
                for folder, _, names in os.walk(made):
                    for path in (Path(folder), *(Path(folder, name) for name in names)):
                        os.chown(path, owner.st_uid, owner.st_gid)
            if used:
                _exchange(made, data, aside)
            else:
                made.rename(data)
            sync_folder(data.parent)
        except BaseException:
            shutil.rmtree(made, ignore_errors=True)
            raise
    try:
        accept(data)
    except BaseException:
        _take_back(data, aside, used=used)
        raise
    return Restored(aside if used else None, since, tuple(acts))


def _text(store: BackupStore, manifest: BackupManifest, name: str) -> bytes:
    return store.object(manifest.files[name].sha256).read_bytes() if name in manifest.files else b""


def _exchange(new: Path, data: Path, aside: Path) -> None:
    """Moves the data folder aside and the restored one into its place. Raises OSError and then changes nothing."""
    new.rename(aside)
    try:
        exchange(aside, data)
    except OSError as error:
        aside.rename(new)
        if error.errno not in CANNOT_EXCHANGE:
            raise
        data.rename(aside)
        try:
            new.rename(data)
        except BaseException:
            aside.rename(data)
            raise


def _take_back(data: Path, aside: Path, *, used: bool) -> None:
    """Puts the previous data folder back and removes the restored one, which was not accepted. Raises BackupError."""
    made = data.with_name(f".{data.name}.restoring")
    try:
        if used:
            _exchange(aside, data, made)
        else:
            data.rename(made)
        sync_folder(data.parent)
    except OSError as error:
        where = f"; the folder before is {aside}" if used else ""
        raise BackupError(
            f"the log was not accepted, and {data} cannot be moved back: {error.strerror}{where}",
            hint="move it back by hand before a daemon starts",
        ) from error
    shutil.rmtree(made, ignore_errors=True)


def _fill(made: Path, store: BackupStore, manifest: BackupManifest, said: Said) -> None:
    made.mkdir(mode=0o700)
    for name, recorded in manifest.files.items():
        if name.startswith(f"{SESSIONS}/"):
            continue
        said(name)
        target = made / name
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        copy(store.object(recorded.sha256), target)
        target.chmod(recorded.mode & 0o700)
        if digest_of(target) != recorded.sha256:
            raise DamagedBackupError(f"{name} was restored with other bytes: check the disk", hint=OTHER)
    for folder, _, _ in os.walk(made):
        Path(folder).chmod(0o700)
        sync_folder(Path(folder))
    if manifest.champion:
        try:
            verify_folder(made / "models" / manifest.champion, expect=manifest.champion)
        except CheckpointError as error:
            raise DamagedBackupError(
                f"the model in service is incomplete in this backup: {error}", hint=OTHER
            ) from error
