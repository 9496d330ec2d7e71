"""Probabilities by exact enumeration: dice, urns, coins, hidden causes, meetings on a line, first successes."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import comb, prod
from random import Random

from curriculum.contract.topics import Item
from curriculum.tasksets.statements import listed, mathematics, say, worked

HOW = "Give the probability as an exact fraction."
NULLS = ("0", "1", "1/2")
COUNTS = ("no", "one", "two", "three", "four")


PROBABILITIES = sorted({Fraction(a, b) for b in range(2, 10) for a in range(1, b)})


def sums_of_dice(dice: Sequence[int]) -> list[int]:
    """Counts, for each sum from 0 on, the throws of dice with these numbers of sides that have it."""
    ways = [1]
    for sides in dice:
        ways = [
            sum(ways[total - each] for each in range(1, sides + 1) if 0 <= total - each < len(ways))
            for total in range(len(ways) + sides)
        ]
    return ways


def _dice(level: int, rng: Random) -> Item:
    dice = sorted(rng.choices((4, 6, 8, 10, 12, 20), k=2 + level // 2))
    ways = sums_of_dice(dice)
    kind = rng.choice(("exactly", "at least", "divisible by")[: 2 + (level > 0)])
    number = rng.randint(3, 6 + level) if kind == "divisible by" else rng.randint(len(dice) + 1, sum(dice) - 1)
    good = {"exactly": ways[number], "at least": sum(ways[number:]), "divisible by": sum(ways[::number])}[kind]
    text = say(
        rng,
        (
            ("Fair dice with {sides} sides, numbered from 1, are thrown. What is the probability that their sum is"
            " {rule}? {how}"),
            ("Someone throws {count} fair dice, with {sides} sides, numbered from 1. How likely is a sum that is"
            " {rule}? {how}"),
        ),
        count=COUNTS[len(dice)], sides=listed(dice), rule=f"{kind} {number}", how=HOW,
    )  # fmt: skip
    return worked(text, f"{dice} {kind} {number}", Fraction(good, prod(dice)))


def _urn(level: int, rng: Random) -> Item:
    colours = ("red", "blue", "green")[: 2 if level < 2 else 3]
    counts = [rng.randint(3, 14 + 2 * level) for _ in colours]
    drawn = [rng.randint(1, min(count, 2 + level // 2)) for count in counts]
    total, size = sum(counts), sum(drawn)
    back = rng.random() < 0.5
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
    have = listed([f"{count} {colour}" for count, colour in zip(counts, colours, strict=True)])
    want = listed([f"{take} {colour}" for take, colour in zip(drawn, colours, strict=True)])
    text = say(
        rng,
        (
            ("An urn holds {have} balls. From it {size} balls are drawn at random, {way}. What is the probability of"
            " drawing exactly {want} balls, in any order? {how}"),
            ("From a bag with {have} balls, one draws {size} balls at random, {way}. How likely is it to get exactly"
            " {want} balls, in any order? {how}"),
        ),
        have=have, size=size, want=want, how=HOW,
        way="each put back before the next is drawn" if back else "one after the other, without putting any back",
    )  # fmt: skip
    return worked(text, f"{sorted(zip(counts, drawn, strict=True))} {back}", value)


def _coins(level: int, rng: Random) -> Item:
    n = rng.randint(4 + level, 8 + 2 * level)
    heads = rng.choice(PROBABILITIES)
    low = rng.randint(1, n - 2)
    high = rng.choice((low, n)) if level < 3 else rng.randint(low, n - 1)
    value = sum((comb(n, k) * heads**k * (1 - heads) ** (n - k) for k in range(low, high + 1)), Fraction())
    rule = f"exactly {low}" if low == high else f"at least {low}" if high == n else f"from {low} to {high}"
    text = say(
        rng,
        (
            ("A coin shows heads with the probability {p}. It is thrown {n} times, independently. What is the"
            " probability that heads comes up {rule} time{s}? {how}"),
            ("Each of {n} independent trials succeeds with the probability {p}. What is the probability of {rule}"
            " success{es}? {how}"),
        ),
        p=heads, n=n, rule=rule, how=HOW, s="s" * (rule[-2:] != " 1"), es="es" * (rule[-2:] != " 1"),
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
    n, run, heads = rng.randint(4 + level, 12 + 2 * level), rng.randint(2, 3 + level // 2), rng.choice(PROBABILITIES)
    # The probability of no such run so far, by the number of heads since the last tails.
    without = [Fraction(1)] + [Fraction(0)] * (run - 1)
    for _ in range(n):
        without = [sum(without) * (1 - heads), *(one * heads for one in without[:-1])]
    text = say(
        rng,
        (
            ("A coin shows heads with the probability {p}. It is thrown {n} times. What is the probability that heads"
            " comes up at least {run} times in a row somewhere? {how}"),
            ("Each of {n} independent trials succeeds with the probability {p}. How likely is a run of {run} or more"
            " consecutive successes? {how}"),
        ),
        n=n, run=run, p=heads, how=HOW,
    )  # fmt: skip
    return worked(text, f"{n} {run} {heads}", 1 - sum(without, Fraction(0)))


def _ruin(level: int, rng: Random) -> Item:
    end = rng.randint(4 + level, 8 + 2 * level)
    start = rng.randint(1, end - 1)
    up = rng.choice(PROBABILITIES)
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
    2,
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
