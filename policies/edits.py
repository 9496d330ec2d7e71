"""Signed edits of the policy file. Pure.

Invariants: an edit names its audit log, the policy it replaces and its number in the sequence of edits, so a replayed
edit has no effect, not even in a log that was started anew. An edit needs as many signers as the policy in force
requires for an approval, or everybody if fewer were ever known, so nobody can lower that number alone, even by revoking
another person's key.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, ValidationError

from policies.contract.decision import PolicyRecord
from policies.envelopes import PREFIX, open_envelope, payload_of
from policies.refusals import Refusal, StatementRefused
from policies.register import Register

POLICY_TYPE = f"{PREFIX}policy+json"


class PolicyEdit(PolicyRecord):
    """Payload that people sign to put a new policy into force: the digests of the old and the new policy."""

    format: Literal["assay-policy-edit-2"] = "assay-policy-edit-2"
    log: str = Field(pattern=r"^[0-9a-f]{64}$")
    """SHA-256 of the first line of its audit log."""
    number: int = Field(ge=1)
    """Number of policies that were in force before."""
    replaces: str = Field(pattern=r"^[0-9a-f]{64}$")
    file: str = Field(pattern=r"^[0-9a-f]{64}$")
    """SHA-256 of the new file's bytes, the new policy's digest."""
    at: str


def read_edit(envelope: bytes) -> PolicyEdit:
    """Parses a signed policy edit without checking signatures. Raises StatementRefused for anything else."""
    try:
        return PolicyEdit.model_validate(payload_of(open_envelope(envelope, POLICY_TYPE)))
    except ValidationError as error:
        raise StatementRefused(
            Refusal.SHAPE, "the signed payload is not a policy edit", hint="use `assay policy sign`"
        ) from error


def verify_edit(
    envelope: bytes, register: Register, *, log: str, number: int, in_force: str, digest: str, people: int
) -> tuple[str, ...]:
    """Returns the signers' names if a signed policy edit may put the given policy file into force now.

    `log` is the digest of the audit log's first line, `digest` of the given file, `people` the number of signers that
    the policy in force requires. Raises StatementRefused with the reason's name.
    """
    edit = read_edit(envelope)
    keys = register.signers(open_envelope(envelope, POLICY_TYPE))
    if edit.log != log:
        raise StatementRefused(
            Refusal.REPLAYED,
            f"signed for the audit log that begins with {edit.log[:12]}; this log begins with {log[:12]}",
            hint="sign the file again: a new log was started since",
        )
    if edit.number != number or edit.replaces != in_force:
        raise StatementRefused(
            Refusal.REPLAYED,
            f"this is edit {edit.number} of policy {edit.replaces[:12]}; expected edit {number} of {in_force[:12]}",
            hint="sign the file again, against the policy in force",
        )
    if edit.file != digest:
        raise StatementRefused(
            Refusal.POLICY,
            f"the signed file is {edit.file[:12]}, but this file is {digest[:12]}",
            hint="the file was edited after it was signed: sign it again",
        )
    return register.require_persons(keys, people)
