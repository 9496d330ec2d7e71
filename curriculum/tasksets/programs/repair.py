"""Programs with one fault: what they should do is said, in words or in another notation, and a broken one is given.

The fault is always detectable: a hidden test fails the given program.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from random import Random

from curriculum.contract.topics import Item
from curriculum.tasksets.programs.chains import FUNCTION, HIDDEN, SHOWN, TOPICS, Chain, Tested, tested_chain
from curriculum.tasksets.programs.list_functions import program_taskset
from curriculum.tasksets.programs.small_language import PYTHON, SEMANTICS, SPOKEN
from curriculum.tasksets.programs.tested_blocks import neighbours, numbers_spec, tested_block
from curriculum.tasksets.statements import digest

_ASKED = (
    "This Python program should do what is said below, but one place of it is wrong. Give the whole program, repaired.",
    "One line of this Python program is wrong. Correct it, so that it does what is said below.",
    "Find the fault in this program and mend it. What it should do is said below.",
    "A program does not do what is said below it, because of one mistake. Correct the mistake.",
)
_END = "End with the whole program in one fenced code block."


def _faulty(tested: Tested, rng: Random) -> Chain:
    """Returns the program with one fault that a hidden test detects."""
    return rng.choice([chain for chain in tested.chain.others(tested.topic) if tested.fails(chain)])


def _chain(name: str, level: int, rng: Random) -> Item:
    tested = tested_chain(TOPICS[name], level + 2, rng)
    broken = _faulty(tested, rng)
    text = (
        f"{rng.choice(_ASKED)}\n```python\n{broken.source}```\n`{FUNCTION}(x)` takes {tested.topic.takes} and does "
        f"this, in this order, and returns what is there "
        f"then:\n{tested.chain.text}\nExamples:\n{tested.examples}\n{_END}"
    )
    return Item(text=text, key=f"{tested.chain.name} {broken.name}", spec=tested.spec, answer=tested.chain.source)


def _loops(level: int, rng: Random) -> Item:
    tested = tested_block(level, SHOWN, HIDDEN, rng)
    others = list(neighbours(tested.block))
    rng.shuffle(others)
    broken = next(other for other in others if tested.noticed(other))
    text = (
        f"{rng.choice(_ASKED)}\n```python\n{PYTHON.text(broken)}```\nIt should do this, with whole numbers a and b:\n"
        f"{SPOKEN.text(tested.block)}{SEMANTICS} Examples:\n{tested.examples}\n{_END}"
    )
    return Item(
        text=text, key=digest(f"{tested.source} {PYTHON.text(broken)}"), spec=numbers_spec(tested), answer=tested.source
    )


REPAIRS = replace(
    program_taskset(
        "program_repair",
        2,
        {
            "repair_numbers": partial(_chain, "lists_to_numbers"),
            "repair_lists": partial(_chain, "lists_to_lists"),
            "repair_texts": partial(_chain, "texts"),
            "repair_loops": _loops,
        },
    ),
    null_answers=(f"def {FUNCTION}(x):\n    return x\n", f"def {FUNCTION}(a, b):\n    return a\n", "pass\n"),
)
