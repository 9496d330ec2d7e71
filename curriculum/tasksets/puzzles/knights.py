"""Islanders of whom each always tells the truth (a knight) or always lies (a knave): who is who.

Every assignment is tried when a puzzle is made, so exactly one fits. The answer has a letter per islander.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product
from random import Random

from curriculum.contract.topics import Item, TopicTaskset
from curriculum.tasksets.statements import PEOPLE
from verifiers.exact.spec import ExactSpec

ATTEMPTS = 20_000
World = tuple[bool, ...]


@dataclass(frozen=True)
class Saying:
    """Statement of an islander: its wording with `{0}`, `{1}` for its subjects, and its truth."""

    words: str
    about: tuple[int, ...]
    holds: Callable[[World], bool]


def _simple(speaker: int, count: int, rng: Random) -> Saying:
    one, two = rng.sample([at for at in range(count) if at != speaker], 2)
    return rng.choice(
        (
            Saying("{0} is a knave", (one,), lambda w: not w[one]),
            Saying("{0} and {1} are of the same kind", (one, two), lambda w: w[one] == w[two]),
            Saying("{0} and {1} are of different kinds", (one, two), lambda w: w[one] != w[two]),
            Saying("at least one of {0} and {1} is a knight", (one, two), lambda w: w[one] or w[two]),
            Saying("{0} and {1} are both knaves", (one, two), lambda w: not (w[one] or w[two])),
            Saying("if {0} is a knight, then {1} is a knight", (one, two), lambda w: w[two] or not w[one]),
        )
    )


def _counted(speaker: int, count: int, rng: Random) -> Saying:
    number = rng.randint(1, count - 1)
    if rng.random() < 0.5:
        return _simple(speaker, count, rng)
    return rng.choice(
        (
            Saying(
                f"exactly {number} of us {'are knights' if number > 1 else 'is a knight'}",
                (),
                lambda w: sum(w) == number,
            ),
            Saying(
                f"at least {number} of us {'are knaves' if number > 1 else 'is a knave'}",
                (),
                lambda w: count - sum(w) >= number,
            ),
            Saying("the number of knights among us is even", (), lambda w: sum(w) % 2 == 0),
        )
    )


def _pointed(speaker: int, count: int, rng: Random) -> Saying:
    """Makes an islander's statement about another islander's statement, or at random a simple one."""
    if rng.random() < 0.5:
        return _simple(speaker, count, rng)
    one, two = rng.sample([at for at in range(count) if at != speaker], 2)
    return Saying("{0} would say that {1} is a knight", (one, two), lambda w: w[one] == w[two])


_INTRO = (
    "On an island knights always tell the truth and knaves always lie. Everybody is one or the other.",
    "Each of these people is a knight, who only says what is true, or a knave, who only says what is false.",
    "Knights never lie, knaves never tell the truth, and there is nobody else here.",
    "Everybody here is a knight or a knave: knights make true statements only, and knaves false ones only.",
)


def _made(sayer: Callable[[int, int, Random], Saying], level: int, rng: Random) -> Item:
    count = 5 + level
    worlds = list(product((False, True), repeat=count))
    for _ in range(ATTEMPTS):
        sayings = [(at, sayer(at, count, rng)) for at in range(count)]
        fitting = worlds
        for at, saying in sayings:
            fitting = [world for world in fitting if saying.holds(world) == world[at]]
            if not fitting:
                break
        if len(fitting) == 1 and 0 < sum(fitting[0]) < count:
            break
    else:
        raise AssertionError("no puzzle was found")  # unreachable with these tables
    names = sorted(rng.sample(PEOPLE, count))
    order = list(sayings)
    rng.shuffle(order)
    said = "\n".join(
        f'{names[at]}: "{saying.words.format(*(names[i] for i in saying.about))}."' for at, saying in order
    )
    text = (
        f"{rng.choice(_INTRO)} {', '.join(names)} speak:\n{said}\nWho is what? Answer with one letter for each of "
        f"{', '.join(names)}, in this order and without blanks: T for a knight, L for a knave."
    )
    answer = "".join("T" if truthful else "L" for truthful in fitting[0])
    key = " ".join(f"{saying.words}{saying.about}" for _, saying in sayings)
    return Item(text=text, key=key, spec=ExactSpec(expected=answer), answer=answer)


KNIGHTS = TopicTaskset(
    name="knights",
    version=2,
    makers={
        "knights_on_others": partial(_made, _simple),
        "knights_on_numbers": partial(_made, _counted),
        "knights_on_sayings": partial(_made, _pointed),
    },
    null_answers=("T", "L", "none", "all"),
)
