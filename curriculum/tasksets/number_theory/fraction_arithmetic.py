"""Exact arithmetic with fractions: sums, nested expressions, repeating decimals, continued fractions, telescopes."""

from __future__ import annotations

from fractions import Fraction
from random import Random

from curriculum.contract.topics import Item
from curriculum.tasksets.statements import EXACT, mathematics, say, signed, worked


def _some(level: int, rng: Random) -> Fraction:
    return Fraction(rng.randint(1, 9 + 6 * level), rng.randint(2, 9 + 6 * level))


def _sum(level: int, rng: Random) -> Item:
    terms = [_some(level, rng) * rng.choice((1, 1, -1)) for _ in range(2 + level)]
    expression = f"{terms[0]} {' '.join(map(signed, terms[1:]))}"
    text = say(rng, ("Compute {e}. {how}", "What is {e}? {how}"), e=expression, how=EXACT)
    return worked(text, f"{sorted(map(str, terms))}", sum(terms, Fraction()))


def _nested(level: int, rng: Random) -> Item:
    text, value = _expression(1 + level, level, rng)
    text = text[1:-1]  # the brackets around the whole
    asked = say(rng, ("Work out {e}. {how}", "What is the value of {e}? {how}"), e=text, how=EXACT)
    return worked(asked, text, value)


def _expression(depth: int, level: int, rng: Random) -> tuple[str, Fraction]:
    """Draws a bracketed expression of fractions with its value, which is not 0."""
    if depth == 0:
        some = _some(level, rng)
        return f"({some})" if some.denominator > 1 else str(some), some
    (left, a), (right, b) = (
        _expression(depth - 1, level, rng),
        _expression(rng.randint(0, min(depth - 1, 1)), level, rng),
    )
    sign = rng.choice("+-*/" if a != b else "+*/")
    value = {"+": a + b, "-": a - b, "*": a * b, "/": a / b if b else a}[sign]
    if value == 0:
        return _expression(depth, level, rng)
    return f"({left} {sign} {right})", value


def _repeating(level: int, rng: Random) -> Item:
    before, length = (0, 1, 1, 1, 2)[level], (2, 2, 2, 3, 3)[level]
    fixed = "".join(rng.choices("0123456789", k=before))
    block = "".join(rng.choices("0123456789", k=length))
    while len(set(block)) == 1:
        block = "".join(rng.choices("0123456789", k=length))
    whole_part = rng.randint(0, 9)
    value = whole_part + (Fraction(int(fixed or "0")) + Fraction(int(block), 10**length - 1)) / 10**before
    shown = f"{whole_part}.{fixed}{block * 3}..."
    text = say(
        rng,
        (
            "In the decimal {shown} the block {block} repeats without end{after}. Write the number as a fraction.",
            "Which fraction has the decimal expansion {shown}, in which {block} repeats for ever{after}?",
        ),
        shown=shown, block=block, after=f" after the digit{'s' * (before > 1)} {fixed}" if fixed else "",
    )  # fmt: skip
    return worked(text, f"{value}", value)


def _continued(level: int, rng: Random) -> Item:
    parts = [*(rng.randint(1, 9 + level) for _ in range(2 + level)), rng.randint(2, 9 + level)]
    value = Fraction(parts[-1])
    shown = str(parts[-1])
    for part in reversed(parts[:-1]):
        value = part + 1 / value
        shown = f"{part} + 1/{shown}" if shown.isdigit() else f"{part} + 1/({shown})"
    text = say(rng, ("Work out {e}. {how}", "Which fraction is {e}? {how}"), e=shown, how=EXACT)
    return worked(text, shown, value)


def _of_remainder(level: int, rng: Random) -> Item:
    parts = [Fraction(rng.randint(1, b - 1), b) for b in rng.choices(range(3, 13 + level), k=2 + level)]
    steps = " ".join(f"Then {part} of what is left is taken out." for part in parts[1:])
    left = Fraction(1)
    for part in parts:
        left *= 1 - part
    text = say(
        rng,
        (
            "From a full tank {first} of the content is taken. {steps} What fraction of the full tank is left? {how}",
            ("A store is full at first. {first} of it is taken out. {steps} What fraction of the store remains in the"
            " end? {how}"),
        ),
        first=parts[0], steps=steps, how=EXACT,
    )  # fmt: skip
    return worked(text, f"{sorted(map(str, parts))}", left)


def _unit_products(level: int, rng: Random) -> Item:
    step = rng.randint(1, 1 + level)
    first, count = rng.randint(1, 15 + 2 * level), rng.randint(4, 40 * 2**level)
    last = first + step * count
    value = (Fraction(1, first) - Fraction(1, last)) / step
    shown = f"1/({first}*{first + step}) + 1/({first + step}*{first + 2 * step}) + ... + 1/({last - step}*{last})"
    text = say(
        rng,
        (
            "Work out the sum {e}, in which both factors of the denominator grow by {step} from term to term. {how}",
            "What is {e}, where each factor is {step} more than in the term before? {how}",
        ),
        e=shown, step=step, how=EXACT,
    )  # fmt: skip
    return worked(text, f"{first} {step} {count}", value)


FRACTION_ARITHMETIC = mathematics(
    "fraction_arithmetic",
    2,
    {
        "fraction_sums": _sum,
        "nested_fractions": _nested,
        "repeating_decimals": _repeating,
        "continued_fractions": _continued,
        "parts_of_what_is_left": _of_remainder,
        "telescoping_fractions": _unit_products,
    },
)
