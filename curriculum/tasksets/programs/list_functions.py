"""Small programs: a function on lists or on texts, described in words step by step, with hidden tests.

Levels raise the number of steps. A draft's tests are part of its definition: no constant, the argument itself, or a
program that leaves a step out gives the right results.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

from curriculum.contract.taskset import TaskDraft
from curriculum.contract.topics import IMPOSSIBLE, Item, TopicTaskset
from curriculum.tasksets.programs.chains import FUNCTION, TOPICS, tested_chain
from verifiers.contract.kinds import AnswerForm
from verifiers.programs.spec import ProgramSpec
from verifiers.registry.spec import Spec

TURNS, TOKENS = 8, 4_000
IDLE = tuple(f"def {FUNCTION}(x):\n    return {result}\n" for result in ("x", "0", "[]", '""', "None"))
"""Programs that do no work."""


_ASKED = tuple(
    asked.format(FUNCTION)
    for asked in (
        "Write a Python function `{}(x)`",
        "Program a function `{}(x)` in Python",
        "A Python function `{}(x)` is needed",
        "Please write the Python function `{}(x)`",
    )
)


def wrong_tests(draft: TaskDraft, number: int) -> Spec:
    """Returns a program's tests, each with an unrelated result of twenty digits, so no honest program passes."""
    assert isinstance(draft.spec, ProgramSpec)
    wrong = tuple(
        each.model_copy(update={"expected": repr(IMPOSSIBLE + number + at), "visible": False})
        for at, each in enumerate(draft.spec.examples)
    )
    return draft.spec.model_copy(update={"examples": wrong})


def program_taskset(
    name: str, version: int, makers: dict[str, Callable[[int, Random], Item]], null_answers: tuple[str, ...] = IDLE
) -> TopicTaskset:
    """Makes a taskset whose answers are programs in a fenced block, with the usual budget of turns and tokens."""
    return TopicTaskset(
        name=name,
        version=version,
        makers=makers,
        null_answers=null_answers,
        form=AnswerForm.BLOCK,
        turns=TURNS,
        tokens=TOKENS,
        contradicted=wrong_tests,
    )


def _made(name: str, level: int, rng: Random) -> Item:
    """Makes a task to write a Python function of `level + 2` steps. If its topic has ends, one is added."""
    topic = TOPICS[name]
    tested = tested_chain(topic, level + 2, rng)
    end = "" if topic.ends else "It returns what is there then.\n"
    text = (
        f"{rng.choice(_ASKED)}. It takes {topic.takes} and does this, in this order:\n"
        f"{tested.chain.text}\n{end}Examples:\n{tested.examples}\n"
        "End with the whole program in one fenced code block."
    )
    return Item(text=text, key=tested.chain.name, spec=tested.spec, answer=tested.chain.source)


PROGRAMS = program_taskset("programs", 3, {name: partial(_made, name) for name in TOPICS})
