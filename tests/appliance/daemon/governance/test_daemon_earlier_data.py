"""What the version before wrote stays: its policy in force, its keys, its decisions, what people signed, its log."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from people import admit, approve, log_holds, newest
from test_daemon_trust import Clock, digest, put_night, sign_policy

from appliance.config.configuration import Settings
from appliance.daemon.api.status import status_of
from appliance.daemon.contract.errors import RefusedByPolicyError
from appliance.daemon.coordination.core import Core
from appliance.settings.policy_files import in_force_file, load_policy
from policies import audit
from policies.approvals import verify_recorded_approval
from policies.audit import AuditEntry
from policies.contract.decision import Decision
from policies.edits import verify_edit
from policies.envelopes import PublicKey
from policies.errors import PolicyError
from policies.migration import migrate
from policies.policy import load, parse
from policies.register import Register

EARLIER = Path(__file__).parents[3] / "fixtures" / "earlier"
OLD = (EARLIER / "policy-4.toml").read_bytes()
LINES = (EARLIER / "audit-log.jsonl").read_bytes().splitlines(keepends=True)
"""Of a demonstration that the version before ran: a night, an approval, a signed edit of its policy."""
ENTRIES = [audit.read(line) for line in LINES]
KEYS = {name: PublicKey.read(str(ENTRIES[0].what[name])) for name in ("daemon", "trainer")}


def entries(kind: str) -> list[AuditEntry]:
    found = [entry for entry in ENTRIES if entry.kind == kind]
    assert found
    return found


def people() -> Register:
    register = Register(machines={key.fingerprint: name for name, key in KEYS.items()})
    for entry in entries("key.admitted"):
        register = register.after(str(entry.what["envelope"]).encode(), people=1)
    return register


def test_a_log_of_the_version_before_holds_to_its_last_entry() -> None:
    found = audit.check(LINES, KEYS["daemon"].key())
    assert (found.holds, found.entries) == (True, len(LINES))
    changed = [line.replace(b'"approve"', b'"reject!"') for line in LINES]
    assert not audit.check(changed, KEYS["daemon"].key()).holds


def test_an_approval_of_the_version_before_is_on_the_decision_that_was_shown() -> None:
    """Digests were over the fields in their own order then; now they are over sorted ones."""
    shown = [Decision.model_validate(entry.what["decision"]) for entry in entries("decision")]
    assert [one.digests()[1] for one in shown] == [entry.what["digest"] for entry in entries("decision")]
    (entry,) = entries("word")
    approval = entry.what["word"]
    assert isinstance(approval, dict)
    record = {name: str(value) for name, value in approval.items()}
    signed, _ = verify_recorded_approval(record, people(), who=("*",))
    assert signed.decision in shown[0].digests()
    assert signed.decision not in shown[1].digests()


def test_the_digest_of_a_decision_is_of_its_canonical_json() -> None:
    shown = Decision.model_validate(entries("decision")[0].what["decision"])
    changed = shown.model_copy(update={"reason": "größer"})
    value = json.loads(changed.model_dump_json())
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert changed.digest() == hashlib.sha256(text.encode("utf-8")).hexdigest()
    assert changed.digest() not in shown.digests()


def test_an_edit_of_the_version_before_is_the_policy_in_force_and_is_read_as_it_was() -> None:
    (entry,) = entries("policy.signed")
    content = str(entry.what["content"]).encode()
    policy = parse(content, "in force", in_force=True)
    names = verify_edit(
        str(entry.what["envelope"]).encode(),
        people(),
        log=hashlib.sha256(LINES[0]).hexdigest(),
        number=1,
        in_force=str(entry.what["replaces"]),
        digest=policy.digest,
        people=1,
    )
    assert names == ("ada",)
    assert parse(migrate(content, "in force").text.encode(), "new").model_dump() == policy.model_dump()
    assert policy.gates.model_dump() != load().gates.model_dump()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def earlier(data, clock):
    """A data folder with a policy of the version before in force, a person, a champion and a candidate."""
    in_force_file(data).parent.mkdir(parents=True)
    in_force_file(data).write_bytes(OLD)
    with Core(Settings(data=data), now=clock) as core:
        admit(core, "ada")
        put_night(core)
    return data


def test_what_is_in_force_stays_in_force_and_says_that_it_is_to_be_migrated(earlier, clock) -> None:
    with Core(Settings(data=earlier), now=clock) as core:
        old = hashlib.sha256(OLD).hexdigest()
        assert (core.policy.digest, status_of(core).policy, load_policy(earlier).digest) == (old, old, old)
        assert core.trust.policies.in_force().unsigned == ""
        assert any("assay policy migrate" in event.text for _, event in core.ledger.events())
        approved = approve(core, "candidate")
        assert (approved.decision.policy, approved.aliases["champion"]) == (old, approved.decision.candidate)
        assert log_holds(core)


def test_the_migrated_policy_comes_into_force_with_one_signature_and_nothing_else_changes(earlier, clock) -> None:
    new = migrate(OLD, "in force").text.encode()
    with Core(Settings(data=earlier), now=clock) as core:
        before = (core.trust.register, core.ledger.alias("champion"), newest(core, "candidate"))
        with pytest.raises(RefusedByPolicyError, match="unknown key"):
            core.governance.change_policy(new, sign_policy(core, new, "mallory"))
        core.governance.change_policy(new, sign_policy(core, new, "ada"))
    with Core(Settings(data=earlier), now=clock) as core:
        assert (core.policy.digest, core.policy.version) == (digest(new), 5)
        assert not core.trust.policies.is_earlier
        assert (core.trust.register, core.ledger.alias("champion"), newest(core, "candidate")) == before
        assert log_holds(core)
        with pytest.raises(PolicyError, match="version 4 is accepted only while it is in force"):
            core.governance.change_policy(OLD, sign_policy(core, OLD, "ada"))
