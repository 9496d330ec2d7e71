"""Errors of the policy file, and refusal reasons for signed statements, named in messages and in the audit log."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from enum import StrEnum

from common.errors import HintedError


class PolicyError(HintedError):
    """Unusable policy file: the message gives place and reason, `hint` the remedy."""

    exit_code = 2


def require_known(names: Iterable[str], known: Collection[str], where: str, what: str) -> None:
    """Raises PolicyError if a policy rule names something unknown, and would thus protect nothing. `where` is the place
    in the file, `what` the kind of thing named."""
    unknown = sorted(set(names).difference(known))
    if unknown:
        raise PolicyError(
            f"{where}: unknown {what} {unknown[0]!r}",
            hint=f"correct it to one of {', '.join(sorted(known))}, or remove it",
        )


class Refusal(StrEnum):
    SHAPE = "not a signed statement"
    SIGNATURE = "signature"
    """Forged, or edited after signing: the two cannot be distinguished."""
    MACHINE_KEY = "a machine's key"
    UNKNOWN_KEY = "unknown key"
    REVOKED = "revoked key"
    PERSON = "another person"
    NOT_NAMED = "not named by the policy"
    CANDIDATE = "another candidate"
    DECISION = "another decision"
    POLICY = "another policy"
    JOB = "another job"
    CONTENT = "another content"
    REPLAYED = "replayed"
    CLOCK = "clock set back"
    FUTURE = "from the future"
    LIFETIME = "valid for too long"
    EXPIRED = "expired"
    SIGNERS = "too few people"
    KNOWN_KEY = "known key"
    LAST_KEY = "the last key"


class StatementRefused(Exception):
    """Raised for a signed statement that must have no effect. `name` is the reason's name, `hint` the remedy."""

    exit_code = 4

    def __init__(self, name: Refusal, message: str, *, hint: str) -> None:
        super().__init__(f"{name.value}: {message}")
        self.name = name
        self.hint = hint
