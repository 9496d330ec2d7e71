"""Answers of the tasksets of mathematics, found again from the words of the question by another way: by trying all."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, permutations, product
from math import comb, gcd, lcm
from random import Random

from tables import table

from curriculum.contract.taskset import TaskDraft
from curriculum.contract.topics import TopicTaskset
from curriculum.names import PLACES
from curriculum.registry import TASKSETS, make_draft

EACH = 6
"""Questions of each topic."""
FOUND: dict[str, Callable[[str], object]] = {}
MATHEMATICS = ("numbers", "algebra", "calculus", "combinatorics", "geometry")


def by_trying(topic: str) -> Callable[[Callable[[str], object]], Callable[[str], object]]:
    def note(find: Callable[[str], object]) -> Callable[[str], object]:
        FOUND[topic] = find
        return find

    return note


def numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"-?\d+", text)]


def asked(pattern: str, text: str) -> tuple[str, ...]:
    found = re.search(pattern, text)
    assert found is not None, text
    return found.groups()


def is_prime(number: int) -> bool:
    return number > 1 and all(number % each for each in range(2, int(number**0.5) + 1))


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


@by_trying("prime_count")
def _(text: str) -> int:
    low, high = numbers(text)
    return sum(map(is_prime, range(low, high + 1)))


@by_trying("largest_prime_factor")
def _(text: str) -> int:
    n = numbers(text)[0]
    return max(each for each in range(2, 1000) if n % each == 0 and is_prime(each))


@by_trying("sums_of_two_primes")
def _(text: str) -> int:
    n = numbers(text)[-1] if "p + q" in text else numbers(text)[0]
    return sum(is_prime(p) and is_prime(n - p) for p in range(3, n // 2 + 1))


@by_trying("digit_occurrences")
def _(text: str) -> int:
    found = asked(r"from (\d+) to (\d+) are.*digit (\d)|digit (\d) occur in the list (\d+), ..., (\d+)", text)
    low, high, digit = found[:3] if found[0] else (found[4], found[5], found[3])
    return sum(str(number).count(digit) for number in range(int(low), int(high) + 1))


@by_trying("numbers_with_a_digit_sum")
def _(text: str) -> int:
    _one, end, total = numbers(text)
    return sum(sum(map(int, str(number))) == total for number in range(1, end + 1))


@by_trying("palindromes")
def _(text: str) -> int:
    low, high = numbers(text)
    return sum(str(number) == str(number)[::-1] for number in range(low, high + 1))


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
    n = int(asked(r"y\^2 = (\d+)", text)[0])
    top = int(n**0.5) + 1
    squares = {x * x for x in range(top + 1)}
    ways = [x for x in range(-top, top + 1) if n - x * x in squares]
    if "arbitrary" in text:
        return sum(1 if x * x == n else 2 for x in ways)
    return sum(x >= 0 for x in ways)


@by_trying("sums_and_products")
def _(text: str) -> int:
    b, a, c = map(int, asked(r"xy \+ (\d+)x \+ (\d+)y = (-?\d+)", text))
    return sum((c - b * x) > 0 and (c - b * x) % (x + a) == 0 for x in range(1, abs(c) + 1))


@by_trying("letters")
def _(text: str) -> int | None:
    word = asked(r"(?:of|letters) ([A-Z]{3,})", text)[0]
    if len(word) > 8:
        return None
    every = set(permutations(word))
    if "next to each other" in text:
        count, letter = asked(r"all (\d+) letters ([A-Z])", text)
        return sum(letter * int(count) in "".join(one) for one in every)
    return len(every)


@by_trying("words_without_a_block")
def _(text: str) -> int | None:
    n, run = (int(one) for one in asked(r"(?:length|words of) (\d+)", text) * 2)
    run = int(asked(r"no (\d) letters", text)[0]) if "no " in text else len(asked(r"block (A+)", text)[0])
    letters = {"A", *re.findall(r"\b([B-E])\b", text)}
    if len(letters) ** n > 70_000:
        return None
    return sum("A" * run not in "".join(word) for word in product(sorted(letters), repeat=n))


@by_trying("seats")
def _(text: str) -> int | None:
    n = numbers(text)[0]
    if n > 8:
        return None
    ruled = text.replace(str(n), "", 2 if "chairs" in text else 1)
    k = int(asked(r"(\d+)", ruled)[0]) if re.search(r"\d", ruled) else 2
    count = 0
    for order in permutations(range(n)):
        at = [order.index(one) for one in range(k)]
        count += (
            max(at) - min(at) == k - 1
            if "friends" in text
            else all(abs(a - b) > 1 for a, b in combinations(at, 2))
            if "rivals" in text
            else at == sorted(at)
            if "ages" in text
            else not {0, n - 1} & set(at)
        )
    return count


@by_trying("subsets_by_sum")
def _(text: str) -> int | None:
    shapes = (r"(?:1 to|1, \.\.\.,) (\d+)", r"(?:remainder|sum is) (\d+)", r"(?:divided by|modulo) (\d+)")
    n, target, m = (int(asked(shape, text)[0]) for shape in shapes)
    return sum(sum(one) % m == target for size in range(n + 1) for one in combinations(range(1, n + 1), size))


@by_trying("sums_of_dice")
def _(text: str) -> Fraction:
    count, sides = (
        (int(asked(pattern, text)[0]) for pattern in (r"(\d+) fair", r"1 to (\d+)|(\d+)-sided"))
        if ("1 to" in text)
        else (int(asked(r"(\d+) fair", text)[0]), int(asked(r"(\d+)-sided", text)[0]))
    )
    kind, number = asked(r"(exactly|at least|divisible by) (\d+)", text)
    sums = [sum(faces) for faces in product(range(1, sides + 1), repeat=count)]
    n = int(number)
    good = {"exactly": lambda s: s == n, "at least": lambda s: s >= n, "divisible by": lambda s: s % n == 0}[kind]
    return Fraction(sum(map(good, sums)), len(sums))


@by_trying("runs")
def _(text: str) -> Fraction:
    n = int(asked(r"(?:thrown|that) (\d+) t", text)[0])
    run = int(asked(r"at least (\d+) times|run of (\d+) or", text)[0] or asked(r"run of (\d+) or", text)[0])
    return Fraction(sum("1" * run in f"{one:0{n}b}" for one in range(2**n)), 2**n)


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


@by_trying("lattice_points")
def _(text: str) -> int:
    points = [(int(x), int(y)) for x, y in re.findall(r"\((-?\d+), (-?\d+)\)", text)][-3:]
    xs, ys = zip(*points, strict=True)
    inside = edge = 0
    for x, y in product(range(min(xs), max(xs) + 1), range(min(ys), max(ys) + 1)):
        sides = [
            (c - a) * (y - b) - (d - b) * (x - a)
            for (a, b), (c, d) in zip(points, [*points[1:], points[0]], strict=True)
        ]
        if all(side > 0 for side in sides) or all(side < 0 for side in sides):
            inside += 1
        elif all(side >= 0 for side in sides) or all(side <= 0 for side in sides):
            edge += 1
    return (
        inside if "strictly" in text else edge if "on the boundary" in text and "inside" not in text else inside + edge
    )


def questions(topic: str) -> list[TaskDraft]:
    """The first of this topic, from the lowest levels up."""
    name = next(name for name, taskset in TASKSETS.items() if topic in taskset.topics)
    made = (make_draft(name, seed % 3, seed) for seed in range(10_000))
    return [draft for _, draft in zip(range(EACH), (one for one in made if one.topic == topic), strict=False)]


@table("topic", FOUND)
def test_an_answer_is_what_trying_everything_finds(topic: str) -> None:
    checked = 0
    for draft in questions(topic):
        found = FOUND[topic](draft.messages[-1].text)
        if found is not None:
            assert str(found) == draft.answer, draft.messages[-1].text
            checked += 1
    assert checked


@table("name", [name for domain in MATHEMATICS for name in PLACES[domain]])
def test_no_answer_is_right_for_most_of_what_a_topic_asks(name: str) -> None:
    """Certification looks at a level as a whole; whoever knows a topic's words alone may not do much better."""
    taskset = TASKSETS[name]
    assert isinstance(taskset, TopicTaskset)
    for topic, make in taskset.makers.items():
        for level in range(taskset.level_count):
            answers = Counter(make(level, Random(seed)).answer for seed in range(60))
            assert answers.most_common(1)[0][1] <= 42, (topic, level, answers.most_common(3))
