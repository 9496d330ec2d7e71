"""Builds mathematical questions with their checks.

Invariants: an answer that an agent might guess without work is redrawn, so no task has it; and a check accepts
computed results, never the question itself written as an answer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

from curriculum.contract.topics import Item, TopicTaskset
from verifiers.answers.spec import AnswerSpec

PEOPLE = (
    "Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gina", "Hugo", "Ida", "Jon", "Kira", "Leo", "Mona", "Nils", "Olga",
    "Paul", "Rita", "Sam", "Tess", "Udo", "Vera", "Will", "Yara", "Zoe",
)  # fmt: skip
COLOURS = ("red", "blue", "green", "white", "black", "yellow", "brown", "grey")
DRINKS = ("tea", "milk", "coffee", "juice", "water", "cocoa", "soda", "broth")
PETS = ("cat", "dog", "parrot", "rabbit", "snake", "turtle", "horse", "goat")
TRADES = ("baker", "tailor", "doctor", "farmer", "painter", "sailor", "miller", "singer")
TOWNS = ("Arden", "Brig", "Corso", "Delft", "Elm", "Fargo", "Grau", "Holm", "Iver", "Jena", "Kiel", "Lund")
GOODS = ("lamp", "chair", "table", "shelf", "stool", "clock", "mirror", "basket", "carpet", "vase", "bench", "drawer")


def listed(words: Sequence[Any], last: str = "and") -> str:
    """Joins items with commas, and the last with `last`: `a`, `a and b`, `1, 2 and 3`."""
    texts = [str(word) for word in words]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} {last} {texts[-1]}"


def digest(text: str) -> str:
    """Returns a short key for a long text: the first 24 hex digits of its SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:24]


GUESSES = ("0", "1", "2")
"""Answers of an agent that computed nothing."""
ATTEMPTS = 200


class Wordings(tuple[str, ...]):
    """Sentences that say the same: `say` fills in one of them."""


EXACT = Wordings(
    (
        "Give an exact number: a whole number or a fraction.",
        "Answer exactly, with a whole number or a fraction.",
        "The answer is an exact number, whole or a fraction.",
    )
)
OPENINGS = ("", "", "Here is a problem. ", "Please work this out. ", "Solve this. ")
WHOLE = ("Answer with a whole number.", "Give a whole number, in digits.", "The answer is a whole number.")

Maker = Callable[[int, Random], Item]


def mathematics(
    name: str, version: int, makers: Mapping[str, Maker], null_answers: Sequence[str] = GUESSES, **options: Any
) -> TopicTaskset:
    """Makes a taskset of these topics' makers, none of whose tasks has a null answer. `options` are fields of
    `TopicTaskset`."""
    guesses = frozenset(null_answers)
    drawn = {topic: _not_guessed(maker, guesses) for topic, maker in makers.items()}
    return TopicTaskset(name=name, version=version, makers=drawn, null_answers=tuple(null_answers), **options)


def _not_guessed(maker: Maker, guesses: frozenset[str]) -> Maker:
    def draw(level: int, rng: Random) -> Item:
        for _ in range(ATTEMPTS):
            item = maker(level, rng)
            if item.answer not in guesses:
                digits = isinstance(item.spec, AnswerSpec) and item.spec.notation == "digits"
                silent = digits and not any(word in item.text for word in ("nswer", "Give", "give"))
                text = f"{rng.choice(OPENINGS)}{item.text}"
                return replace(item, text=f"{text} {rng.choice(WHOLE)}" if silent else text)
        raise AssertionError(f"{item.key!r}: the table gives nothing but guesses")

    return draw


def whole(text: str, key: str, answer: int) -> Item:
    """Makes an item whose answer is an integer, in any notation."""
    return Item(text=text, key=key, spec=AnswerSpec(expected=str(answer)), answer=str(answer))


def worked(text: str, key: str, answer: str | Fraction, **options: Any) -> Item:
    """Makes an item whose answer is computed, in any notation. `options` are fields of `AnswerSpec`."""
    return Item(text=text, key=key, spec=AnswerSpec(expected=str(answer), **options), answer=str(answer))


def say(rng: Random, phrases: Sequence[str], **values: Any) -> str:
    """Returns one of the phrases, drawn at random, with the values filled in."""
    chosen = {name: rng.choice(one) if isinstance(one, Wordings) else one for name, one in values.items()}
    return rng.choice(phrases).format(**chosen)


def nonzero(rng: Random, limit: int) -> int:
    """Draws a whole number from -limit to limit, other than 0."""
    return rng.choice((-1, 1)) * rng.randint(1, limit)
