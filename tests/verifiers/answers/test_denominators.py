"""An equation that loses solutions of the expected one is not proved equal, and one that keeps them is."""

from __future__ import annotations

import time

import pytest
from tables import table

from verifiers.answers.spec import AnswerSpec
from verifiers.answers.verifier import AnswerVerifier
from verifiers.contract.verdict import Ground

VERIFIER = AnswerVerifier()

LOSES = [
    ("y=x", "y/x=1"),
    ("y=x", "y^2/y=x"),
    ("y=x", "y=x^2/x"),
    ("y=x", "(x-y)/(x+y)=0"),
    ("y=x", r"\frac1{1/y}=x"),
    ("y=x", r"y \cdot x^0=x"),
    ("y=x", r"y=e^{\ln x}"),
    ("y=x", r"y\sin x\csc x=x"),
    ("y=x+1", "y=1+x+0/x"),
    ("y=x, z=1", "y/x=1, z=1"),
    ("x^2+y^2=1", "y^2/(1-x^2)=1"),
    (r"y=\frac{1}{x-1}", r"y=\frac{x+1}{x^2-1}"),
    ("ad=bc", r"\frac ab=\frac cd"),
    ("F=ma", r"\frac{Fa}{ma}=a"),
    ("y>x", r"\frac{y^2}{y}>x"),
    (r"x \ge y", r"\frac{x^2}{x} \ge y"),
]


@table(("expected", "answer"), LOSES)
def test_an_equation_without_a_value_at_some_solutions_is_not_proved_equal(expected: str, answer: str) -> None:
    assert VERIFIER.verify(AnswerSpec(expected=expected), answer).ground is Ground.UNKNOWN


KEEPS = [
    ("xy=1", "y=1/x"),
    ("xy=1", r"\frac{1}{xy}=1"),
    ("(x^2+1)y=1", r"y=\frac{1}{x^2+1}"),
    (r"y=\frac{x+1}{x}", r"y=1+\frac1x"),
    (r"\frac1f=\frac1u+\frac1v", r"f=\frac{uv}{u+v}"),
    (r"y=\tan x", r"y=\frac{\sin x}{\cos x}"),
    ("y=x^{-2}", "y=1/x^2"),
    (r"\frac yx=2", "y=2x"),
    (r"\frac ab=\frac cd", "ad=bc"),
    (r"\frac{x^2-y^2}{x-y}=0", "x+y=0"),
    ("F=ma", r"a=\frac Fm"),
    ("v=u+at", r"\frac vt-\frac ut=a"),
    ("y>x", "y-x>0"),
    (r"y>\frac1x", r"y-x^{-1}>0"),
]


@table(("expected", "answer"), KEEPS)
def test_an_equation_that_keeps_the_solutions_is_proved_equal(expected: str, answer: str) -> None:
    assert VERIFIER.verify(AnswerSpec(expected=expected), answer).ground is Ground.PROVED


def test_a_symbol_that_is_positive_is_no_zero_denominator() -> None:
    assert VERIFIER.verify(AnswerSpec(expected="y=x", domain="positive"), "y/x=1").ground is Ground.PROVED


LARGE = [
    ("x=y", r"x=y+\frac{0}{(x+y+2)^{150}+3}"),
    ("x=y", r"x=y+\frac{0}{((x+y)^9+7)^9+(x-y)^9}"),
    ("wx=yz", r"wx=yz+\frac{0}{(w+2x+3y+4z+5)^{40}+wxyz}"),
    ("w^3+x^3+y^3=z", r"w^3+x^3+y^3=z+\frac{0}{w^2x^2-3y^3z+2w^3-7xy+x^2z-11z+wz^2+5}"),
]


@pytest.mark.parametrize(("expected", "answer"), LARGE)
def test_a_large_denominator_is_refused_at_once(expected: str, answer: str) -> None:
    started = time.process_time()
    assert not VERIFIER.verify(AnswerSpec(expected=expected), answer).passed
    assert time.process_time() - started < 10
