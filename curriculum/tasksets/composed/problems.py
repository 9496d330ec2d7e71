"""Composes problems of 2 to 10 steps across number theory, algebra, combinatorics, calculus and geometry.

Levels raise the number of steps, and of those that cannot be counted out. A topic is the kind of the answer. The
tasksets: with Python, and by hand, without a tool and with small numbers.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from random import Random
from typing import Any

from curriculum.contract.topics import Item
from curriculum.tasksets.composed import huge_steps, number_steps, object_steps
from curriculum.tasksets.composed.steps import Draw, ProblemStep, ValueKind, fits, shown
from curriculum.tasksets.statements import digest, mathematics, nonzero, worked

COUNTS = {False: (2, 3, 4, 6, 8, 10), True: (2, 3, 4, 5, 6, 8)}
"""Steps by level, with tools and by hand."""
HUGE = (0, 0, 1, 2, 2, 3)
"""Steps by level that cannot be counted out, with tools."""
TRIES = 12
"""Draws of one step before the problem is begun again."""
NAMES = {
    ValueKind.NUMBER: "ABCDEGHJKL",
    ValueKind.FRACTION: "rstqwpmlnj",
    ValueKind.POLYNOMIAL: "fghpqGHJKL",
    ValueKind.SET: "STUVWXYZMN",
    ValueKind.POINT: "PQRMNTLVWZ",
}
"""Names of results, in this order; a problem uses none twice. F is left to Fibonacci."""
ASKED = {
    ValueKind.NUMBER: ("What is {thing}?", "Find {thing}."),
    ValueKind.FRACTION: ("What is {thing}? Give an exact fraction.", "Find, as an exact fraction, {thing}."),
    ValueKind.POLYNOMIAL: ("Which polynomial in x, multiplied out, is {thing}?",),
    ValueKind.SET: ("What is {thing}? List its elements.", "Find {thing}. List its elements."),
    ValueKind.POINT: (
        "What is {thing}? Give exact coordinates (x, y).",
        "Find the exact coordinates (x, y) of {thing}.",
    ),
}
LETS = ("Let {name} be {thing}.", "Write {name} for {thing}.")
STEPS = (*number_steps.STEPS, *object_steps.STEPS, *huge_steps.STEPS)


def _compose(kind: ValueKind, hand: bool, level: int, rng: Random) -> Item:
    while (item := _attempt(kind, hand, level, rng)) is None:
        pass
    return item


def _attempt(kind: ValueKind, hand: bool, level: int, rng: Random) -> Item | None:
    """Walks once from a random start over the required number of steps; None where the walk gets stuck."""
    count, names = COUNTS[hand][level], {one: list(letters) for one, letters in NAMES.items()}
    taken: set[str] = set()

    def name_for(one: ValueKind) -> str:
        found = next(letter for letter in names[one] if letter not in taken)
        taken.add(found)
        return found

    # The places of the steps that cannot be counted out: the last may be one where a number is asked for.
    places = range(count if kind is ValueKind.NUMBER else count - 1)
    huge = set() if hand else set(rng.sample(places, min(HUGE[level], len(places))))
    now = rng.choice(tuple(ValueKind))
    value, name = _start(now, hand, rng), name_for(now)
    text = [f"Let {name}{'(x)' * (now is ValueKind.POLYNOMIAL)} = {shown(now, value)}."]
    key, numbers, used = list(text), [], set[ProblemStep]()
    for place in range(count):
        last = place == count - 1
        if now is ValueKind.NUMBER:
            numbers.append((name, value))
        near = [step for step in STEPS if step.takes is now and step.huge == (place in huge) and step not in used]
        if last:
            near = [step for step in near if step.gives is kind]
        found: tuple[ProblemStep, str, Any] | None = None
        for _ in range(TRIES if near else 0):
            gives = rng.choice(sorted({step.gives for step in near}))
            step = rng.choice([step for step in near if step.gives is gives])
            made = step.make(value, name, Draw(rng, hand, tuple(one for one in numbers if one[0] != name)))
            if made is not None and _typed(step.gives, made[1]) and fits(step.gives, made[1], hand, last):
                found = step, *made
                break
        if found is None:
            return None
        step, thing, value = found
        used.add(step)
        now = step.gives
        key.append(thing)
        if last:
            text.append(rng.choice(ASKED[now]).format(thing=thing))
        else:
            name = name_for(now)
            text.append(
                rng.choice(LETS).format(name=f"{name}(x)" if now is ValueKind.POLYNOMIAL else name, thing=thing)
            )
    options = {"variables": ("x",)} if kind is ValueKind.POLYNOMIAL else {}
    return worked(" ".join(text), digest(" ".join(key)), shown(kind, value), **options)


def _typed(kind: ValueKind, value: Any) -> bool:
    """True unless a fraction turned out whole, which the words of later steps do not suit."""
    return kind is not ValueKind.FRACTION or value.denominator > 1


def _start(kind: ValueKind, hand: bool, rng: Random) -> Any:
    draw = Draw(rng, hand)
    match kind:
        case ValueKind.NUMBER:
            return draw.between((1_000, 99_999), (20, 200))
        case ValueKind.FRACTION:
            return Fraction(2 * draw.between((50, 500), (1, 12)) + 1, 2 * draw.between((50, 500), (1, 12)))
        case ValueKind.POLYNOMIAL:
            limit = 9 if hand else 30
            return (nonzero(rng, limit), *(rng.randint(-limit, limit) for _ in range(rng.randint(1, 2))), 1)
        case ValueKind.SET:
            return tuple(sorted(rng.sample(range(2, 30 if hand else 500), rng.randint(4, 5 if hand else 9))))
        case ValueKind.POINT:
            limit = 12 if hand else 200
            return Fraction(nonzero(rng, limit)), Fraction(nonzero(rng, limit))


COMPOSED_PROBLEMS = mathematics(
    "composed_problems",
    1,
    {f"composed_{kind}": partial(_compose, kind, False) for kind in ValueKind},
    level_count=len(HUGE),
)
COMPOSED_BY_HAND = mathematics(
    "composed_by_hand",
    1,
    {f"composed_{kind}_by_hand": partial(_compose, kind, True) for kind in ValueKind},
    level_count=len(HUGE),
    tools=(),
)
