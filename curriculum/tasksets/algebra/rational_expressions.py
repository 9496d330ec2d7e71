"""Quotients of polynomials: common factors, partial fractions, equations with fractions, excluded values, rates."""

from __future__ import annotations

from fractions import Fraction
from random import Random

from curriculum.contract.topics import Item
from curriculum.tasksets import exact_arithmetic as p
from curriculum.tasksets.statements import EXACT, mathematics, nonzero, say, worked


def _distinct(count: int, limit: int, rng: Random) -> list[int]:
    return rng.sample([one for one in range(-limit, limit + 1) if one], count)


def _common(level: int, rng: Random) -> Item:
    common, above, below = (1 + level // 2, 1 + (level > 1), 1 + (level > 0))
    roots = _distinct(common + above + below, 5 + 2 * level, rng)
    shared = p.with_roots(roots[:common])
    top = p.scaled(p.with_roots(roots[common : common + above]), rng.randint(1, 1 + level))
    bottom = p.with_roots(roots[common + above :])
    text = say(
        rng,
        (
            ("Which polynomial in x of the greatest degree, with leading coefficient 1, divides numerator and"
            " denominator of ({a})/({b})?"),
            "By which polynomial in x, with leading coefficient 1, must ({a})/({b}) be reduced to be in lowest terms?",
        ),
        a=p.written(p.multiplied(top, shared)), b=p.written(p.multiplied(bottom, shared)),
    )  # fmt: skip
    key = f"{p.multiplied(top, shared)} {p.multiplied(bottom, shared)}"
    return worked(text, key, p.written(shared), variables=("x",))


def _partial(level: int, rng: Random) -> Item:
    count = 2 if level < 2 else 3
    roots = sorted(_distinct(count, 4 + 2 * level, rng))
    tops = [Fraction(nonzero(rng, 6 + 3 * level)) for _ in roots]
    total: list[p.Number] = [0]
    for root, top in zip(roots, tops, strict=True):
        total = p.added(total, p.scaled(p.with_roots(one for one in roots if one != root), top))
    names = ("A", "B", "C")[:count]
    parts = " + ".join(f"{name}/({p.written([-root, 1])})" for name, root in zip(names, roots, strict=True))
    text = say(
        rng,
        (
            ("Numbers {names} satisfy {above}/({below}) = {parts} for all x where both sides are defined. Give the"
            " tuple ({names})."),
            "Split {above}/({below}) into partial fractions {parts}. Give the tuple ({names}).",
        ),
        names=", ".join(names), above=p.factor(total), parts=parts,
        below=p.written(p.with_roots(roots))
        if level % 2
        else "".join(f"({p.written([-root, 1])})" for root in roots),
    )  # fmt: skip
    return worked(text, f"{total} {roots}", f"({', '.join(map(str, tops))})")


def _equation(level: int, rng: Random) -> Item:
    a, b = _distinct(2, 5 + 2 * level, rng)
    c, d = _distinct(2, 5 + 3 * level, rng)
    if level < 2:
        # c/(x - a) = d/(x - b)
        solution = Fraction(a * d - b * c, d - c)
        left, right = f"{c}/({p.written([-a, 1])})", f"{d}/({p.written([-b, 1])})"
    else:
        # (c x + e)/(x - a) = c + d/(x - b), which is linear once it is multiplied out
        e = nonzero(rng, 6 + 3 * level)
        rest = c * a + e
        if rest == d:
            return _equation(level, rng)
        solution = Fraction(a * d - b * rest, d - rest)
        left, right = f"({p.written([e, c])})/({p.written([-a, 1])})", f"{c} + {d}/({p.written([-b, 1])})"
        right = right.replace("+ -", "- ")
    if solution in (a, b):
        return _equation(level, rng)
    text = say(
        rng,
        ("Solve {left} = {right} for x. {how}", "Which number x satisfies {left} = {right}? {how}"),
        left=left, right=right, how=EXACT,
    )  # fmt: skip
    return worked(text, f"{left} = {right}", solution)


def _sum(level: int, rng: Random) -> Item:
    roots = _distinct(2 if level < 3 else 3, 4 + 2 * level, rng)
    tops = [nonzero(rng, 4 + 2 * level) for _ in roots]
    x = rng.choice([one for one in range(-9, 10) if one not in roots])
    shown = " + ".join(f"{top}/({p.written([-root, 1])})" for top, root in zip(tops, roots, strict=True))
    value = sum((Fraction(top, x - root) for top, root in zip(tops, roots, strict=True)), Fraction())
    text = say(
        rng,
        ("What is the value of {e} at x = {x}? {how}", "Put x = {x} into {e} and simplify. {how}"),
        e=shown.replace("+ -", "- "), x=x, how=EXACT,
    )  # fmt: skip
    return worked(text, f"{sorted(zip(roots, tops, strict=True))} {x}", value)


def _excluded(level: int, rng: Random) -> Item:
    count = 2 + level // 2
    roots = sorted(_distinct(count, 6 + 3 * level, rng))
    lead = rng.randint(1, 1 + level)
    below = p.scaled(p.with_roots(roots), lead)
    above = [nonzero(rng, 9), nonzero(rng, 9)]
    text = say(
        rng,
        (
            ("For which real x is ({above})/({below}) as it is written undefined? List all of them, separated by"
            " commas."),
            "List, separated by commas, all real numbers at which the denominator of ({above})/({below}) is zero.",
        ),
        above=p.written(above), below=p.written(below),
    )  # fmt: skip
    return worked(text, f"{below} {above}", f"{{{', '.join(map(str, roots))}}}")


def _rates(level: int, rng: Random) -> Item:
    times = sorted(rng.randint(2, 36 + 4 * level) for _ in range(2 + level // 2))
    drains = level > 0 and rng.random() < 0.5
    rate = sum((Fraction(1, one) for one in times), Fraction())
    empty = ""
    if drains:
        slow = times[-1] + rng.randint(1, 9 + 5 * level)
        rate -= Fraction(1, slow)
        empty = f" An open drain alone empties the full pool in {slow} hours, and it is open all the time."
    pipes = " hours, another in ".join(map(str, times))
    text = say(
        rng,
        (
            ("One pipe alone fills a pool in {pipes} hours.{empty} All of them work at once on the empty pool."
            " After how"
            " many hours is it full? {how}"),
            ("A pool is empty. One pump alone would fill it in {pipes} hours.{empty} How many hours do they take"
            " together? {how}"),
        ),
        pipes=pipes, empty=empty, how=EXACT,
    )  # fmt: skip
    return worked(text, f"{times} {empty}", 1 / rate)


RATIONAL_EXPRESSIONS = mathematics(
    "rational_expressions",
    2,
    {
        "common_factors": _common,
        "partial_fractions": _partial,
        "equations_with_fractions": _equation,
        "values_of_a_quotient_sum": _sum,
        "excluded_values": _excluded,
        "joint_rates": _rates,
    },
)
