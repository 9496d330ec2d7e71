"""Texts of our own are judged in bulk as the verifiers judge them, and a run that was stopped goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.own_texts import OwnTexts, fails_here
from curriculum.registry import make_draft
from curriculum.tasksets.programs.list_functions import IDLE
from verifiers.programs.spec import Example, ProgramSpec

DRAFTS = [make_draft(name, 1, 3) for name in ("programs", "program_repair", "regular_expressions")]
ENDLESS = "def solve(n):\n    while True:\n        pass\n"


@pytest.mark.parametrize("draft", DRAFTS, ids=lambda draft: draft.topic)
def test_a_right_program_is_not_refuted_here_and_an_idle_one_is(draft: Any) -> None:
    assert not fails_here((draft.spec, draft.answer))
    assert all(fails_here((draft.spec, text)) for text in (*IDLE, "pass\n", draft.messages[0].text, "1 2 3"))


def test_what_takes_long_or_is_compared_in_another_way_is_left_to_the_verifier() -> None:
    spec = ProgramSpec(function="solve", examples=(Example(arguments="1", expected="2"),))
    wrong = "def solve(n):\n    return 5\n"
    assert fails_here((spec, wrong))
    assert not fails_here((spec, ENDLESS))
    by_name = spec.model_copy(update={"examples": (Example(arguments="n=1", expected="2"),)})
    raising = spec.model_copy(update={"examples": (Example(arguments="1", raises="ValueError"),)})
    assert not fails_here((by_name, wrong))
    assert not fails_here((raising, wrong))


def test_a_run_that_was_stopped_asks_only_for_what_is_not_in_its_journal(tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    pairs = [(draft.spec, text) for draft in DRAFTS[:2] for text in (draft.answer, "pass\n")]
    with OwnTexts(journal) as judge:
        first = judge(pairs[:2])
    assert [one.passed for one in first] == [True, False]
    journal.write_text(journal.read_text() + '{"of": "cut o')
    said: list[str] = []
    with OwnTexts(journal, said.append) as judge:
        both = judge(pairs)
        assert [one.passed for one in both] == [True, False, True, False]
        assert judge(pairs) == both
    assert said == ["0 of 2 answers, 2 known before"]
