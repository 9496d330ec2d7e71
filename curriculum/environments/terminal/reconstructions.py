"""Jobs to write a lost script again from what it read and wrote. Pure.

Each report is a filter, a grouping, a figure, an order and a length, out of a catalogue that the notes describe.
Invariant: on the kept days exactly one combination of the catalogue gives a report, so its rule can be found, and the
reference follows it on days that the agent never sees.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from random import Random
from typing import NamedTuple

from curriculum.environments.terminal.repairs import CITIES, GOODS, Repair, placed
from verifiers.files.spec import CommandCondition, FilesSpec

Row = tuple[str, str, int, int]
"""City, item, count, price."""
HEADING = "city,item,count,price"
REPORTS = (4, 6, 9)
DAYS, ROWS, HIDDEN_ROWS = 3, 45, 80
STEPS = (10, 20, 30, 40, 50)
SECONDS = 60.0
"""Time limit of the script, in seconds."""
GROUPS = {"city": 0, "item": 1}
FIGURES: dict[str, tuple[str, Callable[[list[Row]], int]]] = {
    "rows": ("n[${0}]++", len),
    "count": ("n[${0}] += $3", lambda rows: sum(row[2] for row in rows)),
    "value": ("n[${0}] += $3 * $4", lambda rows: sum(row[2] * row[3] for row in rows)),
    "dearest": ("if ($4 > n[${0}]) n[${0}] = $4", lambda rows: max(row[3] for row in rows)),
    "cheapest": ("if (!(${0} in n) || $4 < n[${0}]) n[${0}] = $4", lambda rows: min(row[3] for row in rows)),
}
"""Figures of a group: how awk computes one in the column {0}, and its Python model."""
ORDERS = {"name": "sort -k1,1", "figure": "sort -k2,2nr -k1,1"}
LENGTHS = (3, 5, 99)


def _at_least(column: int, least: int, row: Row) -> bool:
    return int(row[column]) >= least


def _below(column: int, limit: int, row: Row) -> bool:
    return int(row[column]) < limit


def _elsewhere(city: str, row: Row) -> bool:
    return row[0] != city


FILTERS: dict[str, tuple[str, Callable[[Row], bool]]] = {
    "all": ("1", lambda row: True),
    **{f"count>={n}": (f"$3 >= {n}", partial(_at_least, 2, n)) for n in STEPS},
    **{f"count<{n}": (f"$3 < {n}", partial(_below, 2, n)) for n in STEPS},
    **{f"price<{n}": (f"$4 < {n}", partial(_below, 3, n)) for n in STEPS},
    **{f"price>={n}": (f"$4 >= {n}", partial(_at_least, 3, n)) for n in STEPS},
    **{f"not {city}": (f'$1 != "{city}"', partial(_elsewhere, city)) for city in CITIES},
}
NOTES = """\
# The reports of a day

A lost script, reports.sh, made the reports of a day: `sh reports.sh DAY.csv FOLDER` wrote FOLDER/r1.txt and so on from
the rows of DAY.csv (city, item, count, price; the first line is a heading). days/ has the tables of some days, and
reports/ what the script made of each. A report is always

1. a choice of rows: all of them, those with a count or a price below one of 10, 20, 30, 40 and 50, those with a count
   or a price of at least one of these numbers, or those of all cities but one;
2. grouped by city or by item;
3. with one figure for each group that has a row: the number of its rows, the sum of the counts, the sum of count times
   price, the highest price, or the lowest price;
4. in the order of the names (as bytes), or with the largest figure first and in the order of the names where figures
   are equal;
5. cut after the first 3 or 5 lines, or not cut.

A line is the name of the group, a blank, and the figure. The same rules were used on all days.
"""


class ReportRule(NamedTuple):
    filter: str
    group: str
    figure: str
    order: str
    length: int

    def shell(self) -> str:
        column = GROUPS[self.group] + 1
        figure = FIGURES[self.figure][0].replace("{0}", str(column))
        cut = f" | head -n {self.length}" if self.length < LENGTHS[-1] else ""
        return (
            f"awk -F, 'NR > 1 && {FILTERS[self.filter][0]} {{ {figure} }} "
            f'END {{ for (one in n) print one, n[one] }}\' "$1" | {ORDERS[self.order]}{cut}'
        )


Figures = dict[tuple[str, str, str], list[tuple[str, int]]]


def figures_of(rows: list[Row]) -> Figures:
    """Returns the figures of all groups of a day, by filter, grouping and figure."""
    found: Figures = {}
    for (name, (_, holds)), (group, column) in product(FILTERS.items(), GROUPS.items()):
        groups: dict[str, list[Row]] = {}
        for row in rows:
            if holds(row):
                groups.setdefault(str(row[column]), []).append(row)
        for figure, (_, model) in FIGURES.items():
            found[name, group, figure] = sorted((key, model(some)) for key, some in groups.items())
    return found


def report_of(rule: ReportRule, figures: Figures) -> str:
    pairs = figures[rule.filter, rule.group, rule.figure]
    if rule.order == "figure":
        pairs = sorted(pairs, key=lambda pair: (-pair[1], pair[0]))
    return "".join(f"{name} {figure}\n" for name, figure in pairs[: rule.length])


def rules_that_give(reports: list[str], days: list[Figures]) -> list[ReportRule]:
    """Returns all rules of the catalogue that give these reports of these days."""
    found = []
    for key in days[0]:
        names = {line.split()[0] for line in reports[0].splitlines()}
        if not names <= {name for name, _ in days[0][key]}:
            continue
        for order, length in product(ORDERS, LENGTHS):
            rule = ReportRule(*key, order, length)
            if all(report_of(rule, day) == report for day, report in zip(days, reports, strict=True)):
                found.append(rule)
    return found


def _rows(rng: Random, count: int) -> list[Row]:
    return [(rng.choice(CITIES), rng.choice(GOODS), rng.randint(1, 60), rng.randint(2, 60)) for _ in range(count)]


def _csv(rows: list[Row]) -> str:
    return "\n".join([HEADING, *(",".join(map(str, row)) for row in rows)]) + "\n"


def lost_script(size: int, rng: Random) -> Repair:
    """Makes a terminal job to write a lost script of 4 to 9 reports again from kept tables and reports."""
    days = {f"day{rng.randint(100, 999)}": _rows(rng, ROWS) for _ in range(DAYS)}
    figures = [figures_of(rows) for rows in days.values()]
    rules: list[ReportRule] = []
    while len(rules) < REPORTS[size]:
        choice = rng.choice([name for name in FILTERS if name != "all"]) if rng.random() < 0.9 else "all"
        rule = ReportRule(
            choice, rng.choice(tuple(GROUPS)), rng.choice(tuple(FIGURES)), rng.choice(tuple(ORDERS)),
            rng.choice(LENGTHS),
        )  # fmt: skip
        if rule not in rules and rules_that_give([report_of(rule, day) for day in figures], figures) == [rule]:
            rules.append(rule)
    names = [f"r{at}" for at in range(1, len(rules) + 1)]
    commands = []
    for _ in range(2):
        rows = _rows(rng, HIDDEN_ROWS)
        hidden = figures_of(rows)
        leaves = tuple(
            placed(f"out/{name}.txt", report_of(rule, hidden)) for name, rule in zip(names, rules, strict=True)
        )
        commands.append(
            CommandCondition(
                command=("sh", "reports.sh", "new.csv", "out"), files=(placed("new.csv", _csv(rows)),), leaves=leaves
            )
        )
    lines = [f'{rule.shell()} > "$2/{name}.txt"' for name, rule in zip(names, rules, strict=True)]
    script = "\n".join(['#!/bin/sh\nset -eu\nexport LC_ALL=C\nmkdir -p "$2"', *lines]) + "\n"
    kept = [
        placed(f"reports/{day}/{name}.txt", report_of(rule, of_day))
        for day, of_day in zip(days, figures, strict=True)
        for name, rule in zip(names, rules, strict=True)
    ]
    return Repair(
        instruction=(
            f"The script reports.sh, which made {len(rules)} reports of a day, is lost. NOTES.md describes it; days/ "
            "and reports/ have what it read and wrote. Write it again. It is tried on other days; the folder that it "
            "writes to may not exist yet."
        ),
        files=[
            placed("NOTES.md", NOTES),
            *(placed(f"days/{day}.csv", _csv(rows)) for day, rows in days.items()),
            *kept,
        ],
        solved=[placed("reports.sh", script)],
        spec=FilesSpec(declared=("reports.sh",), commands=tuple(commands), seconds=SECONDS),
        steps=_steps(list(days), names, rules, script),
    )


def _steps(days: list[str], names: list[str], rules: list[ReportRule], script: str) -> list[str]:
    """Returns the commands of a person who looks at each report, tries a rule on all days, and writes the script."""
    steps = ["cat NOTES.md", "ls -R days reports", f"head -n 6 days/{days[0]}.csv"]
    for name, rule in zip(names, rules, strict=True):
        tried = f"set -- days/$day.csv; {rule.shell()} | diff - reports/$day/{name}.txt"
        steps += [f"head -n 30 reports/*/{name}.txt", f"export LC_ALL=C; for day in {' '.join(days)}; do {tried}; done"]
    again = f"for day in {' '.join(days)}; do sh reports.sh days/$day.csv again/$day; done; diff -r again reports"
    return [*steps, f"cat > reports.sh <<'END_OF_FILE'\n{script}END_OF_FILE", again]
