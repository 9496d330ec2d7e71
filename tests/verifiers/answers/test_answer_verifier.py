"""What a verdict on an answer says, what makes a spec unusable, and that the same input gets the same verdict."""

from __future__ import annotations

import json

import pytest
from tables import table

from verifiers.answers.kind import ANSWER
from verifiers.answers.spec import AnswerSpec
from verifiers.answers.verifier import AnswerVerifier
from verifiers.contract.errors import SpecError
from verifiers.contract.verdict import Ground
from verifiers.exact.kind import EXACT
from verifiers.predicate.kind import PREDICATE
from verifiers.registry import decider
from verifiers.registry.canaries import Case, cases_of

VERIFIER = AnswerVerifier()
CASES = [case for kind in (ANSWER, EXACT, PREDICATE) for case in cases_of(kind)]


@table("case", CASES, ids=[case.name for case in CASES])
def test_no_attack_passes_and_every_honest_answer_does(case: Case) -> None:
    verifier = decider(case.spec)
    verifier.check(case.spec, prove=True)
    verdict = verifier.verify(case.spec, case.submission)
    assert verdict.passed == case.honest, verdict.reason
    assert verdict.ground is not None
    assert len(json.dumps(verdict.evidence)) < 20_000
    assert verdict.reason.isprintable()


def test_an_integer_in_digits_has_its_sign() -> None:
    spec = AnswerSpec(expected="6", notation="digits")
    assert [decider(spec).verify(spec, text).passed for text in ("6", "+6", "-6")] == [True, True, False]


def test_every_canary_has_its_own_name() -> None:
    assert len({case.name for case in CASES}) == len(CASES)


GROUNDS = [
    ("x^2-1", "(x-1)(x+1)", Ground.PROVED),
    ("x^2-1", "x^2+1", Ground.REFUTED),
    ("5", "5)", Ground.UNREADABLE),
    ("5", "5, 6", Ground.REFUTED),
    ("5", "2+3", Ground.UNFINISHED),
    ("5", "z", Ground.UNFINISHED),
    ("1", "0/0", Ground.REFUTED),
    (r"x^3-x-1>0", r"x^3-x>2", Ground.UNKNOWN),
]


@table(("expected", "answer", "ground"), GROUNDS)
def test_a_verdict_says_what_it_rests_on(expected: str, answer: str, ground: Ground) -> None:
    form = "equal" if answer == "0/0" else "worked_out"
    assert VERIFIER.verify(AnswerSpec(expected=expected, form=form), answer).ground is ground


def test_a_difference_comes_with_a_witness_that_can_be_checked() -> None:
    curve = VERIFIER.verify(AnswerSpec(expected="y=x^2"), "y=x^2+x")
    assert set(curve.evidence["witness"]) == {"x", "y"}
    interval = VERIFIER.verify(AnswerSpec(expected="[0,1]"), "[0,1)")
    assert interval.evidence["witness"] == {"number": "1"}
    huge = VERIFIER.verify(AnswerSpec(expected="9^{9^9}"), "9^{9^9}-1")
    assert int(huge.evidence["witness"]["modulo"]) > 1
    assert huge.evidence["witness"]["submitted"] != huge.evidence["witness"]["expected"]


BAD = {
    "nothing": {"expected": ""},
    "unreadable": {"expected": "5)"},
    "no value": {"expected": "1/0"},
    "no value inside": {"expected": "x+1/0"},
    "a number that is none": {"expected": "nan"},
    "tolerance nan": {"expected": "5", "absolute": "nan"},
    "tolerance inf": {"expected": "5", "relative": "inf"},
    "tolerance in words": {"expected": "5", "absolute": "some"},
    "negative tolerance": {"expected": "5", "absolute": "-0.1"},
    "tolerance by zero": {"expected": "5", "absolute": "1/0"},
    "huge relative tolerance": {"expected": "5", "relative": "0.5"},
    "huge absolute tolerance": {"expected": "5", "absolute": "5"},
    "huge tolerance for a part": {"expected": "(1, 1000)", "absolute": "10"},
}


@table("options", BAD.values(), ids=BAD.keys())
def test_a_spec_that_cannot_decide_is_refused_with_a_hint(options: dict[str, str]) -> None:
    with pytest.raises(SpecError) as caught:
        VERIFIER.check(AnswerSpec.model_validate(options), prove=True)
    assert caught.value.hint


def test_the_same_input_gets_the_same_verdict_with_the_same_evidence() -> None:
    for expected, answer in [(r"\sin x", r"\cos x"), ("x+y>2", "x-y>2"), ("x^2-1", "(x-1)(x+1)")]:
        first = AnswerVerifier().verify(AnswerSpec(expected=expected), answer)
        assert AnswerVerifier().verify(AnswerSpec(expected=expected), answer) == first


def test_hostile_text_is_escaped_in_what_a_verdict_says() -> None:
    for text in ("\x1b[2J", "5\u202e", "\x00", "<script>", "5\n" * 50):
        verdict = VERIFIER.verify(AnswerSpec(expected="5"), text)
        assert verdict.reason.isprintable()
        assert json.dumps(verdict.evidence).isascii()


def test_symbols_stand_for_what_the_spec_says() -> None:
    root = r"\sqrt{x^2}"
    assert not VERIFIER.verify(AnswerSpec(expected="x"), root).passed
    assert VERIFIER.verify(AnswerSpec(expected="x", domain="positive"), root).passed
    assert VERIFIER.verify(AnswerSpec(expected="|x|"), root).passed
    assert not VERIFIER.verify(AnswerSpec(expected="|x|", domain="complex"), root).passed
    assert VERIFIER.verify(AnswerSpec(expected=r"\cos(n\pi)", domain="integer"), "(-1)^n").passed
    assert not VERIFIER.verify(AnswerSpec(expected="(-1)^{2n}"), "1").passed
