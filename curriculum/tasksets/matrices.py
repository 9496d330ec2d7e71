"""Matrices of exact numbers, as lists of rows. Pure, without any library."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from random import Random

Row = list[Fraction]
Rows = Sequence[Sequence[int | Fraction]]


def reduced(rows: Rows) -> tuple[list[Row], Fraction, int]:
    """Returns the reduced echelon form of a matrix, its determinant if it is square, and its rank."""
    work = [[Fraction(one) for one in row] for row in rows]
    scale, rank = Fraction(1), 0
    for column in range(len(work[0])):
        pivot = next((at for at in range(rank, len(work)) if work[at][column]), None)
        if pivot is None:
            continue
        if pivot != rank:
            work[rank], work[pivot] = work[pivot], work[rank]
            scale = -scale
        lead = work[rank][column]
        scale *= lead
        work[rank] = [one / lead for one in work[rank]]
        for at, row in enumerate(work):
            if at != rank and row[column]:
                work[at] = [a - row[column] * b for a, b in zip(row, work[rank], strict=True)]
        rank += 1
        if rank == len(work):
            break
    square = len(work) == len(work[0])
    return work, scale if square and rank == len(work) else Fraction(0), rank


def determinant(rows: Rows) -> Fraction:
    return reduced(rows)[1]


def inverted(rows: Rows) -> list[Row]:
    """Returns the inverse of a matrix with a non-zero determinant."""
    size = len(rows)
    joined = [[*row, *(int(at == other) for other in range(size))] for at, row in enumerate(rows)]
    return [row[size:] for row in reduced(joined)[0]]


def product(a: Rows, b: Rows) -> list[list[int | Fraction]]:
    columns = list(zip(*b, strict=True))
    return [[sum(x * y for x, y in zip(row, column, strict=True)) for column in columns] for row in a]


def drawn(rng: Random, height: int, width: int, limit: int) -> list[list[int]]:
    """Draws a matrix of integers from -limit to limit."""
    return [[rng.randint(-limit, limit) for _ in range(width)] for _ in range(height)]


def regular(rng: Random, size: int, limit: int) -> list[list[int]]:
    """Draws a square matrix with a non-zero determinant."""
    while True:
        rows = drawn(rng, size, size, limit)
        if determinant(rows):
            return rows


def unimodular(rng: Random, size: int, steps: int) -> list[list[int]]:
    """Draws a square integer matrix with determinant 1, so its inverse has integer entries."""
    rows = [[int(at == other) for other in range(size)] for at in range(size)]
    for _ in range(steps):
        target, source = rng.sample(range(size), 2)
        factor = rng.choice((-2, -1, 1, 2))
        rows[target] = [a + factor * b for a, b in zip(rows[target], rows[source], strict=True)]
    return rows


def shown(rows: Rows) -> str:
    """Returns the matrix as text: `[[1, 2], [3, 4]]`."""
    return "[" + ", ".join(f"[{', '.join(map(str, row))}]" for row in rows) + "]"
