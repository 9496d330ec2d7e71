"""Every family asks what its own calculator can answer, and nothing that a constant answers."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from contextlib import redirect_stdout
from io import StringIO
from random import Random

import pytest
from calculators import FAMILIES, OPERATIONS
from hypothesis import given
from hypothesis import strategies as st
from tables import table

from curriculum.contract.errors import LevelError
from curriculum.families.divisors import sum_of_divisors
from curriculum.families.phrased import fill, trace

EVERY_LEVEL = [(name, level) for name, family in FAMILIES.items() for level in range(family.level_count)]


def printed_by(code: str) -> str:
    """What a template of ours prints, run in a fresh namespace."""
    out = StringIO()
    with redirect_stdout(out):
        exec(compile(code, "template", "exec"), {"__name__": "template"})
    return out.getvalue().strip()


@table(("name", "level"), EVERY_LEVEL)
def test_the_calculator_prints_the_reference_answer(name: str, level: int) -> None:
    family = FAMILIES[name]
    for seed in range(50):
        draft = family.draft(level, Random(seed))
        calls = family.demonstrate(draft, Random(seed), right_choice=1.0, fail_first=0.0).calls
        assert [printed_by(code) for code in calls] == [draft.answer]
        assert draft.spec.expected == draft.answer


def test_the_reference_traces_also_work_in_a_python_of_their_own() -> None:
    codes, answers = [], []
    for name, level in EVERY_LEVEL:
        draft = FAMILIES[name].draft(level, Random(5))
        codes += FAMILIES[name].demonstrate(draft, Random(5), right_choice=1.0, fail_first=0.0).calls
        answers.append(draft.answer)
    run = subprocess.run([sys.executable, "-I", "-c", "\n".join(codes)], capture_output=True, text=True, check=True)
    assert run.stdout.split() == answers


@table("name", OPERATIONS)
def test_what_a_beginner_writes_raises_whatever_the_numbers(name: str) -> None:
    operation = OPERATIONS[name]
    assert len(operation.beginner) >= 2
    for numbers in [(2, 3, 4), (99, 12, 345), (9999, 4999, 101)]:
        for code in operation.beginner:
            with pytest.raises((NameError, SyntaxError, TypeError, ZeroDivisionError, AttributeError)):
                printed_by(fill(code, numbers))


@table("name", OPERATIONS)
def test_an_operation_prints_something_for_the_numbers_of_any_other_with_as_many(name: str) -> None:
    operation = OPERATIONS[name]
    for family in FAMILIES.values():
        for seed in range(30):
            draft = family.draft(seed % family.level_count, Random(seed))
            if len(draft.numbers) == operation.arity:
                assert printed_by(fill(operation.code, draft.numbers))


@table(("name", "level"), EVERY_LEVEL)
def test_no_constant_answer_is_right_in_two_percent(name: str, level: int) -> None:
    family = FAMILIES[name]
    items = 4000
    answers = Counter(family.draft(level, Random(seed)).answer for seed in range(items))
    best, times = answers.most_common(1)[0]
    assert times < 0.02 * items, f"{best} is right {times} times"
    assert answers[family.null_answers[0]] < 0.02 * items


@pytest.mark.parametrize("name", FAMILIES)
def test_the_null_answer_is_about_the_best_that_a_constant_can_do(name: str) -> None:
    family = FAMILIES[name]
    items = 2000
    answers = Counter(family.draft(seed % family.level_count, Random(seed)).answer for seed in range(items))
    best = answers.most_common(1)[0][1]
    assert answers[family.null_answers[0]] > 0.5 * best


@pytest.mark.parametrize("name", FAMILIES)
def test_levels_grow(name: str) -> None:
    family = FAMILIES[name]

    def size(level: int) -> float:
        return sum(max(family.draft(level, Random(seed)).numbers) for seed in range(300))

    sizes = [size(level) for level in range(family.level_count)]
    assert sizes == sorted(sizes)
    assert sizes[-1] > 1.05 * sizes[0]


@pytest.mark.parametrize("name", FAMILIES)
def test_every_operation_and_phrase_of_a_family_turns_up(name: str) -> None:
    family = FAMILIES[name]
    drafts = [family.draft(0, Random(seed)) for seed in range(400)]
    assert {draft.topic for draft in drafts} == set(family.topics)
    shapes = {"".join("#" if letter.isdigit() else letter for letter in draft.messages[0].text) for draft in drafts}
    assert len(shapes) >= 2 * len(family.topics)


@pytest.mark.parametrize("level", [-1, 99])
def test_a_level_that_is_not_there_is_refused_with_those_that_are(level: int) -> None:
    with pytest.raises(LevelError) as refused:
        FAMILIES["powers"].draft(level, Random(0))
    assert "from 0 to 2" in refused.value.hint


def test_sometimes_a_beginner_fails_twice() -> None:
    lengths = Counter(
        len(trace(OPERATIONS["gcd"], (12, 18), Random(seed), fail_first=True).calls) for seed in range(2000)
    )
    assert set(lengths) == {2, 3}
    assert 0.12 < lengths[3] / 2000 < 0.18


@given(st.integers(1, 100_000))
def test_divisors_are_summed_as_by_trying_them_all(number: int) -> None:
    number = number % 3000 + 1
    assert sum_of_divisors(number) == sum(d for d in range(1, number + 1) if number % d == 0)


@given(st.lists(st.integers(), min_size=3, max_size=3))
def test_templates_hold_the_numbers_and_leave_other_braces_alone(numbers: list[int]) -> None:
    assert fill("{a},{b},{c},{d},{}", numbers) == f"{numbers[0]},{numbers[1]},{numbers[2]},{{d}},{{}}"


@pytest.mark.parametrize("numbers", [("2",), (True,), (2.0,), (None,)])
def test_only_integers_become_code(numbers: tuple[object, ...]) -> None:
    with pytest.raises(ValueError, match="integers only"):
        fill("print({a})", numbers)  # type: ignore[arg-type]


def test_a_template_that_lacks_a_number_is_refused() -> None:
    with pytest.raises(ValueError, match="needs b"):
        fill("{a}+{b}", (1,))
