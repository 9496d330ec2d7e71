"""A point's letters say which number is which, and a turn is no radian."""

from __future__ import annotations

import pytest
from tables import table

from verifiers.answers.spec import AnswerSpec
from verifiers.contract.verdict import Ground
from verifiers.registry import decide


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        ("(1,2)", "(x,y)=(1,2)"),
        ("(2,1)", "(y,x)=(1,2)"),
        ("(1,2,3)", "(z,y,x)=(3,2,1)"),
        ("(1,2,3)", "(a,b,c)=(1,2,3)"),
        ("2\\pi rad/s", "60 rpm"),
        ("3000 rpm", "50 rev/s"),
    ],
)
def test_what_says_the_same_is_proved(gold: str, answer: str) -> None:
    assert decide(AnswerSpec(expected=gold), answer).ground is Ground.PROVED


@table(
    ("gold", "answer", "ground"),
    [
        ("(1,2)", "(y,x)=(1,2)", Ground.REFUTED),
        ("(x,y)=(1,2)", "(y,x)=(1,2)", Ground.REFUTED),
        ("(2,1)", "(y,x)=(1,2,3)", Ground.UNKNOWN),
        ("(2,1)", "(z,y,x)=(1,2)", Ground.UNKNOWN),
        ("(2,3)", "(m,b)=(2,3)", Ground.UNKNOWN),
        ("(m,b)=(2,3)", "(2,3)", Ground.UNKNOWN),
        ("1 rad/s", "60 rpm", Ground.REFUTED),
        ("1 Hz", "60 rpm", Ground.REFUTED),
    ],
)
def test_what_does_not_is_never_proved(gold: str, answer: str, ground: Ground) -> None:
    assert decide(AnswerSpec(expected=gold), answer).ground is ground
