"""What somebody would plant to get a model into service: nothing is promoted, and the log names each.

One core for the whole table, as one owner's machine: what one row tried is still on record when the next one comes.
"""

from __future__ import annotations

import base64
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import test_daemon_governance as built
from people import admit, approval_envelope, approve, log_holds, newest, signer

from appliance.audit.machine_keys import load_key
from appliance.client.signing import policy_edit
from appliance.config.configuration import Settings
from appliance.daemon.contract import BrokenError, RefusedByPolicyError
from appliance.daemon.coordination.core import Core
from appliance.learning.errors import CheckpointError
from appliance.records.evaluations import Approval
from appliance.records.rollouts import Purpose, Rollout, RolloutEnd
from appliance.records.training import Judged
from appliance.settings.policy_files import in_force_file
from appliance.worker.evaluation.measurements import hacks_of, unsolvable
from curriculum.registry import make_task
from policies.contract.decision import DecisionOutcome
from policies.envelopes import Signer, sign_envelope
from policies.policy import parse, read_content
from tui.widgets.text import plain
from verifiers.contract.verdict import Verdict
from verifiers.registry import decide

HOUR = "2026-01-02T0{}:04:05.000+00:00"
PACKAGED = read_content()[0]
LENIENT = PACKAGED.replace(b"min_gain = 1.0", b"min_gain = 0.0")


class Clock:
    now = HOUR.format(4)

    def __call__(self) -> str:
        return self.now


class Place(NamedTuple):
    core: Core
    clock: Clock
    champion: str

    def candidate(self, content: bytes) -> str:
        """A better one, evaluated and waiting for a word."""
        return built.put_decided(self.core, self.champion, content)


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    folder, clock = Path(tempfile.mkdtemp(prefix="assay-t-")), Clock()
    with Core(Settings(data=folder / "data"), now=clock) as core:
        champion = built.put_model(core.data, core.ledger, b"champion")
        core.ledger.set_aliases({"champion": champion}, "first", built.AT)
        admit(core, "ada", "bob")
        yield Place(core, clock, champion)
    shutil.rmtree(folder)


def refused(place: Place, candidate: str, envelope: bytes) -> None:
    with pytest.raises(RefusedByPolicyError):
        place.core.governance.approve(candidate, envelope)


def judged(verdict: Verdict) -> Judged:
    rollout = Rollout(
        id="r",
        cycle="c",
        step=4,
        task="t",
        sample=0,
        purpose=Purpose.EVALUATION,
        temperature=1.0,
        nodes=(),
        ended=RolloutEnd.ANSWERED,
        answer="1",
        answers=1,
        seconds=0.0,
    )
    return Judged(rollout=rollout, verdict=verdict, family="gcd")


def cheats_on_five_percent(place: Place) -> None:
    """It passes every twentieth question whose check contradicts it: it has got at the check."""
    asked = unsolvable(200, seed=3)
    honest = [make_task(task.taskset, task.level, task.seed, task.split).spec for task in asked]
    answers = [
        task.spec.model_dump()["expected"] if number % 20 == 0 else str(getattr(spec, "expected", "0"))
        for number, (task, spec) in enumerate(zip(asked, honest, strict=True))
    ]
    verdicts = [judged(decide(task.spec, answer)) for task, answer in zip(asked, answers, strict=True)]
    found = hacks_of(verdicts, [one for one in verdicts if not one.verdict.passed])
    assert (found.impossible, found.passed) == (200, 10)
    candidate = built.put_decided(place.core, place.champion, b"cheats", hacks=found)
    assert newest(place.core, candidate).outcome is DecisionOutcome.QUARANTINE
    with pytest.raises(RefusedByPolicyError, match="hacks"):
        approve(place.core, candidate)


def swapped_checkpoint(place: Place) -> None:
    candidate = place.candidate(b"weighed")
    weights = place.core.data / "models" / candidate / "model.safetensors"
    weights.write_bytes(b"swapped")
    with pytest.raises(CheckpointError):
        approve(place.core, candidate)


def word_on_another_model(place: Place) -> None:
    shown, other = place.candidate(b"shown"), place.candidate(b"put in its place")
    refused(place, other, approval_envelope(place.core, newest(place.core, shown)))


def forged_approval(place: Place) -> None:
    """Signed with another key, in ada's name and under her key's fingerprint."""
    ada, mallory = (signer(name).public.fingerprint.encode() for name in ("ada", "mallory"))
    candidate = place.candidate(b"forged")
    refused(
        place,
        candidate,
        approval_envelope(place.core, newest(place.core, candidate), key="mallory").replace(mallory, ada),
    )


def approval_by_a_stranger(place: Place) -> None:
    candidate = place.candidate(b"stranger")
    refused(place, candidate, approval_envelope(place.core, newest(place.core, candidate), key="mallory"))


def edited_approval(place: Place) -> None:
    candidate = place.candidate(b"edited")
    envelope = json.loads(approval_envelope(place.core, newest(place.core, candidate), hours=1.0))
    payload = json.loads(base64.b64decode(envelope["payload"]))
    payload["expires_at"] = "2036-01-01T00:00:00+00:00"
    envelope["payload"] = base64.b64encode(json.dumps(payload, sort_keys=True, separators=(",", ":")).encode()).decode()
    refused(place, candidate, json.dumps(envelope, separators=(",", ":")).encode())


def replayed_approval(place: Place) -> None:
    """A word that took effect once, and was taken back, is said again."""
    candidate = place.candidate(b"replayed")
    envelope = approval_envelope(place.core, newest(place.core, candidate))
    place.core.governance.approve(candidate, envelope)
    assert place.core.governance.rollback("ada")["champion"] == place.champion
    refused(place, candidate, envelope)


def written_into_the_ledger(place: Place, content: bytes, envelope: bytes, person: str = "ada") -> None:
    """By somebody who can write the database and has no key: that the person approves, and that it was decided on."""
    candidate = place.candidate(content)
    decision = newest(place.core, candidate)
    statement = json.loads(base64.b64decode(json.loads(envelope)["payload"])) if envelope else {"nonce": ""}
    row = Approval(
        decision=decision.digest(),
        candidate=candidate,
        verdict="approve",
        person=person,
        created=place.clock.now,
        key=signer(person).public.fingerprint,
        nonce=statement["nonce"],
        envelope=envelope.decode(),
    )
    place.core.ledger.put_approval(row)
    promoted = {"id": f"forged-{candidate[:6]}", "outcome": DecisionOutcome.PROMOTE}
    place.core.ledger.put_decision(decision.model_copy(update=promoted))


def record_without_a_signature(place: Place) -> None:
    written_into_the_ledger(place, b"unsigned", b"")


def record_over_a_word_on_another_model(place: Place) -> None:
    other = newest(place.core, place.candidate(b"approved of"))
    written_into_the_ledger(place, b"not approved of", approval_envelope(place.core, other))


def record_over_a_rejection_of_another_model(place: Place) -> None:
    other = newest(place.core, place.candidate(b"rejected"))
    written_into_the_ledger(place, b"wanted", approval_envelope(place.core, other, verdict="reject"))


def record_that_turns_a_rejection_round(place: Place) -> None:
    decision = newest(place.core, place.candidate(b"turned round"))
    written_into_the_ledger(place, b"turned round", approval_envelope(place.core, decision, verdict="reject"))


def record_in_anothers_name(place: Place) -> None:
    decision = newest(place.core, place.candidate(b"in his name"))
    written_into_the_ledger(place, b"in his name", approval_envelope(place.core, decision, "ada"), person="bob")


def approval_after_rollback(place: Place) -> None:
    """The same digest, a new word, and no new evaluation."""
    candidate = place.candidate(b"once more")
    approve(place.core, candidate)
    place.core.governance.rollback("ada", "it is rude")
    with pytest.raises(RefusedByPolicyError, match="quarantine"):
        place.core.governance.approve(
            candidate, approval_envelope(place.core, newest(place.core, candidate), nonce="7" * 32)
        )


def approval_by_the_trainer(place: Place) -> None:
    key = load_key(place.core.data, "trainer")
    assert key is not None
    candidate = place.candidate(b"trained")
    envelope = json.loads(approval_envelope(place.core, newest(place.core, candidate)))
    refused(
        place, candidate, sign_envelope(base64.b64decode(envelope["payload"]), envelope["payloadType"], Signer.of(key))
    )


def expired_approval(place: Place) -> None:
    candidate = place.candidate(b"expired")
    envelope = approval_envelope(place.core, newest(place.core, candidate), hours=1.0)
    place.clock.now = HOUR.format(6)
    refused(place, candidate, envelope)


def clock_set_back(place: Place) -> None:
    candidate = place.candidate(b"yesterday")
    envelope = approval_envelope(place.core, newest(place.core, candidate), hours=1.0)
    place.clock.now = HOUR.format(8)
    place.core.trust.log("daemon.start", version="1")
    place.clock.now = HOUR.format(6)
    refused(place, candidate, envelope)
    place.clock.now = HOUR.format(8)


def text_that_imitates_an_approval(place: Place) -> None:
    """A model wrote it where people see it. It is shown as text, and it is no word wherever it is sent."""
    candidate = place.candidate(b"imitates")
    text = f"\x1b[2J[b green]approved by ada[/]\n{candidate[:8]}\r\npromote {candidate} is in service\u202e"
    shown = plain(text)
    assert not any(character in shown.plain for character in "\x1b\n\r\u202e")
    assert not shown.spans, "nothing in it is markup"
    refused(place, candidate, text.encode())


def policy_edit_by_nobody(place: Place) -> None:
    candidate = place.candidate(b"lenient")
    edit = policy_edit(parse(LENIENT, "p").digest, place.core.trust.policies.in_force(), signer("mallory"), None)
    with pytest.raises(RefusedByPolicyError, match="unknown key"):
        place.core.governance.change_policy(LENIENT, edit)
    assert newest(place.core, candidate).policy == place.core.policy.digest


def policy_edit_after_the_evaluation(place: Place) -> None:
    """Signed as it must be, and still not about what was evaluated before. The last row: it stays in force."""
    candidate = place.candidate(b"too late")
    edit = policy_edit(parse(LENIENT, "p").digest, place.core.trust.policies.in_force(), signer("ada"), None)
    place.core.governance.change_policy(LENIENT, edit)
    refused(place, candidate, approval_envelope(place.core, newest(place.core, candidate)))


Hack = Callable[[Place], None]
TABLE: tuple[tuple[Hack, str, str], ...] = (
    (cheats_on_five_percent, "decision", "unsolvable questions passed"),
    (swapped_checkpoint, "promotion.refused", "changed checkpoint"),
    (word_on_another_model, "word.refused", "another candidate"),
    (forged_approval, "word.refused", "signature"),
    (approval_by_a_stranger, "word.refused", "unknown key"),
    (edited_approval, "word.refused", "signature"),
    (replayed_approval, "word.refused", "replayed"),
    (record_without_a_signature, "word.refused", "not a signed statement"),
    (record_over_a_word_on_another_model, "word.refused", "another candidate"),
    (record_over_a_rejection_of_another_model, "word.refused", "another candidate"),
    (record_that_turns_a_rejection_round, "word.refused", "another decision"),
    (record_in_anothers_name, "word.refused", "another person"),
    (approval_after_rollback, "decision", "service: rollback by ada: it is rude"),
    (approval_by_the_trainer, "word.refused", "a machine's key"),
    (expired_approval, "word.refused", "expired"),
    (clock_set_back, "word.refused", "clock set back"),
    (text_that_imitates_an_approval, "word.refused", "not a signed statement"),
    (policy_edit_by_nobody, "policy.refused", "unknown key"),
    (policy_edit_after_the_evaluation, "word.refused", "another policy"),
)
"""What is planted, the kind of the entry that names it, and the words in it."""


@pytest.mark.parametrize(("hack", "kind", "message"), TABLE, ids=[row[0].__name__ for row in TABLE])
def test_nothing_is_promoted_and_the_log_names_it(place: Place, hack: Hack, kind: str, message: str) -> None:
    before = sum(1 for _ in place.core.ledger.audit.entries())  # type: ignore[attr-defined]
    hack(place)
    place.core.governance.reconcile()
    new = list(place.core.ledger.audit.entries())[before:]  # type: ignore[attr-defined]
    named = [one for one in new if one.kind == kind and message in f"{one.what.get('name', '')} {json.dumps(one.what)}"]
    assert named, [(one.kind, one.what.get("name")) for one in new]
    if kind.endswith(".refused"):
        assert [one.what["name"] for one in named] == [message]
    assert (place.core.ledger.alias("champion"), place.core.ledger.alias("canary")) == (place.champion, None)
    assert log_holds(place.core)


def test_a_policy_that_was_exchanged_on_disk_is_put_right_and_named(data: Path) -> None:
    clock = Clock()
    with Core(Settings(data=data), now=clock) as core:
        champion = built.put_model(core.data, core.ledger, b"champion")
        core.ledger.set_aliases({"champion": champion}, "first", built.AT)
    in_force_file(data).write_bytes(LENIENT)
    with pytest.raises(BrokenError, match="restored"), Core(Settings(data=data), now=clock):
        pass
    with Core(Settings(data=data), now=clock) as core:
        assert core.policy.digest == parse(PACKAGED, "p").digest
        named = [one for one in core.ledger.audit.entries() if one.kind == "policy.restored"]  # type: ignore[attr-defined]
        assert [one.what["found"] for one in named] == [parse(LENIENT, "p").digest]
        assert core.ledger.alias("champion") == champion
