"""Signed statements: JSON in a DSSE envelope with Ed25519 signatures and OpenSSH-format keys.

Invariants: an envelope is accepted only in its canonical form, so any changed byte is detected; a signature covers the
payload and its type, so a statement of one kind never passes as another (DSSE v1.0, `PAE`). securesystemslib implements
the envelope, OpenSSL the arithmetic. The library is imported with the first envelope, because it probes cloud key
providers and most programs here read no envelope.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_ssh_public_key,
    ssh_key_fingerprint,
)

from common import strict_json
from common.strict_json import Bounds
from policies.curve import has_prime_order
from policies.errors import Refusal, StatementRefused

if TYPE_CHECKING:
    from securesystemslib.dsse import Envelope

MAX_BYTES = 1 << 20
"""Largest envelope, in bytes."""
BOUNDS = Bounds(MAX_BYTES)
PREFIX = "application/vnd.assay."


@dataclass(frozen=True)
class PublicKey:
    """Ed25519 public key. Comments do not affect equality."""

    line: str
    """`ssh-ed25519 AAAA...`, without a comment."""

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the public key, `SHA256:...`, as `ssh-keygen -l` shows it."""
        return "SHA256:" + base64.b64encode(ssh_key_fingerprint(self.key(), hashes.SHA256())).decode().rstrip("=")

    def key(self) -> Ed25519PublicKey:
        """Returns the key for cryptography. Raises ValueError unless it is an Ed25519 key of prime order."""
        return _loaded(self.line)

    @classmethod
    def of(cls, key: Ed25519PublicKey) -> PublicKey:
        return cls(key.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode())

    @classmethod
    def read(cls, text: str) -> PublicKey:
        """Parses a public key from a line of an OpenSSH `.pub` file. Raises ValueError unless it is an Ed25519 key of
        prime order."""
        return cls.of(_loaded(text.strip()))


@dataclass(frozen=True)
class Signer:
    """Public key with a function that signs a message (64-byte signature)."""

    public: PublicKey
    sign: Callable[[bytes], bytes]

    @classmethod
    def of(cls, key: Ed25519PrivateKey) -> Signer:
        return cls(PublicKey.of(key.public_key()), key.sign)


@dataclass(frozen=True)
class OpenEnvelope:
    """Parsed envelope of a signed statement; its signatures are not verified yet."""

    kind: str
    payload: bytes
    signers: tuple[str, ...]
    """Fingerprints of the named signing keys, in order."""
    raw: bytes

    def signed_by(self, key: PublicKey) -> bool:
        """True if the envelope carries that key's valid signature over its payload."""
        from securesystemslib.exceptions import VerificationError
        from securesystemslib.signer import SSlibKey  # type: ignore[attr-defined]

        named = SSlibKey.from_crypto(key.key(), keyid=key.fingerprint)
        try:
            _parse(self.raw).verify([named], 1)
        except VerificationError:
            return False
        return True


@lru_cache(maxsize=256)
def _loaded(line: str) -> Ed25519PublicKey:
    try:
        loaded = load_ssh_public_key(line.encode())
    except (ValueError, UnsupportedAlgorithm) as error:
        raise ValueError(f"not a public key in OpenSSH format: {error}") from error
    if not isinstance(loaded, Ed25519PublicKey):
        raise ValueError("not an Ed25519 key")
    if not has_prime_order(loaded.public_bytes_raw()):
        raise ValueError("not a sound Ed25519 key: signatures under it prove nothing")
    return loaded


def canonical(value: Any) -> bytes:
    """Returns canonical JSON: sorted names, no white space, ASCII. Raises ValueError for NaN and infinities."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def sign_envelope(payload: bytes, kind: str, signer: Signer) -> bytes:
    """Signs a payload and returns the envelope with that one signature. `kind` is a media type."""
    from securesystemslib.dsse import Envelope

    return _signed(Envelope(payload, kind, {}), signer)


def add_signature(envelope: bytes, signer: Signer) -> bytes:
    """Adds one signature to an envelope. Raises StatementRefused for an invalid envelope."""
    open_envelope(envelope)
    return _signed(_parse(envelope), signer)


def open_envelope(envelope: bytes, kind: str | None = None) -> OpenEnvelope:
    """Parses a signed statement's envelope, of the given kind or of any. Raises StatementRefused (`SHAPE`)."""
    if len(envelope) > MAX_BYTES:
        raise _shapeless(f"larger than {MAX_BYTES} bytes")
    try:
        read = _parse(envelope)
        again = _written(read)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _shapeless(f"not a DSSE envelope ({type(error).__name__})") from error
    odd = any(not isinstance(name, str) or one.unrecognized_fields for name, one in read.signatures.items())
    if again != envelope or not read.signatures or odd:
        raise _shapeless("not in canonical form, or changed after signing")
    if kind is not None and read.payload_type != kind:
        raise _shapeless(f"a statement of another kind ({read.payload_type!r})")
    return OpenEnvelope(read.payload_type, read.payload, tuple(read.signatures), envelope)


def payload_of(read: OpenEnvelope) -> Any:
    """Returns the JSON value that an envelope carries, if it is canonical. Raises StatementRefused (`SHAPE`)."""
    try:
        value = strict_json.read(read.payload, BOUNDS)
        again = canonical(value)
    except (ValueError, RecursionError) as error:
        raise _shapeless("the signed payload is not JSON") from error
    if again != read.payload:
        raise _shapeless("the signed payload is not canonical JSON")
    return value


def require_signatures(read: OpenEnvelope, keys: Sequence[PublicKey]) -> None:
    """Raises StatementRefused (`SIGNATURE`) unless every given key signed the envelope."""
    for key in keys:
        if not read.signed_by(key):
            raise StatementRefused(
                Refusal.SIGNATURE,
                f"invalid signature of {key.fingerprint}: it is forged, or the payload was edited",
                hint="sign what you were shown again",
            )


def _signed(envelope: Envelope, signer: Signer) -> bytes:
    from securesystemslib.signer import Signature  # type: ignore[attr-defined]

    name = signer.public.fingerprint
    envelope.signatures[name] = Signature(name, signer.sign(envelope.pae()).hex())
    return _written(envelope)


def _written(envelope: Envelope) -> bytes:
    return canonical(envelope.to_dict())


def _parse(envelope: bytes) -> Envelope:
    from securesystemslib.dsse import Envelope

    return Envelope.from_dict(strict_json.read(envelope, BOUNDS))


def _shapeless(why: str) -> StatementRefused:
    return StatementRefused(Refusal.SHAPE, why, hint="sign with `assay`, and send its output unchanged")
