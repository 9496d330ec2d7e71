"""Whose word counts here, and which policy is in force: both follow from the audit log alone, entry by entry.

What always holds: a key, a word or an edit of the policy takes effect only after its signed statement was checked here
and is in the log; what is refused is in the log too, with the reason's name. The policy in force lies as
`policy/in-force.toml` in the data folder for whoever needs it; a copy of it is in the log, and a file that says
anything else is put right at the next start.

Trust on first use: the policy file of the very first start is taken as it is, and the first person's key is admitted on
its own word. The log says so (`policy.first_use`, and an admission by nobody).
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from pydantic import JsonValue

from appliance import __version__
from appliance.audit.errors import AuditBroken
from appliance.audit.log import REPAIR, AuditLog
from appliance.audit.machine_keys import MACHINES, load_or_make
from appliance.client.messages import Keys, PolicyInForce
from appliance.daemon.errors import BrokenError, RefusedByPolicyError
from appliance.places import in_force_file, parse_policy, written_policy
from appliance.records import Approval
from policies.edits import accepted_edit
from policies.envelopes import PublicKey, opened
from policies.meaning import Asked, SignedMeaning, accepted_meaning
from policies.policy import Policy, PolicyError, earlier_version, read_content
from policies.refusals import Refused
from policies.register import KnownKey, Register
from policies.words import OnRecord, Question, SignedWord, accepted, in_utc, still_counts, word_on_record

FIRST_USE, SIGNED = "policy.first_use", "policy.signed"
ADMITTED, REVOKED = "key.admitted", "key.revoked"
KEPT = 8192
"""Characters of a refused statement that go into the log."""


class Trust:
    """Opened once by the core. Raises AuditError, PolicyError, and BrokenError for a policy that somebody exchanged."""

    def __init__(self, audit: AuditLog, data: Path, now: Callable[[], str]) -> None:
        self._audit = audit
        self._data = data
        self._now = now
        self._lock = threading.RLock()
        machines = {name: PublicKey.of(load_or_make(data, name).public_key()) for name in MACHINES}
        if audit.head is None:
            audit.append("log.begin", version=__version__, **{name: key.line for name, key in machines.items()})
        self.register = Register(machines={key.fingerprint: name for name, key in machines.items()})
        self._policies: list[str] = []
        content = ""
        for entry in audit.entries():
            if entry.kind == "log.begin" and any(entry.what.get(name) != key.line for name, key in machines.items()):
                raise AuditBroken(f"{audit.path} was begun with other keys than those in keys/", 0, hint=REPAIR)
            if entry.kind in (ADMITTED, REVOKED):
                self._replay(str(entry.what["envelope"]), int(str(entry.what["people"])), entry.number)
            elif entry.kind in (FIRST_USE, SIGNED):
                content = str(entry.what["content"])
                self._policies.append(_digest(content.encode()))
        self.policy = self._first_policy() if not content else self._policy_of_log(content.encode())

    # keys
    def keys(self) -> Keys:
        rules = self.policy.promotion.approval
        return Keys(
            keys=self.register.keys,
            machines=dict(self.register.machines),
            people=rules.people,
            who=rules.who,
            valid_hours=rules.max_age_hours,
        )

    def change_key(self, envelope: bytes) -> KnownKey:
        """Admits a key or revokes one. Raises RefusedByPolicyError with the reason's name."""
        with self._lock:
            people = self.policy.promotion.approval.people
            try:
                after = self.register.after(envelope, people=people)
            except Refused as error:
                raise self._refused("key.refused", error, envelope) from error
            changed = next(key for key in after.keys if key not in self.register.keys)
            self._audit.append(
                ADMITTED if changed.valid else REVOKED,
                person=changed.person,
                key=changed.fingerprint,
                by=list(changed.admitted_by) if changed.valid else [changed.revoked_by],
                people=people,
                envelope=envelope.decode("ascii"),
            )
            self.register = after
            return changed

    # words
    def hear(self, envelope: bytes, question: Question, known: Sequence[Approval]) -> tuple[SignedWord, KnownKey]:
        """The word, when it counts; `known` are those on record about the candidate. Raises RefusedByPolicyError with
        the reason's name, which is logged."""
        spoken: dict[str, str] = {}
        for one in known:
            with suppress(Refused):
                word, _ = self._behind(one)
                spoken[word.person] = max(spoken.get(word.person, ""), in_utc(word.made_at))
        try:
            return accepted(
                envelope,
                question,
                self.register,
                used={one.nonce for one in known},
                spoken=spoken,
                now=self._now(),
                latest=self._audit.latest,
            )
        except Refused as error:
            raise self._refused("word.refused", error, envelope, candidate=question.candidate) from error

    def hear_meaning(
        self, envelope: bytes, asked: Asked, before: bytes | None = None
    ) -> tuple[SignedMeaning, KnownKey]:
        """The word on a job's meaning, when it counts. Raises RefusedByPolicyError as `hear` does."""
        try:
            return accepted_meaning(
                envelope, asked, self.register, before=before, now=self._now(), latest=self._audit.latest
            )
        except Refused as error:
            raise self._refused("meaning.refused", error, envelope, job=asked.job) from error

    def counting(self, approvals: Iterable[Approval], *, at: str) -> list[Approval]:
        """Of words on record, those that say what was signed, by a key that is valid now, and that had not expired
        then; each with the time that was signed. A record that says anything else is in the log, with its name."""
        found = []
        for one in approvals:
            try:
                word, key = self._behind(one)
            except Refused as error:
                self._refused("word.refused", error, one.envelope.encode(), candidate=one.candidate, told=one.person)
                continue
            if still_counts(word, key, at=at):
                found.append(one.model_copy(update={"created": in_utc(word.made_at)}))
        return found

    def as_of(self) -> str:
        """The time to decide as of: now, or the latest time on record where the clock shows less."""
        return max(in_utc(self._now()), in_utc(self._audit.latest))

    def log(self, kind: str, **what: str) -> None:
        """An entry of the audit log. Raises AuditError: what it is about must then not happen."""
        self._audit.append(kind, **what)

    # the policy
    def policy_in_force(self) -> PolicyInForce:
        content, _ = written_policy(self._data)
        written = _digest(content)
        return PolicyInForce(
            log=self._audit.first,
            digest=self._policies[-1],
            content=in_force_file(self._data).read_text(),
            number=len(self._policies),
            people=self.policy.promotion.approval.people,
            unsigned="" if written == self._policies[-1] else written,
        )

    def change_policy(self, content: bytes, envelope: bytes) -> Policy:
        """Puts a signed file into force. Raises PolicyError for a file that is none, RefusedByPolicyError for an edit
        that was not signed as it must be."""
        with self._lock:
            policy = parse_policy(content, "the signed file")
            try:
                _, names = accepted_edit(
                    envelope,
                    self.register,
                    log=self._audit.first,
                    number=len(self._policies),
                    in_force=self._policies[-1],
                    digest=policy.digest,
                    people=self.policy.promotion.approval.people,
                )
            except Refused as error:
                raise self._refused("policy.refused", error, envelope, file=policy.digest) from error
            self._audit.append(
                SIGNED,
                file=policy.digest,
                replaces=self._policies[-1],
                by=list(names),
                envelope=envelope.decode("ascii"),
                content=content.decode(),
            )
            self._policies.append(policy.digest)
            self._put_in_force(content)
            self.policy = policy
            return policy

    def _first_policy(self) -> Policy:
        """A log that was begun anew goes on with the policy that was in force, not with an edit that nobody signed;
        unless that one is of a version that is not read any more."""
        kept, note = in_force_file(self._data), "trusted on first use: nobody signed it"
        content, name = read_content(kept) if kept.exists() else written_policy(self._data)
        old = earlier_version(content)
        if kept.exists() and old is not None:
            note = f"{note}; the one before was of version {old}, which is not read any more"
            content, name = written_policy(self._data)
        policy = parse_policy(content, name)
        self._audit.append(
            FIRST_USE,
            file=policy.digest,
            origin=name,
            note=note,
            content=content.decode(),
        )
        self._policies.append(policy.digest)
        self._put_in_force(content)
        return policy

    def _policy_of_log(self, content: bytes) -> Policy:
        path = in_force_file(self._data)
        old = earlier_version(content)
        if old is not None:
            raise PolicyError(
                f"the policy in force is of version {old}, which this version of the program does not read any more",
                hint=f"put a new one into {self._data} as policy.toml, or none for the packaged one, and begin the log "
                "anew: `assay audit renew --reason upgrade`; keys are then admitted anew",
            )
        found = _digest(path.read_bytes()) if path.exists() else ""
        if found != self._policies[-1]:
            self._audit.append("policy.restored", file=self._policies[-1], found=found)
            self._put_in_force(content)
            if found not in self._policies:
                raise BrokenError(
                    f"{path} was not the policy that was signed: it was put right from the audit log",
                    hint="start it again; an edit takes effect through `assay policy sign`",
                )
        return parse_policy(content, str(path))

    def _put_in_force(self, content: bytes) -> None:
        path = in_force_file(self._data)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        beside = path.with_name(f".{path.name}.new")
        with beside.open("wb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        beside.replace(path)

    def _behind(self, one: Approval) -> tuple[SignedWord, KnownKey]:
        told = OnRecord(
            verdict=one.verdict,
            person=one.person,
            candidate=one.candidate,
            decision=one.decision,
            nonce=one.nonce,
            key=one.key,
        )
        who = self.policy.promotion.approval.who
        return word_on_record(one.envelope.encode(), told, self.register, who=who)

    def _replay(self, envelope: str, people: int, number: int) -> None:
        try:
            self.register = self.register.after(envelope.encode(), people=people)
        except Refused as error:
            raise AuditBroken(f"{self._audit.path}: entry {number}: {error}", number, hint=REPAIR) from error

    def _refused(self, kind: str, error: Refused, envelope: bytes, **about: str) -> RefusedByPolicyError:
        """Logs why, with the statement, and gives what the person is told."""
        shown = envelope[:KEPT].decode("utf-8", "backslashreplace")
        self._audit.append(
            kind, name=error.name.value, message=str(error), signers=_signers(envelope), statement=shown, **about
        )
        return RefusedByPolicyError(str(error), hint=error.hint)


def _signers(envelope: bytes) -> list[JsonValue]:
    """Whose keys it names, whether or not they signed."""
    try:
        return list(opened(envelope).signers)
    except Refused:
        return []


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
