"""What a program gives, worked out: a call of a function whose source is shown, in Python or in another notation."""

from __future__ import annotations

from functools import partial
from random import Random

from curriculum.contract.topics import Item, TopicTaskset
from curriculum.tasksets.programs.small_language import (
    BRACES,
    BRACKETS,
    FUNCTION,
    PYTHON,
    SEMANTICS,
    SPOKEN,
    Notation,
    compiled,
)
from curriculum.tasksets.programs.tested_blocks import live_block
from curriculum.tasksets.statements import digest
from verifiers.answers.spec import AnswerSpec

_ASKED = (
    "What is the result for a = {a} and b = {b}?",
    "Work out what it gives for a = {a}, b = {b}.",
    "It is called with a = {a} and b = {b}. Which number does it return?",
    "Run it by hand for a = {a} and b = {b}. What comes out?",
)


def _made(notation: Notation, level: int, rng: Random) -> Item:
    block = live_block(2 + level, 1 + level // 3, rng)
    a, b = rng.randint(11, 99), rng.randint(11, 99)
    result = compiled(PYTHON.text(block))(a, b)
    text = (
        f"A program:\n```\n{notation.text(block)}```\n{SEMANTICS} {rng.choice(_ASKED).format(a=a, b=b)} "
        "Answer with the whole number."
    )
    return Item(
        text=text,
        key=digest(f"{PYTHON.text(block)} {a} {b}"),
        spec=AnswerSpec(expected=str(result)),
        answer=str(result),
    )


TRACES = TopicTaskset(
    name="program_tracing",
    version=2,
    makers={
        "trace_python": partial(_made, PYTHON),
        "trace_words": partial(_made, SPOKEN),
        "trace_brackets": partial(_made, BRACKETS),
        "trace_braces": partial(_made, BRACES),
    },
    null_answers=("0", "1", "-1", FUNCTION),
    tools=(),
)
