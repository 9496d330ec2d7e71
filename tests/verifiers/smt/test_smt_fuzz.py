"""Whatever a submission or a claim says, there is a verdict or a refusal, and nothing false passes."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from property_budget import FROM_STRANGERS, examples
from smt_kit import RandomTerms

from verifiers.contract.errors import SpecError
from verifiers.contract.verdict import Outcome
from verifiers.smt.language.evaluate import evaluate
from verifiers.smt.language.script import read_text
from verifiers.smt.spec import SmtSpec
from verifiers.smt.verifier import SmtVerifier

WORDS = [
    "x",
    "y",
    "f",
    "b",
    "1",
    "0",
    "2.5",
    "#x01",
    "#b1",
    "true",
    "false",
    "Int",
    "Bool",
    "Real",
    "reference",
    "goal",
]
HEADS = ["and", "or", "not", "=", "+", "*", "-", "/", "div", "mod", "ite", "=>", "<", "bvadd", "concat", "select", "f"]
HEADS += ["let", "forall", "exists", "!", "_", "as", "define-fun", "define-const", "declare-const", "assert", "x"]
HEADS += ["check-sat", "set-option", "model", "minimize", "(_ extract 0 0)", "(as const (Array Int Int))", ":named"]
BRACKETS = st.recursive(
    st.sampled_from(WORDS + HEADS),
    lambda inner: st.lists(inner, max_size=5).map(lambda parts: f"({' '.join(parts)})"),
    max_leaves=25,
)
TEXTS = st.lists(BRACKETS, max_size=4).map(" ".join)
CLAIMS = {
    "model": "(declare-const x Int)(declare-const b (_ BitVec 8))(assert (> (* x x) 1))(assert (= b #x01))",
    "optimum": "(declare-const x Int)(assert (< 1 x 7))(maximize (* x x))",
    "equivalent": "(declare-const x Int)(declare-const y Int)(define-fun reference () Int (ite (< x y) x y))",
    "entails": "(declare-fun f (Int) Int)(assert (! (forall ((x Int)) (> (f x) (* 2 x))) :named goal))",
}


def check_submission(question: str, submission: str) -> None:
    holes = ("f",) if question == "entails" else ()
    spec = SmtSpec(claim=CLAIMS[question], question=question, holes=holes, effort=20_000)  # type: ignore[arg-type]
    verdict = SmtVerifier().verify(spec, submission)
    assert verdict.outcome is not Outcome.INFRA_ERROR
    assert verdict.reason.isprintable()
    assert len(verdict.model_dump_json()) < 20_000


def check_claim(claim: str) -> None:
    spec = SmtSpec(claim=claim, effort=20_000)
    try:
        SmtVerifier().check(spec)
    except SpecError:
        return
    assert SmtVerifier().verify(spec, "entailed").outcome is not Outcome.INFRA_ERROR


@settings(max_examples=examples(250, quick=FROM_STRANGERS), deadline=None)
@given(st.sampled_from(sorted(CLAIMS)), TEXTS)
def test_any_submission_has_a_verdict(question: str, submission: str) -> None:
    check_submission(question, submission)


@settings(max_examples=examples(150, quick=FROM_STRANGERS), deadline=None)
@given(TEXTS)
def test_any_claim_is_used_or_refused(text: str) -> None:
    check_claim("(declare-const x Int)(declare-fun f (Int) Int)" + text)


@pytest.mark.slow
@settings(max_examples=60_000, deadline=None)
@given(st.sampled_from(sorted(CLAIMS)), TEXTS)
def test_any_submission_at_all_has_a_verdict(question: str, submission: str) -> None:
    check_submission(question, submission)
    check_claim(CLAIMS["model"] + submission)


def accepted(seeds: range) -> int:
    """How many random terms are accepted as equivalent to another; each is compared at every input."""
    found = 0
    for seed in seeds:
        random = Random(seed)
        terms = RandomTerms(random, {4: ["a", "b"]}, division=False)
        one = terms.bits(4, 1)
        other = terms.bits(4, 1) if random.random() < 0.5 else f"(bvxor {one} (bvand a (bvnot a)))"
        declared = "(declare-const a (_ BitVec 4))(declare-const b (_ BitVec 4))"
        claim = f"{declared}(define-fun reference () (_ BitVec 4) {one})"
        verdict = SmtVerifier().verify(SmtSpec(claim=claim, question="equivalent", copies="allowed"), other)
        both = read_text(f"{declared}(assert (= {one} {other}))")
        inputs = (dict(zip(both.declared, values, strict=True)) for values in product(range(16), repeat=2))
        same = all(evaluate(both.assertions[0].term, values) for values in inputs)
        assert verdict.passed is same, f"seed {seed}"
        found += verdict.passed
    return found


def test_equivalence_is_what_trying_every_input_finds() -> None:
    assert accepted(range(40)) > 10


@pytest.mark.slow
def test_equivalence_is_what_trying_every_input_finds_very_often() -> None:
    assert accepted(range(1_000, 9_000)) > 2_000
