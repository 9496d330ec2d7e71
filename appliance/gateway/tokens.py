"""Bearer tokens of the gateway, generated once and stored as hashes.

Invariants: the token itself is never written; only the daemon writes the file, the gateway reads it; comparison takes
the same time for every wrong token. A token has 256 random bits, so its plain SHA-256 reveals nothing.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from pathlib import Path

from pydantic import Field, ValidationError

from appliance.system.durable_file import replace_file
from common.errors import HintedError
from runtime.model import FrozenModel

NAME = r"^[a-z0-9][a-z0-9_.-]{0,39}$"
MOST_TOKENS = 100
PREFIX = "assay-"
MOST_CHARS = 200
"""Maximum characters of a token sent by a client."""


class GatewayTokenError(HintedError):
    """A gateway token cannot be created or revoked, or the token file is unreadable."""

    exit_code = 2


class GatewayToken(FrozenModel):
    """Record of a gateway token: its hash, never the token."""

    name: str = Field(pattern=NAME)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    consent: bool
    """True if its requests are recorded and may become tasks."""
    created: str
    revoked: str | None = None


class _TokenFile(FrozenModel):
    tokens: tuple[GatewayToken, ...] = Field(default=(), max_length=MOST_TOKENS)


def token_file(data: Path) -> Path:
    return data / "gateway" / "tokens.json"


def read_tokens(data: Path) -> tuple[GatewayToken, ...]:
    """Returns the gateway's tokens, revoked ones included. Raises GatewayTokenError for an invalid file, OSError."""
    path = token_file(data)
    try:
        return _TokenFile.model_validate_json(path.read_bytes()).tokens
    except FileNotFoundError:
        return ()
    except ValidationError as error:
        raise GatewayTokenError(
            f"{path} cannot be read: {error.error_count()} faults", hint="move it away and create the tokens again"
        ) from None


def new_token(data: Path, name: str, *, consent: bool, now: str) -> tuple[GatewayToken, str]:
    """Creates a gateway token, stores its hash and returns it with its text. Raises GatewayTokenError, OSError."""
    known = [one for one in read_tokens(data) if one.name != name or one.revoked is None]
    if any(one.name == name for one in known):
        raise GatewayTokenError(
            f"the token {name} already exists", hint=f"give another name, or `assay gateway token revoke {name}` first"
        )
    if len(known) >= MOST_TOKENS:
        known = [one for one in known if one.revoked is None]
    if len(known) >= MOST_TOKENS:
        raise GatewayTokenError(f"the limit of {MOST_TOKENS} tokens is reached", hint="revoke an unused one")
    secret = PREFIX + secrets.token_urlsafe(32)
    made = GatewayToken(name=name, sha256=_hash(secret), consent=consent, created=now)
    _write(data, [*known, made])
    return made, secret


def revoke_token(data: Path, name: str, now: str) -> GatewayToken:
    """Revokes a gateway token by name and returns it. Raises GatewayTokenError if none in use has it, OSError."""
    known = read_tokens(data)
    found = next((one for one in known if one.name == name and one.revoked is None), None)
    if found is None:
        raise GatewayTokenError(f"no valid token is named {name!r}", hint="`assay gateway token ls` lists tokens")
    revoked = found.model_copy(update={"revoked": now})
    _write(data, [revoked if one is found else one for one in known])
    return revoked


def revoke_all(data: Path, now: str) -> list[str]:
    """Revokes every gateway token and returns the names of those in use. Raises as `read_tokens`."""
    known = read_tokens(data)
    names = [one.name for one in known if one.revoked is None]
    if names:
        _write(data, [one.model_copy(update={"revoked": one.revoked or now}) for one in known])
    return names


def token_of(sent: str, known: Sequence[GatewayToken]) -> GatewayToken | None:
    """Returns the valid gateway token with this text, or None; always compares with all of them."""
    hashed = _hash(sent[:MOST_CHARS])
    found: GatewayToken | None = None
    for one in known:
        if hmac.compare_digest(one.sha256, hashed) and one.revoked is None and len(sent) <= MOST_CHARS:
            found = one
    return found


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _write(data: Path, tokens: Sequence[GatewayToken]) -> None:
    path = token_file(data)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace_file(path, _TokenFile(tokens=tuple(tokens)).model_dump_json(indent=1).encode())
