"""The trainer's attestation of a checkpoint: `attestations/<digest>.json` in the data folder, and whether it holds."""

from __future__ import annotations

import hashlib
from pathlib import Path

from appliance.audit.log import AuditError
from appliance.audit.machine_keys import load_key
from policies.attestation import verify_attestation
from policies.envelopes import PublicKey
from policies.refusals import StatementRefused

MOST_BYTES = 1 << 20


def attestation_file(data: Path, manifest: str) -> Path:
    return data / "attestations" / f"{manifest}.json"


def attested(data: Path, manifest: str) -> str:
    """The SHA-256 of the attestation, when the trainer's key signed it and it is about that manifest; empty where there
    is none. Raises AuditError for any other."""
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


BACK = "put it back from a copy, or train another candidate: what has no attestation does not go into service"
