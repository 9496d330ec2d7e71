"""Counts of paths and words that are too many to step through: modulo a prime, by Lucas and by powers of matrices."""

from __future__ import annotations

from math import comb
from random import Random

from curriculum.contract.topics import Item
from curriculum.tasksets.exact_arithmetic import primes_between
from curriculum.tasksets.huge_numbers import next_prime
from curriculum.tasksets.statements import listed, say, whole

Cell = tuple[int, int]
PLACES = (1, 1, 2, 3, 4)
"""Digits of a grid's sides in base p, by level."""


def grid_paths(level: int, rng: Random) -> Item:
    """Asks for the paths over a grid past blocked points. Digits in base p never carry, so no count is 0 modulo p."""
    p = rng.choice(primes_between(*((101, 199), (211, 499), (211, 499), (211, 499), (401, 997))[level]))
    pairs = [(digit := rng.randint(p // 6, p // 2), rng.randint(p // 6, p - 1 - digit)) for _ in range(PLACES[level])]
    end = _joined(pairs, p)
    blocked = {_joined([(rng.randint(0, x), rng.randint(0, y)) for x, y in pairs], p) for _ in range(2 + level // 2)}
    blocked -= {(0, 0), end}
    ways: dict[Cell, int] = {}
    for cell in (*sorted(blocked), end):
        before = sum(ways[other] * _paths(other, cell, p) for other in ways)
        ways[cell] = (_paths((0, 0), cell, p) - before) % p
    points = listed(sorted(blocked), "or")
    text = say(
        rng,
        (
            ("A path on the grid goes from (0, 0) to {end}; each step adds 1 to x or to y. It may not pass through"
            " {points}. What is the remainder when the number of such paths is divided by {p}?"),
            ("A robot moves from (0, 0) to {end} in unit steps to the right or upwards, but never through {points}."
            " Find the remainder of the number of its possible paths on division by {p}."),
        ),
        end=end, points=points, p=p,
    )  # fmt: skip
    return whole(text, f"{end} {points} {p}", ways[end])


def _joined(pairs: list[Cell], base: int) -> Cell:
    x = y = 0
    for one, other in pairs:
        x, y = x * base + one, y * base + other
    return x, y


def _paths(start: Cell, end: Cell, p: int) -> int:
    """Counts the paths between two cells modulo p (Lucas); 0 if the second is not above and to the right."""
    x, y = end[0] - start[0], end[1] - start[1]
    if min(x, y) < 0:
        return 0
    total, value = x + y, 1
    while total:
        value = value * comb(total % p, x % p) % p
        total, x = total // p, x // p
    return value


def words_without_a_block(level: int, rng: Random) -> Item:
    """Asks for the words that avoid a block of letters, by powers of the matrix of the block's prefixes."""
    letters, p = "ABCD"[: rng.randint(2, 4)], next_prime(rng.randint(10**4, 10**5))
    block = "".join(rng.choices(letters, k=rng.randint(3, 4 + level // 2)))
    n = (rng.randint(6, 14), rng.randint(900, 9_999), 10**9, 10**12, 10**15)[level] + rng.randint(0, 999) * (level > 1)
    size = len(block)
    # From each prefix of the block by each letter to the longest prefix that the word then ends with.
    step = [[0] * size for _ in range(size)]
    for at in range(size):
        for letter in letters:
            word = block[:at] + letter
            if word != block:
                step[at][next(k for k in range(len(word), -1, -1) if word.endswith(block[:k]))] += 1
    row = [int(at == 0) for at in range(size)]
    for bit in bin(n)[:1:-1]:
        if bit == "1":
            row = [sum(row[i] * step[i][j] for i in range(size)) % p for j in range(size)]
        step = [[sum(a[k] * step[k][j] for k in range(size)) % p for j in range(size)] for a in step]
    text = say(
        rng,
        (
            ("Consider the words of {n} letters over the alphabet {names} that do not contain the block {block}. What"
            " is the remainder when their number is divided by the prime {p}?"),
            ("A word of {n} letters is made of the letters {names}, each as often as you like. Find the remainder of"
            " the number of such words that avoid the consecutive letters {block} on division by the prime {p}."),
        ),
        n=n, names=listed(letters), block=block, p=p,
    )  # fmt: skip
    return whole(text, f"{len(letters)} {n} {block} {p}", sum(row) % p)
