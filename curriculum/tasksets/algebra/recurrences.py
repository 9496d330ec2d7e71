"""Sequences: arithmetic and geometric ones, linear recurrences, sums, limits of values modulo a number."""

from __future__ import annotations

from fractions import Fraction
from random import Random

from curriculum.contract.topics import Item
from curriculum.tasksets.exact_arithmetic import linear
from curriculum.tasksets.statements import EXACT, mathematics, nonzero, say, whole, worked


def _arithmetic(level: int, rng: Random) -> Item:
    below = 1 if level < 2 else rng.randint(2, 4)
    first, step = Fraction(rng.randint(-9, 9), below), Fraction(nonzero(rng, 5 + 4 * level), below)
    i, j = sorted(rng.sample(range(2, 8 + 4 * level), 2))
    n = j + rng.randint(3, 20 * (level + 1))
    text = say(
        rng,
        (
            "In an arithmetic sequence a_{i} = {a} and a_{j} = {b}. What is a_{n}? {how}",
            ("Neighbouring terms of a sequence always differ by the same amount. Term number {i} is {a}, term"
            " number {j}"
            " is {b}. What is term number {n}? {how}"),
        ),
        i=i, j=j, n=n, a=first + i * step, b=first + j * step, how=EXACT,
    )  # fmt: skip
    return worked(text, f"{i} {first + i * step} {j} {first + j * step} {n}", first + n * step)


def _geometric(level: int, rng: Random) -> Item:
    first = nonzero(rng, 9 + 4 * level)
    ratio = Fraction(rng.choice((2, 3, 4, 5, -2, -3)), 1 if level < 2 else rng.choice((1, 3, 5, 7)))
    if abs(ratio) == 1:
        return _geometric(level, rng)
    n = rng.randint(3 + level, 5 + 2 * level)
    total = rng.random() < 0.5
    value = first * (ratio**n - 1) / (ratio - 1) if total else first * ratio ** (n - 1)
    what = f"the sum of the first {n} terms" if total else f"term number {n}"
    text = say(
        rng,
        (
            "A geometric sequence begins {a}, {b}, {c}, ... What is {what}? {how}",
            "The terms {a}, {b}, {c} are the first three of a sequence with a constant ratio. Find {what}. {how}",
        ),
        a=first, b=first * ratio, c=first * ratio**2, what=what, how=EXACT,
    )  # fmt: skip
    return worked(text, f"{first} {ratio} {n} {total}", value)


def _second_order(level: int, rng: Random) -> Item:
    order = 2 if level < 3 else 3
    weights = [nonzero(rng, 2 + level) for _ in range(order)]
    terms = [rng.randint(-3, 5 + level) for _ in range(order)]
    n, extra = rng.randint(4 + level, 6 + 3 * level), rng.randint(1, 5) if level > 1 else 0
    values = list(terms)
    while len(values) <= n:
        values.append(sum(a * b for a, b in zip(weights, reversed(values), strict=False)) + extra)
    rule = linear(weights, [f"*a(n-{at})" for at in range(1, order + 1)])
    rule = rule.replace("- *", "- ").replace("+ *", "+ ").removeprefix("*").replace("-*", "-")
    starts = ", ".join(f"a({at}) = {one}" for at, one in enumerate(terms))
    text = say(
        rng,
        (
            "A sequence has {starts} and a(n) = {rule}{extra} for all n >= {order}. What is a({n})?",
            "Let {starts}, and from n = {order} on let a(n) = {rule}{extra}. Compute a({n}).",
        ),
        starts=starts, rule=rule, extra=f" + {extra}" if extra else "", order=order, n=n,
    )  # fmt: skip
    return whole(text, f"{weights} {terms} {extra} {n}", values[n])


def _sum(level: int, rng: Random) -> Item:
    first, step = rng.randint(-20, 30), nonzero(rng, 6 + 3 * level)
    count = rng.randint(8, 20 * 2**level)
    last = first + (count - 1) * step
    text = say(
        rng,
        (
            "What is the sum {a} {b} {c} ... of the arithmetic progression whose last term is {last}?",
            ("An arithmetic progression begins {first}, {second}, {third} and ends with {last}. What do all of"
            " its terms"
            " add up to?"),
        ),
        a=first, b=_term(first + step), c=_term(first + 2 * step) + " +", first=first, second=first + step,
        third=first + 2 * step, last=last,
    )  # fmt: skip
    return whole(text, f"{first} {step} {count}", count * (first + last) // 2)


def _term(number: int) -> str:
    return f"+ ({number})" if number < 0 else f"+ {number}"


def _periodic(level: int, rng: Random) -> Item:
    m = rng.randint((17, 20, 25, 30, 60)[level], (40, 50, 60, 90, 160)[level])
    a, b, start = rng.randint(2, m - 1), rng.randint(1, m - 1), rng.randrange(m)
    n = rng.randint(10, 20) * 10**level
    square = level > 1 and rng.random() < 0.5
    value, seen, order = start, {start: 0}, [start]
    for at in range(1, n + 1):
        value = ((value * value if square else a * value) + b) % m
        if value in seen:
            begin = seen[value]
            value = order[begin + (n - begin) % (at - begin)]
            break
        seen[value] = at
        order.append(value)
    rule = f"x(n)^2 + {b}" if square else f"{a}*x(n) + {b}"
    text = say(
        rng,
        (
            "Let x(0) = {start}, and let x(n+1) be the remainder of {rule} divided by {m}. What is x({n})?",
            ("A sequence begins with x(0) = {start}; each x(n+1) is what {rule} leaves when divided by {m}. Find"
            " x({n})."),
        ),
        start=start, rule=rule, m=m, n=n,
    )  # fmt: skip
    return whole(text, f"{start} {rule} {m} {n}", value)


def _affine(level: int, rng: Random) -> Item:
    a = Fraction(nonzero(rng, 3 + level), rng.randint(2, 3 + level) if level else 1)
    if a == 1 or a == -1:
        return _affine(level, rng)
    b, start, n = nonzero(rng, 9 + level), rng.randint(-9, 9), rng.randint(3, 4 + level)
    value = Fraction(start)
    for _ in range(n):
        value = a * value + b
    backwards = rng.random() < 0.5
    known, wanted = (f"u({n}) = {value}", "u(0)") if backwards else (f"u(0) = {start}", f"u({n})")
    text = say(
        rng,
        (
            "A sequence satisfies u(k+1) = {rule} for all k, and {known}. What is {wanted}? {how}",
            "Each term comes from the one before by u(k+1) = {rule}. Given {known}, find {wanted}. {how}",
        ),
        rule=linear((a, b), ("*u(k)", "")), known=known, wanted=wanted, how=EXACT,
    )  # fmt: skip
    return worked(text, f"{a} {b} {known} {wanted}", Fraction(start) if backwards else value)


RECURRENCES = mathematics(
    "recurrences",
    2,
    {
        "arithmetic_sequences": _arithmetic,
        "geometric_sequences": _geometric,
        "linear_recurrences": _second_order,
        "arithmetic_sums": _sum,
        "remainder_sequences": _periodic,
        "affine_steps": _affine,
    },
)
