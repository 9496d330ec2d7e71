"""Beginning a new audit log, and taking one as it is: each alone with the data folder, while no daemon works on it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from appliance import __version__
from appliance.audit.head_places import acting_for_owner
from appliance.audit.kept_heads import KeptHeads
from appliance.audit.log import log_file
from appliance.audit.machine_keys import MACHINES, load_key, load_or_make, public_file
from appliance.cli.audit.read import kept_files, verified
from appliance.errors import AssayError, ExitCode
from appliance.gateway.tokens import revoke_all
from appliance.ledger.adoption import adopt
from appliance.ledger.audited import AuditedLedger
from appliance.ledger.lock import data_lock
from appliance.ledger.sqlite import SqliteLedger
from appliance.system.clock import file_stamp, utc_now
from policies import audit
from policies.audit import Head
from policies.envelopes import PublicKey
from policies.in_force import BEGIN


def begin_anew(data: Path, reason: str, kept: Sequence[Path] | None = None) -> Path | None:
    """Sets the log aside and begins another, whose first entry says why, and whose newest what it takes from the ledger
    as it is; returns where the old one is. Raises LedgerError while a daemon works on the folder."""
    path = log_file(data)
    stamp = file_stamp()
    aside = path.with_name(f"log.before-{stamp}.jsonl")
    heads = KeptHeads(kept_files(data, kept))
    with acting_for_owner(data), data_lock(data):
        before: dict[str, str | None] = {"file": None, "sha256": None, "ledger": None}
        with SqliteLedger(data / "ledger.sqlite3") as plain:
            head = plain.audit_head()
            if head is not None:
                before["ledger"] = audit.digest_of(head)
            if path.exists():
                before |= {"file": aside.name, "sha256": audit.digest_of(path.read_bytes())}
                path.rename(aside)
            plain.put_audit_head(None)
        keys = {name: load_or_make(data, name) for name in MACHINES}
        lines = {name: PublicKey.of(key.public_key()).line for name, key in keys.items()}
        with AuditedLedger(data / "ledger.sqlite3", path, keys["daemon"], utc_now, heads, accept=True) as ledger:
            ledger.audit.append(BEGIN, version=__version__, renewed=reason, before={**before}, **lines)
            adopt(ledger, reason)
    return aside if before["file"] else None


def accept(data: Path, kept: Sequence[Path]) -> Head:
    """Takes the log as it is for the one that the heads outside are of, after every line of it was checked. Raises
    LedgerError while a daemon works on the folder, AssayError for a log that does not hold in itself."""
    checked = verified(data, None, public_file(data, "daemon"), [], kept=())  # the heads outside are what is accepted
    head = checked.found.head
    if not checked.holds or head is None:
        raise AssayError(
            f"the log and the ledger do not hold: {checked.found.problem or '; '.join(checked.differs[:5])}",
            "put a copy of the data folder back, or begin a new log: `assay audit renew`",
            ExitCode.FAILED_VERDICT,
        )
    with acting_for_owner(data), data_lock(data):
        key = load_key(data, "daemon")
        AuditedLedger(data / "ledger.sqlite3", log_file(data), key, utc_now, KeptHeads(kept), accept=True).close()
    return head


def accept_restored(data: Path, kept: Sequence[Path], backup: str, made: str) -> list[str]:
    """Takes the log of a data folder that was put back from a backup, and says so in it; revokes the gateway's tokens,
    of which some may have been revoked since, and returns their names. Raises as `accept`."""
    accept(data, kept)
    with acting_for_owner(data), data_lock(data):
        key = load_key(data, "daemon")
        with AuditedLedger(data / "ledger.sqlite3", log_file(data), key, utc_now, KeptHeads(kept)) as ledger:
            ledger.audit.append("data.restored", backup=backup, made=made)
            revoked = revoke_all(data, utc_now())
            for name in revoked:
                ledger.audit.append("gateway.token.revoked", name=name)
    return revoked
