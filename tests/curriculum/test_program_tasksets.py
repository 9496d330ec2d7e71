"""Tasksets of programs: what their hidden tests tell apart, here without a sandbox, for the sources are our own."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from curriculum.contract.taskset import TaskDraft
from curriculum.registry import TASKSETS, make_draft
from curriculum.tasksets.programs.small_language import BRACES, BRACKETS, PYTHON, SPOKEN, drawn_block
from curriculum.tasksets.programs.tested_blocks import evaluated, neighbours
from curriculum.tasksets.statements import digest
from verifiers.programs.data.mutants import mutants
from verifiers.programs.spec import ProgramSpec

OF_FUNCTIONS = ("program_repair", "program_completion", "program_translation")
SEEDS = 15
MUTANTS_KILLED = 0.85


def drafts(name: str) -> list[TaskDraft]:
    return [make_draft(name, seed % 5, seed) for seed in range(SEEDS)]


def loaded(source: str, name: str) -> Callable[..., Any]:
    names: dict[str, Any] = {}
    exec(compile(source, "made here", "exec"), names)
    found: Callable[..., Any] = names[name]
    return found


def wrong(draft: TaskDraft, source: str, *, hidden: bool = False) -> int:
    """How many tests the program fails, all of them or the hidden ones."""
    assert isinstance(draft.spec, ProgramSpec)
    run, failed = loaded(source, draft.spec.function), 0
    for one in draft.spec.examples:
        if hidden and one.visible:
            continue
        try:
            failed += repr(run(*ast.literal_eval(f"({one.arguments},)"))) != one.expected
        except (TypeError, ValueError, IndexError, ZeroDivisionError, NameError):
            failed += 1
    return failed


def test_a_program_that_is_evaluated_gives_what_its_python_gives() -> None:
    for seed in range(40):
        block = drawn_block(2 + seed % 5, 1 + seed % 3, rng := Random(seed))
        others = list(neighbours(block))
        for one in (block, *rng.sample(others, min(4, len(others)))):
            run = loaded(PYTHON.text(one), "solve")
            for a, b in ((0, 0), (7, -9), (60, 33)):
                assert evaluated(one, a, b) == run(a, b), PYTHON.text(one)


@pytest.mark.parametrize("name", OF_FUNCTIONS)
def test_the_reference_gives_what_every_test_expects_and_hardly_any_test_is_shown(name: str) -> None:
    for draft in drafts(name):
        assert isinstance(draft.spec, ProgramSpec)
        assert wrong(draft, draft.answer) == 0
        shown = [one for one in draft.spec.examples if one.visible]
        assert len(shown) == 2
        assert len(draft.spec.examples) >= 10
        assert draft.answer not in draft.messages[0].text


def test_a_broken_program_that_is_handed_back_fails_a_hidden_test() -> None:
    for draft in drafts("program_repair"):
        given = re.search(r"```python\n(.*?)```", draft.messages[0].text, re.DOTALL)
        assert given is not None
        assert wrong(draft, given[1], hidden=True) > 0, draft.key


def test_a_program_to_be_completed_has_holes_and_more_of_them_at_higher_levels() -> None:
    for level in range(5):
        text = make_draft("program_completion", level, 3).messages[0].text
        assert text.count("= ____") == 1 + level // 2


@pytest.mark.parametrize("name", ["program_repair", "program_translation"])
def test_hidden_tests_kill_nearly_all_mutants_of_the_reference(name: str) -> None:
    """Of those that are left some do the same as the reference; `verifiers.programs.mutation` tries all of them."""
    tried = killed = 0
    for draft in drafts(name)[:10]:
        for change in mutants(draft.answer)[::4]:
            tried += 1
            killed += wrong(draft, change.source, hidden=True) > 0
    assert killed >= MUTANTS_KILLED * tried, (killed, tried)


def test_hidden_texts_tell_a_regular_expression_from_one_that_matches_too_much_or_too_little() -> None:
    for draft in drafts("regular_expressions"):
        assert isinstance(draft.spec, ProgramSpec)
        pattern = loaded(draft.answer, "pattern")()
        tests = [
            (ast.literal_eval(one.arguments), one.expected == "True") for one in draft.spec.examples if not one.visible
        ]
        assert all((re.fullmatch(pattern, text) is not None) == matches for text, matches in tests)
        for other in (".*", ".+", r"\w+", f"{pattern}.*", f".*(?:{pattern})", f"(?:{pattern}).?"):
            assert [re.fullmatch(other, text) is not None for text, _ in tests] != [right for _, right in tests]


def test_all_notations_of_a_program_name_the_same_numbers_in_the_same_order() -> None:
    for level in range(5):
        block = drawn_block(2 + level, 1 + level // 3, Random(level))
        counted = [
            sorted(
                re.findall(
                    r"[0-9]+", re.sub(r"\w = 0;|\w = 0$|SET c TO 0|set c 0", "", notation.text(block), flags=re.M)
                )
            )
            for notation in (PYTHON, SPOKEN, BRACKETS, BRACES)
        ]
        assert counted[0] == counted[1] == counted[2] == counted[3]


def test_keys_of_long_programs_are_short() -> None:
    assert len(digest("x" * 10_000)) == 24
    assert all(len(draft.key) < 80 for draft in drafts("program_translation"))


def test_every_program_taskset_has_five_levels_and_answers_in_a_block() -> None:
    for name in (*OF_FUNCTIONS, "regular_expressions", "programs"):
        assert TASKSETS[name].level_count == 5
        assert make_draft(name, 0, 0).form == "block"
