"""Inside the sandbox: statistics of the columns that a question names, in CSV and JSON files of the working folder.

A statistic is returned only if the question contains its word (`sum`, `average`, `how many`) and, except for counts of
rows, the name of its column. Arithmetic is exact: decimals are fractions.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from statistics import mean, median
from typing import Any

Row = dict[str, str]

WORDS: list[tuple[str, str]] = [
    ("median", r"\bmedian\b"),
    ("mean", r"\b(?:mean|average|averages)\b"),
    ("distinct", r"\b(?:distinct|different|unique)\b"),
    ("most_common", r"\b(?:most common|most often|most frequent|mode)\b"),
    ("sum", r"\b(?:sum|total|altogether|in all)\b"),
    ("max", r"\b(?:max|maximum|largest|highest|greatest|biggest|most)\b"),
    ("min", r"\b(?:min|minimum|smallest|lowest|least)\b"),
    ("count", r"\b(?:how many|number of|count)\b"),
]

FIGURES: dict[str, Callable[[list[Fraction]], Fraction]] = {
    "sum": lambda values: sum(values, Fraction(0)),
    "mean": mean,
    "max": max,
    "min": min,
    "median": median,
}


def answers(names: list[str], question: str, most: int) -> dict[str, Any]:
    """Returns the answers, likeliest first, and a note if there are none."""
    asked = question.lower()
    found: dict[str, None] = {}
    readable = 0
    for name in sorted(names, key=lambda each: each.lower() not in asked):
        rows = table(name)
        if rows:
            readable += 1
            for text in figures(rows, asked):
                found.setdefault(text)
    note = "" if found else "no figure of a named column" if readable else "no table in the files"
    return {"answers": list(found)[:most], "note": note}


def table(name: str) -> list[Row]:
    """Returns the rows of a CSV file with a header, or of a JSON list of objects; empty for anything else."""
    try:
        text = (Path("/work") / name).read_text(encoding="utf-8-sig")
        if name.lower().endswith(".json"):
            records = json.loads(text)
        elif name.lower().endswith(".jsonl"):
            records = [json.loads(line) for line in text.splitlines() if line.strip()]
        else:
            first = text.split("\n", 1)[0]
            separator = max(",;\t|", key=first.count)
            return [
                {key.strip(): (value or "").strip() for key, value in row.items() if key}
                for row in csv.DictReader(io.StringIO(text), delimiter=separator)
            ]
    except (OSError, ValueError, csv.Error):
        return []
    if isinstance(records, dict):
        records = next((each for each in records.values() if isinstance(each, list)), [])
    if not isinstance(records, list) or not all(isinstance(each, dict) for each in records):
        return []
    return [{str(key): written(value) for key, value in each.items()} for each in records]


def written(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)


def figures(rows: list[Row], asked: str) -> Iterator[str]:
    columns = list(dict.fromkeys(key for row in rows for key in row))
    named = [column for column in columns if mentions(asked, column)]
    wanted = [figure for figure, pattern in WORDS if re.search(pattern, asked)]
    taken = [row for row in rows if all(fits(row, column, asked, rows) for column in columns)]
    groups = [column for column in named if re.search(rf"\b(?:which|what|who)\b[^?.]*\b{stem(column)}", asked)]
    for figure in wanted:
        if figure in ("max", "min", "most_common") and groups:
            yield from extreme(rows, groups[0], [column for column in named if column != groups[0]], figure, asked)
        for column in named:
            yield from one(taken, column, figure)
        if figure == "count":
            yield str(len(taken))


def one(rows: list[Row], column: str, figure: str) -> Iterator[str]:
    values = [row[column] for row in rows if row.get(column, "") != ""]
    if figure == "distinct":
        yield str(len(set(values)))
        return
    if figure == "most_common":
        if values:
            yield max(dict.fromkeys(values), key=values.count)
        return
    numbers = [number(value) for value in values]
    known = [value for value in numbers if value is not None]
    if not known or len(known) < len(numbers) or figure == "count":
        return
    yield shown(FIGURES[figure](known))


def extreme(rows: list[Row], group: str, measures: list[str], figure: str, asked: str) -> Iterator[str]:
    """Yields the value of a column with the largest (or smallest) measure: sum, mean, single row or row count."""
    best = min if figure == "min" else max
    for measure in measures:
        found: dict[str, list[Fraction]] = {}
        for row in rows:
            value = number(row.get(measure, ""))
            if value is not None and row.get(group):
                found.setdefault(row[group], []).append(value)
        if not found:
            continue
        how = FIGURES["mean" if re.search(r"\b(?:mean|average)\b", asked) else "sum"]
        for measured in (how, best):
            by_group = {key: measured(each) for key, each in found.items()}
            yield best(by_group, key=by_group.__getitem__)
    if not measures:
        counts = [row[group] for row in rows if row.get(group)]
        if counts:
            yield best(dict.fromkeys(counts), key=counts.count)


def fits(row: Row, column: str, asked: str, rows: list[Row]) -> bool:
    """True if the row has the value of this column that the question names, or the question names none."""
    values = {each.get(column, "") for each in rows}
    if len(values) > 1_000:
        return True
    words = [value for value in values if len(value) > 1 and number(value) is None and mentions(asked, value)]
    return not words or row.get(column, "") in words


def mentions(asked: str, name: str) -> bool:
    return bool(name) and re.search(rf"(?<![a-z0-9]){stem(name)}", asked) is not None


def stem(name: str) -> str:
    """Returns a pattern for a column's name as people write it: `unit_price` is `unit price`, `amounts` is `amount`."""
    words = [re.escape(word) for word in re.split(r"[\s_\-]+", name.lower()) if word]
    if words and len(words[-1]) > 3 and words[-1].endswith("s"):
        words[-1] = words[-1][:-1] + "s?"
    return r"[\s_\-]+".join(words) + r"(?:s|es)?(?![a-z0-9])"


def number(text: str) -> Fraction | None:
    """Parses a plain decimal, with optional sign and exponent; None for other text."""
    if not re.fullmatch(r"[-+]?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]{1,3})?", text):
        return None
    return Fraction(text)


def shown(value: Fraction) -> str:
    """Formats a number as a terminating decimal if possible, else as a fraction."""
    if value.denominator == 1:
        return str(value.numerator)
    below = value.denominator
    for prime in (2, 5):
        while below % prime == 0:
            below //= prime
    if below != 1:
        return f"{value.numerator}/{value.denominator}"
    digits = next(count for count in itertools.count(1) if (value * 10**count).denominator == 1)
    text = f"{abs(int(value * 10**digits)):0{digits + 1}d}"
    return f"{'-' if value < 0 else ''}{text[:-digits]}.{text[-digits:]}"
