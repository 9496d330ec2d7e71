"""Structures of contest problems: their input format, its wording, and generators of small and worst-case inputs.

A generator takes a size and a shape. Of the shape `any` it makes mixed inputs with few different values, so that small
ones have ties and edge cases; of the others, inputs that are bad for one kind of slow program. Generators are copied,
as source, into the programs that make tests, so each uses only its arguments and other generators.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

PRIME, LARGE_PRIME = 1_000_000_007, (1 << 61) - 1


@dataclass(frozen=True, kw_only=True)
class Structure:
    layout: tuple[str, ...]
    """Input format of one test case, as in `layouts`."""
    text: str
    """Description of a test case; `{most}` is the largest size, other fields are the family's bounds."""
    make: Callable[..., list[Any]]
    coded: int
    """Index of the argument whose values a coding may hide."""
    values: str
    """Name of those values in the description."""
    modulus: int = PRIME
    low: int = 1
    """Least of those values, unless the family's bounds name it."""


def drawn(rng: Random, n: int, shape: str, low: int, high: int) -> list[int]:
    """Draws n numbers: mixed, or random, rising, falling, equal, few different ones, high, or zigzag."""
    if shape == "any":
        span = rng.choice((1, 3, 9, 40, 200, high - low))
        low = max(low, -span // 2) if low < 0 < high else low
        high = min(high, low + span)
        shape = rng.choice(("random", "random", "random", "rising", "falling", "equal", "high"))
    if shape == "equal":
        return [rng.randint(low, high)] * n
    if shape == "high":
        return [high - rng.randrange(min(2, high - low + 1)) for _ in range(n)]
    if shape == "few":
        some = [rng.randint(low, high) for _ in range(4)]
        return [rng.choice(some) for _ in range(n)]
    values = [rng.randint(low, high) for _ in range(n)]
    if shape in ("rising", "falling", "zigzag"):
        values.sort(reverse=shape == "falling")
    if shape == "zigzag":
        values[::2], values[1::2] = values[: (n + 1) // 2], values[: (n + 1) // 2 - 1 : -1]
    return values


def make_array(rng: Random, n: int, shape: str, *, low: int, high: int) -> list[Any]:
    return [drawn(rng, n, shape, low, high)]


def make_array_k(rng: Random, n: int, shape: str, *, low: int, high: int) -> list[Any]:
    return [rng.randint(1, n) if shape == "any" else max(1, n // 2), drawn(rng, n, shape, low, high)]


def make_capacity(rng: Random, n: int, shape: str, *, room: int, high: int) -> list[Any]:
    small = shape == "any"
    capacity = rng.randint(1, 14) if small else room
    weights = [rng.randint(1, 5 if small else 8) for _ in range(n)]
    worth = drawn(rng, n, "any" if small else "random", 1, high)
    counts = [rng.randint(1, 3 if small else room) for _ in range(n)]
    return [capacity, list(zip(counts, weights, worth, strict=True))]


def make_intervals(rng: Random, n: int, shape: str, *, top: int, high: int) -> list[Any]:
    worth = drawn(rng, n, "any" if shape == "any" else "random", 1, high)
    rows, wide = [], rng.choice((5, 12, 40, 200))
    for at in range(n):
        if shape == "any":
            begin = rng.randint(0, wide)
            end = begin + rng.randint(1, 1 + wide // 2)
        elif shape == "nested":
            begin, end = at, top - at
        elif shape == "chained":
            begin = top // n * at
            end = begin + max(1, top // n)
        else:
            begin, end = sorted(rng.sample(range(top + 1), 2))
        rows.append((begin, end, worth[at]))
    rng.shuffle(rows)
    return [rows]


def make_pairs(rng: Random, n: int, shape: str, *, top: int, high: int) -> list[Any]:
    worth = drawn(rng, n, "any" if shape == "any" else "random", 1, high)
    most = rng.randint(1, 12) if shape == "any" else top
    return [[(most if shape == "equal" else rng.randint(1, most), one) for one in worth]]


def make_word(rng: Random, n: int, shape: str, *, letters: str) -> list[Any]:
    if shape == "any":
        shape = rng.choice(("random", "random", "two", "equal", "periodic"))
        letters = letters[: rng.choice((2, 3, len(letters)))]
    if shape == "equal":
        return [rng.choice(letters) * n]
    if shape == "periodic":
        part = "".join(rng.choices(letters, k=rng.randint(1, 3)))
        return [(part * n)[:n]]
    if shape == "pairs":
        return [(letters[0] * (n // 2) + letters[1] * n)[:n]]
    if shape == "late":
        return [letters[0] * (n - 1) + letters[1]]
    return ["".join(rng.choices(letters[:2] if shape == "two" else letters, k=n))]


def make_word_k(rng: Random, n: int, shape: str, *, letters: str) -> list[Any]:
    return [rng.randint(1, n) if shape == "any" else max(1, n // 3), make_word(rng, n, shape, letters=letters)[0]]


def make_words(rng: Random, n: int, shape: str, *, letters: str, part: int) -> list[Any]:
    """Makes two words; the second has about 1 / `part` of the length of the first."""
    length = rng.randint(1, n) if shape == "any" else max(1, n // part)
    return [make_word(rng, n, shape, letters=letters)[0], make_word(rng, length, shape, letters=letters)[0]]


def make_tree(rng: Random, n: int, shape: str, *, low: int, high: int) -> list[Any]:
    weights = drawn(rng, n - 1, "any" if shape == "any" else "random", low, high)
    if shape == "any":
        shape = rng.choice(("random", "path", "star", "deep"))
    names = list(range(1, n + 1))
    if shape != "deep":
        rng.shuffle(names)
    back = {"path": 1, "deep": 2, "star": n}.get(shape, n)
    edges = []
    for at in range(1, n):
        up = 0 if shape == "star" else at - rng.randint(1, min(at, back))
        edges.append((names[up], names[at], weights[at - 1]))
    rng.shuffle(edges)
    return [edges]


def make_tree_queries(rng: Random, n: int, shape: str, *, low: int, high: int) -> list[Any]:
    edges = make_tree(rng, n, shape, low=low, high=high)[0]
    return [edges, [(rng.randint(1, n), rng.randint(1, n)) for _ in range(n)]]


def make_graph(rng: Random, n: int, shape: str, *, low: int, high: int) -> list[Any]:
    m = rng.randint(1, 2 * n) if shape == "any" else 2 * n
    weights = drawn(rng, m, "any" if shape == "any" else "random", low, high)
    edges: list[tuple[int, int, int]] = []
    for at in range(m):
        if shape == "chain" and at < n - 1:
            edges.append((n - 1 - at, n - at, weights[at]))
        elif shape == "ladder" or shape == "chain":
            begin = rng.randint(1, n)
            edges.append((begin, max(1, min(n, begin + rng.randint(1, 2))), weights[at]))
        else:
            edges.append((rng.randint(1, n), rng.randint(1, n), weights[at]))
    return [n, edges]


def make_thresholds(rng: Random, n: int, shape: str, *, low: int, high: int) -> list[Any]:
    n, edges = make_graph(rng, n, shape, low=low, high=high)
    return [n, edges, [rng.choice(edges)[2] + rng.randint(0, 60) for _ in range(n)]]


def make_grid(rng: Random, n: int, shape: str, *, letters: str) -> list[Any]:
    if shape == "snake" or (shape == "any" and rng.random() < 0.4):
        wall, way = letters[-1], letters[0]
        rows = [way * n if row % 2 == 0 else "".join(rng.choices(letters, k=n)) for row in range(n)]
        for row in range(1, n, 2):
            rows[row] = wall * (n - 1) + way if row % 4 == 1 else way + wall * (n - 1)
        return [rows]
    some = letters[: rng.choice((2, len(letters)))] if shape == "any" else letters
    odds = 1 if shape == "any" else 9
    return [["".join(rng.choices(some, weights=[odds, *[1] * (len(some) - 1)], k=n)) for _ in range(n)]]


def make_jumps(rng: Random, n: int, shape: str, *, high: int) -> list[Any]:
    names = list(range(1, n + 1))
    rng.shuffle(names)
    to = [0] * n
    for at in range(n):
        free = shape == "any" and rng.random() < 0.5
        to[names[at] - 1] = rng.randint(1, n) if free else names[(at + 1) % n]
    most = rng.choice((3, 20, high)) if shape == "any" else high
    return [to, [(rng.randint(1, n), rng.randint(0, most)) for _ in range(n)]]


def make_numbers(rng: Random, n: int, shape: str, *, high: int) -> list[Any]:
    most = min(high, 300) if shape == "any" else high
    least = 1 if shape == "any" else high - high // 10
    return [[rng.randint(least, most) for _ in range(n)]]


def make_points(rng: Random, n: int, shape: str, *, high: int) -> list[Any]:
    most = rng.choice((2, 9)) if shape == "any" else high
    return [[(rng.randint(0, most), rng.randint(0, most)) for _ in range(n)]]


ARRAY = Structure(
    layout=("n", "a[n]"),
    text="a line with n (1 <= n <= {most}) and a line with n integers a_1, ..., a_n ({low} <= a_i <= {high})",
    make=make_array,
    coded=0,
    values="a_i",
)
ARRAY_K = Structure(
    layout=("n k", "a[n]"),
    text=(
        "a line with n and k (1 <= k <= n <= {most}) and a line with n integers a_1, ..., a_n ({low} <= a_i <= {high})"
    ),
    make=make_array_k,
    coded=1,
    values="a_i",
)
CAPACITY = Structure(
    layout=("n k", "v[n]3"),
    text=(
        "a line with n and k (1 <= n <= {most}, 1 <= k <= {room}), then n lines with c_i, s_i and v_i (the number of "
        "pieces of item i, the size and the value of each; 1 <= c_i, s_i <= {room}, 1 <= v_i <= {high})"
    ),
    make=make_capacity,
    coded=1,
    values="v_i",
)
INTERVALS = Structure(
    layout=("n", "v[n]3"),
    text=(
        "a line with n (1 <= n <= {most}), then n lines with b_i, e_i and w_i (0 <= b_i < e_i <= {top}, 1 <= w_i <= "
        "{high})"
    ),
    make=make_intervals,
    coded=0,
    values="w_i",
)
PAIRS = Structure(
    layout=("n", "v[n]2"),
    text="a line with n (1 <= n <= {most}), then n lines with d_i and w_i (1 <= d_i <= {top}, 1 <= w_i <= {high})",
    make=make_pairs,
    coded=0,
    values="w_i",
)
WORD = Structure(
    layout=("s$",),
    text="a line with a word s of 1 to {most} letters out of {letters}",
    make=make_word,
    coded=0,
    values="s",
)
WORD_K = Structure(
    layout=("k", "s$"),
    text="a line with k and a line with a word s of n letters out of {letters} (1 <= k <= n <= {most})",
    make=make_word_k,
    coded=1,
    values="s",
)
WORDS = Structure(
    layout=("s$", "t$"),
    text="two lines with the words s and t, of 1 to {most} letters out of {letters}; t is not longer than s",
    make=make_words,
    coded=0,
    values="s",
)
TREE = Structure(
    layout=("n", "e[n - 1]3"),
    text=(
        "a line with n (1 <= n <= {most}), then n - 1 lines with u_i, v_i and w_i: an edge between the vertices u_i "
        "and v_i of a tree with the vertices 1, ..., n, and its weight ({low} <= w_i <= {high})"
    ),
    make=make_tree,
    coded=0,
    values="w_i",
)
TREE_QUERIES = Structure(
    layout=("n q", "e[n - 1]3", "o[q]2"),
    text=(
        "a line with n and q (1 <= n, q <= {most}), then n - 1 lines with u_i, v_i and w_i: an edge between the "
        "vertices u_i and v_i of a tree with the vertices 1, ..., n, and its weight ({low} <= w_i <= {high}); then q "
        "lines with the two vertices of a query"
    ),
    make=make_tree_queries,
    coded=0,
    values="w_i",
)
GRAPH = Structure(
    layout=("n m", "e[m]3"),
    text=(
        "a line with n and m (1 <= n <= {most}, 1 <= m <= 2n), then m lines with u_i, v_i and w_i (1 <= u_i, v_i <= "
        "n, {low} <= w_i <= {high}); u_i = v_i and repeated pairs are possible"
    ),
    make=make_graph,
    coded=1,
    values="w_i",
)
THRESHOLDS = Structure(
    layout=("n m q", "e[m]3", "x[q]"),
    text=(
        "a line with n, m and q (1 <= n, q <= {most}, 1 <= m <= 2n), then m lines with u_i, v_i and w_i: an edge "
        "between u_i and v_i, and its weight ({low} <= w_i <= {high}); then a line with q numbers x_i"
    ),
    make=make_thresholds,
    coded=2,
    values="x_i",
)
GRID = Structure(
    layout=("n", "g[n]$"),
    text="a line with n (1 <= n <= {most}), then n lines with n letters out of {letters} each",
    make=make_grid,
    coded=0,
    values="the lines",
)
JUMPS = Structure(
    layout=("n q", "f[n]", "o[q]2"),
    text=(
        "a line with n and q (1 <= n, q <= {most}), a line with n integers f_1, ..., f_n (1 <= f_i <= n), then q "
        "lines with v_i and k_i (1 <= v_i <= n, 0 <= k_i <= {high})"
    ),
    make=make_jumps,
    coded=0,
    values="f_i",
)
NUMBERS = Structure(
    layout=("n", "x[n]"),
    text="a line with n (1 <= n <= {most}) and a line with n integers x_1, ..., x_n (1 <= x_i <= {high})",
    make=make_numbers,
    coded=0,
    values="x_i",
    modulus=LARGE_PRIME,
)
POINTS = Structure(
    layout=("n", "v[n]2"),
    text="a line with n (1 <= n <= {most}), then n lines with x_i and y_i (0 <= x_i, y_i <= {high})",
    make=make_points,
    coded=0,
    values="y_i",
    low=0,
)
