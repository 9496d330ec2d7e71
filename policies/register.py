"""Key register of persons: append-only, built from signed statements.

Invariants: a key belongs to one person forever, and no two persons have names that look alike; the machine's own keys
(daemon, trainer) never become a person's. A key is admitted by its own signature, which proves possession, and by as
many independent persons as the policy requires for an approval. A revoked key never returns. Everybody ever known is
counted, even after a revocation, so nobody can lower the number by revoking another person's key. Pure: the statements
come from the audit log, in its order.

Independent persons: the first one; each whom the machine's owner vouched for; and each admitted by as many independent
persons as the policy requires. Only they approve, admit and sign policy edits. One person can make any number of keys,
so whom one person alone admitted does not count as a second one. While there are fewer than the policy requires, a
further one needs a known person's signature and that of the owner, made with the daemon's key; after that, the daemon's
key counts for nothing.

Trust on first use: while nobody is known, the first key is admitted by its own signature. Anyone who reaches the
control socket before the owner could be that first person; `assay key ls` shows who it was.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pydantic import ValidationError

from common.bounded_models import first_fault
from policies.contract.decision import KeyStatement, KnownKey
from policies.envelopes import PREFIX, OpenEnvelope, PublicKey, open_envelope, payload_of, require_signatures
from policies.errors import Refusal, StatementRefused

KEY_TYPE = f"{PREFIX}key+json"
_ALIKE = str.maketrans({"0": "o", "1": "l", "i": "l", "m": "rn", **dict.fromkeys("._@-")})
"""Letters that look like others (UTS 39), and separators."""


def skeleton(name: str) -> str:
    """Returns a person's name in a form that is equal for names that look alike."""
    return unicodedata.normalize("NFKC", name).casefold().translate(_ALIKE)


@dataclass(frozen=True)
class Register:
    keys: tuple[KnownKey, ...] = ()
    machines: Mapping[str, str] = field(default_factory=dict)
    """Roles (`daemon`, `trainer`) by fingerprint of the machine's own keys."""
    owner: PublicKey | None = None
    """Key with which the machine's owner vouches for persons: the daemon's."""

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

    def independent(self, people: int) -> tuple[KnownKey, ...]:
        """Returns the keys ever known of independent persons, where the policy requires `people`."""
        return tuple(key for key in self.keys if not key.admitted_by or key.vouched or key.voices >= people)

    def follows_another(self, key: KnownKey) -> bool:
        """True if others admitted the key under the name of a person who had a key before."""
        first = next(one for one in self.keys if one.person == key.person)
        return first.fingerprint != key.fingerprint and key.person not in key.admitted_by

    def require_persons(self, keys: tuple[KnownKey, ...], people: int) -> tuple[str, ...]:
        """Returns the names of the independent persons behind the keys. Raises StatementRefused for fewer than
        `people`."""
        independent = self.independent(people)
        names = tuple(dict.fromkeys(key.person for key in keys if key in independent))
        if len(names) < people:
            left = {key.person for key in independent if key.valid}
            hint = "have another person run the same command on the file that was written"
            if self._missing(people):
                hint = self._vouch(people)
            elif len(left) < people:
                hint = (
                    f"only {len(left)} of the persons ever known have a valid key: "
                    "start a log without persons with `assay audit renew`"
                )
            raise StatementRefused(Refusal.SIGNERS, f"{len(names)} of {people} people signed", hint=hint)
        return names

    def require_voice(self, key: KnownKey, people: int) -> None:
        """Raises StatementRefused unless approvals with the key count where the policy requires `people`."""
        missing = self._missing(people)
        if missing:
            raise StatementRefused(
                Refusal.SIGNERS,
                f"no approval counts: {people - missing} of {people} people were admitted independently",
                hint=self._vouch(people),
            )
        if key not in self.independent(people):
            raise StatementRefused(
                Refusal.SIGNERS,
                f"{key.person} was not admitted by {people} people",
                hint="sign with another key, or have another person approve; `assay key ls` lists who admitted whom",
            )

    def _missing(self, people: int) -> int:
        return max(0, people - len({key.person for key in self.independent(people)}))

    def _vouch(self, people: int) -> str:
        return (
            f"a known person and the machine's owner must admit {self._missing(people)} more: "
            "`assay key admit FILE`, then the daemon's user runs `assay key admit FILE --owner`"
        )

    def after(self, envelope: bytes, *, people: int) -> Register:
        """Returns the key register after a signed statement that admits or revokes a key. Raises StatementRefused."""
        read = open_envelope(envelope, KEY_TYPE)
        try:
            statement = KeyStatement.model_validate(payload_of(read))
            key = PublicKey.read(statement.key)
        except (ValidationError, ValueError, OverflowError) as error:
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
        before = self.known(key.fingerprint)
        vouches = bool(self.keys) and self._missing(people) > 0
        own = before is not None and before.valid and before.person == statement.person
        if before is not None and not (own and vouches and before not in self.independent(people)):
            raise StatementRefused(
                Refusal.KNOWN_KEY,
                f"{key.fingerprint} is already in the register",
                hint="create another key: a key belongs to one person, and a revoked one never returns",
            )
        self._require_own_name(read, statement.person, before)
        require_signatures(read, [key])
        owner = self.owner if vouches and self.owner is not None else None
        apart = {key.fingerprint, owner.fingerprint if owner is not None else ""}
        others = replace(read, signers=tuple(name for name in read.signers if name not in apart))
        vouched = owner is not None and owner.fingerprint in read.signers
        if owner is not None and vouched:
            require_signatures(read, [owner])
        names: tuple[str, ...] = ()
        if vouches:
            names = self.require_persons(self.signers(others), 1)
            if not vouched:
                raise StatementRefused(Refusal.SIGNERS, "the machine's owner has not signed", hint=self._vouch(people))
        elif self.persons:
            names = self.require_persons(self.signers(others), people)
        elif others.signers:
            self.signers(others)
        known = KnownKey(
            person=statement.person,
            key=key.line,
            fingerprint=key.fingerprint,
            admitted_at=statement.at,
            admitted_by=names,
            vouched=vouched,
            voices=1 if vouched else people if names else 0,
        )
        if before is not None:
            return replace(self, keys=tuple(known if one == before else one for one in self.keys))
        return replace(self, keys=(*self.keys, known))

    def _require_own_name(self, read: OpenEnvelope, person: str, before: KnownKey | None) -> None:
        """Raises StatementRefused for a name that looks like another known person's, or a name with a valid key that
        has not signed."""
        for known in self.keys:
            if known.person != person and skeleton(known.person) == skeleton(person):
                raise StatementRefused(
                    Refusal.PERSON,
                    f"the name {person} looks like {known.person}, who is known",
                    hint="choose a name that differs in more than case, punctuation or similar letters",
                )
        own = {key.fingerprint for key in self.keys if key.person == person and key.valid}
        if before is None and own and not own.intersection(read.signers):
            raise StatementRefused(
                Refusal.SIGNERS,
                f"{person} has a valid key, which has not signed",
                hint=f"have {person} sign with that key too, or revoke it first if it is lost",
            )

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
