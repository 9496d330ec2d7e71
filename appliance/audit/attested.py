"""Reads the trainer's attestation of a checkpoint, `attestations/<digest>.json` in the data folder."""

from __future__ import annotations

import hashlib
from pathlib import Path

from appliance.audit.log import AuditError
from appliance.audit.machine_keys import load_key
from policies.attestation import verify_attestation
from policies.envelopes import PublicKey
from policies.errors import StatementRefused

MOST_BYTES = 1 << 20


def attestation_file(data: Path, manifest: str) -> Path:
    return data / "attestations" / f"{manifest}.json"


def attested(data: Path, manifest: str) -> str:
    """Verifies the trainer's signed attestation of a checkpoint and returns its SHA-256; empty if the file is missing.
    Raises AuditError for an invalid one."""
    path = attestation_file(data, manifest)
    try:
        with path.open("rb") as source:
            envelope = source.read(MOST_BYTES)
        verify_attestation(envelope, PublicKey.of(load_key(data, "trainer").public_key()), manifest=manifest)
    except FileNotFoundError:
        return ""
    except (OSError, StatementRefused) as error:
        raise AuditError(f"the attestation {path} does not hold: {error}", hint=BACK) from error
    return hashlib.sha256(envelope).hexdigest()


BACK = "restore it from a copy, or train another candidate: a model without an attestation does not go into service"
