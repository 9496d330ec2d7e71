"""What a verdict on an answer says, what makes a spec unusable, and that the same input gets the same verdict."""

from __future__ import annotations

import itertools
import json
import random

import pytest
from pydantic import ValidationError
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
    "huge tolerance for a coefficient": {"expected": "0.001x+2", "absolute": "0.01"},
    "a tolerance for a family": {"expected": r"x=0.52+6.28k, k\in\mathbb{Z}", "absolute": "0.01"},
    "a tolerance for cases": {"expected": r"\begin{cases}1.41x & x>0\\0 & x\le 0\end{cases}", "absolute": "0.01"},
    "a divisor that is zero": {"expected": r"\frac{x}{\zeta(-2)}"},
}


@table("options", BAD.values(), ids=BAD.keys())
def test_a_spec_that_cannot_decide_is_refused_with_a_hint(options: dict[str, str]) -> None:
    with pytest.raises(SpecError) as caught:
        VERIFIER.check(AnswerSpec.model_validate(options), prove=True)
    assert caught.value.hint


@table("options", [{"notation": "digits"}, {"form": "same"}])
def test_a_tolerance_is_refused_where_answers_are_compared_exactly(options: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match="leave the tolerance out"):
        AnswerSpec.model_validate({"expected": "5", "absolute": "0.1", **options})


MANY = [f"\\sqrt{{{number}}}" for number in range(2, 400) if int(number**0.5) ** 2 != number]


@table(
    ("expected", "answer", "options", "ground"),
    [
        (MANY[:60], MANY[:60], {}, Ground.PROVED),
        (MANY[:60], MANY[:60][::-1], {}, Ground.PROVED),
        (MANY[:60], MANY[1:61], {}, Ground.REFUTED),
        (MANY[:190], MANY[:190][::-1], {}, Ground.UNKNOWN),
        ([*map(str, range(400))], [*map(str, range(400))][::-1], {"absolute": "0.4"}, Ground.PROVED),
        ([*map(str, range(2, 400))], [f"{n}.3" for n in range(2, 400)][::-1], {"absolute": "0.4"}, Ground.PROVED),
        ([*map(str, range(2, 400))], [f"{n}.3" for n in range(3, 401)], {"absolute": "0.4"}, Ground.REFUTED),
    ],
)
def test_large_sets_get_a_verdict_after_a_bounded_number_of_comparisons(
    expected: list[str], answer: list[str], options: dict[str, str], ground: Ground
) -> None:
    texts = ["\\{" + ", ".join(members) + "\\}" for members in (expected, answer)]
    verdict = VERIFIER.verify(AnswerSpec(expected=texts[0], form="equal", **options), texts[1])
    assert verdict.ground is ground, verdict.reason


def test_the_verdict_on_a_list_does_not_depend_on_its_order() -> None:
    spec = AnswerSpec(expected="1.40, 1.41, 1.42", absolute="0.01")
    for answer in itertools.permutations(["1.395", "1.41", "1.43"]):
        assert VERIFIER.verify(spec, ", ".join(answer)).passed
    for answer in itertools.permutations(["1.38", "1.41", "1.42"]):
        assert not VERIFIER.verify(spec, ", ".join(answer)).passed


def test_members_are_close_exactly_when_some_pairing_is() -> None:
    draw = random.Random(7)
    for _ in range(60):
        size = draw.randrange(1, 5)
        sides = [draw.sample(range(140, 150), size) for _ in range(2)]
        paired = any(
            all(abs(one - other) <= 2 for one, other in zip(sides[0], order, strict=True))
            for order in itertools.permutations(sides[1])
        )
        texts = ["\\{" + ", ".join(f"(1, {value / 100})" for value in side) + "\\}" for side in sides]
        verdict = VERIFIER.verify(AnswerSpec(expected=texts[0], absolute="0.02"), texts[1])
        assert verdict.ground is (Ground.PROVED if paired else Ground.REFUTED), texts


READINGS = [
    ("(1,2)", "1<x<2"),
    (r"\infty", r"\sum_{n=1}^{\infty}\frac1n"),
    ("x", r"\frac{x(x+|x|)}{x+|x|}"),
    ("x", r"x\frac{f(1)}{f(1)}"),
    ("y=Ce^{2x}", "y=Ae^{2x}"),
    ("1.41x+2.72", r"\frac{1.41x^2+2.72x}{x}+0.001\sin x"),
]


@table(("expected", "answer"), READINGS)
def test_what_is_not_shown_is_neither_proved_nor_refuted(expected: str, answer: str) -> None:
    tolerance = "0.01" if "." in expected else ""
    spec = AnswerSpec(expected=expected, form="equal", absolute=tolerance)
    assert VERIFIER.verify(spec, answer).ground is Ground.UNKNOWN


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
