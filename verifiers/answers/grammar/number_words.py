"""Numbers in words: `twelve`, `twenty-one`, `two thirds`, `three and a half`. Parses the whole text or returns None.

Ambiguous phrases, which may be ordinals, are not read: `twenty fifth`, `a hundred and two thirds`.

Nouns for things counted one by one (`12 people` means 12), and dollar names that may go with a bare number.

Both lists are closed. A pair, a dozen or a box is more than one; an hour, a mile and a cent have related units in which
the same number means something else; solutions, roots and numbers may be the question itself: `2 solutions` is not x =
2. Problem collections write `18` for dollar amounts.
"""

from __future__ import annotations

import re
from fractions import Fraction

UNITS = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16,
    "seventeen": 17, "eighteen": 18, "nineteen": 19,
}  # fmt: skip
TENS = {
    "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}  # fmt: skip
BELOW_HUNDRED: dict[tuple[str, ...], int] = {(name,): value for name, value in (UNITS | TENS).items()} | {
    (ten, one): TENS[ten] + UNITS[one] for ten in TENS for one in UNITS if 0 < UNITS[one] < 10
}
SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9}
"""Powers of a thousand; a billion is short scale."""
PARTS = {
    "half": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8, "ninth": 9,
    "tenth": 10,
}  # fmt: skip
DOZENS = {"": Fraction(1), "a": Fraction(1), "half a": Fraction(1, 2)}
MAX_WORDS = 20
WORD = re.compile("[a-z]+")


def number_in_words(text: str) -> Fraction | None:
    """Returns the value of a number in English words, such as `two thirds`; None for other or ambiguous texts."""
    if len(text) > 200 or not re.fullmatch(r"[A-Za-z]+(?:[ -]+[A-Za-z]+)*", text):
        return None
    words = WORD.findall(text.lower())
    if len(words) > MAX_WORDS:
        return None
    negative = words[0] in ("minus", "negative")
    found = _positive(words[1:] if negative else words)
    return None if found is None else -found if negative else found


def _positive(words: list[str]) -> Fraction | None:
    if words[-1:] == ["dozen"]:
        many = DOZENS.get(" ".join(words[:-1])) or _cardinal(words[:-1])
        return None if many is None else 12 * Fraction(many)
    if words and _part(words[-1]) is not None:
        return _broken(words)
    whole = _cardinal(words)
    return None if whole is None else Fraction(whole)


def _part(word: str) -> int | None:
    """Returns the denominator that a word such as `half` or `thirds` names; None for other words."""
    return 2 if word == "halves" else PARTS.get(word.removesuffix("s"))


def _broken(words: list[str]) -> Fraction | None:
    """Converts words such as `one half`, `two thirds`, `three and a half` to a fraction; None if they are none."""
    *before, last = words
    below = _part(last)
    whole = 0
    if below is None or not before:
        return Fraction(1, 2) if words == ["half"] else None
    if "and" in before:
        place = len(before) - 1 - before[::-1].index("and")
        left, before = before[:place], before[place + 1 :]
        read = _cardinal(left)
        if read is None or left[-1] in ("hundred", *SCALES):
            return None
        whole = read
    above = 1 if before in (["a"], ["an"]) else _cardinal(before)
    if above is None or (above == 1) != (last in PARTS) or not 0 < above < 20 or (whole and above >= below):
        return None
    return whole + Fraction(above, below)


def _cardinal(words: list[str]) -> int | None:
    """Converts words such as `two thousand three hundred and five` to a whole number; None if they are none."""
    total, rest = 0, list(words)
    limit = None
    for name, size in reversed(SCALES.items()):
        if name in rest:
            place = rest.index(name)
            many = _below_thousand(rest[:place])
            if not many or (limit is not None and size >= limit):
                return None
            total, rest, limit = total + many * size, rest[place + 1 :], size
    if rest[:1] == ["and"] and limit is not None:
        rest = rest[1:]
        if "hundred" in rest or not rest:
            return None
    if not rest:
        return total if limit is not None else None
    last = _below_thousand(rest)
    return None if last is None or (last == 0 and limit is not None) else total + last


def _below_thousand(words: list[str]) -> int | None:
    if "hundred" not in words:
        return BELOW_HUNDRED.get(tuple(words))
    place = words.index("hundred")
    many = 1 if words[:place] == ["a"] else BELOW_HUNDRED.get(tuple(words[:place]), 0)
    after = words[place + 1 :]
    rest = BELOW_HUNDRED.get(tuple(after[1:] if after[:1] == ["and"] else after), 0)
    return None if not 0 < many < 10 or (after and not rest) else 100 * many + rest


def _words(text: str) -> list[str]:
    return re.findall(r"\S+", text)


_NOUNS = _words(
    """animal apple arrangement ball balloon banana bean bear bee bicycle bike bird block boat book boy bracelet brick
    bug building burger bus bush cake candle candy car card cat chair chicken chocolate choice circle classmate
    client coin color colour combination committee computer cookie cow crayon cube cupcake customer desk
    diagonal diamond dish dog doll donut door doughnut drawing duck edge egg element elephant employee envelope
    error event face fan fish flower fly friend frog game gift girl goal goat grape graph guest hat hen home
    horse house item key kid kitten lamp leaf lemon letter line lion machine mango marble member message monkey
    muffin nail necklace neighbor onion orange orchid page painting pancake parent part participant passenger
    patient pear pen pencil pepper permutation person phone photo picture pie pig pizza plane plant plate player
    point potato prize problem puppy question rabbit rectangle rose seat seed shell ship shirt shoe shop sibling
    side sister snack sock soldier spider square stamp star state sticker store story strawberry student subset
    subject tail teacher test ticket tile tire tomato toy train tree triangle trip truck tulip turtle van
    vehicle visitor vote voter watermelon way whale wheel window winner word worker"""
)
_IRREGULAR = _words(
    """people children child men man women woman mice geese sheep leaves vertices vertex matches brothers brother"""
)


def _plural(noun: str) -> str:
    if noun.endswith("y") and noun[-2] not in "aeou":
        return f"{noun[:-1]}ies"
    return noun + ("es" if noun.endswith(("s", "x", "sh", "ch", "to", "ero")) else "s")


COUNTED: frozenset[str] = frozenset((*_NOUNS, *map(_plural, _NOUNS), *_IRREGULAR))
"""Countable nouns, singular and plural."""
DOLLARS: frozenset[str] = frozenset({"$", "USD", "dollar", "dollars", "\\$"})
