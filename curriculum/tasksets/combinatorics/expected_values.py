"""Expected values and variances, exact: tables, dice, urns, waiting times, largest numbers, matches."""

from __future__ import annotations

from fractions import Fraction
from math import comb
from random import Random

from curriculum.contract.topics import Item
from curriculum.tasksets.combinatorics.probability import PROBABILITIES, sums_of_dice
from curriculum.tasksets.statements import EXACT, mathematics, nonzero, say, worked


def _moments(table: list[tuple[Fraction, Fraction]]) -> tuple[Fraction, Fraction]:
    """Returns mean and variance of (value, probability) pairs."""
    mean = sum((x * p for x, p in table), Fraction())
    return mean, sum((p * (x - mean) ** 2 for x, p in table), Fraction())


def _table(level: int, rng: Random) -> Item:
    count = 3 + level // 2
    values = rng.sample(range(-6 - 3 * level, 11 + 3 * level), count)
    weights = [rng.randint(1, 4 + 2 * level) for _ in values]
    table = [(Fraction(x), Fraction(w, sum(weights))) for x, w in zip(values, weights, strict=True)]
    mean, variance = _moments(table)
    spread = level > 0 and rng.random() < 0.5
    text = say(
        rng,
        (
            "A random number takes these values: {table}. What is its {what}? {how}",
            "Find the {what} of a random variable with the distribution {table}. {how}",
        ),
        table="; ".join(f"{x} with the probability {p}" for x, p in table),
        what="variance" if spread else "expected value", how=EXACT,
    )  # fmt: skip
    key = f"{sorted((str(x), str(p)) for x, p in table)} {spread}"
    return worked(text, key, variance if spread else mean)


def _game(level: int, rng: Random) -> Item:
    count, sides = 1 + (level + 1) // 2, rng.choice((4, 6, 8, 10))
    ways, stake, prize = sums_of_dice([sides] * count), rng.randint(1, 9 + 4 * level), rng.randint(10, 60 + 30 * level)
    low = rng.randint(count + 1, count * sides)
    value = Fraction(prize * sum(ways[low:]), sides**count) - stake
    dice = (
        f"{count} fair dice with the faces 1 to {sides}" if count > 1 else f"one fair die with the faces 1 to {sides}"
    )
    text = say(
        rng,
        (
            ("A game costs {stake} coin{s}. One throws {dice} and gets {prize} coins if the sum is at least {low}, and"
            " nothing otherwise. What is the expected gain after the cost, in coins (negative for a loss)? {how}"),
            ("For {stake} coin{s} one may throw {dice}. A total of {low} or more pays {prize} coins, anything else"
            " nothing."
            " Find the expected balance in coins, negative for a loss. {how}"),
        ),
        stake=stake, s="s" * (stake > 1), dice=dice, prize=prize, low=low, how=EXACT,
    )  # fmt: skip
    return worked(text, f"{count} {sides} {stake} {prize} {low}", value)


def _largest(level: int, rng: Random) -> Item:
    n, k = rng.randint(8 + 3 * level, 75 + 8 * level), rng.randint(2, 5 + level)
    smallest, back = rng.random() < 0.5, level > 1 and rng.random() < 0.5
    if back:
        # The sum over t of the probability that the largest is at least t.
        value = sum((1 - Fraction(t - 1, n) ** k for t in range(1, n + 1)), Fraction())
    else:
        value = Fraction(k * (n + 1), k + 1)
    if smallest:
        value = n + 1 - value
    text = say(
        rng,
        (
            ("From the cards 1 to {n}, {k} are drawn at random, {way}. What is the expected value of the {which} number"
            " drawn? {how}"),
            ("Someone draws {k} of the numbers 1, ..., {n} at random, {way}. What is the {which} of them on"
            " average? {how}"),
        ),
        n=n, k=k, which="smallest" if smallest else "largest", how=EXACT,
        way="each put back before the next" if back else "all of them different",
    )  # fmt: skip
    return worked(text, f"{n} {k} {smallest} {back}", value)


def _waiting(level: int, rng: Random) -> Item:
    p, k = rng.choice(PROBABILITIES), rng.randint(2, 20 + level)
    kind = rng.choice(("several", "all", "run")[: 1 + (level + 1) // 2])
    if kind == "all":
        sides = rng.randint(4, 20 + 2 * level)
        k = rng.randint(3, sides)
        which = "each face has come up at least once" if k == sides else f"{k} different faces have come up"
        what = f"A fair die with {sides} faces is thrown until {which}"
        value, key = sum((Fraction(sides, left) for left in range(sides - k + 1, sides + 1)), Fraction()), f"{sides}"
    else:
        k = k if kind == "several" else rng.randint(2, 5 + level)
        end = f"success number {k} has occurred" if kind == "several" else f"{k} successes have come in a row"
        what = f"Independent trials succeed with the probability {p} each and go on until {end}"
        value = k / p if kind == "several" else sum((1 / p**at for at in range(1, k + 1)), Fraction())
        key = f"{p}"
    text = say(
        rng,
        (
            "{what}. What is the expected number of {unit}, the last one included? {how}",
            "{what}. How many {unit} does this take on average, the last one included? {how}",
        ),
        what=what, unit="throws" if kind == "all" else "trials", how=EXACT,
    )  # fmt: skip
    return worked(text, f"{kind} {key} {k}", value)


def _indicators(level: int, rng: Random) -> Item:
    n, p, sides = rng.randint(5 + level, 24 + 4 * level), rng.choice(PROBABILITIES), rng.randint(3, 20)
    coins = f"A coin that shows heads with the probability {p} is thrown {n} times"
    dice = f"A fair die with the faces 1 to {sides} is thrown {n} times"
    kinds = (
        (f"{coins}. Count the pairs of consecutive throws that show the same side", (n - 1) * (p * p + (1 - p) ** 2)),
        (
            f"{dice}. Count the pairs of throws, consecutive or not, that show the same face",
            Fraction(n * (n - 1), 2 * sides),
        ),
        (
            f"{coins}. Count the runs, that is the longest blocks of consecutive equal sides",
            1 + 2 * (n - 1) * p * (1 - p),
        ),
        (f"{coins}. Take the square of the number of heads", n * p * (1 - p) + (n * p) ** 2),
        (f"{dice}. Count the faces that never come up", sides * Fraction(sides - 1, sides) ** n),
    )
    what, value = kinds[rng.randrange(2 + (level + 1) // 2 + (level > 3))]
    text = say(
        rng, ("{w}. What is the expected result? {how}", "{w}. What comes out on average? {how}"), w=what, how=EXACT
    )
    return worked(text, what, value)


def _scaled(level: int, rng: Random) -> Item:
    a, b = nonzero(rng, 4 + level), nonzero(rng, 4 + level)
    means = [rng.randint(-9, 9 + level) for _ in range(2)]
    variances = [rng.randint(1, 9 + 2 * level) for _ in range(2)]
    covariance = 0 if level < 2 else nonzero(rng, 2)
    if covariance**2 > variances[0] * variances[1]:
        covariance = 0
    kind = rng.choice(("mean", "variance", "square")[: 2 + (level > 0)])
    mean = a * means[0] + b * means[1]
    variance = a * a * variances[0] + b * b * variances[1] + 2 * a * b * covariance
    value = {"mean": mean, "variance": variance, "square": variance + mean**2}[kind]
    wanted = {"mean": "expected value of {z}", "variance": "variance of {z}", "square": "expected value of ({z})^2"}[
        kind
    ]
    z = f"{a}X {'-' if b < 0 else '+'} {abs(b)}Y"
    text = say(
        rng,
        (
            ("Random variables X and Y {tie}. X has the mean {m} and the variance {v}, Y the mean {n} and the variance"
            " {w}. What is the {wanted}? {how}"),
            ("X has the expected value {m} and the variance {v}; Y has the expected value {n} and the variance"
            " {w}; they"
            " {tie}. Find the {wanted}. {how}"),
        ),
        tie=f"have the covariance {covariance}" if covariance else "are independent", m=means[0], v=variances[0],
        n=means[1], w=variances[1], wanted=wanted.format(z=z), how=EXACT,
    )  # fmt: skip
    return worked(text, f"{a} {b} {means} {variances} {covariance} {kind}", Fraction(value))


def _hypergeometric(level: int, rng: Random) -> Item:
    total = rng.randint(10 + 2 * level, 24 + 6 * level)
    good, drawn = rng.randint(2, total - 2), rng.randint(2, total - 2)
    mean, variance = _moments(
        [
            (Fraction(k), Fraction(comb(good, k) * comb(total - good, drawn - k), comb(total, drawn)))
            for k in range(max(0, drawn - total + good), min(good, drawn) + 1)
        ]
    )
    spread = level > 1 and rng.random() < 0.6
    text = say(
        rng,
        (
            ("Of {total} lots {good} win. Someone buys {drawn} of them at random. What is the {what} of the number of"
            " winning lots bought? {how}"),
            ("{drawn} of {total} balls are drawn at random without putting any back; {good} of the {total} are"
            " red. Find"
            " the {what} of the number of red balls drawn. {how}"),
        ),
        total=total, good=good, drawn=drawn, what="variance" if spread else "expected value", how=EXACT,
    )  # fmt: skip
    return worked(text, f"{total} {good} {drawn} {spread}", variance if spread else mean)


EXPECTED_VALUES = mathematics(
    "expected_values",
    2,
    {
        "distributions": _table,
        "fair_games": _game,
        "largest_and_smallest": _largest,
        "waiting_times": _waiting,
        "expected_counts": _indicators,
        "linear_combinations": _scaled,
        "draws_without_return": _hypergeometric,
    },
)
