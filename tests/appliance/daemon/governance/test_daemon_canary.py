"""A promoted model beside the champion: tried on jobs, taken back by itself when it is worse, never half in service.

A worker is played by `work`: it takes the weights that a real one takes, and says how the job ended."""

from __future__ import annotations

import hashlib
import itertools
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from people import admit, approve, newest, reject, revocation, signer
from test_daemon_governance import AT, put_decided, put_model

from appliance.client.signing import policy_edit
from appliance.config.configuration import Settings
from appliance.daemon.api.read_models import status_of
from appliance.daemon.contract import RefusedByPolicyError
from appliance.daemon.coordination.core import Core
from appliance.daemon.governance import canaries
from appliance.daemon.governance.canaries import COUNTED
from appliance.jobs.lifecycle import weights_for, withdrawn
from appliance.ledger.audited import AuditedLedger, TamperedError
from appliance.promotion.evidence import PromotionError
from appliance.records.jobs import Job, JobState
from appliance.records.nights import CanaryState
from policies.contract.decision import DecisionOutcome
from policies.policy import read_content
from verifiers.answers.spec import AnswerSpec

PACKAGED = read_content()[0]
BEGIN = datetime(2026, 1, 2, 4, 4, 5, tzinfo=UTC)


class Time:
    """A clock that goes on by a second whenever it is looked at."""

    def __init__(self) -> None:
        self.at = BEGIN

    def __call__(self) -> str:
        self.at += timedelta(seconds=1)
        return self.at.isoformat(timespec="milliseconds")


def put_job(core: Core, name: str) -> Job:
    now = core.now()
    spec = AnswerSpec(notation="digits", expected="4")
    job = Job(id=name, question="2 + 2?", spec=spec, state=JobState.QUEUED, created=now, updated=now)
    core.ledger.put_job(job)
    return job


def work(core: Core, job: Job, solves: Callable[[str], bool]) -> str:
    """What a worker does with it; the weights that answered."""
    weights = weights_for(job, core.ledger)
    assert weights is not None
    begun = job.model_copy(update={"state": JobState.RUNNING, "weights": weights})
    core.ledger.put_job(begun)
    state = JobState.SOLVED if solves(weights) else JobState.UNSOLVED
    core.ledger.put_job(begun.model_copy(update={"state": state, "updated": core.now()}))
    return weights


def work_off(core: Core, solves: Callable[[str], bool]) -> int:
    """Every job that waits, in its turn; how many there were."""
    for done in itertools.count():
        job = core.ledger.next_job()
        if job is None:
            return done
        work(core, job, solves)
    raise AssertionError


@pytest.fixture(autouse=True)
def fixed_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    """A canary's id decides which jobs it answers: with one drawn by lot, some equal models would lose by lot."""
    numbers = itertools.count()
    monkeypatch.setattr(canaries, "secrets", SimpleNamespace(token_hex=lambda size: f"{next(numbers):0{2 * size}x}"))


@pytest.fixture
def clock() -> Time:
    return Time()


@pytest.fixture
def core(data: Path, clock: Time) -> Iterator[Core]:
    """A champion that answered ten jobs, nine of them well."""
    with Core(Settings(data=data), now=clock) as running:
        champion = put_model(data, running.ledger, b"champion")
        running.ledger.set_aliases({"champion": champion}, "first", AT)
        admit(running, "ada")
        for number in range(10):
            work(running, put_job(running, f"job-{number}"), lambda weights, number=number: number != 5)
        yield running


def promoted(core: Core) -> tuple[str, str]:
    champion = str(core.ledger.alias("champion"))
    candidate = put_decided(core, champion, b"better")
    approved = approve(core, "candidate")
    assert approved.decision.outcome is DecisionOutcome.PROMOTE
    assert approved.aliases == {"champion": champion, "canary": candidate, "candidate": None, "previous": None}
    return champion, candidate


def audited(core: Core) -> list[str]:
    return [entry.kind for entry in core.ledger.audit.entries()]  # type: ignore[attr-defined]


def test_one_whose_approval_was_revoked_is_taken_back(core: Core) -> None:
    admit(core, "mallory")
    champion = str(core.ledger.alias("champion"))
    candidate = put_decided(core, champion, b"better")
    approve(core, "candidate", "mallory")
    assert core.ledger.alias("canary") == candidate
    core.trust.change_key(revocation("mallory", "ada"))
    core.governance.check_canary()
    assert core.ledger.alias("champion") == champion
    ended = core.ledger.canaries()[0]
    assert (ended.state, "0 of 1 approvals count now" in ended.reason) == (CanaryState.TAKEN_BACK, True)


def test_one_that_was_approved_by_fewer_than_the_policy_asks_for_since_is_taken_back(core: Core) -> None:
    champion, _ = promoted(core)
    people_are(2, core)
    core.governance.check_canary()
    assert core.ledger.alias("champion") == champion
    assert "1 of 2 approvals count now" in core.ledger.canaries()[0].reason


def test_a_rejection_of_what_was_decided_under_an_earlier_policy_takes_it_back(core: Core) -> None:
    champion, candidate = promoted(core)
    people_are(2, core)
    reject(core, candidate)
    assert (core.ledger.alias("champion"), core.ledger.alias("canary")) == (champion, None)
    assert "reject by ada" in core.ledger.canaries()[0].reason


def people_are(number: int, core: Core) -> None:
    """Signs a policy that asks for so many persons' approval."""
    content = PACKAGED.replace(b"people = 1 ", f"people = {number} ".encode())
    digest = hashlib.sha256(content).hexdigest()
    core.governance.change_policy(content, policy_edit(digest, core.trust.policies.in_force(), signer("ada"), None))


def test_a_promoted_model_works_earlier_jobs_again_gets_a_share_and_is_champion_after_its_window(core, clock) -> None:
    champion, candidate = promoted(core)
    replays = [job for job in core.ledger.jobs() if job.replay_of]
    assert sorted(str(job.replay_of) for job in replays) == sorted(f"job-{number}" for number in range(10))
    assert {job.priority for job in replays} == {0}
    asked = put_job(core, "job-asked-meanwhile")
    assert weights_for(asked, core.ledger) == champion
    assert {weights_for(job, core.ledger) for job in replays} == {candidate}
    work_off(core, lambda weights: True)
    standing = status_of(core).canary
    assert standing is not None
    assert (standing.canary.state, standing.counts.replayed) == (CanaryState.SHARE, 10)
    assert (standing.counts.gained, standing.counts.lost) == (1, 0)
    answered = [work(core, put_job(core, f"real-{number}"), lambda weights: True) for number in range(24)]
    assert set(answered) == {champion, candidate}
    assert core.ledger.alias("champion") == champion
    clock.at += timedelta(hours=168)
    core.governance.check_canary()
    assert {name: core.ledger.alias(name) for name in ("champion", "previous", "canary")} == {
        "champion": candidate,
        "previous": champion,
        "canary": None,
    }
    assert core.ledger.canaries()[0].counts.canary_jobs == answered.count(candidate)
    assert [kind for kind in audited(core) if kind.startswith("canary.")] == [
        "canary.began",
        "canary.share",
        "canary.passed",
    ]
    assert core.governance.rollback("ada")["champion"] == champion


def test_a_model_that_falls_on_earlier_jobs_never_meets_a_real_one_and_stays_out(core) -> None:
    champion, candidate = promoted(core)
    worked = work_off(core, lambda weights: weights == champion)
    assert worked == 8, "seven lost are odds of 32 to 1, one was never solved; what was left was cancelled"
    assert {job.state for job in core.ledger.jobs() if job.replay_of} == {JobState.UNSOLVED, JobState.CANCELLED}
    assert (core.ledger.alias("champion"), core.ledger.alias("canary")) == (champion, None)
    assert audited(core).count("canary.taken_back") == 1
    decision = newest(core, candidate)
    assert decision.outcome is DecisionOutcome.QUARANTINE
    finding = next(one for one in decision.findings if one.gate == "service")
    assert finding.figure == pytest.approx(31.9, abs=0.1)
    assert (finding.threshold, "7 lost" in finding.reason) == (pytest.approx(20), True)
    with pytest.raises(RefusedByPolicyError, match="quarantine") as met:
        approve(core, candidate)
    assert "a new evaluation" in met.value.hint
    assert core.ledger.alias("champion") == champion
    assert core.ledger.evaluations(candidate=candidate), "the evidence is kept"


def test_a_model_that_falls_on_real_jobs_is_taken_back_while_its_window_is_open(core) -> None:
    champion, candidate = promoted(core)
    work_off(core, lambda weights: True)
    answers = []
    while core.ledger.alias("canary") is not None and len(answers) < 200:
        answers.append(work(core, put_job(core, f"real-{len(answers)}"), lambda weights: weights == champion))
    assert len(answers) < 60
    assert (core.ledger.alias("champion"), core.ledger.alias("canary")) == (champion, None)
    assert withdrawn(candidate, core.ledger).endswith("was taken out of service")
    assert withdrawn(champion, core.ledger) == ""
    assert weights_for(put_job(core, "next"), core.ledger) == champion


def test_a_person_takes_a_canary_out_with_one_word_or_by_rejecting_it(core) -> None:
    champion, candidate = promoted(core)
    assert core.governance.rollback("ada", "it is rude") == {
        "champion": champion,
        "canary": None,
        "candidate": None,
        "previous": None,
    }
    assert "it is rude" in newest(core, candidate).reason
    with pytest.raises(PromotionError):
        core.governance.rollback("ada")
    with pytest.raises(PromotionError, match=f"would no longer withdraw {candidate[:12]}"):
        core.governance.rollback("ada", "twice", candidate)
    assert core.ledger.alias("champion") == champion
    another = put_decided(core, champion, b"another")
    approve(core, another)
    assert core.ledger.alias("canary") == another
    reject(core, another)
    assert core.ledger.alias("canary") is None
    assert core.ledger.canaries()[0].state is CanaryState.TAKEN_BACK


@pytest.mark.parametrize("write", ["put_decision", "take_back"])
def test_a_rejection_that_is_on_record_takes_a_canary_out_though_the_daemon_was_killed_after_it(
    data, clock, monkeypatch, write: str
) -> None:
    """What a person signed counts from the moment that it is on record."""

    def killed(*_given: object, **_named: object) -> None:
        raise Killed

    with Core(Settings(data=data), now=clock) as core:
        core.ledger.set_aliases({"champion": put_model(data, core.ledger, b"champion")}, "first", AT)
        admit(core, "ada")
        for number in range(8):
            work(core, put_job(core, f"job-{number}"), lambda weights: True)
        champion, candidate = promoted(core)
        with monkeypatch.context() as patched:
            patched.setattr(canaries.Canaries if write == "take_back" else AuditedLedger, write, killed)
            with pytest.raises(Killed):
                reject(core, candidate)
        assert core.ledger.alias("canary") == candidate
    with Core(Settings(data=data), now=clock) as after:
        assert (after.ledger.alias("champion"), after.ledger.alias("canary")) == (champion, None)
        assert after.ledger.canaries()[0].state is CanaryState.TAKEN_BACK
        assert "reject by ada" in after.ledger.canaries()[0].reason
        assert newest(after, candidate).outcome is not DecisionOutcome.PROMOTE


def test_one_model_is_tried_at_a_time(core) -> None:
    champion, candidate = promoted(core)
    another = put_decided(core, champion, b"another")
    with pytest.raises(RefusedByPolicyError, match="is on trial beside the champion"):
        approve(core, another)
    assert core.ledger.alias("canary") == candidate


def test_a_folder_that_was_swapped_in_the_window_never_becomes_champion(core, clock, data) -> None:
    champion, candidate = promoted(core)
    work_off(core, lambda weights: True)
    (data / "models" / candidate / "model.safetensors").write_bytes(b"another")
    clock.at += timedelta(hours=200)
    core.governance.check_canary()
    assert (core.ledger.alias("champion"), core.ledger.alias("canary")) == (champion, None)
    assert "cannot go into service" in core.ledger.canaries()[0].reason


def test_a_folder_that_breaks_in_the_window_is_taken_back_with_the_first_job_that_it_fails(core, data) -> None:
    champion, candidate = promoted(core)
    job = core.ledger.next_job()
    assert job is not None
    (data / "models" / candidate / "model.safetensors").unlink()
    core.ledger.put_job(job.model_copy(update={"state": JobState.FAILED, "weights": candidate}))
    assert (core.ledger.alias("champion"), core.ledger.alias("canary")) == (champion, None)
    assert "cannot be in service" in newest(core, candidate).reason


class Killed(Exception):
    """What takes the daemon's place when it is killed."""


@pytest.fixture
def one_write(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """While it is set, a core gets as far as one write about service, and is killed at the next one."""
    left = [10_000]

    def counted(real: Callable[..., object]) -> Callable[..., object]:
        def write(ledger: AuditedLedger, *given: object, **named: object) -> object:
            of_a_worker = given and isinstance(given[0], Job) and given[0].state in (JobState.RUNNING, *COUNTED)
            if not of_a_worker:
                left[0] -= 1
                if left[0] < 0:
                    raise Killed
            return real(ledger, *given, **named)

        return write

    for name in ("put_canary", "set_aliases", "put_decision", "put_job"):
        monkeypatch.setattr(AuditedLedger, name, counted(getattr(AuditedLedger, name)))
    return left


@pytest.mark.parametrize("end", ["passes", "falls"])
def test_killed_between_any_two_writes_the_next_daemon_goes_on(data, clock, one_write, end: str) -> None:
    """Every daemon of this story comes one write further than the one before it."""

    def solves(weights: str) -> bool:
        return end == "passes" or weights == champion

    with Core(Settings(data=data), now=clock) as core:
        champion = put_model(data, core.ledger, b"champion")
        core.ledger.set_aliases({"champion": champion}, "first", AT)
        admit(core, "ada")
        for number in range(8):
            work(core, put_job(core, f"job-{number}"), lambda weights: True)
        candidate = put_decided(core, champion, b"better")
    killed = 0
    while True:
        assert killed < 60
        one_write[0] = 1
        try:
            with Core(Settings(data=data), now=clock) as core:
                if core.ledger.decisions(candidate=candidate)[0].outcome is DecisionOutcome.HOLD:
                    approve(core, candidate)
                while (job := core.ledger.next_job()) is not None:
                    work(core, job, solves)
                clock.at += timedelta(hours=60)
                core.governance.check_canary()
                if core.ledger.canaries() and core.ledger.canaries()[0].state.ended:
                    break
        except Killed:
            killed += 1
    assert killed >= 12
    expected = (candidate, None) if end == "passes" else (champion, None)
    one_write[0] = 100
    with Core(Settings(data=data), now=clock) as core:
        assert (core.ledger.alias("champion"), core.ledger.alias("canary")) == expected
        assert len(core.ledger.canaries()) == 1
        replays = [job for job in core.ledger.jobs() if job.replay_of]
        assert len(replays) == 8
        assert all(job.state.ended for job in replays)
        taken = [one for one in core.ledger.decisions(candidate=candidate) if one.id.endswith(".taken-back")]
        assert len(taken) == (end == "falls")


# what somebody wrote into the database
def execute(core: Core, text: str, *values: object) -> None:
    with closing(sqlite3.connect(core.data / "ledger.sqlite3", timeout=120)) as connection:
        connection.execute(text, values)
        connection.commit()


def counts(core: Core) -> object:
    standing = status_of(core).canary
    assert standing is not None
    return standing.counts


def test_jobs_that_nobody_worked_on_say_nothing_for_a_canary(core: Core) -> None:
    """Ended jobs, solved by it, written into the database."""
    champion, candidate = promoted(core)
    before = counts(core)
    job = put_job(core, "real-1")
    for number in range(40):
        solved = job.model_copy(update={"id": f"real-{number}", "state": JobState.SOLVED, "weights": candidate})
        text = "INSERT OR REPLACE INTO jobs (key, state, payload) VALUES (?, 'solved', ?)"
        execute(core, text, solved.id, solved.model_dump_json())
    assert counts(core) == before
    core.governance.check_canary()
    assert core.ledger.alias("champion") == champion


@pytest.mark.parametrize("how", ["removed", "turned"])
def test_a_lost_job_that_is_removed_or_turned_stops_the_canary_by_name(core: Core, how: str) -> None:
    champion, candidate = promoted(core)
    work_off(core, lambda weights: True)
    assert core.ledger.alias("canary") == candidate
    if how == "removed":
        execute(core, "DELETE FROM jobs WHERE key LIKE 'replay-%'")
    else:
        execute(core, "UPDATE jobs SET payload = replace(payload, 'solved', 'unsolved') WHERE key LIKE 'replay-%'")
    with pytest.raises(TamperedError, match="jobs: 'replay-"):
        core.governance.check_canary()
    assert core.ledger.alias("champion") == champion


def test_without_the_champions_jobs_no_model_goes_past_the_canary(core: Core) -> None:
    execute(core, "DELETE FROM jobs")
    with pytest.raises(TamperedError, match="jobs: "):
        promoted(core)
    assert core.ledger.alias("canary") is None
