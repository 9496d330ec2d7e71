"""Problems of an owner's with a check that contradicts them: each can be used, and an honest attempt fails it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from tables import table

from curriculum.own.rows import OwnRow, with_levels
from curriculum.own.taskset import OwnContent, OwnTaskset
from runtime.sessions import Sessions
from runtime.settings import BrokerSettings, RuntimeSettings
from verifiers.contract.kinds import Kind
from verifiers.contract.verdict import Outcome
from verifiers.programs.data.compare import CompareRule
from verifiers.programs.data.generators import Integers
from verifiers.programs.spec import Example, MetamorphicRelation, ProgramSpec, Run
from verifiers.programs.verifier import ProgramVerifier
from verifiers.registry import KINDS, check_spec, decide, is_decided
from verifiers.registry.canaries import cases_of
from verifiers.registry.spec import Spec

TWICE, PRINTS = "def f(x): return 2 * x\n", "print(2 * int(input()))\n"
NUMBERS = (Integers(low=1, high=99),)
KNOWN = (Example(arguments="1", expected="2", visible=True), Example(arguments="4", expected="8"))
PROGRAMS = {
    "examples": (ProgramSpec(function="f", examples=KNOWN), TWICE),
    "examples that are compared closely": (
        ProgramSpec(function="f", examples=KNOWN, compare=CompareRule(rule="close", relative=0.01)),
        TWICE,
    ),
    "a call that is there twice": (
        ProgramSpec(function="f", examples=(*KNOWN, Example(arguments=" 4", expected="8"))),
        TWICE,
    ),
    "relations": (
        ProgramSpec(
            function="f", examples=KNOWN, inputs=NUMBERS, relations=(MetamorphicRelation(kind="monotone", count=3),)
        ),
        TWICE,
    ),
    "a driver": (
        ProgramSpec(function="f", examples=KNOWN, driver="def drive(solution, x): return solution(x)\n"),
        TWICE,
    ),
    "a reference": (ProgramSpec(function="f", inputs=NUMBERS, generate=9, reference=TWICE), TWICE),
    "properties": (
        ProgramSpec(
            function="f", inputs=NUMBERS, generate=9, properties=("def holds(found, x): return found == x + x\n",)
        ),
        TWICE,
    ),
    "runs": (ProgramSpec(runs=(Run(stdin="1", expected="2"), Run(stdin="4", expected="8"))), PRINTS),
    "a whole reference": (ProgramSpec(inputs=NUMBERS, generate=9, reference=PRINTS), PRINTS),
}


def contradicted(spec: Spec) -> Spec:
    rows = with_levels([OwnRow(question="What is asked?", spec=spec, origin="f:1")])
    own = OwnTaskset(OwnContent(name="one", added="", rows=rows, digest="0" * 64))
    return own.unsolvable(own.draft_of(rows[0].split, rows[0].level, Random(0)), 7)


@pytest.fixture(scope="module")
def verifier(tmp_path_factory: pytest.TempPathFactory, guest_roots: Path) -> Iterator[ProgramVerifier]:
    own = BrokerSettings(state_dir=tmp_path_factory.mktemp("state"), root_dir=guest_roots, ready=1)
    with Sessions(RuntimeSettings(own=own, shared_workers=1)) as pool:
        found = ProgramVerifier(pool)
        yield found
        found.close()


@table("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_of_every_kind_of_check_the_contradicting_one_can_be_used(kind: Kind) -> None:
    for case in (case for case in cases_of(kind) if case.honest):
        wrong = contradicted(case.spec)
        check_spec(wrong)
        assert wrong.kind == (kind.name if kind.name in ("program", "lean") else "answer"), case.name
        assert str(10**19 + 7) in wrong.model_dump_json()
        if is_decided(wrong):
            assert decide(wrong, case.submission).outcome is Outcome.FAIL, case.name


@pytest.mark.parametrize("what", PROGRAMS)
def test_a_right_program_fails_the_contradicting_tests(what: str, verifier: ProgramVerifier) -> None:
    spec, program = PROGRAMS[what]
    check_spec(spec)
    wrong = contradicted(spec)
    assert wrong.kind == "program"
    verdict = verifier.verify(wrong, program)
    assert verdict.outcome is Outcome.FAIL, verdict.reason
