"""Who is known grows by signed statements: a key has one owner, a machine is nobody, what is revoked stays revoked."""

from __future__ import annotations

import pytest
from signing_kit import LATER, NOW, admission, digest, register_of, register_of_one, revocation, signer
from tables import table

from policies.envelopes import add_signature, canonical, sign_envelope
from policies.errors import Refusal, StatementRefused
from policies.register import Register
from policies.statements import POLICY_TYPE, PolicyEdit, verify_edit


def refused(register: Register, envelope: bytes, *, people: int = 1) -> Refusal:
    with pytest.raises(StatementRefused) as met:
        register.after(envelope, people=people)
    assert met.value.hint
    return met.value.name


def test_the_first_key_is_trusted_on_first_use_and_says_so() -> None:
    (first,) = register_of("ada").keys
    assert (first.person, first.admitted_by, first.valid) == ("ada", (), True)


def test_a_later_key_needs_somebody_who_is_known() -> None:
    register = register_of("ada")
    assert refused(register, admission("bob")) is Refusal.SIGNERS
    assert refused(register, admission("bob", "mallory")) is Refusal.UNKNOWN_KEY
    assert refused(register, admission("bob", "trainer")) is Refusal.MACHINE_KEY
    assert register.after(admission("bob", "ada"), people=1).persons == ("ada", "bob")


def test_a_key_is_admitted_only_with_its_own_signature() -> None:
    register = register_of("ada")
    signed_by_ada_alone = admission("bob").replace(
        signer("bob").public.fingerprint.encode(), signer("ada").public.fingerprint.encode()
    )
    assert refused(register, signed_by_ada_alone) is Refusal.SIGNATURE


def test_where_two_people_must_approve_one_alone_admits_nobody() -> None:
    register = register_of("ada", "bob")
    assert refused(register, admission("ada.two", "ada"), people=2) is Refusal.SIGNERS
    assert "eve" in register.after(admission("eve", "ada", "bob"), people=2).persons


def test_revoking_anothers_key_leaves_as_many_people_to_be_asked() -> None:
    left = register_of("ada", "bob").after(revocation("bob", "ada"), people=2)
    assert refused(left, admission("eve", "ada"), people=2) is Refusal.SIGNERS
    with pytest.raises(StatementRefused, match="too few people: 1 of 2") as met:
        accept(edit(3, "ada"), people=2, register=left)
    assert "assay audit renew" in met.value.hint
    assert accept(edit(3, "ada"), people=1, register=left) == ("ada",)


def test_who_is_left_admits_another_while_they_are_enough() -> None:
    left = register_of("ada", "bob", "eve").after(revocation("bob", "ada"), people=2)
    assert refused(left, admission("dan", "ada"), people=2) is Refusal.SIGNERS
    assert left.after(admission("dan", "ada", "eve"), people=2).persons == ("ada", "dan", "eve")


def test_a_new_key_of_a_person_whose_key_was_revoked_is_not_another_person() -> None:
    left = register_of("ada", "bob", "eve").after(revocation("bob", "ada"), people=2)
    again = left.after(admission("bob", "ada", "eve", key="bob.two"), people=2)
    assert again.persons == ("ada", "bob", "eve")
    assert accept(edit(3, "ada", "bob.two"), people=2, register=again) == ("ada", "bob")
    with pytest.raises(StatementRefused, match="too few people: 2 of 3"):
        accept(edit(3, "ada", "bob.two", "eve"), people=3, register=again)


def test_whom_one_person_admits_is_no_second_person() -> None:
    alone = register_of("ada")
    assert refused(alone, admission("bob"), people=2) is Refusal.SIGNERS
    assert refused(alone, admission("bob", "ada"), people=2) is Refusal.SIGNERS
    assert refused(alone, admission("bob", "daemon"), people=2) is Refusal.SIGNERS
    assert refused(alone, admission("bob", "ada", "trainer"), people=2) is Refusal.MACHINE_KEY
    both = alone.after(admission("bob", "ada", "daemon"), people=2)
    assert accept(edit(3, "ada", "bob"), people=2, register=both) == ("ada", "bob")
    assert refused(both, admission("eve", "ada", "daemon"), people=2) is Refusal.MACHINE_KEY


def test_one_person_signs_no_edit_for_two_before_another_is_there() -> None:
    for register in (register_of("ada"), register_of_one("ada", "ada.two", "ada.three")):
        signed = edit(3, *(key.person for key in register.keys))
        with pytest.raises(StatementRefused, match="too few people: 1 of 2") as met:
            accept(signed, people=2, register=register)
        assert "--owner" in met.value.hint
        with pytest.raises(StatementRefused, match="no approval counts: 1 of 2"):
            register.require_voice(register.keys[0], 2)


def test_whom_one_person_admitted_counts_once_the_owner_vouches_and_no_other_key_of_that_name() -> None:
    before = register_of_one("ada", "bob")
    before = before.after(admission("bob", "bob", key="of ada"), people=1)
    again = admission("bob", "ada")
    assert refused(before, again, people=2) is Refusal.SIGNERS
    assert refused(before, admission("bob", "ada", "daemon"), people=1) is Refusal.KNOWN_KEY
    after = before.after(admission("bob", "ada", "daemon"), people=2)
    assert [key.vouched for key in after.keys] == [False, True, False]
    assert accept(edit(3, "ada", "bob"), people=2, register=after) == ("ada", "bob")
    with pytest.raises(StatementRefused, match="too few people: 1 of 2"):
        accept(edit(3, "ada", "of ada"), people=2, register=after)
    with pytest.raises(StatementRefused, match="bob was not admitted by 2 people"):
        after.require_voice(after.keys[2], 2)


def test_whom_many_admitted_under_a_policy_for_one_is_still_admitted_by_one() -> None:
    many = register_of_one("ada", "bob", "eve").after(admission("dan", "ada", "bob", "eve"), people=1)
    assert {key.person for key in many.independent(1)} == {"ada", "bob", "eve", "dan"}
    assert [key.person for key in many.independent(2)] == ["ada"]


@table("name", ["Ada", "ADA", "a.da", "ada-", "aDa@"])
def test_a_name_that_looks_like_another_persons_is_refused(name: str) -> None:
    assert refused(register_of("ada"), admission(name, "ada")) is Refusal.PERSON
    assert refused(register_of("alan0"), admission("a1anO", "alan0")) is Refusal.PERSON
    left = register_of("bob", "ada").after(revocation("ada", "bob"), people=1)
    assert refused(left, admission(name, "bob")) is Refusal.PERSON


def test_another_key_of_a_person_is_signed_by_that_person_unless_all_keys_were_revoked() -> None:
    register = register_of("ada", "bob")
    assert refused(register, admission("bob", "ada", key="of ada")) is Refusal.SIGNERS
    assert refused(register, admission("bob", "ada", "ada", key="of ada"), people=2) is Refusal.SIGNERS
    own = register.after(admission("bob", "bob", key="bob.two"), people=1)
    assert not own.follows_another(own.keys[-1])
    lost = register.after(revocation("bob", "ada"), people=1).after(admission("bob", "ada", key="of ada"), people=1)
    assert lost.follows_another(lost.keys[-1])


def test_two_keys_of_one_person_are_one_person() -> None:
    register = register_of("ada", "bob").after(admission("ada", "ada", key="second"), people=1)
    assert refused(register, admission("eve", "ada", "second"), people=2) is Refusal.SIGNERS


@pytest.mark.parametrize("machine", ["daemon", "trainer"])
def test_a_machines_key_never_becomes_a_persons(machine: str) -> None:
    assert refused(register_of(), admission("ada", key=machine)) is Refusal.MACHINE_KEY
    assert refused(register_of("ada"), admission("eve", "ada", key=machine)) is Refusal.MACHINE_KEY


def test_a_key_belongs_to_one_person() -> None:
    assert refused(register_of("ada"), admission("bob", "ada", key="ada")) is Refusal.KNOWN_KEY


def test_a_revoked_key_never_comes_back() -> None:
    register = register_of("ada", "bob").after(revocation("bob", "ada"), people=1)
    gone = register.known(signer("bob").public.fingerprint)
    assert gone is not None
    assert (gone.revoked_at, gone.revoked_by, gone.reason) == (LATER, "ada", "lost")
    assert register.persons == ("ada",)
    assert refused(register, admission("bob", "ada")) is Refusal.KNOWN_KEY
    assert refused(register, revocation("bob", "ada")) is Refusal.REVOKED
    assert refused(register, admission("eve", "bob")) is Refusal.REVOKED


def test_a_revocation_is_signed_by_somebody_who_is_known_and_names_the_owner() -> None:
    register = register_of("ada", "bob")
    assert refused(register, revocation("bob", "mallory")) is Refusal.UNKNOWN_KEY
    assert refused(register, revocation("bob", "daemon")) is Refusal.MACHINE_KEY
    assert refused(register, revocation("bob", "bob", key="ada")) is Refusal.PERSON


def test_the_last_key_cannot_be_revoked() -> None:
    assert refused(register_of("ada"), revocation("ada", "ada")) is Refusal.LAST_KEY


@pytest.mark.parametrize("name", ["", "-x", "a b", "ada\n", "\x1b[2J", "a" * 65])
def test_a_name_is_plain(name: str) -> None:
    with pytest.raises(ValueError, match="person"):
        admission(name, key="ada")


def edit(number: int, *by: str, log: str = "log", replaces: str = "old", new: str = "new") -> bytes:
    made = PolicyEdit(log=digest(log), number=number, replaces=digest(replaces), file=digest(new), at=NOW)
    envelope = sign_envelope(canonical(made.model_dump(mode="json")), POLICY_TYPE, signer(by[0]))
    for other in by[1:]:
        envelope = add_signature(envelope, signer(other))
    return envelope


def accept(envelope: bytes, *, people: int = 1, register: Register | None = None) -> tuple[str, ...]:
    known = register_of("ada", "bob") if register is None else register
    return verify_edit(
        envelope, known, log=digest("log"), number=3, in_force=digest("old"), digest=digest("new"), people=people
    )


def test_an_edit_of_the_policy_takes_as_many_people_as_the_policy_in_force_asks_for() -> None:
    assert accept(edit(3, "ada")) == ("ada",)
    assert accept(edit(3, "ada", "bob"), people=2) == ("ada", "bob")
    with pytest.raises(StatementRefused, match="too few people: 1 of 2"):
        accept(edit(3, "ada"), people=2)


@table(
    ("envelope", "name"),
    [
        (edit(2, "ada"), Refusal.REPLAYED),
        (edit(3, "ada", replaces="older"), Refusal.REPLAYED),
        (edit(3, "ada", log="the one before"), Refusal.REPLAYED),
        (edit(3, "ada", new="other"), Refusal.POLICY),
        (edit(3, "daemon"), Refusal.MACHINE_KEY),
        (edit(3, "ada", "trainer"), Refusal.MACHINE_KEY),
        (edit(3, "mallory"), Refusal.UNKNOWN_KEY),
        (admission("eve", "ada"), Refusal.SHAPE),
    ],
)
def test_an_edit_that_is_old_or_of_another_file_or_by_nobody_is_refused(envelope: bytes, name: Refusal) -> None:
    with pytest.raises(StatementRefused) as met:
        accept(envelope)
    assert met.value.name is name
