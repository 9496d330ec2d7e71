"""Decides which signatures count, from the audit log alone, entry by entry.

Invariants: a key, approval, validation or policy edit takes effect only after its signed statement was verified and
logged; refusals are logged too, with the reason's name. Trust on first use: the first person's key is admitted by its
own signature, and logged as such (admitted by nobody).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from pydantic import JsonValue

from appliance import __version__
from appliance.audit.log import REPAIR, AuditBroken, AuditLog
from appliance.audit.machine_keys import MACHINES, load_or_make
from appliance.client.messages import Keys, PolicyInForce
from appliance.daemon.contract.errors import RefusedByPolicyError
from appliance.daemon.governance.policy_store import PolicyStore
from appliance.records.evaluations import Approval
from policies.approvals import (
    ApprovalSubject,
    SignedApproval,
    in_utc,
    is_valid_at,
    taken_back_until,
    verify_approval,
    verify_recorded_approval,
)
from policies.contract.decision import KnownKey
from policies.envelopes import PublicKey, open_envelope
from policies.errors import StatementRefused
from policies.in_force import BEGIN, KEY_ADMITTED, KEY_REVOKED, POLICY_FIRST_USE, POLICY_SIGNED
from policies.policy import Policy
from policies.register import Register
from policies.statements import SignedValidation, ValidationSubject, verify_edit, verify_validation

KEPT = 8192
"""Maximum characters of a refused statement in the log."""


class Trust:
    """Registered keys, policies and signature checks, read from the audit log; an empty log is begun. Raises
    AuditError, and what `PolicyStore` raises."""

    def __init__(self, audit: AuditLog, data: Path, now: Callable[[], str]) -> None:
        self._audit = audit
        self._data = data
        self._now = now
        self._lock = threading.RLock()
        machines = {name: PublicKey.of(load_or_make(data, name).public_key()) for name in MACHINES}
        if audit.head is None:
            lines = {name: key.line for name, key in machines.items()}
            audit.append(BEGIN, version=__version__, adopted=True, **lines)
        self.register = Register(machines={key.fingerprint: name for name, key in machines.items()})
        self.on_revoked: Callable[[KnownKey], object] = lambda key: None
        """Called with each revoked key."""
        logged: list[str] = []
        for entry in audit.in_force.statements:
            if entry.kind == BEGIN and any(entry.what.get(name) != key.line for name, key in machines.items()):
                raise AuditBroken(f"{audit.path} was begun with other keys than those in keys/", 0, hint=REPAIR)
            if entry.kind in (KEY_ADMITTED, KEY_REVOKED):
                self._replay(str(entry.what["envelope"]), int(str(entry.what["people"])), entry.number)
            elif entry.kind in (POLICY_FIRST_USE, POLICY_SIGNED):
                logged.append(str(entry.what["content"]))
        self.policies = PolicyStore(audit, data, logged)

    # keys
    def keys(self) -> Keys:
        rules = self.policy.approval
        return Keys(
            keys=self.register.keys,
            machines=dict(self.register.machines),
            people=rules.people,
            who=rules.who,
            valid_hours=rules.max_age_hours,
        )

    def change_key(self, envelope: bytes) -> KnownKey:
        """Admits or revokes a person's key as a signed statement demands, and logs that. Raises RefusedByPolicyError
        with the reason's name."""
        with self._lock:
            people = self.policy.approval.people
            with self._refusing("key.refused", envelope):
                after = self.register.after(envelope, people=people)
            changed = next(key for key in after.keys if key not in self.register.keys)
            self._audit.append(
                KEY_ADMITTED if changed.valid else KEY_REVOKED,
                person=changed.person,
                key=changed.fingerprint,
                by=list(changed.admitted_by) if changed.valid else [changed.revoked_by],
                people=people,
                envelope=envelope.decode("ascii"),
            )
            self.register = after
            if not changed.valid:
                self.on_revoked(changed)
            return changed

    # approvals and validations
    def verify_approval(
        self, envelope: bytes, question: ApprovalSubject, known: Sequence[Approval]
    ) -> tuple[SignedApproval, KnownKey]:
        """Verifies a person's signed approval or rejection of a candidate. `known` are those on record about it. Raises
        RefusedByPolicyError with the reason's name, which is logged."""
        last_at: dict[str, str] = {}
        for one in known:
            with suppress(StatementRefused):
                signed, _ = self._signed(one)
                last_at[signed.person] = max(last_at.get(signed.person, ""), in_utc(signed.made_at))
        with self._refusing("word.refused", envelope, candidate=question.candidate):
            return verify_approval(
                envelope,
                question,
                self.register,
                used={one.nonce for one in known},
                last_at=last_at,
                now=self._now(),
                latest=self._audit.latest,
            )

    def verify_validation(
        self, envelope: bytes, asked: ValidationSubject, before: bytes | None = None
    ) -> tuple[SignedValidation, KnownKey]:
        """Verifies a person's signed validation of a job. Raises RefusedByPolicyError with the reason's name, which is
        logged."""
        with self._refusing("meaning.refused", envelope, job=asked.job):
            return verify_validation(
                envelope, asked, self.register, before=before, now=self._now(), latest=self._audit.latest
            )

    def valid_approvals(self, approvals: Iterable[Approval], *, at: str) -> list[Approval]:
        """Returns the recorded approvals that match what was signed, by a key valid now, unexpired at `at`. Each gets
        the signed time. A record that does not match is logged by name."""
        read = []
        for one in approvals:
            about = {"candidate": one.candidate, "recorded": one.person}
            with suppress(RefusedByPolicyError), self._refusing("word.refused", one.envelope.encode(), **about):
                read.append((one, *self._signed(one)))
        taken_back = taken_back_until([(signed, key) for _, signed, key in read], at=at)
        return [
            one.model_copy(update={"created": in_utc(signed.made_at)})
            for one, signed, key in read
            if is_valid_at(signed, key, at=at, taken_back=taken_back)
        ]

    def decision_time(self) -> str:
        """Returns the time that a decision is made as of: now, or the latest logged time if later."""
        return max(in_utc(self._now()), in_utc(self._audit.latest))

    def log(self, kind: str, **what: str) -> None:
        """Writes an entry to the audit log. Raises AuditError: the action must then not happen."""
        self._audit.append(kind, **what)

    # the policy
    @property
    def policy(self) -> Policy:
        """The policy in force."""
        return self.policies.policy

    def change_policy(self, content: bytes, envelope: bytes) -> PolicyInForce:
        """Verifies the signatures of a policy file, logs it and puts it into force; the broker reads its isolation
        settings when it starts. Raises PolicyError for an invalid file, RefusedByPolicyError for an insufficiently
        signed edit."""

        def signers(before: PolicyInForce, policy: Policy) -> tuple[str, ...]:
            with self._refusing("policy.refused", envelope, file=policy.digest):
                return verify_edit(
                    envelope,
                    self.register,
                    log=before.log,
                    number=before.number,
                    in_force=before.digest,
                    digest=policy.digest,
                    people=before.people,
                )

        with self._lock:
            self.policies.change(content, envelope, signers)
            return self.policies.in_force()

    def _signed(self, one: Approval) -> tuple[SignedApproval, KnownKey]:
        return verify_recorded_approval(one.model_dump(), self.register, who=self.policy.approval.who)

    def _replay(self, envelope: str, people: int, number: int) -> None:
        try:
            self.register = self.register.after(envelope.encode(), people=people)
        except StatementRefused as error:
            raise AuditBroken(f"{self._audit.path}: entry {number}: {error}", number, hint=REPAIR) from error

    @contextmanager
    def _refusing(self, kind: str, envelope: bytes, **about: str) -> Iterator[None]:
        """Logs a signed statement that is refused inside the block, and raises RefusedByPolicyError with the reason's
        name."""
        try:
            yield
        except StatementRefused as error:
            self._audit.append(
                kind,
                name=error.name.value,
                message=str(error),
                signers=_signers(envelope),
                statement=envelope[:KEPT].decode("utf-8", "backslashreplace"),
                **about,
            )
            raise RefusedByPolicyError(str(error), hint=error.hint, refusal=error.name) from error


def _signers(envelope: bytes) -> list[JsonValue]:
    """Returns the keys that a signed envelope names, unverified; none for an unreadable one."""
    try:
        return list(open_envelope(envelope).signers)
    except StatementRefused:
        return []
