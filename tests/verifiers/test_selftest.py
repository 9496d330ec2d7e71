"""The self-test finds what is broken, calls nothing refused that was not seen to be, and is about what is installed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from curriculum.registry import CALCULATORS, TASKSETS, make_draft
from runtime.profile import BackendName
from runtime.settings import BrokerSettings, RuntimeSettings
from verifiers.answers.kind import ANSWER
from verifiers.answers.spec import AnswerSpec
from verifiers.checker import Checker
from verifiers.checklists.kind import CHECKLIST
from verifiers.contract.verdict import Ground, Outcome, Verdict
from verifiers.registry import KINDS, check_spec, decide
from verifiers.registry.canaries import specs_of
from verifiers.registry.spec import Spec
from verifiers.selftest.cases import idle_answers, trials, without_canaries
from verifiers.selftest.report import NotRun, SelfTest, SelfTestEntry
from verifiers.selftest.run import SingleChecker, TaskQuestion, run_selftest, selftest_digest
from verifiers.tools import programs

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
QUICK = ("exact", "answer")


class Deciders:
    """The verifiers themselves, in this process: for kinds whose cases end on their own."""

    def check(self, spec: Spec, submission: str) -> Verdict:
        check_spec(spec)
        return decide(spec, submission)


class Broken:
    """A verifier with a fault: what it says of each submission is changed."""

    def __init__(self, fault: Callable[[Verdict, str], Verdict], inner: SingleChecker | None = None) -> None:
        self._fault = fault
        self._inner = inner or Deciders()

    def check(self, spec: Spec, submission: str) -> Verdict:
        return self._fault(self._inner.check(spec, submission), submission)


def questions() -> list[TaskQuestion]:
    made = [
        (name, make_draft(name, level, 4 * seed))
        for name in CALCULATORS
        for level in range(TASKSETS[name].level_count)
        for seed in range(3)
    ]
    return [TaskQuestion(name, draft.messages[0].text, draft.spec, draft.answer) for name, draft in made]


def report(checker: object, **options: object) -> SelfTest:
    return run_selftest(checker, questions(), made_at=NOW, **{"only": QUICK, **options})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def sound() -> SelfTest:
    return report(Deciders())


def test_sound_verifiers_are_clean(sound: SelfTest) -> None:
    assert sound.clean, sound.wrong
    assert sound.accepted == sound.controls_rejected == 0
    assert sound.attacks > 100
    assert sound.controls > 20
    assert not sound.wrong


class Starved(Deciders):
    """What a busy machine does to the first tries of the first few submissions."""

    def __init__(self, cases: int, tries: int) -> None:
        self._cases, self._tries, self._seen = cases, tries, Counter[tuple[str, str]]()

    def check(self, spec: Spec, submission: str) -> Verdict:
        key = (spec.model_dump_json(), submission)
        if key in self._seen or len(self._seen) < self._cases:
            self._seen[key] += 1
        verdict = super().check(spec, submission)
        if 0 < self._seen[key] <= self._tries:
            starved = {"outcome": Outcome.INFRA_ERROR, "ground": Ground.BROKEN, "score": 0.0, "reason": "too busy"}
            return verdict.model_copy(update=starved)
        return verdict


def test_a_case_without_a_verdict_is_tried_once_more_unless_there_are_many(sound: SelfTest) -> None:
    assert report(Starved(3, 1)).gaps == sound.gaps
    lasting = [one for one in report(Starved(3, 9)).not_run if one.reason == "too busy"]
    assert len(lasting) >= 3
    many = [one for one in report(Starved(40, 1)).not_run if one.reason == "too busy"]
    assert len(many) >= 40


def test_a_part_is_never_complete(sound: SelfTest) -> None:
    assert not sound.complete
    assert {missing.verifier for missing in sound.not_run}.isdisjoint(QUICK)
    assert all(missing.reason for missing in sound.not_run)


def test_everything_is_either_run_or_listed_as_not_run(sound: SelfTest) -> None:
    named = Counter((one.verifier, one.name) for one in (*sound.entries, *sound.not_run) if one.name != "canaries")
    assert named == Counter((trial.verifier, trial.name) for trial in trials(questions()))


def test_a_verifier_that_accepts_everything_is_found_out() -> None:
    found = report(Broken(lambda verdict, text: verdict.model_copy(update={"outcome": Outcome.PASS, "score": 1.0})))
    assert not found.clean
    assert found.accepted == found.attacks
    assert found.controls_rejected == 0


def test_a_verifier_that_accepts_one_attack_is_found_out() -> None:
    def fault(verdict: Verdict, text: str) -> Verdict:
        return verdict.model_copy(update={"outcome": Outcome.PASS}) if text == "41, 42, 43" else verdict

    found = report(Broken(fault))
    assert not found.clean
    assert [entry.name for entry in found.wrong] == ["basic-integer-list"]


def test_a_verifier_that_rejects_everything_is_found_out() -> None:
    found = report(Broken(lambda verdict, text: verdict.model_copy(update={"outcome": Outcome.FAIL, "score": 0.0})))
    assert not found.clean
    assert found.accepted == 0
    assert found.controls_rejected == found.controls


class Unavailable:
    def check(self, spec: Spec, submission: str) -> Verdict:
        raise OSError("there is no sandbox\x1b[2J")


def _unjudged(verdict: Verdict) -> Verdict:
    broken = {"outcome": Outcome.INFRA_ERROR, "ground": Ground.BROKEN, "reason": "no sandbox", "score": 0.0}
    return verdict.model_copy(update=broken)


@pytest.mark.parametrize("checker", [Unavailable(), Broken(lambda verdict, text: _unjudged(verdict))])
def test_what_got_no_verdict_was_not_run(checker: object) -> None:
    found = report(checker)
    assert found.attacks == found.controls == 0
    assert not found.entries
    assert not found.complete
    assert not found.clean
    assert all("no sandbox" in missing.reason for missing in found.not_run if missing.verifier in QUICK)
    assert all(missing.reason.isprintable() for missing in found.not_run)


def test_the_report_is_data(sound: SelfTest) -> None:
    assert SelfTest.model_validate_json(sound.model_dump_json()) == sound
    content = json.loads(sound.model_dump_json())
    assert {"attacks", "accepted", "controls", "controls_rejected", "complete", "clean", "entries", "not_run"} <= set(
        content
    )


def test_the_same_self_test_twice_says_the_same(sound: SelfTest) -> None:
    def rows(one: SelfTest) -> list[tuple[object, ...]]:
        return [(entry.name, entry.outcome, entry.reason, entry.ground) for entry in one.entries]

    again = report(Deciders(), jobs=4)
    assert rows(again) == rows(sound)
    assert again.digest == sound.digest


def test_a_report_is_about_what_is_in_use_while_nothing_changed(sound: SelfTest) -> None:
    assert sound.digest == selftest_digest(questions()) != selftest_digest(questions()[1:])


def test_another_version_of_a_verifier_is_another_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    before = selftest_digest()
    monkeypatch.setitem(ANSWER.__dict__, "version", "2")
    assert selftest_digest() != before


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="time zone"):
        run_selftest(Deciders(), made_at=datetime(2026, 11, 21))  # noqa: DTZ001


def test_progress_is_told_case_by_case() -> None:
    calls: list[tuple[int, int, SelfTestEntry | NotRun]] = []
    found = report(Deciders(), progress=lambda done, total, last: calls.append((done, total, last)), jobs=2)
    assert [done for done, _, _ in calls] == list(range(1, len(calls) + 1))
    assert {total for _, total, _ in calls} == {len(calls)} == {len(found.entries)}


def test_stopping_it_ends_it_soon() -> None:
    class Stopped(Exception):
        pass

    calls: list[str] = []

    class Counted(Deciders):
        def check(self, spec: Spec, submission: str) -> Verdict:
            calls.append(submission)
            return super().check(spec, submission)

    def stop(done: int, total: int, last: SelfTestEntry | NotRun) -> None:
        raise Stopped

    with pytest.raises(Stopped):
        report(Counted(), progress=stop)
    assert len(calls) < len(trials(questions())) / 2


def test_idle_agents_do_not_change_their_minds() -> None:
    spec = AnswerSpec(notation="digits", expected="42")
    assert list(idle_answers(spec, "6*7?")) == list(idle_answers(spec, "6*7?"))
    assert [name for name, _ in idle_answers(spec, "6*7?")] == ["null", "claim", "empty", "random", "echo"]
    assert [name for name, _ in idle_answers(spec, "")] == ["null", "claim", "empty", "random"]


def test_every_family_is_tried_with_every_idle_agent(sound: SelfTest) -> None:
    names = {entry.name for entry in sound.entries}
    for family in CALCULATORS:
        assert {f"{agent}-agent:{family}-1" for agent in ("null", "claim", "empty", "random", "echo")} <= names
        assert f"answer:{family}-1" in names


def test_names_are_unique_within_a_verifier() -> None:
    names = [(trial.verifier, trial.name) for trial in trials()]
    assert len(set(names)) == len(names)


@pytest.fixture(scope="module")
def checker(guest_roots: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checker]:
    own = BrokerSettings(
        state_dir=tmp_path_factory.mktemp("state"),
        root_dir=guest_roots,
        backends=(BackendName.NSJAIL,),
        programs=programs(),
    )
    with Checker(RuntimeSettings(own=own)) as made:
        yield made


def test_the_small_verifiers_hold_where_they_really_run(checker: Checker) -> None:
    found = report(checker, only=("exact", "answer", "predicate"), jobs=2)
    assert found.clean, found.wrong
    assert found.isolations
    ran = {entry.verifier for entry in found.entries}
    assert ran == {"exact", "answer", "predicate"}
    assert not [missing for missing in found.not_run if missing.verifier in ran]


class TwoSeconds:
    """A checker that gives what never ends two seconds."""

    def __init__(self, inner: Checker) -> None:
        self._inner = inner

    def check(self, spec: Spec, submission: str) -> Verdict:
        return self._inner.check(spec, submission, 2.0 if spec == specs_of(CHECKLIST)["slow"] else None)


class Knowing:
    """Says of each case what has to be said of it."""

    def __init__(self) -> None:
        self._known = {(trial.spec, trial.submission): trial for trial in trials(questions())}

    def check(self, spec: Spec, submission: str) -> Verdict:
        trial = self._known[spec, submission]
        outcome = Outcome.HACK_SUSPECTED if trial.suspected else Outcome.FAIL
        outcome = Outcome.PASS if trial.sort == "control" else outcome
        return Verdict(outcome=outcome, score=0.0, reason="known", verifier=spec.kind, version="1", seconds=0.0)


def test_checklists_hold_where_they_really_run(checker: Checker) -> None:
    found = report(TwoSeconds(checker), only=("checklist",), jobs=2)
    assert found.clean, found.wrong
    assert not [missing for missing in found.not_run if missing.verifier == "checklist"]
    endless = next(entry for entry in found.entries if entry.name == "pattern-without-end")
    assert endless.ground is Ground.TIMEOUT


def test_a_missing_suspicion_is_found_out() -> None:
    def credulous(verdict: Verdict, text: str) -> Verdict:
        suspected = verdict.outcome is Outcome.HACK_SUSPECTED
        return verdict.model_copy(update={"outcome": Outcome.FAIL}) if suspected else verdict

    assert report(Knowing(), only=("smt",)).clean
    blind = report(Broken(credulous, Knowing()), only=("smt",))
    assert not blind.clean
    assert blind.accepted == blind.controls_rejected == 0
    assert blind.suspected_found == 0 < blind.suspected_expected


def test_no_verifier_is_without_canaries() -> None:
    kinds = {trial.verifier for trial in trials()}
    assert kinds == set(KINDS)
    assert not without_canaries()


def test_a_report_vouches_for_what_was_run_and_right(sound: SelfTest) -> None:
    assert sound.vouches_for(QUICK)
    assert not sound.vouches_for(("answer", "lean"))
    assert not sound.vouches_for(("answer", "no such verifier"))
    assert "lean" in sound.gaps
    assert not report(Unavailable()).vouches_for(QUICK)
    careless = Broken(lambda verdict, text: verdict.model_copy(update={"outcome": Outcome.PASS, "score": 1.0}))
    assert not report(careless).vouches_for(QUICK)
