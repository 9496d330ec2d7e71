"""Matrices: determinants, inverses, products, eigenvalues, ranks, traces of powers, singular parameters."""

from __future__ import annotations

from fractions import Fraction
from random import Random

from curriculum.contract.topics import Item
from curriculum.tasksets import exact_arithmetic as m
from curriculum.tasksets.statements import EXACT, mathematics, nonzero, say, whole, worked

ROWS = "Write the matrix as a list of rows: [[a, b], [c, d]]."


def _determinant(level: int, rng: Random) -> Item:
    size = (2, 3, 3, 4, 4)[level]
    rows = m.drawn(rng, size, size, (9, 4, 9, 4, 8)[level])
    text = say(
        rng,
        ("What is the determinant of the matrix with rows {rows}?", "Compute det {rows} (a matrix, row by row)."),
        rows=m.shown(rows),
    )
    return whole(text, f"{rows}", int(m.determinant(rows)))


def _inverse(level: int, rng: Random) -> Item:
    size = 2 if level < 3 else 3
    rows = m.unimodular(rng, size, 6) if level in (0, 3) else m.regular(rng, size, 3 + level)
    text = say(
        rng,
        (
            "What is the inverse of the matrix {rows}? Entries are exact numbers. {how}",
            "Find B such that {rows} times B is the identity. Entries are exact numbers. {how}",
        ),
        rows=m.shown(rows), how=ROWS,
    )  # fmt: skip
    return worked(text, f"{rows}", m.shown(m.inverted(rows)))


def _product(level: int, rng: Random) -> Item:
    a, b, c = (2, 2, 2, 3, 3)[level], (2, 3, 3, 3, 3)[level], (2, 2, 2, 2, 3)[level]
    limit = 4 + 3 * level
    first, second = m.drawn(rng, a, b, limit), m.drawn(rng, b, c, limit)
    value = m.product(first, second)
    third = ""
    if level > 1:
        more = m.drawn(rng, c, 2, limit)
        value, third = m.product(value, more), f" times {m.shown(more)}"
    text = say(
        rng,
        ("What is the matrix {a} times {b}{c}? {how}", "Multiply the matrices: {a} times {b}{c}. {how}"),
        a=m.shown(first), b=m.shown(second), c=third, how=ROWS,
    )  # fmt: skip
    return worked(text, f"{first} {second} {third}", m.shown(value))


def _eigenvalues(level: int, rng: Random) -> Item:
    size = 2 if level < 3 else 3
    values = rng.sample(range(-3 - 2 * level, 6 + 2 * level), size)
    change = m.unimodular(rng, size, 2 + level // 2)
    diagonal = [[value if at == other else 0 for other in range(size)] for at, value in enumerate(values)]
    rows = m.product(m.product(change, diagonal), m.inverted(change))
    text = say(
        rng,
        (
            "What are the eigenvalues of the matrix {rows}? List them, separated by commas.",
            (
                "Find all numbers t for which {rows} - t I is singular, with I the identity. List them, separated by"
                " commas."
            ),
        ),
        rows=m.shown(rows),
    )
    return worked(text, m.shown(rows), f"{{{', '.join(map(str, sorted(values)))}}}")


def _null_vector(level: int, rng: Random) -> Item:
    """Asks for the vector of the null space whose last entry is 1: the matrix has one column more than its rank."""
    width = 2 + (level + 2) // 2
    rows, vector = (
        m.drawn(rng, width - 1, width - 1, 4 + level),
        [rng.randint(-5 - level, 5 + level) for _ in range(width - 1)],
    )
    if not m.determinant(rows):
        return _null_vector(level, rng)
    rows = [[*row, -sum(a * x for a, x in zip(row, vector, strict=True))] for row in rows]
    rng.shuffle(rows)
    text = say(
        rng,
        (
            "Which vector v with the last entry 1 solves {rows} v = 0? Give it as a tuple.",
            "Find the vector in the null space of the matrix {rows} whose last entry is 1. Give it as a tuple.",
            "The matrix {rows} maps one vector with the last entry 1 to zero. Give this vector as a tuple.",
            "Solve Av = 0 for A = {rows}, with the last entry of v equal to 1. Give v as a tuple.",
        ),
        rows=m.shown(rows),
    )
    return worked(text, f"{sorted(rows)}", f"({', '.join(map(str, [*vector, 1]))})")


def _power_trace(level: int, rng: Random) -> Item:
    size = 2 if level < 3 else 3
    rows, n = m.drawn(rng, size, size, 3 + level), 2 + level
    power: m.Rows = rows
    for _ in range(n - 1):
        power = m.product(power, rows)
    total = rng.random() < 0.5
    value = sum(sum(row) for row in power) if total else sum(power[at][at] for at in range(size))
    what = "the sum of all entries" if total else "the trace"
    text = say(
        rng,
        ("Let A = {rows}. What is {what} of A^{n}?", "Find {what} of the matrix power A^{n}, where A = {rows}."),
        rows=m.shown(rows), what=what, n=n,
    )  # fmt: skip
    return whole(text, f"{rows} {n} {total}", int(value))


def _singular(level: int, rng: Random) -> Item:
    size = 2 if level == 0 else 3
    rows = m.drawn(rng, size, size, 3 + 2 * level)
    i, j = rng.randrange(size), rng.randrange(size)
    values = []
    for entry in (0, 1):
        rows[i][j] = entry
        values.append(m.determinant(rows))
    slope = values[1] - values[0]
    if slope == 0:
        return _singular(level, rng)
    target = 0 if level < 2 else nonzero(rng, 20)
    shown = m.shown([["k" if (a, b) == (i, j) else one for b, one in enumerate(row)] for a, row in enumerate(rows)])  # type: ignore[misc]
    text = say(
        rng,
        (
            "For which number k does the matrix {rows} have the determinant {target}? {how}",
            "The determinant of {rows} is {target}. What is k? {how}",
        ),
        rows=shown, target=target, how=EXACT,
    )  # fmt: skip
    return worked(text, f"{shown} {target}", (Fraction(target) - values[0]) / slope)


MATRIX_ALGEBRA = mathematics(
    "matrix_algebra",
    3,
    {
        "determinants": _determinant,
        "inverse_matrices": _inverse,
        "matrix_products": _product,
        "eigenvalues": _eigenvalues,
        "null_vectors": _null_vector,
        "powers_of_a_matrix": _power_trace,
        "determinant_with_a_parameter": _singular,
    },
)
