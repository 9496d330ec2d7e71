"""What cheap solvers find for a question, in the worker that decides: it passes the verifier, or there is a reason."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest

from verifiers.answers.spec import AnswerSpec
from verifiers.checker import Checker
from verifiers.contract.protocols import ProposalReply
from verifiers.predicate.spec import PredicateSpec
from verifiers.proposals.arithmetic import pieces
from verifiers.registry import kind_of, propose, ways
from verifiers.registry.spec import Spec
from verifiers.smt.spec import SmtSpec

XY = "(declare-const x Int)(declare-const y Int)"
BYTE = "(declare-const x (_ BitVec 8))"
NEGATED = "(define-const reference (_ BitVec 8) (bvadd (bvnot x) #x01))"
COUNTER = (
    "(declare-fun inv (Int) Bool)(declare-const x Int)(assert (! (and (inv 0) (=> (and (inv x) (< x 10)) (inv (+ x 1)))"
    " (=> (and (inv x) (>= x 10)) (= x 10))) :named goal))"
)
PLAN = "(declare-const x {0})(declare-const y {0})(assert (<= (+ (* 3 x) (* 2 y)) 12))(assert (<= (+ x (* 3 y)) 10))"


@pytest.fixture(scope="module")
def checker() -> Iterator[Checker]:
    with Checker(workers=1) as made:
        yield made


def found(checker: Checker, spec: Spec, way: str, question: str = "") -> ProposalReply:
    return checker.propose(spec, way, question, 60)


@pytest.mark.parametrize(
    ("spec", "way"),
    [
        (PredicateSpec(predicate="7*x + 3 == 45", domain="integer"), "enumeration"),
        (PredicateSpec(predicate="4*x == -3", domain="rational"), "enumeration"),
        (PredicateSpec(predicate="x*x == 2 and x < 0"), "sympy"),
        (PredicateSpec(predicate="x**2 + x + 1 == 0", domain="complex"), "sympy"),
        (PredicateSpec(predicate="x % 7 == 2 and x % 11 == 3 and x > 10**12", domain="integer"), "z3"),
        (PredicateSpec(predicate="3 < abs(x) and x*2 < -7", domain="rational"), "z3"),
        (SmtSpec(claim="(declare-const x Int)(assert (> x 2))(assert (! (> x 1) :named goal))"), "z3"),
        (SmtSpec(claim=XY + "(declare-fun f (Int) Int)(assert (= (f x) (+ y 3)))", question="model"), "z3"),
        (SmtSpec(claim=XY + "(assert (= (div x y) 3))", question="model"), "z3"),
        (SmtSpec(claim=PLAN.format("Int") + "(maximize (+ (* 5 x) (* 4 y)))", question="optimum"), "z3"),
        (SmtSpec(claim=PLAN.format("Real") + "(maximize (+ (* 5 x) (* 4 y)))", question="optimum"), "z3"),
        (SmtSpec(claim=BYTE + "(assert (bvugt x #x10))(minimize x)", question="optimum"), "z3"),
        (
            SmtSpec(claim=BYTE + "(define-const reference (_ BitVec 8) (bvadd (bvnot x) #x01))", question="equivalent"),
            "z3",
        ),
        (SmtSpec(claim=COUNTER, holes=("inv",)), "z3"),
    ],
    ids=lambda value: getattr(value, "predicate", None) or getattr(value, "question", None) or str(value),
)
def test_what_is_proposed_passes_the_verifier(checker: Checker, spec: Spec, way: str) -> None:
    texts = found(checker, spec, way).texts
    assert any(verdict.passed for verdict in checker.check_many([(spec, text) for text in texts], 60))


@pytest.mark.parametrize(
    "spec",
    [
        PredicateSpec(predicate="x*x == -1", domain="integer"),
        SmtSpec(claim=XY + "(assert (> x y))(assert (< x y))", question="model"),
    ],
)
def test_what_cannot_be_is_said_to_be_hopeless(checker: Checker, spec: Spec) -> None:
    known = found(checker, spec, "z3")
    assert known.hopeless
    assert known.texts == ()
    assert "z3" in known.note


def test_arithmetic_is_that_of_the_question_and_not_the_answer_of_the_spec(checker: Checker) -> None:
    spec = AnswerSpec(notation="digits", expected="5")
    assert found(checker, spec, "arithmetic", "What is 12*7 + 3?").texts == ("87",)
    assert found(checker, spec, "arithmetic", "How many apples has Ann?").texts == ()


def test_an_equation_in_the_question_is_solved(checker: Checker) -> None:
    spec = AnswerSpec(expected="2, 3")
    texts = found(checker, spec, "arithmetic", "Solve x^2 - 5x + 6 = 0.").texts
    assert checker.check(spec, texts[0], 60).passed


def test_only_formulas_of_a_question_are_read_as_such() -> None:
    assert list(pieces("find x with 7x+3=45")) == ["7x+3=45"]
    assert list(pieces("In 2019 a man bought 3 apples.")) == []
    assert list(pieces("Compute 2 + 3 × 4, then rest")) == ["2 + 3 * 4"]


def test_every_way_is_for_some_spec_only() -> None:
    assert ways(SmtSpec(claim="(assert true)")) == ("z3",)
    assert "z3" in ways(PredicateSpec(predicate="x == 1"))


def test_what_takes_too_long_has_found_nothing(checker: Checker) -> None:
    spec = PredicateSpec(predicate="x**x**x == 10**10**3 + 7", domain="integer")
    assert checker.propose(spec, "enumeration", "", 1.0).texts == ()


def test_a_way_that_others_keep_from_the_processors_has_all_of_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def kept(spec: Spec, question: str, more_time: Callable[[], bool]) -> ProposalReply:
        time.sleep(0.3)
        return ProposalReply(texts=(str(more_time()),), by="kept")

    spec = PredicateSpec(predicate="x == 1")
    monkeypatch.setitem(kind_of(spec).proposers, "kept", SimpleNamespace(load=lambda: kept))  # type: ignore[arg-type]
    assert propose(spec, "kept", "", 0.2).texts == ("True",)
