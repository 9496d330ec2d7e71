"""Decides which policy is in force and which signatures count, from the audit log alone, entry by entry.

Invariants: a key, approval, validation or policy edit takes effect only after its signed statement was verified and
logged; refusals are logged too, with the reason's name. Trust on first use: the first person's key is admitted by its
own signature, and logged as such (admitted by nobody).

An edit takes effect only after its signed statement was verified and logged. The file `policy/in-force.toml` is a copy
for other processes; it is restored from the log at the next start if it differs. People are shown the log's version,
not the file's.

Trust on first use: the policy file of the very first start is accepted, and logged as such (`policy.first_use`).
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from pydantic import JsonValue

from appliance import __version__
from appliance.audit.log import REPAIR, AuditBroken, AuditLog
from appliance.audit.machine_keys import MACHINES, load_or_make
from appliance.client.messages import Keys, PolicyInForce
from appliance.daemon.contract import BrokenError, RefusedByPolicyError
from appliance.records.evaluations import Approval
from appliance.settings.data_schema import require_current_policy
from appliance.settings.policy_files import in_force_file, parse_policy, policy_file, written_policy
from appliance.system.durable_file import replace_file
from common.plugins.allowed import allow
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
from policies.errors import PolicyError, StatementRefused
from policies.in_force import BEGIN, KEY_ADMITTED, KEY_REVOKED, POLICY_FIRST_USE, POLICY_SIGNED
from policies.policy import Policy, plugins_in, read_content
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
        roles = {key.fingerprint: name for name, key in machines.items()}
        self.register = Register(machines=roles, owner=machines["daemon"])
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
            signed, key = verify_approval(
                envelope,
                question,
                self.register,
                used={one.nonce for one in known},
                last_at=last_at,
                now=self._now(),
                latest=self._audit.latest,
            )
            if signed.verdict == "approve":
                self.register.require_voice(key, self.policy.approval.people)
            return signed, key

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
        """Returns the recorded approvals that match what was signed, by an independent person's key valid now,
        unexpired at `at`, and the rejections. Each gets the signed time. A record that does not match is logged by
        name."""
        read = []
        for one in approvals:
            about = {"candidate": one.candidate, "recorded": one.person}
            with suppress(RefusedByPolicyError), self._refusing("word.refused", one.envelope.encode(), **about):
                read.append((one, *self._signed(one)))
        register = self.register
        independent = register.independent(self.policy.approval.people)
        own = [(signed, key) for _, signed, key in read if not register.follows_another(key)]
        taken_back = taken_back_until(own, at=at)
        valid = [line for line in read if is_valid_at(*line[1:], at=at, taken_back=taken_back)]
        rejecting = {signed.person for _, signed, _ in valid if signed.verdict == "reject"}
        return [
            one.model_copy(update={"created": in_utc(signed.made_at)})
            for one, signed, key in valid
            if signed.verdict == "reject"
            or (key in independent and not (register.follows_another(key) and signed.person in rejecting))
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


class PolicyStore:
    """The policy in force and all earlier ones, read from the audit log. Creating it restores a differing policy file,
    and logs a first policy. Raises AuditError, PolicyError, and BrokenError for an exchanged file."""

    def __init__(self, audit: AuditLog, data: Path, logged: Iterable[str]) -> None:
        self._audit = audit
        self._data = data
        contents = [text.encode() for text in logged]
        self._digests = [_digest(content) for content in contents]
        self._known = dict(zip(self._digests, contents, strict=True))
        self.policy = self._from_log(contents[-1]) if contents else self._first()

    def in_force(self) -> PolicyInForce:
        own = policy_file(self._data)
        written = _digest(read_content(own)[0]) if own is not None else self._digests[-1]
        return PolicyInForce(
            log=self._audit.first,
            digest=self._digests[-1],
            content=self._content.decode(),
            number=len(self._digests),
            people=self.policy.approval.people,
            unsigned="" if written == self._digests[-1] else written,
        )

    def of(self, digest: str) -> Policy:
        """Returns the policy with that digest; the current one if it is not in the log or no longer valid."""
        content = self._known.get(digest)
        if content is None or digest == self.policy.digest:
            return self.policy
        try:
            return parse_policy(content, f"the policy {digest[:12]}")
        except PolicyError:
            return self.policy

    def change(
        self, content: bytes, envelope: bytes, signers: Callable[[PolicyInForce, Policy], tuple[str, ...]]
    ) -> Policy:
        """Logs a signed policy file and puts it into force. `signers` returns the names of the signers, or raises.
        Raises PolicyError for an invalid file, BrokenError if it is in force but its copy could not be written."""
        policy = parse_policy(content, "the signed file")
        names = signers(self.in_force(), policy)
        self._audit.append(
            POLICY_SIGNED,
            file=policy.digest,
            replaces=self._digests[-1],
            by=list(names),
            envelope=envelope.decode("ascii"),
            content=content.decode(),
        )
        self._digests.append(policy.digest)
        self.policy = policy
        try:
            self._write(content)
        except OSError as error:
            raise BrokenError(
                f"the policy {policy.digest[:12]} is signed and in force, and its file could not be written: "
                f"{error.strerror}",
                hint="free some space, and start the daemon again: it writes the file, which the broker reads",
            ) from error
        return policy

    def _first(self) -> Policy:
        """Logs the first policy. A renewed log continues with the policy in force, not with an unsigned edit."""
        file, note = in_force_file(self._data), "trusted on first use: nobody signed it"
        content, name = read_content(file) if file.exists() else written_policy(self._data)
        if file.exists():
            require_current_policy(content, file)
        allow(plugins_in(content))
        policy = parse_policy(content, name)
        self._audit.append(POLICY_FIRST_USE, file=policy.digest, origin=name, note=note, content=content.decode())
        self._digests.append(policy.digest)
        self._write(content)
        return policy

    def _from_log(self, content: bytes) -> Policy:
        path = in_force_file(self._data)
        require_current_policy(content, path)
        allow(plugins_in(content))
        self._content = content
        found = _digest(path.read_bytes()) if path.exists() else ""
        if found != self._digests[-1]:
            self._audit.append("policy.restored", file=self._digests[-1], found=found)
            self._write(content)
            if found and found not in self._digests[-2:]:  # a kill may have come before the file was written
                raise BrokenError(
                    f"{path} differed from the signed policy: it was restored from the audit log",
                    hint="start it again; an edit takes effect through `assay policy sign`",
                )
        return parse_policy(content, str(path))

    def _write(self, content: bytes) -> None:
        self._content = content
        self._known[_digest(content)] = content
        path = in_force_file(self._data)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        replace_file(path, content)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
