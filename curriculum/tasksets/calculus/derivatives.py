"""Derivatives: of polynomials, products, quotients and chains, at a point, of higher order, along a curve, tangents."""

from __future__ import annotations

from fractions import Fraction
from random import Random

from curriculum.contract.topics import Item
from curriculum.tasksets import exact_arithmetic as p
from curriculum.tasksets.statements import EXACT, mathematics, nonzero, say, whole, worked

ASK = (
    "What is the derivative of f(x) = {f}? Give an expression in x, with no derivative left in it.",
    "Differentiate {f} with respect to x and work the derivative out.",
    "Let f(x) = {f}. Find f'(x), worked out.",
)
OUTER = (("sin({u})", "cos({u})"), ("cos({u})", "-sin({u})"), ("exp({u})", "exp({u})"))


def _drawn(degree: int, limit: int, rng: Random) -> list[p.Number]:
    return [*(rng.randint(-limit, limit) for _ in range(degree)), nonzero(rng, limit)]


def _expression(rng: Random, f: str, answer: str) -> Item:
    return worked(say(rng, ASK, f=f), f, answer, variables=("x",))


def _product(level: int, rng: Random) -> Item:
    poly, inner = _drawn(1 + level // 2, 5 + level, rng), nonzero(rng, 3 + level)
    outer, slope = rng.choice(OUTER)
    u = p.written([0, inner])
    f = f"{p.factor(poly)}*{outer.format(u=u)}"
    first, second = p.written(p.derived(poly)), p.written(p.scaled(poly, inner))
    answer = f"({first})*{outer.format(u=u)} + ({second})*({slope.format(u=u)})"
    return _expression(rng, f, answer)


def _chain(level: int, rng: Random) -> Item:
    inner = _drawn(2 + level // 3, 3 + level, rng)
    outer, slope = rng.choice(OUTER)
    u, factor = p.written(inner), p.written(p.derived(inner))
    k = rng.randint(2, 4 + 2 * level)
    f, answer = f"{k}*{outer.format(u=u)}", f"{k}*({factor})*({slope.format(u=u)})"
    if level > 1:
        n = rng.randint(2, 2 + level)
        more = [nonzero(rng, 4 + level), nonzero(rng, 3)]
        f, answer = f"{f} + ({p.written(more)})^{n}", f"{answer} + {n * more[1]}*({p.written(more)})^{n - 1}"
    return _expression(rng, f, answer.replace("+ -", "- "))


def _quotient(level: int, rng: Random) -> Item:
    above, below = _drawn(1 + level // 2, 4 + level, rng), _drawn(1 + (level + 1) // 2, 3 + level, rng)
    if not any(p.remainder(above, below)):
        return _quotient(level, rng)
    top = p.added(p.multiplied(p.derived(above), below), p.scaled(p.multiplied(above, p.derived(below)), -1))
    return _expression(rng, f"{p.factor(above)}/({p.written(below)})", f"({p.written(top)})/({p.written(below)})^2")


def _logarithm(level: int, rng: Random) -> Item:
    n = rng.randint(1, 3 + level)
    k, a = rng.randint(2, 4 + level), rng.randint(1, 30 + 3 * level)
    inner: list[p.Number] = [a, 0, rng.randint(1, 6 + level)]
    f = f"{'x' if n == 1 else f'x^{n}'}*ln({p.written(inner)})"
    power = "1" if n == 1 else f"{n}*x^{n - 1}"
    answer = f"{power}*ln({p.written(inner)}) + x^{n}*({p.written(p.derived(inner))})/({p.written(inner)})"
    if level > 1:
        f, answer = f"{f} - {k}*sqrt({p.written(inner)})", f"{answer} - {k * inner[2]}*x/sqrt({p.written(inner)})"
    return _expression(rng, f, answer)


def _at_point(level: int, rng: Random) -> Item:
    poly, x = _drawn(2 + level, 5 + 2 * level, rng), nonzero(rng, 2 + level // 2)
    order = 1 if level < 2 else rng.randint(1, 2 + level // 3)
    found: p.Coefficients = poly
    for _ in range(order):
        found = p.derived(found)
    text = say(
        rng,
        (
            "Let f(x) = {f}. What is the value of its {which} derivative at x = {x}?",
            "Compute the {which} derivative of {f} at x = {x}.",
        ),
        f=p.written(poly), which=("first", "second", "third")[order - 1], x=x,
    )  # fmt: skip
    return whole(text, f"{poly} {order} {x}", int(p.value_at(found, x)))


def _tangent(level: int, rng: Random) -> Item:
    poly, x = _drawn(2 + (level + 1) // 2, 4 + 2 * level, rng), nonzero(rng, 2 + level // 2)
    y, slope = p.value_at(poly, x), p.value_at(p.derived(poly), x)
    normal = level > 1 and rng.random() < 0.5 and slope != 0
    used = -1 / Fraction(slope) if normal else slope
    text = say(
        rng,
        (
            ("Which line is the {line} to the graph of f(x) = {f} at x = {x}? Answer with the expression mx + c for its"
            " height."),
            ("Find m and c such that y = mx + c is the {line} to y = {f} at the point with x = {x}. Answer with the"
            " expression mx + c."),
        ),
        line="normal" if normal else "tangent", f=p.written(poly), x=x,
    )  # fmt: skip
    return worked(text, f"{poly} {x} {normal}", p.written([y - used * x, used]), variables=("x",))


def _implicit(level: int, rng: Random) -> Item:
    a, b, c = rng.randint(1, 3 + level), nonzero(rng, 3 + level), rng.randint(1, 3 + level)
    x, y = nonzero(rng, 3 + level), nonzero(rng, 3 + level)
    n = 2 if level < 2 else rng.choice((2, 3))
    total = a * x**n + b * x * y + c * y**n
    above, below = n * a * x ** (n - 1) + b * y, b * x + n * c * y ** (n - 1)
    if below == 0:
        return _implicit(level, rng)
    text = say(
        rng,
        (
            "The curve {left} = {total} passes through ({x}, {y}). What is dy/dx there? {how}",
            "What is the slope of the curve {left} = {total} at its point ({x}, {y})? {how}",
        ),
        left=p.linear((a, b, c), (f"x^{n}", "xy", f"y^{n}")), total=total, x=x, y=y, how=EXACT,
    )  # fmt: skip
    return worked(text, f"{a} {b} {c} {n} {x} {y}", -Fraction(above, below))


DERIVATIVES = mathematics(
    "derivatives",
    2,
    {
        "derivatives_of_products": _product,
        "derivatives_of_chains": _chain,
        "derivatives_of_quotients": _quotient,
        "derivatives_with_logarithms": _logarithm,
        "derivatives_at_a_point": _at_point,
        "tangents": _tangent,
        "implicit_derivatives": _implicit,
    },
    ("0", "1", "x"),
)
