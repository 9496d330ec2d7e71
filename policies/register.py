"""Key register of persons: append-only, built from signed statements.

Invariants: a key belongs to one person forever; the machine's own keys (daemon, trainer) never become a person's. A key
is admitted by its own signature, which proves possession, and by as many persons as the policy requires for an
approval, or by all if fewer were ever known. A revoked key never returns. Everybody ever known is counted, even after a
revocation, so nobody can lower the number by revoking another person's key. Pure: the statements come from the audit
log, in its order.

Trust on first use: while nobody is known, the first key is admitted by its own signature. Anyone who reaches the
control socket before the owner could be that first person; `assay key ls` shows who it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pydantic import ValidationError

from common.bounded_models import first_fault
from policies.contract.decision import KeyStatement, KnownKey
from policies.envelopes import PREFIX, OpenEnvelope, PublicKey, open_envelope, payload_of, require_signatures
from policies.errors import Refusal, StatementRefused

KEY_TYPE = f"{PREFIX}key+json"


@dataclass(frozen=True)
class Register:
    keys: tuple[KnownKey, ...] = ()
    machines: Mapping[str, str] = field(default_factory=dict)
    """Roles (`daemon`, `trainer`) by fingerprint of the machine's own keys."""

    def known(self, fingerprint: str) -> KnownKey | None:
        return next((key for key in self.keys if key.fingerprint == fingerprint), None)

    @property
    def persons(self) -> tuple[str, ...]:
        """Sorted names of persons with a valid key."""
        return tuple(sorted({key.person for key in self.keys if key.valid}))

    def person_of(self, fingerprint: str, *, also_revoked: bool = False) -> KnownKey:
        """Returns the valid key of a person. Raises StatementRefused for a machine's, unknown or revoked key."""
        if fingerprint in self.machines:
            raise StatementRefused(
                Refusal.MACHINE_KEY,
                f"{fingerprint} is the {self.machines[fingerprint]}'s own key; machine keys do not count here",
                hint="sign with a person's key; create one with `assay key new`",
            )
        key = self.known(fingerprint)
        if key is None:
            raise StatementRefused(
                Refusal.UNKNOWN_KEY,
                f"{fingerprint} is not in the register",
                hint="see `assay key ls`; create a key with `assay key new`, add it with `assay key admit`",
            )
        if not (key.valid or also_revoked):
            raise StatementRefused(
                Refusal.REVOKED,
                f"the key of {key.person} ({fingerprint}) was revoked at {key.revoked_at}",
                hint="sign with another key; a revoked key never returns",
            )
        return key

    def signers(self, read: OpenEnvelope, *, also_revoked: bool = False) -> tuple[KnownKey, ...]:
        """Returns the persons' valid keys that signed an envelope, in order. Raises StatementRefused for any other."""
        keys = tuple(self.person_of(fingerprint, also_revoked=also_revoked) for fingerprint in read.signers)
        require_signatures(read, [PublicKey(key.key) for key in keys])
        return keys

    def require_persons(self, keys: tuple[KnownKey, ...], people: int) -> tuple[str, ...]:
        """Returns the names of the persons behind the keys. Raises StatementRefused for fewer than `people`, unless
        they are all persons ever known; at least one must sign."""
        names = tuple(dict.fromkeys(key.person for key in keys))
        needed = max(min(people, len({key.person for key in self.keys})), 1)
        if len(names) < needed:
            hint = "have another person run the same command on the file that was written"
            if len(self.persons) < needed:
                hint = (
                    f"only {len(self.persons)} of the persons ever known have a valid key: "
                    "start a log without persons with `assay audit renew`"
                )
            raise StatementRefused(Refusal.SIGNERS, f"{len(names)} of {needed} people signed", hint=hint)
        return names

    def after(self, envelope: bytes, *, people: int) -> Register:
        """Returns the key register after a signed statement that admits or revokes a key. Raises StatementRefused."""
        read = open_envelope(envelope, KEY_TYPE)
        try:
            statement = KeyStatement.model_validate(payload_of(read))
            key = PublicKey.read(statement.key)
        except (ValidationError, ValueError) as error:
            raise StatementRefused(
                Refusal.SHAPE, f"not a key statement: {_first(error)}", hint="use `assay key`"
            ) from error
        if key.line != statement.key:
            raise StatementRefused(Refusal.SHAPE, "the key has a comment or extra characters", hint="use `assay key`")
        if statement.action == "revoke":
            return self._revoked(read, statement, key)
        return self._admitted(read, statement, key, people)

    def _admitted(self, read: OpenEnvelope, statement: KeyStatement, key: PublicKey, people: int) -> Register:
        if key.fingerprint in self.machines:
            self.person_of(key.fingerprint)
        if self.known(key.fingerprint) is not None:
            raise StatementRefused(
                Refusal.KNOWN_KEY,
                f"{key.fingerprint} is already in the register",
                hint="create another key: a key belongs to one person, and a revoked one never returns",
            )
        require_signatures(read, [key])
        others = replace(read, signers=tuple(name for name in read.signers if name != key.fingerprint))
        names: tuple[str, ...] = ()
        if self.persons:
            names = self.require_persons(self.signers(others), people)
        elif others.signers:
            self.signers(others)
        known = KnownKey(
            person=statement.person,
            key=key.line,
            fingerprint=key.fingerprint,
            admitted_at=statement.at,
            admitted_by=names,
        )
        return replace(self, keys=(*self.keys, known))

    def _revoked(self, read: OpenEnvelope, statement: KeyStatement, key: PublicKey) -> Register:
        known = self.person_of(key.fingerprint)
        if known.person != statement.person:
            raise StatementRefused(
                Refusal.PERSON,
                f"{key.fingerprint} is {known.person}'s, not {statement.person}'s",
                hint="see `assay key ls`",
            )
        signers = self.signers(read)
        if sum(one.valid for one in self.keys) == 1:
            raise StatementRefused(
                Refusal.LAST_KEY,
                "without it nobody could approve, admit a key or sign a policy",
                hint="admit another key first: `assay key new`, `assay key admit`",
            )
        gone = known.model_copy(
            update={"revoked_at": statement.at, "revoked_by": signers[0].person, "reason": statement.reason}
        )
        return replace(self, keys=tuple(gone if one == known else one for one in self.keys))


def _first(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return str(first_fault(error))
    return str(error)
