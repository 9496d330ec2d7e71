"""Data to be written in another notation, exactly: CSV, tables of Markdown, JSON lines, settings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random

from curriculum.contract.topics import Item, TopicTaskset
from curriculum.tasksets.statements import COLOURS, GOODS, PEOPLE, TOWNS, digest
from verifiers.contract.kinds import AnswerForm
from verifiers.exact.spec import ExactSpec

_COLUMNS = ("name", "town", "colour", "article", "pieces", "price")
Record = dict[str, str | int]


def _records(level: int, rng: Random) -> tuple[list[str], list[Record]]:
    columns = sorted(rng.sample(_COLUMNS[:4], 2), key=_COLUMNS.index) + ["pieces", "price"][: 1 + level // 2]
    names = rng.sample(PEOPLE, 3 + 2 * level)
    pieces, prices = rng.sample(range(1, 99), len(names)), rng.sample(range(1, 99), len(names))
    whole: list[Record] = [
        {"name": name, "town": rng.choice(TOWNS), "colour": rng.choice(COLOURS), "article": rng.choice(GOODS),
         "pieces": one, "price": two}
        for name, one, two in zip(names, pieces, prices, strict=True)
    ]  # fmt: skip
    return columns, [{column: record[column] for column in columns} for record in whole]


def _csv(columns: Sequence[str], records: Sequence[Record]) -> str:
    return "\n".join([",".join(columns), *(",".join(str(record[one]) for one in columns) for record in records)])


def _markdown(columns: Sequence[str], records: Sequence[Record]) -> str:
    rows = [list(columns), ["---"] * len(columns), *([str(record[one]) for one in columns] for record in records)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _lines(columns: Sequence[str], records: Sequence[Record]) -> str:
    return "\n".join(json.dumps({one: record[one] for one in columns}) for record in records)


def _settings(columns: Sequence[str], records: Sequence[Record]) -> str:
    return "\n\n".join(
        "\n".join([f"[{at}]", *(f"{one} = {record[one]}" for one in columns)]) for at, record in enumerate(records, 1)
    )


_WRITERS = {"CSV with a header line": _csv, "a Markdown table": _markdown, "JSON lines": _lines, "settings": _settings}
_EXAMPLES = {
    "CSV with a header line": "no blanks behind commas",
    "a Markdown table": "with one blank on each side of what stands in a cell, `|` at both ends, "
    "and --- below each column's name",
    "JSON lines": "one object a line, with one blank behind each colon and each comma between two fields, "
    "numbers without quotes",
    "settings": "a section [1], [2] and so on for each record, then a line such as `pieces = 3` for each field, "
    "and an empty line "
    "between two sections",
}
_ASKED = ("Write this as {}", "Convert this into {}", "Give the same data as {}", "Turn these records into {}")
_BLOCK = "Answer with it alone, in one fenced code block."


def _change(source: str, level: int, rng: Random) -> Item:
    columns, records = _records(level, rng)
    target = rng.choice([name for name in _WRITERS if name != source])
    said, kept, order = [], list(records), list(columns)
    number = columns[2]
    if level > 0:
        said.append(f"sorted by {number}, the {'largest' if (down := rng.random() < 0.5) else 'smallest'} first")
        kept.sort(key=lambda record: int(record[number]), reverse=down)
    if level > 1:
        limit = sorted(int(record[number]) for record in records)[len(records) // 3]
        said.append(f"only with records that have at least {limit} {number}")
        kept = [record for record in kept if int(record[number]) >= limit]
    if level > 2:
        order = rng.sample(columns, len(columns))
        said.append(f"with the fields in the order {', '.join(order)}")
    shown = _WRITERS[source](columns, records)
    answer = _WRITERS[target](order, kept)
    also = f", {', '.join(said)}" if said else ""
    text = f"{rng.choice(_ASKED).format(target)}, {_EXAMPLES[target]}{also}:\n```\n{shown}\n```\n{_BLOCK}"
    return Item(text=text, key=digest(f"{shown} {target} {also}"), spec=ExactSpec(expected=answer), answer=answer)


def _from_csv(level: int, rng: Random) -> Item:
    return _change("CSV with a header line", level, rng)


def _from_markdown(level: int, rng: Random) -> Item:
    return _change("a Markdown table", level, rng)


def _from_lines(level: int, rng: Random) -> Item:
    return _change("JSON lines", level, rng)


def _from_settings(level: int, rng: Random) -> Item:
    return _change("settings", level, rng)


CONVERSIONS = TopicTaskset(
    name="conversions",
    version=2,
    makers={
        "from_csv": _from_csv,
        "from_markdown_tables": _from_markdown,
        "from_json_lines": _from_lines,
        "from_settings": _from_settings,
    },
    null_answers=("{}", "name,town", "| name |", "none"),
    form=AnswerForm.BLOCK,
)
