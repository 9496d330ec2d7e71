"""A set for a warm start: what each filter drops, and that nothing unverified can get in, by type."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from pydantic import ValidationError

from appliance.learning.errors import LearningError
from appliance.records.training import Judged
from appliance.worker.sft.stage import SftRun
from appliance.worker.sft.traces import (
    Lesson,
    RecordedTrace,
    TraceTally,
    VerifiedTrace,
    kept_file,
    read_kept,
    read_traces,
)
from appliance.worker.sft.warm_set import WarmSetRules, before_rules, lines, selected, taught
from curriculum.contract.task import Split
from curriculum.registry import make_task
from curriculum.separation.rules import Check, Match
from verifiers.contract.verdict import Outcome, Verdict

PASSED = Verdict(outcome=Outcome.PASS, score=1, reason="", verifier="v", version="1", seconds=0)


def trace(taskset: str, seed: int, last: str, **more: Any) -> VerifiedTrace:
    task = make_task(taskset, 0, 4 * seed, Split.TRAIN)
    return VerifiedTrace(task=task, calls=(), results=(), last=last, verdict=PASSED, source="s", **more)


def test_each_conversation_is_kept_or_dropped_by_the_first_filter_that_drops_it() -> None:
    given = [
        trace("arithmetic", 1, "short"),
        trace("arithmetic", 1, "short"),
        trace("arithmetic", 1, "another way"),
        trace("arithmetic", 1, "a third way"),
        trace("arithmetic", 2, "as long as it needs to be"),
        trace("arithmetic", 3, "x" * 500),
        trace("arithmetic", 4, "asked elsewhere"),
        trace("divisors", 5, "only once"),
    ]
    rules = WarmSetRules(answers=2, questions=1, sources=1, most_characters=400)
    tried = {"arithmetic": 4, "divisors": 9}
    kept, dropped = selected(given, rules, {given[6].task.key}, tried)
    assert [one.last for one in kept] == ["as long as it needs to be"]
    assert dropped == {
        "asked in an evaluation": 1,
        "too long": 1,
        "the same again": 1,
        "of a weaker source": 1,
        "of an easier question": 3,
        "one answer too many": 0,
    }
    assert len(kept) + sum(dropped.values()) == len(given)
    several, dropped = selected(given, WarmSetRules(answers=2), frozenset(), tried)
    assert dropped["one answer too many"] == 1
    assert max(sum(one.task.id == other.task.id for other in several) for one in several) == 2
    assert taught(given[0]) == 5


def test_the_best_source_is_the_one_that_answers_most_of_what_it_was_asked() -> None:
    once = [trace("divisors", 1, f"way {number}") for number in range(4)]
    often = [trace("arithmetic", seed, f"way {number}") for seed in range(4) for number in range(3)]
    kept, dropped = selected([*once, *often], WarmSetRules(sources=1), frozenset(), {"divisors": 50, "arithmetic": 4})
    assert {one.task.taskset for one in kept} == {"arithmetic"}
    assert dropped["of a weaker source"] == 4


def test_every_try_at_a_question_is_in_the_manifest_once() -> None:
    kept = tuple(trace("arithmetic", seed, "x") for seed in range(3))
    match = Match("k", Check.GRAMS)
    tally = TraceTally(kept, failed=4, asked=(match,), within=(match, match), lost=5)
    dropped = before_rules(tries=40, recorded=15, needs_tools=8, tally=tally)
    assert sum(dropped.values()) + len(kept) == 40
    assert (dropped["given up by the teacher"], dropped["needs other tools"]) == (17, 8)
    assert (dropped["copies what an evaluation asks"], dropped["holds what an evaluation asks"]) == (1, 2)


def test_a_stage_reads_the_set_as_conversations_that_it_has_to_verify_again() -> None:
    given = [trace("arithmetic", seed, f"\\boxed{{{seed}}}") for seed in (1, 2)]
    again = read_traces(lines(given), "set")
    assert {type(one) for one in again} == {RecordedTrace}
    assert [(one.task.question, one.task.spec, one.last) for one in again] == [
        (one.task.question, one.task.spec, one.last) for one in given
    ]


def test_unverified_text_reaches_neither_the_store_nor_a_step_of_rl_by_type(tmp_path: Path) -> None:
    loose = RecordedTrace(task=make_task("arithmetic", 0, 4, Split.TRAIN), calls=(), last="6", source="s")
    assert RecordedTrace not in get_args(Lesson)
    assert "RecordedTrace" not in str(get_type_hints(SftRun.__init__)["lessons"])
    assert get_type_hints(selected)["verified"].__args__ == (VerifiedTrace,)
    with pytest.raises(ValidationError):
        Judged.model_validate({"rollout": loose.model_dump(), "verdict": PASSED.model_dump(), "family": "arithmetic"})
    with pytest.raises(LearningError, match="only verified"):
        kept_file(tmp_path / "store", [loose])  # type: ignore[list-item]
    assert not (tmp_path / "store").exists()
    (tmp_path / "store").write_text(f"{loose.model_dump_json()}\n")
    with pytest.raises(ValidationError):
        read_kept(tmp_path / "store")
    with pytest.raises(LearningError, match="not verified"):
        VerifiedTrace(**dict(loose), results=(), verdict=PASSED.model_copy(update={"outcome": Outcome.FAIL}))
