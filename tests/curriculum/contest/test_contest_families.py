"""Every family of contest problems: its reference, its oracle, its text, and what its hidden tests tell apart."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from rivals import CONTESTS, EDGES, FAMILIES, IDEAS, OVERFLOWS, Change, changed, slow_of

from curriculum.registry import TASKSETS, make_draft
from curriculum.tasksets.contest.composing import SHARES, constants_of, low_of, made, twist_of
from curriculum.tasksets.contest.layouts import decoded, encoded, printed_case, read_case
from verifiers.programs.checking import check
from verifiers.programs.spec import LITERAL_CHARS, ProgramSpec

QUICK, MANY = 60, 10_000
"""Random inputs of a family on which oracle and reference are compared, in the suite and at night."""


def outcome(program: str, stdin: str) -> str:
    """What a program prints, run here: our own, or one of `rivals`."""
    printed = io.StringIO()
    before, sys.stdin = sys.stdin, io.StringIO(stdin)
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(program, "made here", "exec"), {"__name__": "__main__"})
    except Exception as error:  # a wrong program may raise anything
        return type(error).__name__
    finally:
        sys.stdin = before
    return printed.getvalue()


def spec_of(name: str, level: int, seed: int = 0) -> tuple[ProgramSpec, Callable[[Change], str]]:
    """A task's spec, and what makes the program of a rival."""
    spec = made(FAMILIES[name], level, Random(f"{name} {seed}")).spec
    rng = Random(f"{name} {seed}")
    constants, twist = constants_of(FAMILIES[name], rng), twist_of(level, rng)
    assert isinstance(spec, ProgramSpec)
    return spec, lambda change: changed(FAMILIES[name], constants, twist, change)


def test_there_are_more_than_forty_families_and_each_has_its_rivals() -> None:
    assert len(FAMILIES) >= 40
    assert len({family.solve for family in FAMILIES.values()}) == len(FAMILIES)
    assert set(IDEAS) == set(EDGES) == set(FAMILIES)
    assert all(slow_of(family) is not family.solve for family in FAMILIES.values())


@pytest.mark.parametrize("count", [QUICK, pytest.param(MANY, marks=[pytest.mark.slow, pytest.mark.timeout(3_600)])])
@pytest.mark.parametrize("name", FAMILIES)
def test_an_independent_slow_oracle_agrees_on_random_inputs(name: str, count: int) -> None:
    family, rng = FAMILIES[name], Random(f"{name} {count}")
    slow, answers = slow_of(family), set()
    for _ in range(count):
        constants = constants_of(family, rng)
        given = family.structure.make(rng, rng.randint(1, family.small), "any", **family.bounds)
        answer = family.solve(*given, **constants)
        assert answer == slow(*given, **constants), (constants, given)
        answers.add(str(answer))
    assert len(answers) > 2


@pytest.mark.parametrize("name", FAMILIES)
def test_hidden_tests_fail_a_wrong_idea_and_a_wrong_edge_and_no_right_program(name: str) -> None:
    for level in (0, 2):  # in chained cases a wrong answer spoils the numbers of the next case
        spec, rival = spec_of(name, level)
        shown = spec.runs[0]
        assert outcome(spec.reference, shown.stdin) == shown.expected
        inputs = [outcome(spec.maker, case) for case in spec.cases[: len(spec.cases) if level == 0 else 3]]
        assert all(0 < len(text) <= LITERAL_CHARS for text in inputs)
        small = inputs[:3]
        expected = [outcome(spec.reference, text) for text in small]
        assert all(text.count("\n") == int(stdin.split()[0]) for text, stdin in zip(expected, small, strict=True))
        for change in (IDEAS[name], EDGES[name]):
            if change is OVERFLOWS:
                if level == 0:
                    assert outcome(spec.reference, inputs[-1]) != outcome(rival(change), inputs[-1])
            else:
                assert [outcome(rival(change), text) for text in small] != expected, change


@pytest.mark.parametrize("name", FAMILIES)
def test_what_is_printed_and_coded_is_read_and_decoded_as_the_same(name: str) -> None:
    family = FAMILIES[name]
    structure, low = family.structure, low_of(family)
    for seed in range(20):
        rng = Random(seed)
        given = structure.make(rng, rng.randint(1, 6), "any", **family.bounds)
        shown = [*given]
        shown[structure.coded] = encoded(given[structure.coded], low, 7, 12_345 + seed, structure.modulus)
        words = printed_case(shown, structure.layout).split()
        back, end = read_case(words, 0, structure.layout)
        back[structure.coded] = decoded(back[structure.coded], low, 7, 12_345 + seed, structure.modulus)
        assert (back, end) == (given, len(words))


@pytest.mark.parametrize("contest", CONTESTS)
def test_a_statement_has_no_open_field_and_says_what_changes_with_the_level(contest: str) -> None:
    drafts = [make_draft(contest, level, seed) for level in range(len(SHARES)) for seed in range(12)]
    for at, draft in enumerate(drafts):
        text, level = draft.messages[0].text, at // 12
        assert "{" not in text
        assert "Example input:" in text
        assert ("coded" in text, "previous test case" in text) == (level >= 2, level >= 3)
        assert ("after every 5 test cases" in text) == (level in (1, 4))
        assert draft.answer not in text
        check(draft.spec)


def test_a_task_checks_itself_with_results_that_no_program_gives() -> None:
    draft = make_draft("contest_words", 2, 5)
    other = TASKSETS["contest_words"].unsolvable(draft, 7)
    assert isinstance(other, ProgramSpec)
    check(other)
    assert not other.cases
    assert {run.expected for run in other.runs}.isdisjoint({outcome(draft.answer, run.stdin) for run in other.runs})


def test_tests_of_the_same_seed_are_the_same_and_the_seeds_of_a_task_differ() -> None:
    draft = make_draft("contest_graphs", 3, 1)
    spec: Any = draft.spec
    assert outcome(spec.maker, spec.cases[0]) == outcome(spec.maker, spec.cases[0])
    assert len({case.split()[0] for case in spec.cases}) == len(spec.cases)
