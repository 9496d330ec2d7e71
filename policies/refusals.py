"""Why a signed statement is refused: each reason has a name, which the person is told and the audit log keeps."""

from __future__ import annotations

from enum import StrEnum


class Refusal(StrEnum):
    SHAPE = "not a signed statement"
    SIGNATURE = "signature"
    """Forged, or edited after it was signed: from the outside these are the same."""
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
    """A statement that has no effect. `name` is the reason's name, `hint` what to do."""

    exit_code = 4

    def __init__(self, name: Refusal, message: str, *, hint: str) -> None:
        super().__init__(f"{name.value}: {message}")
        self.name = name
        self.hint = hint
