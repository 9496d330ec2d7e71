"""Public keys of persons, and the statements that admit or revoke them. Plain data, no cryptography."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from policies.contract.decision import PolicyRecord

NAME = r"^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$"


class KeyStatement(PolicyRecord):
    """Signed statement that admits or revokes a key."""

    format: Literal["assay-key-1"] = "assay-key-1"
    action: Literal["admit", "revoke"]
    person: str = Field(pattern=NAME)
    key: str
    """`ssh-ed25519 AAAA...`"""
    reason: str = Field(default="", max_length=500)
    at: str


class KnownKey(PolicyRecord):
    person: str
    key: str
    fingerprint: str
    admitted_at: str
    admitted_by: tuple[str, ...]
    """Names of persons; empty for the first key, which was trusted on first use."""
    revoked_at: str = ""
    revoked_by: str = ""
    reason: str = ""

    @property
    def valid(self) -> bool:
        return not self.revoked_at
