"""Certificates of tasksets on record: entries of the audit log, which the daemon's key signs.

What always holds: the newest certificate of a taskset counts, and one that failed takes back the one before it. A cycle
has in its plan what was certified when it began, and its worker compares that with what the code makes.
"""

from __future__ import annotations

from pathlib import Path

from appliance.audit.head_places import acting_for_owner
from appliance.audit.kept_heads import KeptHeads
from appliance.audit.log import AuditLog, log_file
from appliance.audit.machine_keys import load_key
from appliance.ledger.audited import AuditedLedger
from appliance.ledger.lock import data_lock
from appliance.system.clock import utc_now
from curriculum.certification.certificate import Certificate
from policies.in_force import CERTIFICATE


def record_certificate(log: AuditLog, certificate: Certificate) -> Certificate:
    """Raises AuditError where it cannot be logged."""
    log.append(CERTIFICATE, **certificate.model_dump(mode="json"), holds=certificate.holds)
    return certificate


def record_without_daemon(data: Path, heads: tuple[Path, ...], certificate: Certificate) -> None:
    """Logs it in a data folder on which no daemon works. Raises LedgerError while one does, and AuditError."""
    with acting_for_owner(data), data_lock(data):
        key = load_key(data, "daemon")
        with AuditedLedger(data / "ledger.sqlite3", log_file(data), key, utc_now, KeptHeads(heads)) as ledger:
            record_certificate(ledger.audit, certificate)
