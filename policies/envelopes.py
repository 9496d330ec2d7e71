"""Signed statements: JSON in a DSSE envelope, signed with Ed25519 keys that are written as OpenSSH writes them.

What always holds: an envelope is read only in the one form in which it is written, so that changing any byte of it is
seen; a signature is over the payload together with its type, so that a statement of one kind never passes as another
(DSSE v1.0, `PAE`). The envelope is securesystemslib's, the arithmetic is OpenSSL's. That library is imported with the
first envelope: it tries what each provider of keys in a cloud offers, and most programs here read no envelope.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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

from policies.refusals import Refusal, StatementRefused

if TYPE_CHECKING:
    from securesystemslib.dsse import Envelope

MAX_BYTES = 1 << 20
"""Of an envelope."""
PREFIX = "application/vnd.assay."


@dataclass(frozen=True)
class PublicKey:
    """An Ed25519 key's public half. Equal keys are equal, whatever comment stood behind them."""

    line: str
    """`ssh-ed25519 AAAA...`, without a comment."""

    @property
    def fingerprint(self) -> str:
        """`SHA256:...`, as `ssh-keygen -l` shows it."""
        return "SHA256:" + base64.b64encode(ssh_key_fingerprint(self.key(), hashes.SHA256())).decode().rstrip("=")

    def key(self) -> Ed25519PublicKey:
        loaded = load_ssh_public_key(self.line.encode())
        assert isinstance(loaded, Ed25519PublicKey)
        return loaded

    @classmethod
    def of(cls, key: Ed25519PublicKey) -> PublicKey:
        return cls(key.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode())

    @classmethod
    def read(cls, text: str) -> PublicKey:
        """Reads a line of an OpenSSH `.pub` file. Raises ValueError for anything but an Ed25519 key."""
        try:
            loaded = load_ssh_public_key(text.strip().encode())
        except (ValueError, UnsupportedAlgorithm) as error:
            raise ValueError(f"this is no public key in OpenSSH's form: {error}") from error
        if not isinstance(loaded, Ed25519PublicKey):
            raise ValueError("this is no Ed25519 key")
        return cls.of(loaded)


@dataclass(frozen=True)
class Signer:
    """Who signs: the public half, and what makes a signature of 64 bytes over a message."""

    public: PublicKey
    sign: Callable[[bytes], bytes]

    @classmethod
    def of(cls, key: Ed25519PrivateKey) -> Signer:
        return cls(PublicKey.of(key.public_key()), key.sign)


@dataclass(frozen=True)
class OpenEnvelope:
    """An envelope that was read. Nothing about its signatures is checked yet."""

    kind: str
    payload: bytes
    signers: tuple[str, ...]
    """The fingerprints that it names, in order."""
    raw: bytes

    def signed_by(self, key: PublicKey) -> bool:
        """Whether it holds a signature of that key over this payload."""
        from securesystemslib.exceptions import VerificationError
        from securesystemslib.signer import SSlibKey  # type: ignore[attr-defined]

        named = SSlibKey.from_crypto(key.key(), keyid=key.fingerprint)
        try:
            _parse(self.raw).verify([named], 1)
        except VerificationError:
            return False
        return True


def canonical(value: Any) -> bytes:
    """JSON in its one form: sorted names, no white space, ASCII. Raises ValueError for NaN and infinities."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def sign_envelope(payload: bytes, kind: str, signer: Signer) -> bytes:
    """The envelope of this payload, signed once. `kind` is a media type."""
    from securesystemslib.dsse import Envelope

    return _signed(Envelope(payload, kind, {}), signer)


def add_signature(envelope: bytes, signer: Signer) -> bytes:
    """Adds one more signature. Raises StatementRefused for what is no envelope."""
    open_envelope(envelope)
    return _signed(_parse(envelope), signer)


def open_envelope(envelope: bytes, kind: str | None = None) -> OpenEnvelope:
    """Reads an envelope of that kind, or of any. Raises StatementRefused (`SHAPE`) for another form."""
    if len(envelope) > MAX_BYTES:
        raise _shapeless(f"it has more than {MAX_BYTES} bytes")
    try:
        read = _parse(envelope)
        again = _written(read)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _shapeless(f"it is no DSSE envelope ({type(error).__name__})") from error
    odd = any(not isinstance(name, str) or one.unrecognized_fields for name, one in read.signatures.items())
    if again != envelope or not read.signatures or odd:
        raise _shapeless("it is not written in the one form that is read, or was changed")
    if kind is not None and read.payload_type != kind:
        raise _shapeless(f"it is a statement of another kind ({read.payload_type!r})")
    return OpenEnvelope(read.payload_type, read.payload, tuple(read.signatures), envelope)


def payload_of(read: OpenEnvelope) -> Any:
    """The payload's JSON, when it is written in the one form. Raises StatementRefused (`SHAPE`)."""
    try:
        value = json.loads(read.payload)
        again = canonical(value)
    except (ValueError, RecursionError) as error:
        raise _shapeless("what is signed is no JSON") from error
    if again != read.payload:
        raise _shapeless("what is signed is not written in the one form that is read")
    return value


def require_signatures(read: OpenEnvelope, keys: Sequence[PublicKey]) -> None:
    """Raises StatementRefused (`SIGNATURE`) unless each of these keys signed."""
    for key in keys:
        if not read.signed_by(key):
            raise StatementRefused(
                Refusal.SIGNATURE,
                f"the signature named {key.fingerprint} does not fit: it is forged, or what was signed has been edited",
                hint="sign again what you were shown",
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

    return Envelope.from_dict(json.loads(envelope))


def _shapeless(why: str) -> StatementRefused:
    return StatementRefused(Refusal.SHAPE, why, hint="sign with `assay`, and send what it wrote as it is")
