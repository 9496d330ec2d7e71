"""Programs to be written anew in Python from another notation: spoken words, brackets, braces."""

from __future__ import annotations

from functools import partial
from random import Random

from curriculum.contract.topics import Item
from curriculum.tasksets.programs.chains import HIDDEN, SHOWN
from curriculum.tasksets.programs.list_functions import program_taskset
from curriculum.tasksets.programs.small_language import BRACES, BRACKETS, FUNCTION, SEMANTICS, SPOKEN, Notation
from curriculum.tasksets.programs.tested_blocks import numbers_spec, tested_block
from curriculum.tasksets.statements import digest

_ASKED = (
    "Translate this program into Python, as a function `{name}(a, b)`.",
    "Write a Python function `{name}(a, b)` that does the same as this program.",
    "Here is a program in a notation that is not Python. Give the same program in Python, as `{name}(a, b)`.",
    "What this program computes is to be computed in Python, by a function `{name}(a, b)`.",
)


def _made(notation: Notation, level: int, rng: Random) -> Item:
    tested = tested_block(level, SHOWN, HIDDEN, rng)
    text = (
        f"{rng.choice(_ASKED).format(name=FUNCTION)}\n```\n{notation.text(tested.block)}```\n"
        f"a and b are whole numbers, and the result is one. {SEMANTICS}\nExamples:\n{tested.examples}\n"
        "End with the whole Python program in one fenced code block."
    )
    return Item(text=text, key=digest(tested.source), spec=numbers_spec(tested), answer=tested.source)


TRANSLATIONS = program_taskset(
    "program_translation",
    2,
    {
        "translate_words": partial(_made, SPOKEN),
        "translate_brackets": partial(_made, BRACKETS),
        "translate_braces": partial(_made, BRACES),
    },
    null_answers=tuple(f"def {FUNCTION}(a, b):\n    return {result}\n" for result in ("a", "b", "0", "a + b", "None")),
)
