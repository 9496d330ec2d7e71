"""A claim's file says what is asked of it, and needs no other."""

from __future__ import annotations

import pytest

from verifiers.contract.errors import SpecError
from verifiers.smt.files import asked_in, claim_spec, default_submission
from verifiers.smt.verifier import SmtVerifier


def test_a_script_that_waits_for_unsat_is_an_entailment_that_leaves_nothing_to_supply() -> None:
    spec = claim_spec(
        "; transitivity\n(set-logic QF_LIA)\n(set-info :status unsat)\n(declare-const x Int)(declare-const y Int)\n"
        "(assert (< x y))(assert (< y 3))\n(assert (not (< x 2)))\n(check-sat)\n"
    )
    assert spec.question == "entails"
    assert default_submission(spec) == "entailed"
    assert SmtVerifier().verify(spec, "entailed").passed


def test_what_is_asked_may_be_written_into_the_file() -> None:
    spec = claim_spec(
        "(set-info :assay-question model)(set-info :assay-division total)(set-info :assay-effort 5000)"
        '(set-info :assay-forbidden "ite let")(set-info :source |anybody|)(declare-const x Int)(assert (= x 1))'
    )
    assert (spec.question, spec.division, spec.effort, spec.forbidden) == ("model", "total", 5000, ("ite", "let"))
    assert default_submission(spec) is None


def test_holes_need_a_submission() -> None:
    spec = claim_spec('(set-info :assay-holes "f")(declare-fun f (Int) Int)(assert (! (= (f 1) 2) :named goal))')
    assert default_submission(spec) is None
    assert SmtVerifier().verify(spec, "(define-fun f ((x Int)) Int (+ x 1))").passed


def test_only_what_a_claim_says_of_itself_is_said_by_it() -> None:
    assert asked_in('(set-info :assay-holes "f g")(set-info :assay-effort 5)') == {"holes": ["f", "g"], "effort": 5}
    assert asked_in("(declare-const x Int)(minimize x)") == {}


@pytest.mark.parametrize(
    ("operator", "dividend", "value"),
    [
        ("bvudiv", 5, 15), ("bvudiv", 13, 15), ("bvsdiv", 5, 15), ("bvsdiv", 13, 1),
        ("bvurem", 5, 5), ("bvsrem", 13, 13), ("bvsmod", 13, 13),
    ],
)  # fmt: skip
def test_a_bit_vector_divided_by_zero_has_the_value_that_is_described(operator: str, dividend: int, value: int) -> None:
    claim = f"(assert (! (= ({operator} #x{dividend:x} #x0) #x{value:x}) :named goal))"
    assert SmtVerifier().verify(claim_spec(claim), "entailed").passed


def test_an_objective_or_a_reference_say_what_is_asked() -> None:
    assert claim_spec("(declare-const x Int)(assert (> x 0))(minimize x)").question == "optimum"
    assert claim_spec("(declare-const x Int)(define-fun reference () Int x)").question == "equivalent"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(set-option :timeout 1)", "set-option"),
        ("(assert (not true)) (exit)", "exit"),
        ("(set-info :assay-question guess)", "assay-question"),
        ("(set-info :assay-colour red)", "assay-colour"),
        ("(set-info :assay-effort much)", "whole number"),
        ("(", "unclosed"),
        ("\x00", "cannot be read"),
    ],
)
def test_a_file_that_cannot_be_used_says_why_and_what_to_do(text: str, message: str) -> None:
    with pytest.raises(SpecError, match=message) as caught:
        claim_spec(text)
    assert caught.value.hint
