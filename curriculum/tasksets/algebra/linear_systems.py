"""Systems of linear equations: all unknowns, a combination of them, parameters, problems in words."""

from __future__ import annotations

from fractions import Fraction
from random import Random

from curriculum.contract.topics import Item
from curriculum.tasksets.exact_arithmetic import determinant, linear, regular
from curriculum.tasksets.statements import EXACT, listed, mathematics, nonzero, say, whole, worked

NAMES = ("x", "y", "z", "w")
SIZES = (2, 2, 3, 3, 4)


def _system(level: int, rng: Random) -> tuple[tuple[str, ...], list[Fraction], list[str]]:
    """Draws a system of linear equations with exactly one solution: its names, the solution and the equations."""
    size = SIZES[level]
    below = 1 if level in (0, 2) else rng.choice((1, 2, 3))
    solution = [Fraction(nonzero(rng, 5 + 3 * level), below) for _ in range(size)]
    rows = [[below * one for one in row] for row in regular(rng, size, 4 + level)]
    totals = [sum((a * b for a, b in zip(row, solution, strict=True)), Fraction()) for row in rows]
    names = NAMES[:size]
    equations = [f"{linear(row, names)} = {total}" for row, total in zip(rows, totals, strict=True)]
    return names, solution, equations


def _all(level: int, rng: Random) -> Item:
    names, solution, equations = _system(level, rng)
    text = say(
        rng,
        (
            "Solve the system {equations}. Give ({names}) as a tuple of exact numbers.",
            "Find the only solution of {equations}. Answer with the tuple ({names}) in exact numbers.",
        ),
        equations="; ".join(equations), names=", ".join(names),
    )  # fmt: skip
    return worked(text, f"{sorted(equations)}", f"({', '.join(map(str, solution))})")


def _combination(level: int, rng: Random) -> Item:
    names, solution, equations = _system(level, rng)
    weights = [nonzero(rng, 3 + level) for _ in names]
    text = say(
        rng,
        ("Given that {equations}, what is {wanted}? {how}", "Numbers satisfy {equations}. Find {wanted}. {how}"),
        equations=listed(equations), wanted=linear(weights, names), how=EXACT,
    )  # fmt: skip
    value = sum((a * b for a, b in zip(weights, solution, strict=True)), Fraction())
    return worked(text, f"{sorted(equations)} {weights}", value)


def _parameter(level: int, rng: Random) -> Item:
    limit = 4 + 3 * level
    a, b, c = nonzero(rng, limit), nonzero(rng, limit), nonzero(rng, limit)
    e, f = nonzero(rng, limit), nonzero(rng, limit)
    shift = nonzero(rng, limit) if level > 1 else 0
    # a x + b y = e and c x + (k + shift) y = f: singular where a (k + shift) = b c.
    k = Fraction(b * c, a) - shift
    if Fraction(e) * c == Fraction(f) * a:
        f += 1 + abs(a)
        if Fraction(e) * c == Fraction(f) * a:
            f += 1
    second = f"(k {'-' if shift < 0 else '+'} {abs(shift)})y" if shift else "ky"
    text = say(
        rng,
        (
            "For which number k does the system {first} = {e}; {c} + {second} = {f} have no solution (x, y)? {how}",
            "The lines {first} = {e} and {c} + {second} = {f} do not meet. What is k? {how}",
        ),
        first=linear((a, b), ("x", "y")), c=linear((c,), ("x",)), second=second, e=e, f=f, how=EXACT,
    )  # fmt: skip
    return worked(text, f"{a} {b} {c} {e} {f} {shift}", k)


def _prices(level: int, rng: Random) -> Item:
    size = SIZES[level]
    things = rng.sample(("pen", "book", "lamp", "cup", "plate", "towel", "basket"), size)
    prices = [rng.randint(2, 12 + 15 * level) for _ in things]
    while True:
        rows = [[abs(one) + 1 for one in row] for row in regular(rng, size, 3 + level)]
        if determinant(rows):
            break
    bills = []
    for row in rows:
        bought = [f"{count} {thing}{'s' if count > 1 else ''}" for count, thing in zip(row, things, strict=True)]
        bills.append(f"{listed(bought)} cost {sum(a * b for a, b in zip(row, prices, strict=True))} coins")
    at = rng.randrange(size)
    text = say(
        rng,
        (
            "In a shop {bills}. How many coins does one {thing} cost?",
            "At a market {bills}. Each thing has one price. What is the price of a {thing}, in coins?",
        ),
        bills="; ".join(bills), thing=things[at],
    )  # fmt: skip
    return whole(text, f"{sorted(bills)} {things[at]}", prices[at])


def _equation(level: int, rng: Random) -> Item:
    a, c = rng.sample(range(-9 - level, 10 + level), 2)
    b, d = nonzero(rng, 20 + 10 * level), nonzero(rng, 20 + 10 * level)
    below = rng.randint(2, 3 + level)
    left = linear((a, b), ("x", "")) if level < 2 else f"{a}(x {'-' if b < 0 else '+'} {abs(b)})/{below}"
    right = linear((c, d), ("x", ""))
    solution = Fraction(d - b, a - c) if level < 2 else None
    if solution is None:
        slope = Fraction(a, below) - c
        if slope == 0:
            return _equation(level, rng)
        solution = (d - Fraction(a * b, below)) / slope
    text = say(
        rng,
        ("Solve {left} = {right} for x. {how}", "For which x is {left} = {right}? {how}"),
        left=left, right=right, how=EXACT,
    )  # fmt: skip
    return worked(text, f"{left} = {right}", solution)


LINEAR_SYSTEMS = mathematics(
    "linear_systems",
    2,
    {
        "all_unknowns": _all,
        "combination_of_unknowns": _combination,
        "parameter_without_solution": _parameter,
        "prices": _prices,
        "one_linear_equation": _equation,
    },
)
