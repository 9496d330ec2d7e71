"""What an older verifier said is judged anew, and nothing else is; what would be different is named."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from records_of_nights import SEED, judged, put_bundle, put_decision, put_night, verdict
from typer.testing import CliRunner

from appliance.cli.main import app
from appliance.curriculum.reverify import Reverification, is_outdated, reverify
from appliance.ledger.sqlite import SqliteLedger
from appliance.records.rollouts import UNSOLVABLE_RUN, Purpose
from curriculum.contract.task import Split, Task
from curriculum.sealed import TaskStream, sealed_set
from verifiers.answers.spec import AnswerSpec
from verifiers.contract.verdict import Outcome, Verdict
from verifiers.exact.spec import ExactSpec
from verifiers.registry import decide, identity
from verifiers.registry.spec import Spec

NAMES = ("modular_arithmetic", "calendars")
SEALED = sealed_set(8, SEED, tasksets=NAMES)
TASKS = TaskStream(Split.TRAIN, 1, tasksets=NAMES).tasks(0, 4)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[SqliteLedger]:
    with SqliteLedger(tmp_path / "ledger.sqlite3") as ledger:
        yield ledger


def run(ledger: SqliteLedger, data: Path, since: str = "") -> Reverification:
    def judge(pairs: Sequence[tuple[Spec, str]]) -> list[Verdict]:
        return [decide(spec, answer) for spec, answer in pairs]

    return reverify(ledger, data, judge, since=since)


def test_a_reward_that_an_older_verifier_gave_wrongly_is_named(ledger: SqliteLedger, tmp_path: Path) -> None:
    old = [judged(task, answer="no answer of it", given=verdict(version="0")) for task in TASKS[:2]]
    name, version = identity(TASKS[2].spec)
    new = judged(TASKS[2], answer="no answer of it", given=verdict(version=version, verifier=name))
    put_night(ledger, tmp_path, SEALED, [*old, new], TASKS)
    found = run(ledger, tmp_path)
    assert (found.rollouts, found.judged, found.different) == (3, 2, 2)
    assert {one.id for one in found.rewards} == {one.rollout.id for one in old}
    assert {one.outcomes for one in found.rewards} == {("pass", "fail")}
    assert not found.same
    assert ledger.rollout(old[0].rollout.id) == old[0], "nothing is changed"


def test_what_comes_to_the_same_is_no_difference(ledger: SqliteLedger, tmp_path: Path) -> None:
    failed = judged(TASKS[0], answer="no answer of it", given=verdict(passed=False, version="0"))
    put_night(ledger, tmp_path, SEALED, [failed], TASKS)
    found = run(ledger, tmp_path)
    assert (found.judged, found.different, found.same) == (1, 0, True)


def test_answers_of_an_evaluation_are_judged_by_what_the_cycle_kept(ledger: SqliteLedger, tmp_path: Path) -> None:
    put_night(ledger, tmp_path, SEALED, [], TASKS)
    asked = judged(SEALED.tasks[0], answer="no answer of it", purpose=Purpose.EVALUATION)
    nobodys = Task.model_validate({**TASKS[3].model_dump(), "files": {"a": "b"}})
    ledger.put_rollouts([asked, judged(nobodys, answer="7", purpose=Purpose.VALIDATION)])
    found = run(ledger, tmp_path)
    assert (found.judged, found.unknown, found.different) == (1, 1, 1)
    assert found.rewards == ()


def test_a_promotion_whose_evaluation_rests_on_such_an_answer_is_named(ledger: SqliteLedger, tmp_path: Path) -> None:
    put_night(ledger, tmp_path, SEALED, [], TASKS)
    decision = put_decision(ledger, "night-1", SEALED)
    other = put_decision(ledger, "night-2", SEALED)
    same = judged(
        SEALED.tasks[3], answer="no answer", purpose=Purpose.EVALUATION, given=verdict(passed=False, version="0")
    )
    ledger.put_rollouts([same])
    assert run(ledger, tmp_path).promotions == {}, "what comes to the same changes no decision"
    asked = [judged(task, answer="no answer of it", purpose=Purpose.EVALUATION) for task in SEALED.tasks[:2]]
    watched = judged(SEALED.tasks[2], answer="no answer of it", purpose=Purpose.VALIDATION)
    ledger.put_rollouts([*asked, watched])
    found = run(ledger, tmp_path)
    assert found.different == 3
    assert found.promotions == {decision.id: f"promote: 2 answers of {decision.evaluation} have another verdict now"}
    assert other.id not in found.promotions
    assert ledger.decisions(candidate=decision.candidate)[-1] in (decision, other), "nothing is changed"


def test_a_promotion_rests_on_sampled_answers_of_all_its_nights_and_on_no_greedy_ones(
    ledger: SqliteLedger, tmp_path: Path
) -> None:
    put_night(ledger, tmp_path, SEALED, [], TASKS)
    first = put_decision(ledger, "night-1", SEALED, champion="a" * 64)
    second = put_decision(ledger, "night-2", SEALED, champion="a" * 64, at="2026-03-02T02:00:00+00:00")
    of_others = put_decision(ledger, "night-3", SEALED, champion="b" * 64, at="2026-03-03T02:00:00+00:00")
    greedy = judged(SEALED.tasks[0], answer="no answer of it", purpose=Purpose.EVALUATION, step=3)
    ledger.put_rollouts([greedy])
    found = run(ledger, tmp_path)
    assert (found.different, found.promotions) == (1, {}), "greedy answers decide nothing"
    ledger.put_rollouts([judged(SEALED.tasks[1], answer="no answer of it", purpose=Purpose.EVALUATION, step=1)])
    said = f"promote: 1 answers of {first.evaluation} have another verdict now"
    found = run(ledger, tmp_path)
    assert found.promotions == {first.id: said, second.id: said}
    assert of_others.id not in found.promotions


def test_what_was_asked_with_a_check_of_its_own_is_not_judged_by_that_of_a_task_of_the_same_name(
    ledger: SqliteLedger, tmp_path: Path
) -> None:
    """A question that cannot be solved has the name of the ordinary one, which a night's sealed set may hold too."""
    put_night(ledger, tmp_path, SEALED, [], TASKS)
    put_decision(ledger, "night-1", SEALED)
    task = next(one for one in SEALED.tasks if isinstance(one.spec, ExactSpec))
    assert isinstance(task.spec, ExactSpec)
    honest = judged(
        task, answer=task.spec.expected, purpose=Purpose.EVALUATION, step=UNSOLVABLE_RUN, given=verdict(passed=False)
    )
    ledger.put_rollouts([honest])
    found = run(ledger, tmp_path)
    assert (found.unknown, found.different, found.promotions) == (1, 0, {})


def test_a_bundle_that_would_not_be_handed_out_now_is_named(ledger: SqliteLedger, tmp_path: Path) -> None:
    spec = AnswerSpec(notation="digits", expected="42")
    name, version = identity(spec)
    wrong = put_bundle(ledger, 1, spec, "41", verdict(version="0"))
    put_bundle(ledger, 2, spec, "42", verdict(version="0"))
    put_bundle(ledger, 3, spec, "41", verdict(version=version, verifier=name))
    old = put_bundle(ledger, 4, spec, "40", verdict(version="0"), created="2025-01-01T00:00:00+00:00")
    found = run(ledger, tmp_path)
    assert (found.judged, found.broken, found.same) == (3, 0, False)
    assert {one.id for one in found.bundles} == {wrong.id, old.id}
    [change] = [one for one in found.bundles if one.id == wrong.id]
    assert (change.work, change.purpose, change.versions) == (wrong.job, "bundle", ("0", version))
    assert (change.outcomes, change.scores) == (("pass", "fail"), (1.0, 0.0))
    assert [one.id for one in run(ledger, tmp_path, since="2026-01-01").bundles] == [wrong.id]
    assert ledger.artifact(wrong.id) == wrong, "nothing is changed"


def test_a_bundle_that_cannot_be_judged_now_is_counted_and_compared_with_nothing(
    ledger: SqliteLedger, tmp_path: Path
) -> None:
    spec = AnswerSpec(notation="digits", expected="42")
    put_bundle(ledger, 1, spec, "41", verdict(version="0"))

    def judge(pairs: Sequence[tuple[Spec, str]]) -> list[Verdict]:
        return [verdict().model_copy(update={"outcome": Outcome.INFRA_ERROR, "score": 0.0}) for _ in pairs]

    found = reverify(ledger, tmp_path, judge)
    assert (found.judged, found.broken, found.bundles, found.same) == (1, 1, (), False)


def test_the_command_names_promotions_and_bundles(ledger: SqliteLedger, tmp_path: Path) -> None:
    put_night(ledger, tmp_path, SEALED, [], TASKS)
    decision = put_decision(ledger, "night-1", SEALED)
    ledger.put_rollouts([judged(SEALED.tasks[0], answer="no answer of it", purpose=Purpose.EVALUATION)])
    bundle = put_bundle(ledger, 1, AnswerSpec(notation="digits", expected="42"), "41", verdict(version="0"))
    ran = CliRunner().invoke(app, ["curriculum", "reverify", "--data", str(tmp_path)])
    assert ran.exit_code == 1, ran.output
    assert f"decision {decision.id}, promote: 1 answers" in ran.stdout
    assert bundle.id in ran.stdout


def test_what_is_older_than_asked_for_is_left_out(ledger: SqliteLedger, tmp_path: Path) -> None:
    put_night(ledger, tmp_path, SEALED, [judged(TASKS[0], answer="no answer of it")], TASKS)
    assert run(ledger, tmp_path, since="2026-03-02").rollouts == 0
    assert run(ledger, tmp_path, since="2026-03-01").rollouts == 1


def test_a_verdict_of_the_verifier_as_it_is_now_is_not_outdated() -> None:
    name, version = identity(TASKS[0].spec)
    assert not is_outdated(verdict(version=version, verifier=name), TASKS[0].spec)
    assert is_outdated(verdict(version="0", verifier=name), TASKS[0].spec)
