"""The machine's own keys, and the attestations that the trainer signs, `attestations/<digest>.json`.

Invariants: each key is created at the first start, belongs to no person, and is registered as a machine's, so that no
approval, admission or policy edit counts with it. The files are 0600 and unencrypted, since they must work unattended
at night. Anyone with the rights of the daemon's user has them.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Literal

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from appliance.audit.log import AuditError
from appliance.system.durable_file import write_private
from common.errors import reading
from policies.attestation import verify_attestation
from policies.envelopes import PublicKey
from policies.errors import StatementRefused

Machine = Literal["daemon", "trainer"]
MACHINES: tuple[Machine, ...] = ("daemon", "trainer")


def key_file(data: Path, machine: Machine) -> Path:
    return data / "keys" / f"{machine}.pem"


def public_file(data: Path, machine: Machine) -> Path:
    """Returns the path of a machine's public key (`ssh-ed25519 AAAA... daemon`), for people and for checking an export
    elsewhere."""
    return data / "keys" / f"{machine}.pub"


def load_key(data: Path, machine: Machine) -> Ed25519PrivateKey:
    """Loads the daemon's or the trainer's private key from the data folder. Raises AuditError if it is missing or not
    an Ed25519 key."""
    path = key_file(data, machine)
    with reading(f"the {machine}'s key {path}", AuditError, _BACK):
        content = path.read_bytes()
    try:
        loaded = load_pem_private_key(content, password=None)
    except (ValueError, TypeError) as error:
        raise AuditError(f"{path} is not a key of this program", hint=_BACK) from error
    if not isinstance(loaded, Ed25519PrivateKey):
        raise AuditError(f"{path} is not an Ed25519 key", hint=_BACK)
    return loaded


def load_or_make(data: Path, machine: Machine) -> Ed25519PrivateKey:
    """Loads or creates the daemon's or the trainer's private key, and rewrites its public file if that differs. Raises
    AuditError."""
    path = key_file(data, machine)
    try:
        if path.exists():
            key = load_key(data, machine)
        else:
            key = Ed25519PrivateKey.generate()
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_private(path, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        public, line = public_file(data, machine), f"{PublicKey.of(key.public_key()).line} {machine}\n"
        if not public.exists() or public.read_text(errors="replace") != line:  # or a kill came between the two writes
            public.write_text(line)
    except OSError as error:
        subject = error.filename or path
        raise AuditError(
            f"{subject} cannot be written: {error.strerror}", hint="check the disk and its permissions"
        ) from error
    return key


_BACK = "restore a copy of it; the audit log cannot continue without it: `assay audit renew` begins a new one"


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
