"""Probabilities by exact enumeration: dice, urns, coins, hidden causes, meetings on a line, first successes."""

from __future__ import annotations

from fractions import Fraction
from math import comb
from random import Random

from curriculum.contract.topics import Item
from curriculum.tasksets.statements import mathematics, say, worked

HOW = "Give the probability as an exact fraction."
NULLS = ("0", "1", "1/2")


def sums_of_dice(count: int, sides: int) -> list[int]:
    """Counts, for each sum from 0 on, the throws of `count` dice that have it."""
    ways = [1]
    for _ in range(count):
        ways = [
            sum(ways[total - each] for each in range(1, sides + 1) if 0 <= total - each < len(ways))
            for total in range(len(ways) + sides)
        ]
    return ways


def _dice(level: int, rng: Random) -> Item:
    count, sides = 2 + level // 2, rng.choice((4, 6, 8, 10, 12)[: 3 + level // 2])
    ways = sums_of_dice(count, sides)
    kind = rng.choice(("exactly", "at least", "divisible by")[: 2 + (level > 0)])
    number = rng.randint(3, 6 + level) if kind == "divisible by" else rng.randint(count + 1, count * sides - 1)
    good = {"exactly": ways[number], "at least": sum(ways[number:]), "divisible by": sum(ways[::number])}[kind]
    text = say(
        rng,
        (
            ("{count} fair dice with the faces 1 to {sides} are thrown. What is the probability that their sum is"
            " {rule}?"
            " {how}"),
            ("Someone throws {count} fair {sides}-sided dice, numbered from 1. How likely is a sum that is"
            " {rule}? {how}"),
        ),
        count=count, sides=sides, rule=f"{kind} {number}", how=HOW,
    )  # fmt: skip
    return worked(text, f"{count} {sides} {kind} {number}", Fraction(good, sides**count))


def _urn(level: int, rng: Random) -> Item:
    colours = ("red", "blue", "green")[: 2 if level < 2 else 3]
    counts = [rng.randint(2, 5 + 2 * level) for _ in colours]
    drawn = [rng.randint(1, min(count, 1 + (level + 1) // 2)) for count in counts]
    total, size = sum(counts), sum(drawn)
    back = level > 0 and rng.random() < 0.5
    if back:
        value, left = Fraction(1), size
        for count, take in zip(counts, drawn, strict=True):
            value *= comb(left, take) * Fraction(count, total) ** take
            left -= take
    else:
        good = 1
        for count, take in zip(counts, drawn, strict=True):
            good *= comb(count, take)
        value = Fraction(good, comb(total, size))
    have = ", ".join(f"{count} {colour}" for count, colour in zip(counts, colours, strict=True))
    want = ", ".join(f"{take} {colour}" for take, colour in zip(drawn, colours, strict=True))
    text = say(
        rng,
        (
            ("An urn holds these balls: {have}. {size} of them are drawn at random, {way}. What is the probability of"
            " drawing exactly {want}, in any order? {how}"),
            ("From a bag with the balls {have} one draws {size} times at random, {way}. How likely is it to get exactly"
            " {want}, in any order? {how}"),
        ),
        have=have, size=size, want=want, how=HOW,
        way="each put back before the next is drawn" if back else "one after the other, without putting any back",
    )  # fmt: skip
    return worked(text, f"{sorted(zip(counts, drawn, strict=True))} {back}", value)


def _coins(level: int, rng: Random) -> Item:
    n = rng.randint(4 + level, 6 + 2 * level)
    heads = Fraction(1, 2) if level < 2 else Fraction(rng.randint(1, 3), rng.randint(4, 5))
    low = rng.randint(1, n - 2)
    high = rng.choice((low, n)) if level < 3 else rng.randint(low, n - 1)
    value = sum((comb(n, k) * heads**k * (1 - heads) ** (n - k) for k in range(low, high + 1)), Fraction())
    rule = f"exactly {low}" if low == high else f"at least {low}" if high == n else f"from {low} to {high}"
    text = say(
        rng,
        (
            ("A coin shows heads with the probability {p}. It is thrown {n} times, independently. What is the"
            " probability of {rule} heads? {how}"),
            "Each of {n} independent trials succeeds with the probability {p}. How likely are {rule} successes? {how}",
        ),
        p=heads, n=n, rule=rule, how=HOW,
    )  # fmt: skip
    return worked(text, f"{n} {heads} {low} {high}", value)


def _causes(level: int, rng: Random) -> Item:
    count = 2 + level // 2
    weights = [rng.randint(1, 4 + level) for _ in range(count)]
    rates = [Fraction(rng.randint(1, 9 + 5 * level), 20 + 10 * level) for _ in range(count)]
    at = rng.randrange(count)
    defect = sum((Fraction(w, sum(weights)) * r for w, r in zip(weights, rates, strict=True)), Fraction())
    value = Fraction(weights[at], sum(weights)) * rates[at] / defect
    names = "ABCD"[:count]
    shares = "; ".join(
        f"machine {name} makes {Fraction(w, sum(weights))} of all parts, and {r} of its parts are faulty"
        for name, w, r in zip(names, weights, rates, strict=True)
    )
    text = say(
        rng,
        (
            ("In a factory {shares}. A part chosen at random is faulty. What is the probability that machine"
            " {name} made"
            " it? {how}"),
            ("Of a factory it is known: {shares}. Given that a random part is faulty, how likely does it come from"
            " machine {name}? {how}"),
        ),
        shares=shares, name=names[at], how=HOW,
    )  # fmt: skip
    causes = [f"{Fraction(w, sum(weights))} {r}" for w, r in zip(weights, rates, strict=True)]
    return worked(text, f"{sorted(causes)} {causes[at]}", value)


def _runs(level: int, rng: Random) -> Item:
    n, run = rng.randint(4 + level, 6 + 3 * level), rng.randint(2, 2 + (level > 0) + (level > 2))
    without = [1] + [0] * (run - 1)
    for _ in range(n):
        without = [sum(without), *without[:-1]]
    text = say(
        rng,
        (
            ("A fair coin is thrown {n} times. What is the probability that heads comes up at least {run} times"
            " in a row"
            " somewhere? {how}"),
            "How likely is it that {n} throws of a fair coin contain a run of {run} or more consecutive heads? {how}",
        ),
        n=n, run=run, how=HOW,
    )  # fmt: skip
    return worked(text, f"{n} {run}", 1 - Fraction(sum(without), 2**n))


def _ruin(level: int, rng: Random) -> Item:
    end = rng.randint(4 + level, 8 + 2 * level)
    start = rng.randint(1, end - 1)
    up = Fraction(1, 2) if level == 0 else Fraction(rng.randint(1, 2 + level), 5 + level)
    odds = (1 - up) / up
    value = Fraction(start, end) if odds == 1 else (1 - odds**start) / (1 - odds**end)
    text = say(
        rng,
        (
            ("A player owns {start} coins. Each round she wins one coin with the probability {up} and loses one"
            " otherwise. She stops at {end} coins or at none. What is the probability that she stops at {end}? {how}"),
            ("A walk starts at {start}; each step is +1 with the probability {up} and -1 otherwise, independently. How"
            " likely does it reach {end} before 0? {how}"),
        ),
        start=start, end=end, up=up, how=HOW,
    )  # fmt: skip
    return worked(text, f"{start} {end} {up}", value)


PROBABILITY = mathematics(
    "probability",
    1,
    {
        "sums_of_dice": _dice,
        "urns": _urn,
        "heads_and_tails": _coins,
        "hidden_causes": _causes,
        "runs": _runs,
        "random_walks": _ruin,
    },
    NULLS,
)
