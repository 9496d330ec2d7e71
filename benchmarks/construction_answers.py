"""Answers of constructions, read from their words and found by other means than those that made them.

`answer_of(topic, text)` parses a question. Symmetries are permutations that are built one by one, periods are listed,
chains and columns are counted, reflections are followed step by step.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations, pairwise, permutations, product
from math import gcd, prod, sqrt

import sympy
from sympy.ntheory.residue_ntheory import binomial_mod

from benchmarks.composed_answers import by_period, columns, exact

READERS: dict[str, Callable[[str], object]] = {}
Permutation = tuple[int, ...]


def reads(topic: str) -> Callable[[Callable[[str], object]], Callable[[str], object]]:
    def note(find: Callable[[str], object]) -> Callable[[str], object]:
        READERS[topic] = find
        return find

    return note


def answer_of(topic: str, text: str) -> str:
    """Returns the answer of a question of that topic, with or without `_by_hand`."""
    return str(READERS[topic.removesuffix("_by_hand")](text))


def asked(pattern: str, text: str) -> tuple[str, ...]:
    found = re.search(pattern, text)
    assert found is not None, text
    return found.groups()


def whole(pattern: str, text: str) -> list[int]:
    return [int(one) for one in asked(pattern, text) if one is not None]


@reads("power_towers")
def _(text: str) -> int:
    shown = asked(r"when ([\d^() +]*) is divided|number ([\d^() +]*) leave|divides ([\d^() +]*) - z", text)
    towers = next(one for one in shown if one).split(" + ")
    m = int(next(filter(None, re.findall(r"divided by (\d+)|for which (\d+) divides", text)[0])))
    return sum(by_period([int(base) for base in re.findall(r"\d+", one)], m) for one in towers) % m


@reads("primes_in_power_differences")
def _(text: str) -> int:
    n, p = (int(one) for one in (asked(r"N = (\d+)!", text)[0], asked(r"which (\d+)\^k|by (\d+) without", text)[0] or
                                 asked(r"by (\d+) without", text)[0]))  # fmt: skip
    a, b = whole(r"(\d+)\^N - (\d+)\^N", text)
    # The order of a/b divides p - 1, which p does not divide; a factorial's exponent comes from its digits in base p.
    first = int(sympy.multiplicity(p, a ** (p - 1) - b ** (p - 1)))
    return first + (n - sum(sympy.ntheory.digits(n, p)[1:])) // (p - 1)


@reads("equations_with_cycles")
def _(text: str) -> Fraction:
    left, right = asked(r"(?:defined, |satisfies )(.*?) = (.*?)(?:\. What| wherever)", text)
    t = sympy.Rational(asked(r"f\((-?\d+/?\d*)\)[.?]", text)[0])
    p, sign, q, g = asked(r"^(\d*)f\(x\) ([+-]) (\d*)f\((.*)\)$", left)
    x = sympy.Symbol("x")
    image, h = (sympy.sympify(re.sub(r"(\d)x", r"\1*x", one).replace("^", "**")) for one in (g, right))
    points = [t]
    while (after := image.subs(x, points[-1])) != t:
        points.append(after)
    size = len(points)
    rows = sympy.zeros(size, size)
    for at in range(size):
        rows[at, at] += int(p or 1)
        rows[at, (at + 1) % size] += int(f"{sign}{q or 1}")
    return exact(rows.LUsolve(sympy.Matrix([h.subs(x, one) for one in points]))[0])


@reads("equations_of_cauchys_kind")
def _(text: str) -> Fraction:
    # f(n u) by repeated addition of u, a common measure of both places.
    terms = re.findall(r"([+-]) (\d+)xy(\(x \+ y\))?", text)
    a = sum(int(sign + size) for sign, size, cubic in terms if not cubic)
    b = sum(int(sign + size) for sign, size, cubic in terms if cubic)
    at, value = whole(r"f\((\d+)\) = (-?\d+)", text)
    t = Fraction(asked(r"f\((\d+/?\d*)\)[.?]", text)[0])
    u = Fraction(1, t.denominator)

    def extra(n: int) -> Fraction:
        # the sum over k < n of a (k u) u + b (k u) u (k u + u)
        return a * u * u * (n * (n - 1) // 2) + b * u**3 * ((n - 1) * n * (n + 1) // 3)

    count = at * t.denominator
    return t.numerator * (value - extra(count)) / count + extra(t.numerator)


@reads("sets_without_ratios")
def _(text: str) -> int:
    low, high = whole(r"from (\d+) to (\d+)|(?<=numbers )(\d+), ..., (\d+)", text)
    factors = [int(one) for one in re.findall(r"\d+", asked(r"exactly ([\d, or]*) times", text)[0])]
    p, apart, total = factors[0], len(factors) + 1, 0
    longest = 1
    while low * p**longest <= high:
        longest += 1
    for length in range(1, longest + 1):
        # chains of this length: their least element has no p-th part in the range, and p^(length - 1) times it is in it
        least, most = max(low, high // p**length + 1), high // p ** (length - 1)
        starts = most - least + 1 if most >= least else 0
        multiples = most // p - (max(least, low * p) - 1) // p if most >= max(least, low * p) else 0
        total += (starts - multiples) * -(-length // apart)
    return total


@reads("greatest_products")
def _(text: str) -> int:
    total = int(asked(r"sum (\d+)", text)[0])
    modulus = [int(one) for one in re.findall(r"10{8}7", text)]
    if "different" not in text:
        count = int(asked(r"exactly (\d+)", text)[0])
        base, more = divmod(total, count)
        found = base ** (count - more) * (base + 1) ** more
        return found % modulus[0] if modulus else found
    least = int(asked(r"at least (\d+)", text)[0])
    count = 1
    while (count + 1) * least + (count + 1) * count // 2 <= total:
        count += 1
    base, more = divmod(total - count * (count - 1) // 2, count)
    found = 1
    for number in (number for number in range(base, base + count + 1) if number != base + count - more):
        found = found * number % modulus[0] if modulus else found * number
    return found


@reads("points_in_polygons")
def _(text: str) -> int:
    """By the triangles with (0, 0), which is inside: neighbours share the points of a segment."""
    corners = [(int(x), int(y)) for x, y in re.findall(r"\((-?\d+), (-?\d+)\)", text)]
    sides = zip(corners, [*corners[1:], corners[0]], strict=True)
    return 1 + sum(columns([(0, 0), a, b]) - gcd(*a) - 1 for a, b in sides)


@reads("points_below_lines")
def _(text: str) -> int:
    low, a, b, high = asked(r"(?:(\d+) <= )?(\d+)x \+ (\d+)y <= (\d+)", text)
    return below(int(a), int(b), int(high)) - (below(int(a), int(b), int(low) - 1) if low else 0)


def below(a: int, b: int, total: int) -> int:
    """By x modulo b: along each residue the height falls by a from point to point."""
    found = 0
    for rest in range(min(b, total // a + 1)):
        top = (total - a * rest) // b
        many = (total // a - rest) // b + 1
        found += many * (top + 1) - a * many * (many - 1) // 2
    return found


@reads("billiards")
def _(text: str) -> str:
    if "rectangle" in text:
        width, height = whole(r"x <= (\d+), 0 <= y <= (\d+)", text)
        u, v = whole(r"x grows by (\d+) and y by (\d+)", text)
    else:
        width, height = whole(r"\((\d+), (\d+)\) and \(0", text)
        u, v = whole(r"velocity \((\d+), (\d+)\)", text)
    x, y = whole(r"starts at \((\d+), (\d+)\)", text)
    time = int(asked(r"after (\d+) seconds", text)[0])
    (x, first), (y, second) = followed(x, u, width, time), followed(y, v, height, time)
    return str(first + second) if "How often" in text else f"({x}, {y})"


def followed(at: int, speed: int, side: int, time: int) -> tuple[int, int]:
    """Follows a coordinate from wall to wall; after 2 * side seconds it is where it began."""

    def run(at: int, way: int, seconds: int) -> tuple[int, int, int]:
        touched = 0
        for _ in range(seconds):
            left = speed
            while left:
                wall = side - at if way > 0 else at
                step = min(left, wall)
                at, left = at + way * step, left - step
                if step == wall and (left or wall):
                    touched += 1
                    way = -way
                elif step == wall:
                    way = -way
        return at, way, touched

    _, _, each = run(at, 1, 2 * side)
    end, _, rest = run(at, 1, time % (2 * side))
    return end, each * (time // (2 * side)) + rest


def orbits(move: Permutation) -> list[list[int]]:
    """Returns the cycles of a permutation."""
    found, seen = [], set[int]()
    for start in range(len(move)):
        if start not in seen:
            cycle, at = [], start
            while at not in seen:
                seen.add(at)
                cycle.append(at)
                at = move[at]
            found.append(cycle)
    return found


def kept(moves: Sequence[Permutation], counts: Sequence[int], free: int) -> int:
    """Returns the colourings up to these moves: `counts[i]` places of colour i, others of one of `free` colours.
    Cycles are coloured one after the other."""
    total = 0
    for lengths, times in Counter(tuple(sorted(map(len, orbits(move)))) for move in moves).items():
        found = Counter({tuple(counts): 1})
        for length in lengths:
            after: Counter[tuple[int, ...]] = Counter()
            for left, ways in found.items():
                after[left] += ways * free
                for colour, many in enumerate(left):
                    if many >= length:
                        after[(*left[:colour], many - length, *left[colour + 1 :])] += ways
            found = after
        total += times * found[(0,) * len(counts)]
    return total // len(moves)


@cache
def rotations(solid: str, parts: str) -> tuple[Permutation, ...]:
    """Returns the rotations of a solid as permutations of its parts: isometries of its corners that keep orientation,
    found from the images of three neighbouring corners."""
    golden = (1 + sqrt(5)) / 2
    points = [tuple(map(float, one)) for one in product((-1, 1), repeat=3)]
    if solid == "dodecahedron":
        for a, b in product((-1, 1), repeat=2):
            points += [(0, a / golden, b * golden), (a / golden, b * golden, 0), (a * golden, 0, b / golden)]

    def apart(a: Sequence[float], b: Sequence[float]) -> float:
        return sum((one - other) ** 2 for one, other in zip(a, b, strict=True))

    edge = min(apart(points[0], other) for other in points[1:])
    near = {a: [b for b in range(len(points)) if abs(apart(points[a], points[b]) - edge) < 1e-6]
            for a in range(len(points))}  # fmt: skip
    moves = []
    start = (points[0], *(points[one] for one in near[0]))
    for a in range(len(points)):
        for some in permutations(near[a]):
            matrix = sympy.Matrix(3, 3, lambda i, j, some=some: points[some[j]][i])
            source = sympy.Matrix(3, 3, lambda i, j: start[j + 1][i])
            turn = matrix * source.inv()
            if turn.det() > 0:
                images = [turn * sympy.Matrix(point) for point in points]
                places = [[at for at, point in enumerate(points) if apart(image, point) < 1e-6] for image in images]
                if all(len(one) == 1 for one in places):
                    moves.append(tuple(one[0] for one in places))
    things: list[frozenset[int]] = [frozenset({a}) for a in near]
    if parts == "edges":
        things = sorted({frozenset({a, b}) for a in near for b in near[a]}, key=sorted)
    if parts == "faces":
        things = sorted(faces(near, 4 if solid == "cube" else 5), key=sorted)
    return tuple(tuple(things.index(frozenset(move[at] for at in one)) for one in things) for move in moves)


def faces(near: dict[int, list[int]], size: int) -> set[frozenset[int]]:
    """Returns the shortest closed ways along the edges."""
    found = set[frozenset[int]]()
    ways = [[a] for a in near]
    for _ in range(size - 1):
        ways = [[*way, b] for way in ways for b in near[way[-1]] if b not in way]
    for way in ways:
        if way[0] in near[way[-1]]:
            found.add(frozenset(way))
    return found


@reads("coloured_solids")
def _(text: str) -> int:
    parts, solid = asked(r"(faces|corners|edges) of a (?:regular )?(cube|dodecahedron)", text)
    counts = [int(one) for one in re.findall(r"exactly (\d+) of them", text)]
    return kept(rotations(solid, parts), counts, int(asked(r"in one of (\d+)", text)[0]))


@reads("coloured_boards")
def _(text: str) -> int:
    n = int(asked(r"(\d+) by \d+", text)[0])
    black = int(asked(r"exactly (\d+) cells are|painted: (\d+) of", text)[0] or asked(r"painted: (\d+) of", text)[0])
    cells = list(product(range(n), repeat=2))
    last = n - 1
    moves = [
        lambda r, c: (r, c),
        lambda r, c: (c, last - r),
        lambda r, c: (last - r, last - c),
        lambda r, c: (last - c, r),
    ]
    if "reflection" in text:
        moves += [lambda r, c: (c, r), lambda r, c: (r, last - c), lambda r, c: (last - r, c),
                  lambda r, c: (last - c, last - r)]  # fmt: skip
    found = [tuple(a * n + b for a, b in (move(*cell) for cell in cells)) for move in moves]
    return kept(found, [black], int(asked(r"of (\d+) other colours", text)[0]))


@reads("necklaces")
def _(text: str) -> int:
    n = int(asked(r"(\d+) beads", text)[0])
    moves = [tuple((at + turn) % n for at in range(n)) for turn in range(n)]
    if "flip" in text:
        moves += [tuple((turn - at) % n for at in range(n)) for turn in range(n)]
    if "each in one" not in text:
        counts = [int(one) for one in re.findall(r"(\d+) (?!beads)[a-z]+", asked(r"beads, (.*?)[?.]", text)[0])]
        return kept(moves, counts[1:], 1)  # the places that are left have the first colour
    k = int(asked(r"in one of (\d+) colours", text)[0])
    if "neighbouring" not in text:
        return kept(moves, [], k)
    return sum(proper(move, n, k) for move in moves) // len(moves)


def proper(move: Permutation, n: int, k: int) -> int:
    """Counts the colourings with different neighbours that a move keeps: those of the graph of its cycles."""
    of = {at: place for place, cycle in enumerate(orbits(move)) for at in cycle}
    edges = {frozenset({of[at], of[(at + 1) % n]}) for at in range(n)}
    size = len(set(of.values()))
    if any(len(edge) == 1 for edge in edges):
        return 0
    return k * (k - 1) ** (size - 1) if len(edges) == size - 1 else (k - 1) ** size + (-1) ** size * (k - 1)


@reads("terms_of_linear_recurrences")
def _(text: str) -> int:
    first, second = whole(r"a\(0\) = (\d+), a\(1\) = (\d+)", text)
    rule = asked(r"a\(n\) = (.*?) (?:for all|from n)", text)[0]
    u, v = (sign * int(size or 1) for sign, size in _weights(rule))
    p = next(int(one) for one in re.findall(r"(?:divided by|the prime) (\d+)", text))
    index = asked(r"N = (.*?)(?:\. What|, find)", text)[0]
    terms, pair = [], (first % p, second % p)
    while not terms or pair != (first % p, second % p):
        terms.append(pair[0])
        pair = pair[1], (u * pair[1] + v * pair[0]) % p
    at = sum(by_period([int(one) for one in re.findall(r"\d+", part)], len(terms)) for part in index.split(" + "))
    return terms[at % len(terms)]


def _weights(rule: str) -> Iterator[tuple[int, str]]:
    for place in (1, 2):
        sign, size = asked(rf"(-?)\s?(\d*)\*?a\(n-{place}\)", rule)
        yield (-1 if sign else 1), size


@reads("terms_of_squaring_sequences")
def _(text: str) -> int:
    """In the field with p^2 elements: z = (s + sqrt(s^2 - 4))/2, whose order divides p - 1 or p + 1."""
    start = int(asked(r"x\(0\) = (\d+)", text)[0])
    n = int(asked(r"x\((\d{1,})\) (?:is|on)", text)[0])
    p = int(asked(r"(?:the prime|division by) (\d+)", text)[0])
    d, half = (start * start - 4) % p, pow(2, -1, p)
    exponent = pow(2, n, p - 1 if pow(d, (p - 1) // 2, p) == 1 else p + 1)
    (a, b), (c, e) = (1, 0), (start * half % p, half)
    while exponent:
        if exponent % 2:
            a, b = (a * c + b * e * d) % p, (a * e + b * c) % p
        c, e, exponent = (c * c + e * e * d) % p, 2 * c * e % p, exponent // 2
    return 2 * a % p


@reads("grid_paths")
def _(text: str) -> int:
    """By the chains of blocked points that a path passes, with alternating signs."""
    cells = [(int(x), int(y)) for x, y in re.findall(r"\((\d+), (\d+)\)", text)]
    p = whole(r"(?:divided by|division by) (\d+)", text)[0]
    start, end, blocked = cells[0], cells[1], sorted(cells[2:])
    total = 0
    for size in range(len(blocked) + 1):
        for chain in combinations(blocked, size):
            steps = [(b[0] - a[0], b[1] - a[1]) for a, b in pairwise((start, *chain, end))]
            if all(min(step) >= 0 for step in steps):
                total += (-1) ** size * prod(int(binomial_mod(x + y, x, p)) for x, y in steps)
    return total % p


@reads("words_without_a_block")
def _(text: str) -> int:
    """By the recurrence of the block's overlaps with itself (Guibas and Odlyzko 1981)."""
    n, names, block, p = words_of(text)
    size = len(block)
    overlaps = [int(block.startswith(block[at:])) for at in range(size)]
    # (1 - names x) c(x) + x^size, and c(x) above it: a(n) is the coefficient of x^n.
    below = [(overlaps[at] if at < size else 0) - (names * overlaps[at - 1] if at else 0) for at in range(size + 1)]
    below[size] += 1
    above = overlaps
    while n:  # Bostan and Mori
        other = [one * (-1) ** at for at, one in enumerate(below)]
        above = _product(above, other, p)[n % 2 :: 2]
        below = _product(below, other, p)[::2]
        n //= 2
    return above[0] * pow(below[0], -1, p) % p if above else 0


def words_of(text: str) -> tuple[int, int, str, int]:
    n, p = whole(r"ords? of (\d+) letters", text)[0], whole(r"the prime (\d+)", text)[0]
    names = asked(r"(?:alphabet|the letters) (A.*?) ?(?:that|, each)", text)[0]
    return n, len(re.findall(r"[A-D]", names)), asked(r"(?:block|letters) ([A-D]{2,})", text)[0], p


def _product(a: Sequence[int], b: Sequence[int], p: int) -> list[int]:
    found = [0] * (len(a) + len(b) - 1)
    for at, one in enumerate(a):
        for place, other in enumerate(b):
            found[at + place] = (found[at + place] + one * other) % p
    return found
