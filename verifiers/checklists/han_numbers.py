"""Chinese and Japanese numerals of two characters or more: `五十`, `三百二十`, `百分之四十`.

What may be no number is none: one character, a scale alone (`千万` is also "by all means"), a figure without its zero
(`二百五`), a fraction (`三分之二`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction

DIGITS = {
    sign: value
    for value, signs in enumerate(("零〇", "一", "二两兩", "三", "四", "五", "六", "七", "八", "九"))
    for sign in signs
}
SCALES = {"十": 10, "百": 100, "千": 1_000}
GREAT = {"万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8}
NUMERAL = re.compile(f"(百分之)?([{''.join(DIGITS)}十][{''.join((*DIGITS, *SCALES, *GREAT))}]+)(?!分之)")


def han_numbers(text: str) -> Iterator[tuple[int, int, Fraction, bool]]:
    """Start, end and value of each, and whether it is a share."""
    for found in NUMERAL.finditer(text):
        value = _value(found[2])
        if value is not None:
            yield found.start(), found.end(), Fraction(value), found[1] is not None


def _value(numeral: str) -> int | None:
    total = part = 0
    digit: int | None = None
    lowest = 10
    for sign in numeral:
        if sign in DIGITS:
            if digit:
                return None
            digit = DIGITS[sign]
            lowest = 10 if digit == 0 else lowest
        elif sign in SCALES:
            part += (1 if digit is None else digit) * SCALES[sign]
            digit, lowest = None, SCALES[sign]
        else:
            total, part = total + (part + (digit or 0)) * GREAT[sign], 0
            digit, lowest = None, GREAT[sign]
    if digit is not None and lowest > 10:
        return None
    return (
        total + part + (digit or 0) if len(numeral) > 1 and any(sign in numeral for sign in (*SCALES, *GREAT)) else None
    )
