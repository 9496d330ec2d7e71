"""Answers of mathematics found by trying everything, from the words of the question; None where that takes too long."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, permutations, product
from math import comb, gcd, lcm, perm

BY_TRYING: dict[str, Callable[[str], object]] = {}


def by_trying(topic: str) -> Callable[[Callable[[str], object]], Callable[[str], object]]:
    def note(find: Callable[[str], object]) -> Callable[[str], object]:
        BY_TRYING[topic] = find
        return find

    return note


def numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"-?\d+", text)]


def asked(pattern: str, text: str) -> tuple[str, ...]:
    found = re.search(pattern, text)
    assert found is not None, text
    return found.groups()


def is_divisible(text: str) -> tuple[int, list[tuple[int, int]]]:
    pairs = [(int(r), int(m)) for r, m in re.findall(r"remainder (\d+) when divided by (\d+)", text)]
    return lcm(*(m for _, m in pairs)), pairs


@by_trying("modular_inverse")
def _(text: str) -> int:
    last = int(asked(r"from 1 to (\d+)", text)[0])
    a = int(asked(r"inverse of (\d+)|multiplied by (\d+)", text)[0] or asked(r"multiplied by (\d+)", text)[0])
    return next(x for x in range(1, last + 1) if a * x % (last + 1) == 1)


@by_trying("chinese_remainder")
def _(text: str) -> int:
    every, pairs = is_divisible(text)
    return next(x for x in range(every) if all(x % m == r for r, m in pairs))


@by_trying("common_divisor")
def _(text: str) -> int:
    among = numbers(text)
    return max(each for each in range(1, min(among) + 1) if all(one % each == 0 for one in among))


@by_trying("common_multiple")
def _(text: str) -> int:
    among = numbers(text)
    return next(n for n in range(max(among), 10**9, max(among)) if all(n % one == 0 for one in among))


@by_trying("divisor_count")
def _(text: str) -> int:
    n = max(numbers(text))
    return sum(n % each == 0 for each in range(1, n + 1))


@by_trying("totient")
def _(text: str) -> int:
    n = max(numbers(text))
    return sum(gcd(each, n) == 1 for each in range(1, n + 1))


@by_trying("multiples_in_range")
def _(text: str) -> int:
    low, high = sorted(number for number in numbers(text.partition(" divisible ")[0].partition(" that are ")[0]))
    steps = numbers(asked(r"of (?:the numbers )?(\d.*)", text)[0])
    hits = [sum(n % step == 0 for step in steps) for n in range(low, high + 1)]
    return sum(hit == 1 if "exactly" in text else hit > 0 for hit in hits)


@by_trying("impossible_amounts")
def _(text: str) -> int:
    a, b = numbers(text)
    paid = {a * i + b * j for i in range(b + 1) for j in range(a + 1)}
    missing = [amount for amount in range(1, a * b) if amount not in paid]
    return len(missing) if "How many" in text else max(missing)


@by_trying("least_solution")
def _(text: str) -> int:
    a, sign, b, c = asked(r"(\d+)x ([+-]) (\d+)y = (-?\d+)", text)
    assert sign
    return next(x for x in range(1, 10**6) if (int(c) - int(a) * x) % int(b) == 0)


@by_trying("sums_of_two_squares")
def _(text: str) -> int:
    n = int(asked(r"y\^2 = (\d+)|Write (\d+) as", text)[0] or asked(r"Write (\d+) as", text)[0])
    squares = {x * x: x for x in range(int(n**0.5) + 2)}
    larger = [x for square, x in squares.items() if n - square in squares and x >= squares[n - square]]
    return max(larger) if "largest" in text else min(larger)


@by_trying("sums_and_products")
def _(text: str) -> int:
    b, a, c = map(int, asked(r"xy \+ (\d+)x \+ (\d+)y = (-?\d+)", text))
    found = [(x, (c - b * x) // (x + a)) for x in range(1, abs(c) + 1) if c > b * x and (c - b * x) % (x + a) == 0]
    if "How many" in text:
        return len(found)
    return max(x for x, _ in found) if "largest" in text else min(x + y for x, y in found)


@by_trying("differences_of_squares")
def _(text: str) -> int:
    n = int(asked(r"y\^2 = (\d+)", text)[0])
    found = [x for x in range(1, n) if x * x > n and is_square(x * x - n)]
    return max(found) if "largest" in text else min(found)


def is_square(number: int) -> bool:
    return int(number**0.5 + 0.5) ** 2 == number


@by_trying("letters")
def _(text: str) -> int | None:
    word = asked(r"([A-Z]{5,})", text)[0]
    size = int(asked(r"(?:words of|length|rows of) (\d+)", text)[0])
    if perm(len(word), size) > 300_000:
        return None
    begin = re.findall(r"begin with ([A-Z])", text)
    return sum(not begin or one[0] == begin[0] for one in set(permutations(word, size)))


@by_trying("words_without_a_block")
def _(text: str) -> int | None:
    size, block = int(asked(r"(\d+)", text)[0]), asked(r"([A-E]{2,})", text)[0]
    letters = sorted({*re.findall(r"\b([B-E])\b", text), "A"})
    if len(letters) ** size > 70_000:
        return None
    return sum(block not in "".join(word) for word in product(letters, repeat=size))


@by_trying("subsets_by_sum")
def _(text: str) -> int | None:
    listed = asked(r"((?:\d+, )+\d+(?: and \d+)?)", text)[0]
    target = int(asked(r"(?:remainder|sum is|congruent to) (\d+)", text)[0])
    m = int(asked(r"(?:divided by|modulo) (\d+)", text)[0])
    some = numbers(listed)
    return sum(sum(one) % m == target for size in range(len(some) + 1) for one in combinations(some, size))


@by_trying("sums_of_dice")
def _(text: str) -> Fraction:
    dice = numbers(asked(r"with ([\d, and]+) sides", text)[0])
    kind, number = asked(r"(exactly|at least|divisible by) (\d+)", text)
    sums = [sum(faces) for faces in product(*(range(1, sides + 1) for sides in dice))]
    n = int(number)
    good = {"exactly": lambda s: s == n, "at least": lambda s: s >= n, "divisible by": lambda s: s % n == 0}[kind]
    return Fraction(sum(map(good, sums)), len(sums))


@by_trying("runs")
def _(text: str) -> Fraction | None:
    p, n = Fraction(asked(r"probability (\d+/\d+)", text)[0]), int(asked(r"(?:thrown|Each of) (\d+)", text)[0])
    run = int(asked(r"(?:at least|run of) (\d+)", text)[0])
    if n > 13:
        return None
    good = ["".join(word).count("1") for word in product("01", repeat=n) if "1" * run in "".join(word)]
    return sum((p**ones * (1 - p) ** (n - ones) for ones in good), Fraction())


@by_trying("waiting_times")
def _(text: str) -> Fraction | None:
    if "die" not in text:
        p = Fraction(asked(r"probability (\d+/\d+)", text)[0])
        return int(asked(r"success number (\d+)", text)[0]) / p if "success number" in text else None
    sides = int(asked(r"with (\d+) faces", text)[0])
    faces = sides if "each face" in text else int(asked(r"until (\d+) different", text)[0])
    return sum((Fraction(sides, sides - seen) for seen in range(faces)), Fraction())


@by_trying("draws_without_return")
def _(text: str) -> Fraction:
    lots = r"Of (\d+) lots (\d+) win. Someone buys (\d+)"
    if "lots" in text:
        total, good, drawn = map(int, asked(lots, text))
    else:
        drawn, total, good = map(int, asked(r"(\d+) of (\d+) balls.*; (\d+) of", text))
    mean = Fraction(drawn * good, total)
    if "variance" not in text:
        return mean
    square = sum(Fraction(k * k * comb(good, k) * comb(total - good, drawn - k), comb(total, drawn))
                 for k in range(min(good, drawn) + 1) if drawn - k <= total - good)  # fmt: skip
    return square - mean**2
