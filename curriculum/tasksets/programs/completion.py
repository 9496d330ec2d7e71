"""Programs with holes: what the missing lines do is said, what stands around them is given."""

from __future__ import annotations

from functools import partial
from random import Random

from curriculum.contract.topics import Item
from curriculum.tasksets.programs.chains import FUNCTION, HIDDEN, SHOWN, TOPICS, tested_chain
from curriculum.tasksets.programs.list_functions import IDLE, program_taskset
from curriculum.tasksets.programs.small_language import SEMANTICS, SPOKEN
from curriculum.tasksets.programs.tested_blocks import numbers_spec, tested_block
from curriculum.tasksets.statements import digest

_HOLE = "____"
_ASKED = (
    "Complete this Python program: put what belongs there in the place of each {hole}.",
    "In this Python program some parts are missing, each marked with {hole}. Fill them in.",
    "Replace every {hole} in this program, so that it does what is said below.",
    "Where {hole} stands, an expression was removed from this Python program. Put back what is described below.",
)
_END = "End with the whole program, completed, in one fenced code block."


def _chain(name: str, level: int, rng: Random) -> Item:
    """Makes a task to complete a Python program from which steps were removed, described in words. Removes `1 + level
    // 2` of `level + 3` steps; `name` is the topic."""
    tested = tested_chain(TOPICS[name], level + 3, rng)
    missing = sorted(rng.sample(range(len(tested.chain.links)), 1 + level // 2))
    lines = tested.chain.source.splitlines()
    said = []
    for at in missing:
        step, number = tested.chain.links[at]
        lines[1 + at] = f"    x = {_HOLE}"
        said.append(f"line {2 + at}: {step.text.format(k=number).removeprefix('return ')}")
    words = "\n".join(said)
    text = (
        f"{rng.choice(_ASKED).format(hole=_HOLE)}\n```python\n{chr(10).join(lines)}\n```\n`{FUNCTION}(x)` takes "
        f"{tested.topic.takes}. The missing parts give:\n{words}\nExamples:\n{tested.examples}\n{_END}"
    )
    return Item(text=text, key=f"{tested.chain.name} {missing}", spec=tested.spec, answer=tested.chain.source)


def _loops(level: int, rng: Random) -> Item:
    """Makes a task to complete a Python program that is also given in full in another notation. Removes `1 + level //
    2` values from a program with loops and choices."""
    tested = tested_block(level, SHOWN, HIDDEN, rng)
    lines = tested.source.splitlines()
    places = [at for at, line in enumerate(lines) if " = " in line and at > 1]
    missing = sorted(rng.sample(places, min(len(places), 1 + level // 2)))
    for at in missing:
        lines[at] = f"{lines[at].partition(' = ')[0]} = {_HOLE}"
    text = (
        f"{rng.choice(_ASKED).format(hole=_HOLE)}\n```python\n{chr(10).join(lines)}\n```\nAll of it does this, with "
        f"whole numbers a and b:\n{SPOKEN.text(tested.block)}{SEMANTICS} Examples:\n{tested.examples}\n{_END}"
    )
    return Item(text=text, key=digest(f"{tested.source} {missing}"), spec=numbers_spec(tested), answer=tested.source)


COMPLETIONS = program_taskset(
    "program_completion",
    2,
    {
        "complete_numbers": partial(_chain, "lists_to_numbers"),
        "complete_lists": partial(_chain, "lists_to_lists"),
        "complete_texts": partial(_chain, "texts"),
        "complete_loops": _loops,
    },
    null_answers=(*IDLE, f"def {FUNCTION}(a, b):\n    return a\n"),
)
