"""Records certificates of tasksets as entries of the audit log, signed by the daemon's key.

Invariants: the newest certificate of a taskset counts, and a failed one revokes the one before. A cycle's plan has the
certificates from its start, and its worker compares them with what the code generates.
"""

from __future__ import annotations

from pathlib import Path

from appliance.audit.kept_heads import KeptHeads, acting_for_owner
from appliance.audit.log import AuditLog, log_file
from appliance.audit.machine_keys import load_key
from appliance.ledger.audited import AuditedLedger
from appliance.ledger.lock import data_lock
from appliance.system.clock import utc_now
from curriculum.certification.certificate import Certificate
from policies.in_force import CERTIFICATE


def record_certificate(log: AuditLog, certificate: Certificate) -> Certificate:
    """Writes a taskset's certificate into the audit log and returns it. Raises AuditError."""
    log.append(CERTIFICATE, **certificate.model_dump(mode="json"), holds=certificate.holds)
    return certificate


def record_without_daemon(data: Path, heads: tuple[Path, ...], certificate: Certificate) -> None:
    """Writes a taskset's certificate into the audit log of a data folder without a running daemon. Raises LedgerError
    while one runs, and AuditError."""
    with acting_for_owner(data), data_lock(data):
        key = load_key(data, "daemon")
        with AuditedLedger(data / "ledger.sqlite3", log_file(data), key, utc_now, KeptHeads(heads)) as ledger:
            record_certificate(ledger.audit, certificate)
