"""Nouns for things counted one by one (`12 people` means 12), and dollar names that may go with a bare number.

Both lists are closed. A pair, a dozen or a box is more than one; an hour, a mile and a cent have related units in which
the same number means something else; solutions, roots and numbers may be the question itself: `2 solutions` is not x =
2. Problem collections write `18` for dollar amounts.
"""

from __future__ import annotations

import re


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
