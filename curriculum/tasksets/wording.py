"""Names and words that questions are made from, and how they are listed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

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


def listed(words: Sequence[str], last: str = "and") -> str:
    """Joins words with commas, and the last with `last`: `a`, `a and b`, `a, b and c`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"


def digest(text: str) -> str:
    """Returns a short key for a long text: the first 24 hex digits of its SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:24]
