"""English number words: `two hundred and five`, `a million`, `two thirds`, `half a million`.

`one` and `a` alone do not count: they are pronouns and articles as often.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction

SCALES = {"dozen": 12, "hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
SMALL = "zero - two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
SMALL += " eighteen nineteen"
TENS = "- - twenty thirty forty fifty sixty seventy eighty ninety"
WORDS = {
    **{word: value for value, word in enumerate(SMALL.split()) if word != "-"},
    **{word: 10 * value for value, word in enumerate(TENS.split()) if word != "-"},
}
NAMES = "|".join([*WORDS, *SCALES, "one"])
SPELLED = re.compile(
    rf"(?<!\w)(?:(?P<article>an?|half\sa|a\squarter\sof\sa|quarter\sof\sa)\s(?=(?:{'|'.join(SCALES)})(?!\w)))?"
    rf"(?P<words>(?:{NAMES})(?:[-\s]+(?:and\s+)?(?:{NAMES}))*)(?!\w)",
    re.IGNORECASE,
)
LOWERS = {"half": 2, "halves": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7}
LOWERS |= {"eighth": 8, "ninth": 9, "tenth": 10}
LOWER = re.compile(rf"[-\s]({'|'.join(LOWERS)})(s?)(?!\w)", re.IGNORECASE)
ORDINAL = re.compile(
    r"[-\s](?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|hundredth|thousandth|millionth)(?!\w)",
    re.IGNORECASE,
)


MOST_WORDS = 40


class SpelledNumber:
    def __init__(self, start: int, end: int, value: Fraction, ordinal: bool) -> None:
        self.start, self.end, self.value, self.ordinal = start, end, value, ordinal


def spelled(text: str, shares: re.Pattern[str]) -> Iterator[SpelledNumber]:
    """Yields the numbers that a text writes in English words; `one` only before a share (`one percent`)."""
    for match in SPELLED.finditer(text):
        parts = [part for part in re.findall(r"[a-z]+", match["words"].lower()) if part != "and"]
        if len(parts) > MOST_WORDS:
            continue
        article = (match["article"] or "").lower()
        lower = LOWER.match(text, match.end())
        share = shares.match(text, match.end())
        if not article and not share and (parts == ["one"] or all(part in SCALES for part in parts)):
            continue
        total = small = 0
        for part in parts:
            if part == "hundred":
                small = max(small, 1) * 100
            elif part in SCALES:
                total, small = total + max(small, 1) * SCALES[part], 0
            else:
                small += 1 if part == "one" else WORDS[part]
        value = Fraction(total + small) * (Fraction(1, 2) if "half" in article else 1)
        value *= Fraction(1, 4) if "quarter" in article else 1
        end, ordinal = match.end(), ORDINAL.match(text, match.end()) is not None
        if lower and lower[1].lower() not in ("half", "quarter") and not lower[2]:
            lower = None
        if lower and value < 20:
            value, end, ordinal = value / LOWERS[lower[1].lower()], lower.end(), False
        yield SpelledNumber(match.start(), end, value, ordinal)
