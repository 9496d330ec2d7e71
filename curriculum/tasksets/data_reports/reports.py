"""Reports over messy files of deliveries: 5 to 12 files, a data dictionary, an errata note, and 4 to 10 exact fields.

The report is computed from clean data before the mess is applied. Each field is an item of the check, so a report that
is right in part earns a part of the score. At the highest level the files have more than 160,000 characters.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from random import Random

from curriculum.contract.topics import Item, TopicTaskset
from curriculum.tasksets.data_reports.firms import Delivery, Firm, firm
from curriculum.tasksets.data_reports.messy_files import files_of
from curriculum.tasksets.json_documents import no_document_fits
from curriculum.tasksets.statements import digest
from verifiers.checklists.spec import ChecklistSpec, JsonItem
from verifiers.contract.kinds import AnswerForm

TURNS = 30
Value = str | int | dict[str, int] | list[str]


def _cents(one: Delivery, of: Firm) -> int:
    return one.pieces * of.articles[one.article].price(one.when.date())


def _by_depot(some: list[Delivery], of: Firm) -> dict[str, int]:
    totals = Counter({depot.town: 0 for depot in of.depots})
    towns = {depot.code: depot.town for depot in of.depots}
    for one in some:
        totals[towns[one.number[:2]]] += one.grams
    return dict(totals)


def _values(some: list[Delivery], of: Firm, by: Callable[[Delivery], str]) -> list[str]:
    """Returns the groups of deliveries, the one with the highest value first, and by name where values are equal."""
    totals: Counter[str] = Counter()
    for one in some:
        totals[by(one)] += _cents(one, of)
    return sorted(totals, key=lambda name: (-totals[name], name))


def _busiest(some: list[Delivery], of: Firm) -> str:
    days = Counter(str(one.when.date()) for one in some)
    return min(days, key=lambda day: (-days[day], day))


FIELDS: dict[str, tuple[int, str, Callable[[list[Delivery], Firm], Value]]] = {
    "deliveries": (0, "their number", lambda some, of: len(some)),
    "pieces": (0, "the sum of their pieces", lambda some, of: sum(one.pieces for one in some)),
    "grams": (0, "the sum of their weights, in grams", lambda some, of: sum(one.grams for one in some)),
    "cents": (0, "the sum of their values, in cents", lambda some, of: sum(_cents(one, of) for one in some)),
    "by_depot": (1, "an object with the grams that each depot delivered, 0 if none, by town", _by_depot),
    "best_customer": (
        1, "the customer with the highest total value (the first in the alphabet, if equal)",
        lambda some, of: _values(some, of, lambda one: one.customer)[0],
    ),
    "revised": (
        2, "how many of them have a counting record with a revision above 1",
        lambda some, of: sum(one.revision > 1 for one in some),
    ),
    "busiest_day": (2, "the day with the most deliveries, as YYYY-MM-DD (the earliest, if equal)", _busiest),
    "heaviest": (
        3, "the number of the heaviest delivery (the first in the alphabet, if equal)",
        lambda some, of: min(some, key=lambda one: (-one.grams, one.number)).number,
    ),
    "best_articles": (
        4, "a list of the current codes of the three articles with the highest total values, in that order",
        lambda some, of: _values(some, of, lambda one: one.article)[:3],
    ),
}  # fmt: skip
"""Fields of the report: the level from which it has them, their meaning, and their value."""


def report_of(of: Firm, level: int) -> dict[str, Value]:
    """Computes the report from a firm's clean deliveries."""
    some = [one for one in of.deliveries if of.first <= one.when.date() <= of.last]
    return {name: value(some, of) for name, (least, _, value) in FIELDS.items() if level >= least}


def spec_of(report: dict[str, Value]) -> ChecklistSpec:
    """Makes the check of a report: an item for each field, whose value must be equal."""
    schemas = {name: {"required": [name], "properties": {name: {"const": value}}} for name, value in report.items()}
    items = tuple(
        JsonItem(name=name, rules=json.dumps({"type": "object", **schema})) for name, schema in schemas.items()
    )
    return ChecklistSpec(items=items, credit="items")


def _item(level: int, rng: Random) -> Item:
    made = firm(level, rng)
    report, files = report_of(made, level), files_of(made, level, rng)
    asked = "\n".join(f"- {name}: {FIELDS[name][1]}" for name in report)
    text = (
        f"The files {', '.join(sorted(files))} have a firm's deliveries. dictionary.md explains them, and errata.md "
        f"says what is wrong in them. Report on the deliveries that count, from {made.first} to {made.last} (both days "
        f"included). Answer with a JSON object in one fenced code block, with exactly these fields:\n{asked}"
    )
    return Item(
        text=text,
        key=digest(f"{text} {json.dumps(files)}"),
        spec=spec_of(report),
        answer=json.dumps(report),
        files=files,
    )


DATA_REPORTS = TopicTaskset(
    name="data_reports",
    version=1,
    makers={"deliveries in messy files": _item},
    null_answers=("{}", "[]", "null", '{"deliveries": 0, "pieces": 0, "grams": 0, "cents": 0}'),
    form=AnswerForm.BLOCK,
    turns=TURNS,
    contradicted=no_document_fits,
)
