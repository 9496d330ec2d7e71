"""Tests that cannot tell a right program from a wrong one are found out before they become a reward."""

from __future__ import annotations

import ast

import pytest
from program_kit import NUMBERS

from verifiers.contract.errors import SpecError
from verifiers.programs.data.mutants import chosen, mutants
from verifiers.programs.mutation import assess
from verifiers.programs.spec import Example, ProgramSpec, Run
from verifiers.programs.verifier import ProgramVerifier

LARGEST = """def largest(numbers):
    '''The largest, or None.'''
    found = None
    for number in numbers:
        if found is None or number > found:
            found = number
    return found
"""


def test_changes_are_of_one_place_and_all_are_python() -> None:
    found = mutants(LARGEST)
    assert len({change.source for change in found}) == len(found)
    assert {change.what for change in found} >= {
        "number > found becomes number >= found",
        "number > found becomes number < found",
        "found is None becomes found is not None",
        "return found becomes return None",
        "found = number becomes pass",
    }
    assert "The largest" in found[0].source
    for change in found:
        ast.parse(change.source)
        assert change.source != ast.unparse(ast.parse(LARGEST))


def test_constants_operators_and_boundaries_are_changed() -> None:
    found = [
        change.what for change in mutants("def f(x):\n    y = x[1:] + [3]\n    return not y or abs(-x) // 2 ** 3\n")
    ]
    for what in (
        "3 becomes 4",
        "3 becomes 2",
        "x[1:] becomes x",
        "abs(-x) becomes -x",
        "-x becomes x",
        "not y becomes y",
    ):
        assert what in found
    assert any("//" in what and "*" in what for what in found)


def test_few_are_chosen_the_same_each_time() -> None:
    found = mutants(LARGEST)
    assert chosen(found, 3, 1) == chosen(found, 3, 1)
    assert len(chosen(found, 3, 1)) == 3
    assert chosen(found, 1_000, 1) == found


def test_good_tests_notice_every_change_that_matters(verifier: ProgramVerifier) -> None:
    spec = ProgramSpec(function="largest", inputs=(NUMBERS,), generate=30, reference=LARGEST)
    found = assess(verifier, spec)
    assert found.sound, found
    assert found.killed >= 5
    assert not found.trivial
    assert not found.untried
    assert {mutant.outcome for mutant in found.survivors} <= {"alike"}
    assert any(mutant.change == "number > found becomes number >= found" for mutant in found.survivors)


def test_weak_tests_are_shown_a_wrong_program_that_passes(verifier: ProgramVerifier) -> None:
    weak = ProgramSpec(
        function="largest",
        examples=(Example(arguments="[1]", expected="1"), Example(arguments="[2]", expected="2")),
        inputs=(NUMBERS,),
        reference=LARGEST,
    )
    found = assess(verifier, weak)
    assert not found.sound
    assert found.survivors[0].outcome == "hole"
    assert "instead of" in found.survivors[0].why


def test_tests_that_accept_a_program_that_does_nothing_are_refused(verifier: ProgramVerifier) -> None:
    lax = ProgramSpec(
        function="order",
        inputs=(NUMBERS,),
        generate=10,
        properties=("def holds(result, xs):\n    return all(a <= b for a, b in zip(result, result[1:]))\n",),
    )
    with pytest.raises(SpecError, match="a function that returns '' passes every test"):
        assess(verifier, lax, "def order(xs):\n    return sorted(xs)\n")


def test_whole_programs_are_assessed_too(verifier: ProgramVerifier) -> None:
    spec = ProgramSpec(
        runs=(Run(stdin="2 3", expected="5"), Run(stdin="10 -4", expected="6"), Run(stdin="0 0", expected="0")),
        seconds=10.0,
    )
    found = assess(verifier, spec, "a, b = map(int, input().split())\nprint(a + b)\n")
    assert found.sound, found


def test_without_a_right_program_nothing_is_assessed(verifier: ProgramVerifier) -> None:
    spec = ProgramSpec(
        function="f", examples=(Example(arguments="1", expected="1"), Example(arguments="2", expected="4"))
    )
    with pytest.raises(SpecError, match="no right program is known"):
        assess(verifier, spec)
    with pytest.raises(SpecError, match="the right program fails"):
        assess(verifier, spec, "def f(x):\n    return x\n")
    assert assess(verifier, spec, "def f(x):\n    return x * x\n", seconds=0.0).untried > 0
