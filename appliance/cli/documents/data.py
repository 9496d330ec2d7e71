"""Documents about the data folder: backups, the audit log, keys, configuration, bundles, what the doctor saw."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import RootModel

from appliance.cli.documents.doctor_checks import DoctorCheck
from runtime.model import FrozenModel


class BackupDocument(FrozenModel):
    """One backup, and what was done with it."""

    backup: str
    """Name of the backup."""
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


class PluginDocument(FrozenModel):
    """One distribution that adds to the product."""

    distribution: str
    version: str = ""
    digest: str = ""
    state: Literal["admitted", "not in the policy", "refused", "unusable"]
    """`refused`: the policy admits it in another form; `unusable`: its installed files cannot be vouched for."""
    problem: str = ""
    adds: tuple[str, ...] = ()
    """What it adds: seam and name."""
    certified: bool = False
    """True if the newest certificate in the audit log is for these very files."""


class PluginCertificate(FrozenModel):
    distribution: str
    version: str
    digest: str
    checks: dict[str, tuple[str, ...]]
    """Faults of each row that it adds."""
    faults: tuple[str, ...]
    signed: str
    """Outcome of signing the certificate into the audit log."""


class RestoredDocument(BackupDocument):
    restored: str
    """The data folder."""
    aside: str | None
    """Place of the previous data folder; None without one."""
    decided_since: int
    """Entries of the audit log that no longer count."""
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
    """Places outside the data folder that keep the newest head."""
    notes: tuple[str, ...]


class AuditHeadDocument(FrozenModel):
    entries: int
    head: str
    files: tuple[str, ...]
    """Written files: the export, or the copies of the head."""


class RenewedLog(FrozenModel):
    old_log: str | None
    aliases: dict[str, str | None]
    """Aliases that the new log takes over from the ledger."""


class OfferedKey(FrozenModel):
    person: str
    fingerprint: str
    file: str
    """The key, or the admission that others must sign."""
    known: bool
    """True if the daemon knows the key now."""
    waits_for: str
    """Step that is missing before the key is known; empty if none is."""


class DoctorDocument(FrozenModel):
    sound: bool
    checks: tuple[DoctorCheck, ...]


class ConfigValue(FrozenModel):
    value: Any
    origin: str


class ConfigDocument(RootModel[dict[str, ConfigValue]]):
    """Every configuration key, dotted, with value and origin."""


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
    """A file that was written, and its place."""

    file: str
    also: str = ""
    """The person's later signature of a bundle, which is not inside it."""


class BugReportDocument(FrozenModel):
    file: str
    parts: tuple[str, ...]


class UnreadableBundle(FrozenModel):
    """Report that a bundle, or the key to verify it with, is not readable (exit code 2)."""

    ok: Literal[False]
    error: str
    hint: str


class PolicyInForceDocument(FrozenModel):
    digest: str
    changed: bool
    """False if the policy was in force already."""


class NoticesDocument(RootModel[dict[str, str]]):
    """Reason for each channel why a notice did not arrive; empty for one that did."""


class CommandSchema(FrozenModel):
    command: str
    when: str
    """Condition for this document if a command prints one of several."""
    form: Literal["document", "list", "lines"]
    model: str
