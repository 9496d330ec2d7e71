"""Questions about tables in files: sums, groups, joins and ranks over CSV, computed exactly when a task is made.

Files are short enough to be read and long enough that a program is the better way. Amounts are whole numbers, so
nothing is rounded; if a rank decides, its totals differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

from curriculum.contract.topics import Item, TopicTaskset
from curriculum.tasksets.statements import GOODS, PEOPLE, TOWNS, digest
from verifiers.answers.spec import AnswerSpec
from verifiers.exact.spec import ExactSpec

Row = tuple[int, str, str, str, int, int]
"""Order, customer, town, article, number of pieces, price per piece."""
_HEAD = "order,customer,town,article,pieces,price"
_SIZES = (8, 14, 22, 36, 60)


def _orders(level: int, rng: Random) -> list[Row]:
    people = {name: rng.choice(TOWNS[: 4 + level]) for name in rng.sample(PEOPLE, 4 + level)}
    names, goods = list(people), rng.sample(GOODS, 4 + level)
    rows = []
    for at in range(_SIZES[level]):
        name = rng.choice(names)
        rows.append((1001 + at, name, people[name], rng.choice(goods), rng.randint(1, 12), rng.randint(5, 95)))
    return rows


def _csv(head: str, rows: list[Row]) -> str:
    return "\n".join([head, *(",".join(map(str, row)) for row in rows)]) + "\n"


def _number(text: str, key: str, value: int, files: dict[str, str]) -> Item:
    spec = AnswerSpec(expected=str(value))
    return Item(
        text=f"{text} Answer with the whole number.", key=digest(key), spec=spec, answer=str(value), files=files
    )


_FILE = (
    "The file orders.csv lists orders; an order costs its number of pieces times the price.",
    "Each line of orders.csv is an order. Its value is the number of pieces times the price of one.",
    "Look into the file orders.csv. The value of an order is its number of pieces times the price.",
)


def _sums(level: int, rng: Random) -> Item:
    """Asks for the total value of the orders in a CSV file that meet conditions."""
    rows = _orders(level, rng)
    row = rng.choice(rows)
    conditions: list[tuple[str, Callable[[Row], bool]]] = [
        (f"the town {row[2]}", lambda one: one[2] == row[2]),
        (f"at least {row[4]} piece{'s' * (row[4] > 1)}", lambda one: one[4] >= row[4]),
        (f"a price below {row[5] + 10}", lambda one: one[5] < row[5] + 10),
        (f"an article other than {row[3]}", lambda one: one[3] != row[3] or one is row),
    ][:3]
    chosen = rng.sample(conditions, 1 + (level + 1) // 2 if level < 4 else 3)
    value = sum(one[4] * one[5] for one in rows if all(holds(one) for _, holds in chosen))
    words = " and ".join(said for said, _ in chosen)
    asked = rng.choice(("What is the value of all orders with", "Add up the values of all orders with"))
    text = f"{rng.choice(_FILE)} {asked} {words}?" if asked[0] == "W" else f"{rng.choice(_FILE)} {asked} {words}."
    return _number(
        text, f"{_csv(_HEAD, rows)} {sorted(said for said, _ in chosen)}", value, {"orders.csv": _csv(_HEAD, rows)}
    )


def _groups(level: int, rng: Random) -> Item:
    """Asks which customer, town or article of a CSV file's orders has some rank by value, and its total."""
    rows = _orders(level, rng)
    by, what = rng.choice(((1, "customer"), (2, "town"), (3, "article")))
    totals: Counter[str] = Counter()
    for row in rows:
        totals[str(row[by])] += row[4] * row[5]
    ranks = totals.most_common()
    usable = [at for at, (_, value) in enumerate(ranks) if sum(value == other for _, other in ranks) == 1]
    at = rng.choice(usable[: 1 + level] or [0])
    if not usable:
        return _sums(level, rng)
    place = ("the largest", "the second largest", "the third largest", "the fourth largest", "the fifth largest")
    word = place[at] if at < len(place) else f"number {at + 1} by its"
    answer = f"{ranks[at][0]} {ranks[at][1]}"
    text = (
        f"{rng.choice(_FILE)} Add up the values by {what}. Which {what} has {word} total, and which total is it? "
        f"Answer with "
        "the word as it stands in the file, a blank and the number."
    )
    key = f"{_csv(_HEAD, rows)} {what} {at}"
    return Item(
        text=text,
        key=digest(key),
        spec=ExactSpec(expected=answer),
        answer=answer,
        files={"orders.csv": _csv(_HEAD, rows)},
    )


def _joins(level: int, rng: Random) -> Item:
    """Asks for the total weight of a town's orders, joined from three CSV files."""
    rows = _orders(level, rng)
    goods, people = sorted({row[3] for row in rows}), sorted({row[1] for row in rows})
    weights = {good: rng.randint(2, 40) for good in goods}
    cities = {name: next(row[2] for row in rows if row[1] == name) for name in people}
    files = {
        "orders.csv": "order,customer,article,pieces\n" + "".join(f"{r[0]},{r[1]},{r[3]},{r[4]}\n" for r in rows),
        "articles.csv": "article,kilograms\n"
        + "".join(f"{good},{weights[good]}\n" for good in rng.sample(goods, len(goods))),
        "customers.csv": "customer,town\n"
        + "".join(f"{name},{cities[name]}\n" for name in rng.sample(people, len(people))),
    }
    town = rng.choice(sorted(set(cities.values())))
    least = rng.randint(1, 4) if level > 1 else 1
    more = f", counting only orders of at least {least} pieces" if least > 1 else ""
    value = sum(weights[r[3]] * r[4] for r in rows if cities[r[1]] == town and r[4] >= least)
    if not value:
        return _joins(level, rng)
    opening = rng.choice((
        ("The files orders.csv, customers.csv and articles.csv belong together; articles.csv says what one piece "
        "weighs."),
        ("There are three files: orders.csv, customers.csv, and articles.csv with the weight of one piece of each "
        "article."),
        "Join orders.csv with customers.csv and with articles.csv, which has the weight of one piece.",
        "orders.csv names customers and articles; customers.csv has their towns, articles.csv the weight of a piece.",
    ))  # fmt: skip
    text = f"{opening} How many kilograms do all orders of customers from {town} weigh together{more}?"
    return _number(text, f"{files} {town} {least}", value, files)


def _changes(level: int, rng: Random) -> Item:
    """Asks for a stock after the changes in a CSV file: how many articles exceed a limit, and all pieces."""
    goods = rng.sample(GOODS, min(len(GOODS), 4 + 2 * level))
    start = {good: rng.randint(50, 200) for good in goods}
    stock, lines = dict(start), ["day,article,change"]
    for at in range(_SIZES[level]):
        good = rng.choice(goods)
        change = rng.randint(-min(30, stock[good]), 30) or 1
        stock[good] += change
        lines.append(f"{1 + at // 3},{good},{change:+d}")
    files = {
        "stock.csv": "article,pieces\n" + "".join(f"{good},{pieces}\n" for good, pieces in start.items()),
        "changes.csv": "\n".join(lines) + "\n",
    }
    limit = rng.randint(60, 190)
    kept = [good for good in goods if stock[good] > limit]
    opening = rng.choice((
        "stock.csv says how many pieces there were at first, changes.csv what came in (+) and went out (-).",
        "A store has the pieces of stock.csv in the beginning; changes.csv has every change after that.",
        "Begin with the pieces in stock.csv, and apply all changes of changes.csv.",
        "The first stock of a store is in stock.csv, and what happened to it day by day in changes.csv.",
    ))  # fmt: skip
    text = (
        f"{opening} After all changes, how many articles have more than {limit} pieces, and how many pieces are "
        f"there of all "
        "articles together? Answer with the two numbers, with a blank between them."
    )
    answer = f"{len(kept)} {sum(stock.values())}"
    return Item(text=text, key=digest(f"{files} {limit}"), spec=ExactSpec(expected=answer), answer=answer, files=files)


TABLES = TopicTaskset(
    name="tables",
    version=2,
    makers={"sums_in_tables": _sums, "groups_in_tables": _groups, "joined_tables": _joins, "stock_changes": _changes},
    null_answers=("0", "1", "none", "orders.csv"),
)
