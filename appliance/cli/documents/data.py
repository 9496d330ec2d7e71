"""Documents about the data folder: backups, the audit log, keys, configuration, bundles, what the doctor saw."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import RootModel

from appliance.cli.documents.doctor_checks import DoctorCheck
from runtime.model import FrozenModel


class BackupDocument(FrozenModel):
    """One backup, and what was done with it."""

    backup: str
    """Its name."""
    format: str
    created: str
    version: str
    data: str
    schema_revision: str
    head: str
    champion: str
    secrets: tuple[str, ...]
    files: int
    bytes: int


class RestoredDocument(BackupDocument):
    restored: str
    """The data folder."""
    aside: str | None
    """Where the one before is."""
    decided_since: int
    """Entries of the audit log that hold no more."""
    tokens_revoked: tuple[str, ...]


class BackupsDocument(FrozenModel):
    backups: tuple[BackupDocument, ...]
    """Oldest first."""


class RemovedBackup(FrozenModel):
    backup: str
    freed_bytes: int


class AuditCheckDocument(FrozenModel):
    holds: bool
    entries: int
    head: str | None
    first_bad: int | None
    problem: str
    clock_back: int | None
    """The entry before which the clock was set back."""
    key: str
    differs: tuple[str, ...]
    kept: tuple[str, ...]
    """Where the newest head is kept outside the data folder."""
    notes: tuple[str, ...]


class AuditHeadDocument(FrozenModel):
    entries: int
    head: str
    files: tuple[str, ...]
    """What was written: the export, or where the head is kept."""


class RenewedLog(FrozenModel):
    old_log: str | None
    aliases: dict[str, str | None]
    """What the new log takes from the ledger as it is."""


class OfferedKey(FrozenModel):
    person: str
    fingerprint: str
    file: str
    """The key, or the admission that others have to sign."""
    known: bool
    """Whether the daemon knows it now."""
    waits_for: str
    """What has to be done before it is known; empty where nothing has to."""


class DoctorDocument(FrozenModel):
    sound: bool
    checks: tuple[DoctorCheck, ...]


class ConfigValue(FrozenModel):
    value: Any
    origin: str


class ConfigDocument(RootModel[dict[str, ConfigValue]]):
    """Every key, dotted."""


class ConfigKeyDocument(FrozenModel):
    name: str
    type: str
    unit: str
    default: Any
    description: str
    variable: str
    value: Any
    origin: str


class WrittenFile(FrozenModel):
    """What was written where."""

    file: str
    also: str = ""
    """Of a bundle: the person's later signature, which is not in it."""


class BugReportDocument(FrozenModel):
    file: str
    parts: tuple[str, ...]


class UnreadableBundle(FrozenModel):
    """There is no bundle, or no key, that could be read (exit code 2)."""

    ok: Literal[False]
    error: str
    hint: str


class PolicyInForceDocument(FrozenModel):
    digest: str
    changed: bool
    """False where it was in force already."""


class NoticesDocument(RootModel[dict[str, str]]):
    """Why a notice did not arrive, by the way it went; empty for one that did."""


class CommandSchema(FrozenModel):
    command: str
    when: str
    """Where a command prints one of several documents: which one this is."""
    form: Literal["document", "list", "lines"]
    model: str
