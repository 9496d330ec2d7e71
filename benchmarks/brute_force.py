"""Answers of mathematics found by trying everything, from the words of the question; None where that takes too long."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import gcd, lcm

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
