"""Attacks on a person's word, on the register and on the policy: each has no effect, and its name is in the log."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import test_daemon_governance as built
from people import admission, admit, approval_envelope, approve, log_holds, newest, refusals, reject, revocation, signer

from appliance.audit.log import AuditBroken, AuditError, log_file
from appliance.audit.machine_keys import load_key
from appliance.cli.audit.renew import begin_anew
from appliance.cli.governance import key_sign
from appliance.cli.shell.person import SigningOptions
from appliance.client.person_keys import KeyFileError
from appliance.client.signing import policy_edit
from appliance.config.configuration import Settings
from appliance.daemon.contract import BrokenError, RefusedByPolicyError
from appliance.daemon.coordination.core import Core
from appliance.records.evaluations import Approval
from appliance.settings.policy_files import in_force_file, load_policy
from policies.contract.decision import DecisionOutcome, KeyStatement
from policies.envelopes import Signer, canonical, sign_envelope
from policies.policy import read_content
from policies.register import KEY_TYPE

AT = built.AT
NOW = "2026-01-02T04:04:05.000+00:00"
LATER = "2026-01-12T04:04:05.000+00:00"
PACKAGED = read_content()[0]


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> str:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def core(data: Path, clock: Clock) -> Iterator[Core]:
    """A champion in service, a candidate that waits for a word, and ada and bob, who have keys."""
    with Core(Settings(data=data), now=clock) as running:
        put_night(running)
        admit(running, "ada", "bob")
        yield running


def put_night(core: Core, content: bytes = b"better") -> str:
    if core.ledger.alias("champion") is None:
        champion = built.put_model(core.data, core.ledger, b"champion")
        core.ledger.set_aliases({"champion": champion}, "first", AT)
    return built.put_decided(core, str(core.ledger.alias("champion")), content)


def refused(core: Core, envelope: bytes, candidate: str = "candidate") -> str:
    """The reason's name. Nothing came of it."""
    before = core.ledger.alias("champion"), core.ledger.approvals()
    with pytest.raises(RefusedByPolicyError) as met:
        core.governance.approve(candidate, envelope)
    assert (core.ledger.alias("champion"), core.ledger.approvals()) == before
    name = refusals(core)[-1]
    assert str(met.value).startswith(f"{name}: ")
    return name


def machine(core: Core, name: str) -> Signer:
    return Signer.of(load_key(core.data, name))  # type: ignore[arg-type]


# words
@pytest.mark.parametrize("who", ["daemon", "trainer"])
def test_the_machines_own_keys_are_admitted_by_nobody(core, who) -> None:
    own = machine(core, who)
    statement = KeyStatement(action="admit", person="eve", key=own.public.line, at=AT)
    with pytest.raises(RefusedByPolicyError, match="a machine's key"):
        core.trust.change_key(sign_envelope(canonical(statement.model_dump(mode="json")), KEY_TYPE, own))


def test_a_revoked_key_has_no_word_any_more_and_its_earlier_word_does_not_count(data, clock) -> None:
    with_two = PACKAGED.replace(b"people = 1 ", b"people = 2 ")
    assert with_two != PACKAGED
    data.mkdir()
    (data / "policy.toml").write_bytes(with_two)
    with Core(Settings(data=data), now=clock) as core:
        put_night(core)
        admit(core, "ada", "bob")
        core.trust.change_key(built.people.admission("eve", "ada", "bob"))
        with pytest.raises(RefusedByPolicyError, match="1 of 2 people"):
            approve(core, "candidate", "ada")
        core.trust.change_key(revocation("ada", "bob"))
        assert refused(core, approval_envelope(core, newest(core, "candidate"), nonce="9" * 32)) == "revoked key"
        with pytest.raises(RefusedByPolicyError, match="1 of 2 people"):
            approve(core, "candidate", "bob")
        candidate = core.governance.digest_of("candidate")
        assert approve(core, "candidate", "eve").aliases["champion"] == candidate


def test_two_words_of_one_person_are_not_two_people(data, clock) -> None:
    data.mkdir()
    (data / "policy.toml").write_bytes(PACKAGED.replace(b"people = 1 ", b"people = 2 "))
    with Core(Settings(data=data), now=clock) as core:
        put_night(core)
        admit(core, "ada", "bob")
        for nonce in ("1" * 32, "2" * 32):
            with pytest.raises(RefusedByPolicyError, match="1 of 2 people"):
                core.governance.approve("candidate", approval_envelope(core, newest(core, "candidate"), nonce=nonce))
        assert approve(core, "candidate", "bob").decision.outcome is DecisionOutcome.PROMOTE


def test_a_rejection_that_was_taken_back_stays_so_when_the_approval_expires(data, clock) -> None:
    data.mkdir()
    (data / "policy.toml").write_bytes(PACKAGED.replace(b"people = 1 ", b"people = 2 "))
    with Core(Settings(data=data), now=clock) as core:
        put_night(core)
        admit(core, "ada", "bob")
        candidate = core.governance.digest_of("candidate")
        reject(core, candidate, "ada")
        clock.now = "2026-01-02T05:04:05.000+00:00"
        for person, at in (("ada", "2026-01-02T08:04:05.000+00:00"), ("bob", clock.now)):
            with pytest.raises(RefusedByPolicyError, match="1 of 2 people"):
                core.governance.approve(candidate, approval_envelope(core, newest(core, candidate), person, hours=1.0))
            clock.now = at


def test_a_policy_that_was_signed_is_in_force_also_where_its_file_cannot_be_written(core) -> None:
    content = PACKAGED.replace(b"people = 1 ", b"people = 2 ")
    in_the_way = core.data / "policy" / ".in-force.toml.new"
    in_the_way.mkdir()
    edit = policy_edit(hashlib.sha256(content).hexdigest(), core.trust.policies.in_force(), signer("ada"), None)
    with pytest.raises(BrokenError, match="is signed and in force"):
        core.governance.change_policy(content, edit)
    assert core.trust.policies.in_force().digest == core.policy.digest
    with pytest.raises(RefusedByPolicyError, match="another policy"):
        approve(core, "candidate", "ada")


def test_a_rejection_stands_when_its_key_is_revoked(core) -> None:
    candidate = core.governance.digest_of("candidate")
    reject(core, "candidate", "bob")
    core.trust.change_key(revocation("bob", "ada"))
    with pytest.raises(RefusedByPolicyError, match="rejected by bob"):
        approve(core, candidate, "ada")


def test_without_anybodys_key_nobody_approves(data, clock) -> None:
    with Core(Settings(data=data), now=clock) as core:
        put_night(core)
        assert refused(core, approval_envelope(core, newest(core, "candidate"))) == "unknown key"


# what was written past the daemon
def test_a_word_that_was_written_into_the_ledger_does_not_count(core) -> None:
    """As somebody would who can write the database but has no key."""
    decision = newest(core, "candidate")
    forged = Approval(
        decision=decision.digest(), candidate=decision.candidate, verdict="approve", person="bob", created=NOW
    )
    core.ledger.put_approval(forged)
    core.ledger.put_decision(decision.model_copy(update={"id": "forged", "outcome": DecisionOutcome.PROMOTE}))
    core.governance.reconcile()
    assert core.ledger.alias("champion") != decision.candidate
    assert "promotion.refused" in [entry.kind for entry in core.ledger.audit.entries()]


def test_an_approval_that_is_written_anew_after_its_persons_rejection_does_not_count(data, clock) -> None:
    """The order of a person's words is that of the times which were signed, whatever a record says."""
    data.mkdir()
    (data / "policy.toml").write_bytes(PACKAGED.replace(b"people = 1 ", b"people = 2 "))
    with Core(Settings(data=data), now=clock) as core:
        candidate = put_night(core)
        admit(core, "ada", "bob")
        with pytest.raises(RefusedByPolicyError, match="1 of 2 people"):
            approve(core, candidate)
        (given,) = core.ledger.approvals(candidate=candidate)
        clock.now = "2026-01-02T04:14:05.000+00:00"
        reject(core, candidate)
        clock.now = "2026-01-02T04:24:05.000+00:00"
        core.ledger.put_approval(given.model_copy(update={"created": clock.now}))
        with pytest.raises(RefusedByPolicyError, match="rejected by ada"):
            approve(core, candidate, "bob")


def test_an_approval_that_expired_before_it_was_carried_out_has_no_effect(data, clock, monkeypatch) -> None:
    """The daemon was killed after the decision to promote and before the alias moved."""

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with Core(Settings(data=data), now=clock) as core:
        candidate = put_night(core)
        admit(core, "ada")
        monkeypatch.setattr(core.governance, "_put_into_service", killed)
        with pytest.raises(KeyboardInterrupt):
            core.governance.approve(candidate, approval_envelope(core, newest(core, candidate), hours=1.0))
        assert newest(core, candidate).outcome is DecisionOutcome.PROMOTE
    for now in ("2026-01-02T05:24:05.000+00:00", NOW):
        clock.now = now
        with Core(Settings(data=data), now=clock) as core:
            assert core.ledger.alias("champion") != candidate
            refused = [one for one in core.ledger.audit.entries() if one.kind == "promotion.refused"]
            assert "0 of 1 people approved" in str(refused[-1].what["message"])


def test_an_approval_that_still_counts_is_carried_out_after_a_kill(data, clock, monkeypatch) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with Core(Settings(data=data), now=clock) as core:
        candidate = put_night(core)
        admit(core, "ada")
        monkeypatch.setattr(core.governance, "_put_into_service", killed)
        with pytest.raises(KeyboardInterrupt):
            core.governance.approve(candidate, approval_envelope(core, newest(core, candidate), hours=1.0))
    clock.now = "2026-01-02T04:34:05.000+00:00"
    with Core(Settings(data=data), now=clock) as core:
        assert core.ledger.alias("champion") == candidate


# the log
def test_everything_that_decides_is_in_the_log_in_its_order(core) -> None:
    candidate = core.governance.digest_of("candidate")
    approve(core, "candidate")
    core.governance.rollback("ada", "it is rude")
    found = [entry.kind for entry in core.ledger.audit.entries()]
    assert found[:3] == ["log.begin", "policy.first_use", "daemon.start"]
    assert found[-5:] == ["word", "decision", "aliases", "decision", "aliases"]
    assert found.count("key.admitted") == 2
    assert log_holds(core)
    last = list(core.ledger.audit.entries())[-1].what
    assert (last["before"]["champion"], "it is rude" in str(last["reason"])) == (candidate, True)


@pytest.mark.parametrize("what", ["approve", "reject", "rollback", "admit", "policy", "decision"])
def test_what_cannot_be_logged_does_not_happen(core, monkeypatch, what) -> None:
    approve(core, "candidate")
    candidate = put_night(core, b"even better")
    edit = PACKAGED + b"\n# strict\n"
    envelope = policy_edit(digest(edit), core.trust.policies.in_force(), signer("ada"), None)
    acts = {
        "approve": lambda: approve(core, candidate),
        "reject": lambda: reject(core, candidate),
        "rollback": lambda: core.governance.rollback("ada"),
        "admit": lambda: core.trust.change_key(admission("eve", "ada")),
        "policy": lambda: core.governance.change_policy(edit, envelope),
        "decision": lambda: core.ledger.put_decision(newest(core, candidate).model_copy(update={"id": "another"})),
    }

    def state():
        return (
            core.ledger.approvals(),
            core.ledger.alias_history(),
            core.trust.register,
            core.policy,
            core.ledger.decisions(),
        )

    before = state()

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("appliance.audit.log.os.write", full)
    with pytest.raises(AuditError, match="No space left"):
        acts[what]()
    monkeypatch.undo()
    assert state() == before
    assert log_holds(core)


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_a_log_that_somebody_changed_keeps_the_daemon_from_starting(data, clock) -> None:
    with Core(Settings(data=data), now=clock) as core:
        put_night(core)
        admit(core, "ada")
    path = log_file(data)
    path.write_bytes(path.read_bytes().replace(b'"person":"ada"', b'"person":"eve"'))
    with pytest.raises(AuditBroken, match="does not hold"), Core(Settings(data=data), now=clock):
        pass


# the register
def test_keys_and_policy_are_what_the_log_says_after_a_restart(data, clock) -> None:
    with Core(Settings(data=data), now=clock) as core:
        admit(core, "ada", "bob")
        core.trust.change_key(revocation("ada", "bob"))
        register, policy = core.trust.register, core.policy.digest
    with Core(Settings(data=data), now=clock) as core:
        assert core.trust.register == register
        assert core.policy.digest == policy
        assert refusals(core) == []


# the policy
STRICT = PACKAGED.replace(b"min_gain = 1.0", b"min_gain = 2.0")


def sign_policy(core: Core, content: bytes, *names: str) -> bytes:
    envelope = None
    for name in names:
        envelope = policy_edit(digest(content), core.trust.policies.in_force(), signer(name), envelope)
    assert envelope is not None
    return envelope


def test_an_edited_policy_file_takes_effect_only_when_it_is_signed(data, clock) -> None:
    with Core(Settings(data=data), now=clock) as core:
        admit(core, "ada")
        first = core.policy.digest
    (data / "policy.toml").write_bytes(STRICT)
    with Core(Settings(data=data), now=clock) as core:
        assert (core.policy.digest, core.trust.policies.in_force().unsigned) == (first, digest(STRICT))
        assert load_policy(data).digest == first
        core.governance.change_policy(STRICT, sign_policy(core, STRICT, "ada"))
        assert core.policy.gates.improvement.min_gain == 2.0
        assert load_policy(data).digest == core.policy.digest == digest(STRICT)
    with Core(Settings(data=data), now=clock) as core:
        assert (core.policy.digest, core.trust.policies.in_force().unsigned) == (digest(STRICT), "")


def test_an_edit_never_applies_to_a_candidate_that_was_evaluated_before_it(core) -> None:
    core.governance.change_policy(STRICT, sign_policy(core, STRICT, "ada"))
    with pytest.raises(RefusedByPolicyError, match="another policy"):
        core.governance.approve("candidate", approval_envelope(core, newest(core, "candidate")))
    assert refusals(core) == ["another policy"]
    back = PACKAGED + b"# the same figures, another file\n"
    core.governance.change_policy(back, sign_policy(core, back, "ada"))
    core.governance.reconcile()
    assert core.ledger.alias("candidate") is not None


def test_an_edit_that_nobody_signed_or_that_is_old_or_of_another_file_is_refused(core) -> None:
    sound = sign_policy(core, STRICT, "ada")
    for content, envelope, name in (
        (STRICT, sign_policy(core, STRICT, "mallory"), "unknown key"),
        (STRICT + b"\n", sound, "another policy"),
        (STRICT, approval_envelope(core, newest(core, "candidate")), "not a signed statement"),
    ):
        with pytest.raises(RefusedByPolicyError, match=name):
            core.governance.change_policy(content, envelope)
    core.governance.change_policy(STRICT, sound)
    core.governance.change_policy(PACKAGED, sign_policy(core, PACKAGED, "bob"))
    with pytest.raises(RefusedByPolicyError, match="replayed"):
        core.governance.change_policy(STRICT, sound)
    assert core.policy.digest == digest(PACKAGED)


def test_an_edit_that_was_signed_for_the_log_before_is_refused_in_the_one_that_was_begun_anew(data, clock) -> None:
    with Core(Settings(data=data), now=clock) as core:
        admit(core, "ada")
        sound = sign_policy(core, STRICT, "ada")
        core.governance.change_policy(STRICT, sound)
        core.governance.change_policy(PACKAGED, sign_policy(core, PACKAGED, "ada"))
    begin_anew(data, "damaged")
    with Core(Settings(data=data)) as core:
        admit(core, "ada")
        with pytest.raises(RefusedByPolicyError, match="replayed"):
            core.governance.change_policy(STRICT, sound)
        assert core.policy.digest == digest(PACKAGED)
        core.governance.change_policy(STRICT, sign_policy(core, STRICT, "ada"))


def test_one_person_does_not_lower_the_number_of_people_that_it_takes(data, clock) -> None:
    data.mkdir()
    two = PACKAGED.replace(b"people = 1 ", b"people = 2 ")
    (data / "policy.toml").write_bytes(two)
    with Core(Settings(data=data), now=clock) as core:
        admit(core, "ada", "bob")
        with pytest.raises(RefusedByPolicyError, match="too few people: 1 of 2"):
            core.governance.change_policy(PACKAGED, sign_policy(core, PACKAGED, "ada"))
        core.governance.change_policy(PACKAGED, sign_policy(core, PACKAGED, "ada", "bob"))
        assert core.policy.approval.people == 1


def test_one_person_does_not_become_two_by_revoking_anothers_key(data, clock) -> None:
    """Whoever revokes the other's key admits nobody in the other's place, and signs no edit of the policy alone."""
    data.mkdir()
    (data / "policy.toml").write_bytes(PACKAGED.replace(b"people = 1 ", b"people = 2 "))
    with Core(Settings(data=data), now=clock) as core:
        candidate = put_night(core)
        admit(core, "ada", "bob")
        with pytest.raises(RefusedByPolicyError, match="1 of 2 people"):
            approve(core, candidate)
        core.trust.change_key(revocation("bob", "ada"))
        with pytest.raises(RefusedByPolicyError, match="too few people: 1 of 2"):
            core.trust.change_key(admission("eve", "ada"))
        assert refused(core, approval_envelope(core, newest(core, candidate), "eve"), candidate) == "unknown key"
        with pytest.raises(RefusedByPolicyError, match="too few people: 1 of 2"):
            core.governance.change_policy(PACKAGED, sign_policy(core, PACKAGED, "ada"))
        assert refusals(core) == ["too few people", "unknown key", "too few people"]
        assert core.ledger.alias("champion") != candidate


def test_a_policy_in_force_that_somebody_exchanged_is_put_right_and_said(data, clock) -> None:
    with Core(Settings(data=data), now=clock) as core:
        first = core.policy.digest
    in_force_file(data).write_bytes(STRICT)
    with pytest.raises(BrokenError, match="restored"), Core(Settings(data=data), now=clock):
        pass
    assert load_policy(data).digest == first
    with Core(Settings(data=data), now=clock) as core:
        assert core.policy.digest == first
        assert "policy.restored" in [entry.kind for entry in core.ledger.audit.entries()]


def test_a_kill_between_the_log_and_the_file_of_a_signed_policy_is_made_good(data, clock) -> None:
    with Core(Settings(data=data), now=clock) as core:
        admit(core, "ada")
        before = in_force_file(data).read_bytes()
        core.governance.change_policy(STRICT, sign_policy(core, STRICT, "ada"))
    in_force_file(data).write_bytes(before)
    with Core(Settings(data=data), now=clock) as core:
        assert core.policy.digest == digest(STRICT) == load_policy(data).digest


def test_the_machines_owner_vouches_with_the_daemons_key_for_a_person_whom_another_knows(
    data, clock, tmp_path, monkeypatch
) -> None:
    data.mkdir()
    (data / "policy.toml").write_bytes(PACKAGED.replace(b"people = 1 ", b"people = 2 "))
    file = tmp_path / "bob.admission"
    with Core(Settings(data=data), now=clock) as core:
        candidate = put_night(core)
        admit(core, "ada")
        sends = SimpleNamespace(change_key=lambda signed: core.trust.change_key(signed.envelope.encode()))
        monkeypatch.setattr(key_sign, "api_client", lambda: sends)
        monkeypatch.setattr(key_sign, "read_settings", lambda: SimpleNamespace(data=data))
        confirmed = signer("bob").public.fingerprint.removeprefix("SHA256:")
        signs = SigningOptions(confirm=confirmed)
        with pytest.raises(KeyFileError, match="--owner needs a file"):
            key_sign._as_owner(sends, signs, None)
        with pytest.raises(RefusedByPolicyError, match="too few people: no approval counts: 1 of 2"):
            approve(core, candidate)
        file.write_bytes(admission("bob", "ada"))
        with pytest.raises(KeyFileError, match="wrong confirmation"):
            key_sign._as_owner(sends, SigningOptions(confirm="x" * 8), file)
        known = key_sign._as_owner(sends, signs, file)
        assert known.document.known
        assert "admitted by ada, the machine's owner" in str(known)
        with pytest.raises(RefusedByPolicyError, match="1 of 2 people"):
            approve(core, candidate)
        assert approve(core, candidate, "bob").aliases["champion"] == candidate
