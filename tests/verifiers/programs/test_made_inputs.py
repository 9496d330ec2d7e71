"""Inputs that a spec's own program prints, and time limits that follow the reference's time."""

from __future__ import annotations

from typing import Any

import pytest
from tables import table

from verifiers.contract.errors import SpecError
from verifiers.contract.verdict import Ground
from verifiers.programs.checking import check
from verifiers.programs.explain import explain
from verifiers.programs.plan import ReferenceRun, plan
from verifiers.programs.spec import ProgramSpec
from verifiers.programs.verifier import ProgramVerifier

MAKER = "n = int(input())\nprint(n)\n"
REFERENCE = "n = int(input())\nprint(sum(range(n)))\n"
LOOP = """
n = int(input())
total = 0
for one in range(n):
    for again in range(40):
        total += one * (again == 0)
print(total)
"""
SPEC = ProgramSpec(
    maker=MAKER, cases=("3", "2000000"), reference=REFERENCE, seconds=0.1, slack=4.0, total_seconds=60.0, twice="never"
)


@table(
    "fields, reason",
    [
        ({"maker": ""}, "made inputs need"),
        ({"cases": ()}, "made inputs need"),
        ({"reference": ""}, "made inputs need"),
        ({"cases": (), "maker": ""}, "`slack` needs"),
        ({"cases": (), "maker": "", "slack": 0.0}, "no tests"),
        ({"maker": "print(unknown)"}, "unknown, which is not defined"),
        ({"function": "solve"}, "for whole programs"),
    ],
)
def test_a_spec_with_made_inputs_that_cannot_be_used_is_refused(fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(SpecError, match=reason):
        check(SPEC.model_copy(update=fields))


def test_a_test_allows_a_multiple_of_the_reference_s_time() -> None:
    check(SPEC)
    ran = {0: ReferenceRun("3\n", "3\n", 0.0), 1: ReferenceRun("9\n", "36\n", 0.5)}
    assert [(test.run and test.run.stdin, test.seconds) for test in plan(SPEC, ran)] == [("3\n", 0.0), ("9\n", 2.0)]


def test_fields_that_are_not_used_leave_a_spec_s_text_as_it_was() -> None:
    plain = ProgramSpec(function="solve").model_dump()
    assert not {"maker", "cases", "slack"} & plain.keys()
    assert ProgramSpec.model_validate(SPEC.model_dump()) == SPEC


def test_the_explanation_has_the_maker_its_cases_and_the_limit() -> None:
    text = "\n".join(explain(SPEC))
    assert "2 inputs are printed by this program, for '3'; '2000000':" in text
    assert "4 times the solution's CPU time" in text


@pytest.mark.timeout(1_200)
def test_made_inputs_tell_a_fast_program_from_a_wrong_and_from_a_slow_one(verifier: ProgramVerifier) -> None:
    assert verifier.verify(SPEC, REFERENCE).passed
    assert verifier.verify(SPEC, "n = int(input())\nprint(n * (n - 1) // 2)\n").passed
    assert verifier.verify(SPEC, "print(3)\n").ground is Ground.REFUTED
    assert verifier.verify(SPEC, LOOP).ground is Ground.TIMEOUT


@pytest.mark.timeout(1_200)
@table("maker", ["pass\n", "input()\nprint('7' * 1_000_001)\n", "raise SystemExit(3)\n"])
def test_a_maker_that_prints_nothing_or_too_much_or_fails_is_the_spec_s_fault(
    verifier: ProgramVerifier, maker: str
) -> None:
    with pytest.raises(SpecError, match="the maker prints"):
        verifier.verify(SPEC.model_copy(update={"maker": maker}), REFERENCE)
