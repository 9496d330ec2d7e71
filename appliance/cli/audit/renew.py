"""Begins a new audit log or accepts the present one, with exclusive access to the data folder and no daemon running."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from appliance import __version__
from appliance.audit.kept_heads import KeptHeads, acting_for_owner
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
    """Moves the audit log aside and begins another. Its first entry states the reason, its newest the state taken from
    the ledger. Returns the old log's path. Raises LedgerError while a daemon uses the folder."""
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


def accept(data: Path, kept: Sequence[Path], forget: int | None = None) -> Head:
    """Checks the audit log, then writes its head into the files outside the data folder and returns it. Raises
    LedgerError while a daemon uses the folder, AssayError for an invalid log, and unless `forget` is the number of
    entries that the log lacks; None accepts any."""
    checked = verified(data, None, public_file(data, "daemon"), [], kept=())  # the heads outside are what is accepted
    head = checked.found.head
    if not checked.holds or head is None:
        raise AssayError(
            f"the log or the ledger is invalid: {checked.found.problem or '; '.join(checked.differs[:5])}",
            "restore a backup of the data folder, or start a new log with `assay audit renew`",
            ExitCode.FAILED_VERDICT,
        )
    with acting_for_owner(data), data_lock(data):
        key = load_key(data, "daemon")
        lacking = max((number - head.number for number in _known_outside(kept, key)), default=0)
        if forget is not None and lacking > 0 and forget != lacking:
            raise AssayError(
                f"the log lacks its {lacking} newest entries: revocations or rejections may be among them",
                f"restore a newer copy; to do without them, run `assay audit accept --forget {lacking}`",
                ExitCode.REFUSED,
            )
        AuditedLedger(data / "ledger.sqlite3", log_file(data), key, utc_now, KeptHeads(kept), accept=True).close()
    return head


def _known_outside(kept: Sequence[Path], key: Ed25519PrivateKey) -> Iterator[int]:
    """Yields the number of the newest entry that each readable head outside the data folder knows."""
    for file in kept:
        with suppress(OSError, ValueError):
            yield audit.read_head(file.read_bytes(), key.public_key())[1].number


def accept_restored(data: Path, kept: Sequence[Path], backup: str, made: str) -> list[str]:
    """Accepts the audit log of a restored data folder and records the restore in it. Revokes the gateway's tokens, some
    of which may have been revoked since the backup, and returns their names. Raises as `accept`."""
    accept(data, kept)
    with acting_for_owner(data), data_lock(data):
        key = load_key(data, "daemon")
        with AuditedLedger(data / "ledger.sqlite3", log_file(data), key, utc_now, KeptHeads(kept)) as ledger:
            ledger.audit.append("data.restored", backup=backup, made=made)
            revoked = revoke_all(data, utc_now())
            for name in revoked:
                ledger.audit.append("gateway.token.revoked", name=name)
    return revoked
