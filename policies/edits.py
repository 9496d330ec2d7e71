"""People sign an edit of the policy file. Pure.

What always holds: an edit names the audit log that it is for, the policy that it replaces and its place in the order of
edits, so an old edit that is shown again has no effect, not in a log that was begun anew either; it takes as many
persons as the policy that is in force asks for an approval, or all when fewer were ever known, so that nobody lowers
that number alone, not by revoking another's key either.
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
    """What is signed: from which policy to which."""

    format: Literal["assay-policy-edit-2"] = "assay-policy-edit-2"
    log: str = Field(pattern=r"^[0-9a-f]{64}$")
    """SHA-256 of the first line of the audit log that it is for."""
    number: int = Field(ge=1)
    """How many policies have been in force before."""
    replaces: str = Field(pattern=r"^[0-9a-f]{64}$")
    file: str = Field(pattern=r"^[0-9a-f]{64}$")
    """SHA-256 of the new file's bytes: the new policy's digest."""
    at: str


def read_edit(envelope: bytes) -> PolicyEdit:
    """Raises StatementRefused for what is no edit; signatures are not checked."""
    try:
        return PolicyEdit.model_validate(payload_of(open_envelope(envelope, POLICY_TYPE)))
    except ValidationError as error:
        raise StatementRefused(
            Refusal.SHAPE, "what is signed is no edit of a policy", hint="use `assay policy sign`"
        ) from error


def verify_edit(
    envelope: bytes, register: Register, *, log: str, number: int, in_force: str, digest: str, people: int
) -> tuple[str, ...]:
    """Who signed the edit, when it counts. `log` is of the audit log's first line, `digest` of the file that is shown,
    `people` the number of the policy in force.

    Raises StatementRefused with the reason's name.
    """
    edit = read_edit(envelope)
    keys = register.signers(open_envelope(envelope, POLICY_TYPE))
    if edit.log != log:
        raise StatementRefused(
            Refusal.REPLAYED,
            f"it was signed for the audit log that begins with {edit.log[:12]}; this one begins with {log[:12]}",
            hint="sign the file again: the log was begun anew since",
        )
    if edit.number != number or edit.replaces != in_force:
        raise StatementRefused(
            Refusal.REPLAYED,
            f"it is edit {edit.number}, of the policy {edit.replaces[:12]}; next is edit {number}, of {in_force[:12]}",
            hint="sign the file again, against the policy in force",
        )
    if edit.file != digest:
        raise StatementRefused(
            Refusal.POLICY,
            f"what was signed is the file {edit.file[:12]}, and this is {digest[:12]}",
            hint="the file was edited after it was signed: sign it again",
        )
    return register.require_persons(keys, people)
