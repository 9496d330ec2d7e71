"""Writes clean deliveries to messy files, with the data dictionary and the errata note that make sense of them. Pure.

Invariants: whatever is added (earlier revisions, copies, cancelled, void and test records, other units and codes) is
undone by a rule of the dictionary or the errata, and by nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from random import Random
from typing import NamedTuple

from curriculum.tasksets.data_reports.firms import MESS, UNITS, Depot, Firm

TIMES = {
    "dots": "DD.MM.YYYY hh:mm in local time, {zone}",
    "slashes": "MM/DD/YYYY hh:mm in local time, {zone}",
    "iso": "ISO 8601, each with its own offset",
    "epoch": "seconds since 1970-01-01T00:00Z",
}
ROW = "number;revision;time;article;customer;pieces;weight"
DICTIONARY = """\
# Data dictionary

Deliveries are in the files depot_TOWN.*, other lines of logs are of no interest. A record may be in any depot's file,
and in several. The letters of its number name the depot that delivered.

{depots}

- number, revision: of all records with one number, the one with the highest revision counts; the others are superseded.
  Records with the same number and revision are copies. A delivery whose counting record has 0 pieces was cancelled and
  does not count.
- time: days are days in UTC.
- article: a code of articles.csv, or an old code. aliases.json has the code that replaced an old one; that may be an
  old one, too.
- customer: capitals and the number of blanks mean nothing. Customers are reported in capitals, with single blanks.
  Records of customers whose name begins with TEST do not count at all.
- pieces: 1 if missing.
- weight: of the whole delivery, with a unit (g, kg or t) or in the unit of the file. If missing, it is the pieces times
  the grams of the article in articles.csv. The errata do not change a weight that is missing.
- value: the pieces times the price in cents of the article: of its rows in articles.csv, the one with the latest day in
  `since` that is not after the day of the delivery.
- missing: empty or - in CSV, null or no key in JSON, no key in logs.
"""


class RawRecord(NamedTuple):
    """One raw record, before it is written in a file's format."""

    number: str
    revision: int
    when: datetime
    article: str
    customer: str
    pieces: int | None
    grams: int | None


def files_of(firm: Firm, level: int, rng: Random) -> dict[str, str]:
    """Writes a firm's data to 5 to 12 files, by name."""
    void: list[str] = []
    records = _records(firm, MESS[level], void, rng)
    by_file: dict[Depot, list[RawRecord]] = {depot: [] for depot in firm.depots}
    homes = {depot.code: depot for depot in firm.depots}
    for record, strays in records:
        by_file[rng.choice(firm.depots) if strays else homes[record.number[:2]]].append(record)
    found = {"dictionary.md": _dictionary(firm), "errata.md": _errata(firm, void)}
    found["articles.csv"] = _articles(firm)
    found["aliases.json"] = json.dumps(firm.aliases, indent=1) + "\n"
    for depot, rows in by_file.items():
        rng.shuffle(rows)
        found[depot.file] = {"csv": _csv, "json": _json, "log": _log}[depot.sort](depot, rows, rng)
    return found


def _records(firm: Firm, share: float, void: list[str], rng: Random) -> list[tuple[RawRecord, bool]]:
    """Returns all records, and whether each may be in another depot's file. Adds numbers of void ones to `void`."""
    old: dict[str, list[str]] = {}
    for alias, code in firm.aliases.items():
        chain = code
        while chain in firm.aliases:
            chain = firm.aliases[chain]
        old.setdefault(chain, []).append(alias)
    found: list[tuple[RawRecord, bool]] = []
    for one in firm.deliveries:
        day, grams = one.when.date(), one.grams
        grams += sum(scale.grams for scale in firm.scales if scale.depot == one.number[:2]
                     and scale.first <= day <= scale.last)  # fmt: skip
        article = rng.choice(old[one.article]) if one.article in old and rng.random() < 3 * share else one.article
        record = RawRecord(
            one.number, one.revision, one.when, article, _spelt(one.customer, rng),
            None if one.gap == "pieces" else one.pieces, None if one.gap == "weight" else grams,
        )  # fmt: skip
        found.append((record, False))
        found += [
            (_other(record, rng)._replace(revision=earlier), rng.random() < 0.3) for earlier in range(1, one.revision)
        ]
        draw = rng.random() if share else 1.0
        if draw < share:
            found.append((record._replace(customer=_spelt(one.customer, rng)), True))
        elif draw < 3 * share:
            name = f"{one.number[:3]}{int(one.number[3:]) + 1:05}"
            decoy = _other(record, rng)._replace(number=name, revision=1)
            if draw < 1.5 * share:
                decoy = decoy._replace(customer=_spelt(f"TEST {one.customer}", rng))
            elif draw < 2 * share:
                void.append(name)
            else:
                found.append((decoy._replace(revision=2, pieces=0), True))
            found.append((decoy, False))
    return found


def _other(record: RawRecord, rng: Random) -> RawRecord:
    """Returns a record with other amounts, a while before."""
    return record._replace(
        when=record.when - timedelta(minutes=rng.randint(1, 4_000)), pieces=rng.randint(1, 40),
        grams=rng.randint(100, 9_000),
    )  # fmt: skip


def _spelt(customer: str, rng: Random) -> str:
    draw = rng.random()
    if draw < 0.5:
        return customer.title()
    return customer if draw < 0.7 else customer.lower() if draw < 0.85 else customer.title().replace(" ", "  ")


def _time(depot: Depot, when: datetime, rng: Random) -> str:
    if depot.time == "epoch":
        return str(int(when.timestamp()))
    hours = rng.randint(-9, 12) if depot.time == "iso" else depot.offset
    local = when + timedelta(hours=hours)
    clock = f"{local.hour:02}:{local.minute:02}"
    if depot.time == "iso":
        return f"{local.year}-{local.month:02}-{local.day:02}T{clock}{'-' if hours < 0 else '+'}{abs(hours):02}:00"
    parts = (local.day, local.month) if depot.time == "dots" else (local.month, local.day)
    mark = "." if depot.time == "dots" else "/"
    return f"{parts[0]:02}{mark}{parts[1]:02}{mark}{local.year} {clock}"


def _weight(depot: Depot, grams: int, rng: Random) -> str:
    """Formats a weight in the file's unit, or with a unit of its own."""
    unit = depot.unit if rng.random() < 0.7 else rng.choice(tuple(UNITS))
    places = UNITS[unit]
    text = str(grams) if not places else f"{grams // 10**places}.{grams % 10**places:0{places}}"
    text = text.replace(".", ",") if depot.comma else text
    return text if unit == depot.unit else f"{text} {unit}"


def _csv(depot: Depot, rows: Sequence[RawRecord], rng: Random) -> str:
    lines = [ROW]
    for row in rows:
        pieces = rng.choice(("", "-")) if row.pieces is None else row.pieces
        weight = rng.choice(("", "-")) if row.grams is None else _weight(depot, row.grams, rng)
        time = _time(depot, row.when, rng)
        lines.append(f"{row.number};{row.revision};{time};{row.article};{row.customer};{pieces};{weight}")
    return "\n".join(lines) + "\n"


def _json(depot: Depot, rows: Sequence[RawRecord], rng: Random) -> str:
    lines = []
    for row in rows:
        time: str | int = _time(depot, row.when, rng)
        one: dict[str, str | int | None] = {
            "number": row.number, "revision": row.revision,
            "time": int(time) if depot.time == "epoch" else time, "article": row.article, "customer": row.customer,
        }  # fmt: skip
        if row.pieces is not None or rng.random() < 0.5:
            one["pieces"] = row.pieces
        if row.grams is not None or rng.random() < 0.5:
            one["weight"] = None if row.grams is None else _weight(depot, row.grams, rng)
        lines.append(json.dumps(one))
    return "[\n" + ",\n".join(lines) + "\n]\n"


def _log(depot: Depot, rows: Sequence[RawRecord], rng: Random) -> str:
    lines = []
    for row in rows:
        line = (
            f"{_time(depot, row.when, rng)} INFO delivery number={row.number} revision={row.revision} "
            f'article={row.article} customer="{row.customer}"'
        )
        line += "" if row.pieces is None else f" pieces={row.pieces}"
        lines.append(line + ("" if row.grams is None else f' weight="{_weight(depot, row.grams, rng)}"'))
        if rng.random() < 0.1:
            lines.append(f"{_time(depot, row.when, rng)} DEBUG door number={rng.randint(1, 9)} opened")
    return "\n".join(lines) + "\n"


def _dictionary(firm: Firm) -> str:
    lines = []
    for depot in firm.depots:
        time = TIMES[depot.time].format(zone=f"UTC{depot.offset:+}")
        comma = ", with a decimal comma" if depot.comma else ""
        lines.append(f"- {depot.file}: {depot.town}, {depot.code}; times: {time}; weights: {depot.unit}{comma}")
    return DICTIONARY.format(depots="\n".join(lines))


def _errata(firm: Firm, void: Sequence[str]) -> str:
    code, since, _ = firm.wrong_price
    right = dict(firm.articles[code].prices)[since]
    lines = ["# Errata", "", f"- articles.csv: the price of {code} since {since} is {right} cents."]
    lines += [
        f"- The scale of {scale.depot} showed {scale.grams} g too much from {scale.first} to {scale.last} (days in "
        "UTC, both included): subtract them from each weight of a delivery with such a number and day."
        for scale in firm.scales
    ]
    lines += [f"- {number} never took place and does not count." for number in void]
    return "\n".join(lines) + "\n"


def _articles(firm: Firm) -> str:
    code, day, wrong = firm.wrong_price
    rows = [
        f"{one.code},{one.good},{one.grams},{wrong if (one.code, since) == (code, day) else cents},{since}"
        for one in firm.articles.values()
        for since, cents in one.prices
    ]
    return "\n".join(["code,article,grams,cents,since", *rows]) + "\n"
