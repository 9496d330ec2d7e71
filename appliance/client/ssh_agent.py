"""Signs with a key in a running ssh-agent, so that no passphrase is typed and no private key is read here.

The protocol is OpenSSH's (draft-ietf-sshm-ssh-agent, 3.6): one request, one answer, each a length and a type. An
Ed25519 key signs the bytes unchanged, as a DSSE envelope requires. Hardware keys (`sk-ssh-ed25519`) add a counter and
flags to the signed bytes and are not supported.
"""

from __future__ import annotations

import base64
import socket
import struct
from collections.abc import Mapping
from typing import BinaryIO

from cryptography.exceptions import InvalidSignature

from appliance.client.person_keys import KeyFileError
from policies.envelopes import PublicKey, Signer

_SIGN_REQUEST, _SIGN_RESPONSE = 13, 14
_LARGEST = 1 << 18
SECONDS = 60.0
"""Timeout in seconds; an agent may ask a person before it signs."""


def agent_signer(public: PublicKey, environ: Mapping[str, str]) -> Signer:
    """Returns a signer that uses the ssh-agent at `$SSH_AUTH_SOCK`. Raises KeyFileError without an agent; signing
    raises it if the agent lacks the key or refuses."""
    place = environ.get("SSH_AUTH_SOCK", "")
    if not place:
        raise KeyFileError("no ssh-agent: SSH_AUTH_SOCK is not set", hint="start one, or omit --agent")
    return Signer(public, lambda message: _sign(place, public, message))


def _sign(place: str, public: PublicKey, message: bytes) -> bytes:
    blob = base64.b64decode(public.line.split()[1])
    request = bytes([_SIGN_REQUEST]) + _text(blob) + _text(message) + struct.pack(">I", 0)
    try:
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(SECONDS)
            line.connect(place)
            line.sendall(_text(request))
            with line.makefile("rb") as stream:
                answer = _exactly(stream, struct.unpack(">I", _exactly(stream, 4))[0])
    except (OSError, EOFError) as error:
        raise KeyFileError(f"the ssh-agent at {place} does not answer: {error}", hint="see `ssh-add -l`") from error
    try:
        signature = _signature_in(answer)
        public.key().verify(signature, message)
    except (ValueError, struct.error, InvalidSignature) as error:
        raise KeyFileError(
            f"the ssh-agent did not sign with {public.fingerprint}",
            hint="add the key with `ssh-add FILE`, and confirm if the agent asks",
        ) from error
    return signature


def _signature_in(answer: bytes) -> bytes:
    """Returns the signature, 64 bytes, from an ssh-agent's answer. Raises ValueError or struct.error for any other
    answer."""
    if answer[:1] != bytes([_SIGN_RESPONSE]):
        raise ValueError("the agent failed")
    blob, rest = _split(answer[1:])
    kind, blob = _split(blob)
    signature, left = _split(blob)
    if kind != b"ssh-ed25519" or len(signature) != 64 or rest or left:
        raise ValueError("the agent signed with another kind of key")
    return signature


def _text(content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + content


def _split(content: bytes) -> tuple[bytes, bytes]:
    (length,) = struct.unpack_from(">I", content)
    if len(content) < 4 + length:
        raise ValueError("it was cut off")
    return content[4 : 4 + length], content[4 + length :]


def _exactly(line: BinaryIO, count: int) -> bytes:
    if count > _LARGEST:
        raise EOFError("its answer is too long")
    content = line.read(count)
    if len(content) < count:
        raise EOFError("it broke off")
    return content
