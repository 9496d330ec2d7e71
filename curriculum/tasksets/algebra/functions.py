"""Functions: chains of them, inverses, repeated application, unknown parameters, functional equations."""

from __future__ import annotations

from fractions import Fraction
from random import Random

from curriculum.contract.topics import Item
from curriculum.tasksets import exact_arithmetic as p
from curriculum.tasksets.statements import EXACT, mathematics, nonzero, say, worked


def _line(level: int, rng: Random) -> list[p.Number]:
    return [nonzero(rng, 6 + 3 * level), nonzero(rng, 2 + level)]


def _chain(level: int, rng: Random) -> Item:
    count = 2 + level // 2
    parts = [_line(level, rng) if rng.random() < 0.5 else [*_line(level, rng), nonzero(rng, 2)] for _ in range(count)]
    names = "fgh"[:count] if count < 4 else "fghk"
    x = nonzero(rng, 3 + level)
    value: p.Number = x
    for part in reversed(parts):
        value = p.value_at(part, value)
    shown = f"{'('.join(names)}({x}{')' * count}"
    given = ", ".join(f"{name}(x) = {p.written(part)}" for name, part in zip(names, parts, strict=True))
    text = say(rng, ("Let {given}. What is {e}?", "Given {given}, compute {e}."), given=given, e=shown)
    return worked(text, f"{parts} {x}", str(value))


def _inverse_value(level: int, rng: Random) -> Item:
    a, b = nonzero(rng, 6 + level), nonzero(rng, 12 + 2 * level)
    c, d = (0, 1) if level < 2 else (nonzero(rng, 3 + level), nonzero(rng, 5 + level))
    if a * d == b * c:
        return _inverse_value(level, rng)
    y = nonzero(rng, 9 + 4 * level)
    if y * c == a:
        return _inverse_value(level, rng)
    # y = (a x + b)/(c x + d), solved for x
    value = Fraction(b - y * d, y * c - a)
    shown = p.written([b, a]) if level < 2 else f"({p.written([b, a])})/({p.written([d, c])})"
    text = say(
        rng,
        (
            "Let f(x) = {f}, and let g be its inverse function. What is g({y})? {how}",
            "For which x is f(x) = {y}, where f(x) = {f}? {how}",
        ),
        f=shown, y=y, how=EXACT,
    )  # fmt: skip
    return worked(text, f"{shown} {y}", value)


def _inverse(level: int, rng: Random) -> Item:
    a, b = nonzero(rng, 9 + level), nonzero(rng, 19 + 2 * level)
    if abs(a) == 1:
        return _inverse(level, rng)
    if level < 2:
        shown = p.written([b, a])
        answer = p.written([Fraction(-b, a), Fraction(1, a)])
    else:
        c, d = nonzero(rng, 3 + level), nonzero(rng, 5 + level)
        if a * d == b * c:
            return _inverse(level, rng)
        shown = f"({p.written([b, a])})/({p.written([d, c])})"
        answer = f"({p.written([b, -d])})/({p.written([-a, c])})"
    text = say(
        rng,
        (
            "What is the inverse function of f(x) = {f}? Give an expression in x.",
            "Let f(x) = {f}. Find the expression g(x) with f(g(x)) = x.",
        ),
        f=shown,
    )
    return worked(text, shown, answer, variables=("x",))


def _repeated(level: int, rng: Random) -> Item:
    a, b, n = rng.choice((-1, 1)) * rng.randint(2, 9), nonzero(rng, 20 + 2 * level), 2 + level
    below = 1 if level < 3 else rng.choice((1, 5, 7))
    line: list[p.Number] = [Fraction(b), Fraction(a, below)]
    found = line
    for _ in range(n - 1):
        found = p.composed(line, found)
    shown = f"f({'f(' * (n - 1)}x{')' * n}"
    text = say(
        rng,
        (
            "Let f(x) = {f}. Write {e} as an expression of the form px + q with exact numbers p and q.",
            "With f(x) = {f}, simplify {e} to the form px + q with exact numbers p and q.",
        ),
        f=p.written(line), e=shown,
    )  # fmt: skip
    return worked(text, f"{line} {n}", p.written(found[:2]), variables=("x",))


def _parameters(level: int, rng: Random) -> Item:
    degree = 1 if level < 1 else 2
    poly = [Fraction(nonzero(rng, 6 + 2 * level)) for _ in range(degree + 1)]
    if level > 2:
        poly = [one / rng.choice((1, 2, 3)) for one in poly]
    xs = sorted(rng.sample(range(-3 - level, 5 + level), degree + 1))
    given = ", ".join(f"f({x}) = {p.value_at(poly, x)}" for x in xs)
    form, names = ("ax + b", "(a, b)") if degree == 1 else ("ax^2 + bx + c", "(a, b, c)")
    text = say(
        rng,
        (
            "A function of the form f(x) = {form} has {given}. Give {names} as a tuple of exact numbers.",
            "Find {names} such that f(x) = {form} satisfies {given}. Answer with a tuple of exact numbers.",
        ),
        form=form, given=given, names=names,
    )  # fmt: skip
    return worked(text, given, f"({', '.join(map(str, reversed(poly)))})")


def _equation(level: int, rng: Random) -> Item:
    # f(x) + k f(c - x) = q x + r for all x
    k = rng.choice(list(range(2, 5 + level))) * rng.choice((1, -1) if level else (1,))
    c, q, r = (nonzero(rng, 4 + level) if level > 1 else 0), nonzero(rng, 5 + level), nonzero(rng, 9 + level)
    x = nonzero(rng, 5 + 3 * level)
    here, there = q * x + r, q * (c - x) + r
    value = Fraction(here - k * there, 1 - k * k)
    inner = p.written([c, -1])
    text = say(
        rng,
        (
            "A function f satisfies f(x) {k}f({inner}) = {right} for all real x. What is f({x})? {how}",
            "For every real x it holds that f(x) {k}f({inner}) = {right}. Find f({x}). {how}",
        ),
        k=f"- {-k}" if k < 0 else f"+ {k}", inner=inner, right=p.written([r, q]), x=x, how=EXACT,
    )  # fmt: skip
    return worked(text, f"{k} {c} {q} {r} {x}", value)


FUNCTIONS = mathematics(
    "functions",
    2,
    {
        "chains_of_functions": _chain,
        "values_of_an_inverse": _inverse_value,
        "inverse_functions": _inverse,
        "repeated_functions": _repeated,
        "functions_through_points": _parameters,
        "functional_equations": _equation,
    },
    ("0", "1", "x"),
)
