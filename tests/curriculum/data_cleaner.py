"""Reports from messy files of deliveries, by their dictionary and errata alone: the generator takes no part in this."""

from __future__ import annotations

import csv
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

FACTORS = {"g": 1, "kg": 1_000, "t": 1_000_000}
LINE = re.compile(
    r'(\S+) INFO delivery number=(\S+) revision=(\S+) article=(\S+) customer="(.*?)"'
    r'(?: pieces=(\S+))?(?: weight="(.*?)")?$'
)
DEPOT = re.compile(r"- (depot_\w+\.\w+): (\w+), (\w+); times: (.*?); weights: (\w+)(, with a decimal comma)?$", re.M)
NAMES = ("time", "number", "revision", "article", "customer", "pieces", "weight")


def rows_of(name: str, text: str) -> Iterator[Mapping[str, Any]]:
    if name.endswith(".csv"):
        yield from csv.DictReader(text.splitlines(), delimiter=";")
    elif name.endswith(".json"):
        yield from json.loads(text)
    else:
        for line in text.splitlines():
            if found := LINE.match(line):
                yield dict(zip(NAMES, found.groups(), strict=True))


def day_of(text: str, rule: str) -> str:
    if rule.startswith("seconds"):
        when = datetime.fromtimestamp(int(text), UTC)
    elif rule.startswith("ISO"):
        when = datetime.fromisoformat(text)
    else:
        form = "%d.%m.%Y %H:%M" if rule.startswith("DD") else "%m/%d/%Y %H:%M"
        hours = int(rule.rpartition("UTC")[2])
        when = datetime.strptime(text, form).replace(tzinfo=timezone(timedelta(hours=hours)))
    return when.astimezone(UTC).strftime("%Y-%m-%d")


def grams_of(text: str, unit: str) -> int:
    number, _, own = text.replace(",", ".").partition(" ")
    grams = Decimal(number) * FACTORS[own or unit]
    assert grams == int(grams)
    return int(grams)


def cleaned(files: Mapping[str, str], first: str, last: str) -> dict[str, Any]:
    """All fields of a report on the days from `first` to `last`."""
    errata = files["errata.md"]
    [(code, since, cents)] = re.findall(r"price of (\w+) since (\S+) is (\d+) cents", errata)
    void = set(re.findall(r"- (\S+) never took place", errata))
    scales = re.findall(r"scale of (\w+) showed (\d+) g too much from (\S+) to (\S+) ", errata)
    prices: dict[str, list[tuple[str, int]]] = defaultdict(list)
    nominal = {}
    for row in csv.DictReader(files["articles.csv"].splitlines()):
        right = cents if (row["code"], row["since"]) == (code, since) else row["cents"]
        prices[row["code"]].append((row["since"], int(right)))
        nominal[row["code"]] = int(row["grams"])
    aliases, towns = json.loads(files["aliases.json"]), {}
    newest: dict[str, tuple[int, dict[str, Any]]] = {}
    for name, town, letters, times, unit, _ in DEPOT.findall(files["dictionary.md"]):
        towns[letters] = town
        for row in rows_of(name, files[name]):
            customer = " ".join(row["customer"].upper().split())
            if customer.startswith("TEST"):
                continue
            article = row["article"]
            while article in aliases:
                article = aliases[article]
            pieces = 1 if row.get("pieces") in (None, "", "-") else int(row["pieces"])
            day, weight = day_of(str(row["time"]), times), row.get("weight")
            if weight in (None, "", "-"):
                grams = pieces * nominal[article]
            else:
                wrong = [int(more) for depot, more, a, b in scales if row["number"][:2] == depot and a <= day <= b]
                grams = grams_of(weight, unit) - sum(wrong)
            price = max((since, value) for since, value in prices[article] if since <= day)[1]
            record = {"day": day, "article": article, "customer": customer, "pieces": pieces, "grams": grams}
            revision = int(row["revision"])
            if revision >= newest.get(row["number"], (0, {}))[0]:
                newest[row["number"]] = revision, {**record, "cents": pieces * price}
    kept = {
        number: (revision, one)
        for number, (revision, one) in newest.items()
        if one["pieces"] and number not in void and first <= one["day"] <= last
    }
    some = [one for _, one in kept.values()]
    totals: dict[str, dict[str, int]] = {name: defaultdict(int) for name in ("customer", "article", "day")}
    for one in some:
        totals["customer"][one["customer"]] += one["cents"]
        totals["article"][one["article"]] += one["cents"]
        totals["day"][one["day"]] += 1
    ranked = {name: sorted(of, key=lambda key, of=of: (-of[key], key)) for name, of in totals.items()}
    return {
        "deliveries": len(some),
        **{name: sum(one[name] for one in some) for name in ("pieces", "grams", "cents")},
        "by_depot": {
            town: sum(one["grams"] for number, (_, one) in kept.items() if number.startswith(letters))
            for letters, town in towns.items()
        },
        "best_customer": ranked["customer"][0],
        "revised": sum(revision > 1 for revision, _ in kept.values()),
        "busiest_day": ranked["day"][0],
        "heaviest": min(kept, key=lambda number: (-kept[number][1]["grams"], number)),
        "best_articles": ranked["article"][:3],
    }
