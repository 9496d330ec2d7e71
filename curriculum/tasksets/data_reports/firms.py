"""Clean data of a firm: depots, articles with prices, and deliveries. Pure.

Invariants: each delivery has its final values here, before any file is written. Sizes and the share of deliveries with
some irregularity grow with the level.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from random import Random
from typing import NamedTuple

from curriculum.tasksets.statements import GOODS, PEOPLE, TOWNS, TRADES

DEPOTS = (1, 2, 4, 6, 8)
DELIVERIES = (12, 40, 140, 450, 1_150)
DAYS = (10, 20, 30, 60, 90)
"""Depots, deliveries and days of a level."""
MESS = (0.0, 0.05, 0.06, 0.06, 0.06)
"""Share of deliveries with an irregularity, for each sort of it, by level."""
UNITS = {"g": 0, "kg": 3, "t": 6}
"""Decimal places of a weight in grams, by unit."""


class Depot(NamedTuple):
    """A depot, and how its file is written."""

    town: str
    sort: str
    """csv, json or log."""
    time: str
    offset: int
    """Hours from UTC of its local time, for times without an offset."""
    unit: str
    """Unit of weights without one."""
    comma: bool
    """True if decimals have a comma."""

    @property
    def code(self) -> str:
        return self.town[:2].upper()

    @property
    def file(self) -> str:
        return f"depot_{self.town.lower()}.{self.sort}"


class Article(NamedTuple):
    code: str
    good: str
    grams: int
    prices: tuple[tuple[date, int], ...]
    """Prices in cents with the day from which they hold, in that order."""

    def price(self, day: date) -> int:
        return next(cents for since, cents in reversed(self.prices) if since <= day)


class Delivery(NamedTuple):
    number: str
    revision: int
    when: datetime
    article: str
    customer: str
    pieces: int
    grams: int
    gap: str = ""
    """Field that its records lack: pieces or weight. Its value here is the dictionary's default."""


class Scale(NamedTuple):
    """A depot's scale that showed too much from one day to another."""

    depot: str
    grams: int
    first: date
    last: date


class Firm(NamedTuple):
    first: date
    last: date
    depots: tuple[Depot, ...]
    articles: dict[str, Article]
    aliases: dict[str, str]
    """Old codes of articles, each with the code that replaced it, which may be old itself."""
    deliveries: tuple[Delivery, ...]
    scales: tuple[Scale, ...]
    wrong_price: tuple[str, date, int]
    """Article, day and price of a row of the price list that is wrong."""


def _depot(town: str, place: int, level: int, rng: Random) -> Depot:
    sort = ("csv", "json", "log")[(place + level) % 3]
    time = rng.choice(("dots", "slashes") if sort == "csv" else ("iso", "epoch"))
    offset = rng.randint(-7, 9) if level else 0
    return Depot(town, sort, time, offset, rng.choice(tuple(UNITS)), sort == "csv" and rng.random() < 0.5)


def _articles(level: int, first: date, rng: Random) -> dict[str, Article]:
    found = {}
    for good in rng.sample(GOODS, 4 + level):
        days = sorted(rng.sample(range(DAYS[level]), (level + 1) // 2))
        since = [date(2025, 1, 1), *(first + timedelta(days=day) for day in days)]
        code = f"{good[:3].upper()}{rng.randint(10, 99)}"
        prices = tuple((day, rng.randint(150, 9_900)) for day in since)
        found[code] = Article(code, good, 5 * rng.randint(20, 900), prices)
    return found


def firm(level: int, rng: Random) -> Firm:
    first = date(2026, rng.randint(1, 9), rng.randint(1, 28))
    depots = tuple(_depot(town, at, level, rng) for at, town in enumerate(rng.sample(TOWNS, DEPOTS[level])))
    articles = _articles(level, first, rng)
    aliases: dict[str, str] = {}
    for code in rng.sample(list(articles), 1 + level // 2):
        for _ in range(rng.randint(1, 3)):
            old = f"X{len(aliases)}{rng.randint(100, 999)}"
            aliases[old] = code
            code = old  # noqa: PLW2901 - a chain of codes
    names = [f"{name} {trade}".upper() for name in rng.sample(PEOPLE, 4 + level) for trade in rng.sample(TRADES, 2)]
    begin = datetime(first.year, first.month, first.day, tzinfo=UTC) - timedelta(days=1)
    codes, minutes, number, share = list(articles), (DAYS[level] + 2) * 24 * 60, rng.randint(100, 9_000), MESS[level]
    deliveries = []
    for _ in range(DELIVERIES[level]):
        number += rng.randint(2, 9)  # the number after each is free
        article, pieces = articles[rng.choice(codes)], rng.randint(1, 40)
        gap = ""
        if (draw := rng.random()) < 2 * share:
            gap, pieces = ("weight", pieces) if draw < share else ("pieces", 1)
        grams = pieces * article.grams
        if gap != "weight":
            grams += rng.randint(0, grams // 10)
        deliveries.append(
            Delivery(
                f"{rng.choice(depots).code}-{number:05}", rng.randint(2, 3) if rng.random() < 2 * share else 1,
                begin + timedelta(minutes=rng.randrange(minutes)), article.code, rng.choice(names), pieces, grams, gap,
            )
        )  # fmt: skip
    scales = []
    for depot in rng.sample(depots, max(0, level - 1)):
        days = sorted(rng.sample(range(DAYS[level]), 2))
        from_, to = (first + timedelta(days=day) for day in days)
        scales.append(Scale(depot.code, rng.randint(3, 90), from_, to))
    article = articles[rng.choice(codes)]
    since, cents = rng.choice(article.prices)
    return Firm(
        first, first + timedelta(days=DAYS[level] - 1), depots, articles, aliases, tuple(deliveries), tuple(scales),
        (article.code, since, cents + rng.choice((-90, -9, 9, 90))),
    )  # fmt: skip
