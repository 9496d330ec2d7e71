"""Plans behind orchestration questions: which server to call with what.

Invariants: a plan is a pure function of its question and of the replies. Executed on the services themselves it gives
the ground truth and its steps; executed through a world, the answer of an oracle.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from random import Random
from typing import Any, NamedTuple

from curriculum.environments.orchestration.published import ALL_SERVICES, ALL_TOOLS, ZONES
from curriculum.environments.orchestration.services import CITIES, CURRENCIES, PEOPLE, PRODUCTS, WAREHOUSES

Ask = Callable[[str, str, Mapping[str, Any]], Any]
"""Calls a tool of a server, and returns its answer as parsed JSON."""
Question = Mapping[str, Any]


class PlanStep(NamedTuple):
    server: str
    tool: str
    arguments: Mapping[str, Any]

    @property
    def key(self) -> str:
        """Text that equal calls share."""
        return json.dumps([self.server, self.tool, dict(self.arguments)], sort_keys=True)


class ExecutedPlan(NamedTuple):
    answer: int
    steps: tuple[PlanStep, ...]


def executed(question: Question, seed: int, day: int) -> ExecutedPlan:
    """Executes a question's plan on the services themselves, and returns its answer and steps. `seed` and `day` fix the
    services' data."""
    steps: list[PlanStep] = []

    def ask(server: str, tool: str, arguments: Mapping[str, Any]) -> Any:
        steps.append(PlanStep(server, tool, dict(arguments)))
        assert tool in ALL_TOOLS[server]
        return getattr(ALL_SERVICES[server](seed, day), tool)(**arguments)

    return ExecutedPlan(answer(question, ask), tuple(steps))


def answer(question: Question, ask: Ask) -> int:
    return PLANS[question["plan"]](question, ask)


def drawn(plan: str, level: int, rng: Random) -> dict[str, Any]:
    """Draws an orchestration question of that plan and level: people, cities, product, amounts and currency."""
    people, cities = rng.sample(PEOPLE, 3), rng.sample(CITIES, 2)
    found: dict[str, Any] = {
        "plan": plan, "level": level, "people": people, "city": cities[0], "product": rng.choice(PRODUCTS),
        "quantity": rng.randint(5, 60), "warehouses": rng.sample(WAREHOUSES, 2), "currency": rng.choice(CURRENCIES),
    }  # fmt: skip
    return found | ({"zone": rng.choice(tuple(ZONES))} if plan in PUBLISHED_CHAINS else {})


CHAINS = {"orders": (2, 4), "trips": (3, 6)}
"""Meetings that the questions of the levels above `LONGEST` follow, by plan."""
LONGEST = 4
"""Highest level whose question follows at most two meetings of one chain."""
REPEATED = 3
"""Times of one call that count as a failure."""
PUBLISHED_CHAINS = {"openings": (3, 5), "supplies": (2, 4)}
"""Meetings that the questions of levels 3 and 4 follow, by plan over servers that others publish too."""


def is_straight(question: Question, steps: Sequence[PlanStep]) -> bool:
    """True if a plan asks nobody twice for the next meeting: its chain meets no person again before it ends. One over
    servers that others publish makes no call three times either, as that is a failure."""
    asked = [str(step.arguments["person"]) for step in steps if step.tool == "next_meeting"]
    times = Counter(step.key for step in steps)
    if question["plan"] in PUBLISHED_CHAINS and max(times.values()) >= REPEATED:
        return False
    may_return = question["plan"] in CHAINS and question["level"] <= LONGEST
    return may_return or len(set(asked)) == len(asked)


def _chained(question: Question, ask: Ask) -> list[tuple[str, Mapping[str, Any]]]:
    """Follows a chain of meetings: returns each person with the next meeting, whose other person comes next."""
    return _followed(question["people"][0], CHAINS[question["plan"]][question["level"] - LONGEST - 1], ask)


def _followed(person: str, count: int, ask: Ask) -> list[tuple[str, Mapping[str, Any]]]:
    found = []
    for _ in range(count):
        meeting = ask("calendar", "next_meeting", {"person": person})
        found.append((person, meeting))
        person = meeting["with"]
    return found


def _orders_of_a_chain(question: Question, ask: Ask) -> int:
    """Adds up what the orders of a chain of people cost in one currency, each delivered from the nearest warehouse."""
    total, chain, place = 0, _chained(question, ask), ask("inventory", "warehouses", {})
    for _, meeting in chain:
        once = {**question, "level": LONGEST, "met": meeting, "place": place}
        cost, currency = _cost(once, ask)
        rate = ask("currency", "rate", {"base": currency, "quote": question["currency"]})
        total += cost * int(rate["thousandths"]) // 1000
    return total


def _trips_of_a_chain(question: Question, ask: Ask) -> int:
    """Adds up rain, busy minutes and kilometres along a chain of meetings."""
    chain = _chained(question, ask)
    total = 0
    for person, meeting in chain:
        total += int(_forecast(meeting, ask)["rain"])
        total += int(ask("calendar", "busy_minutes", {"person": person, "days_ahead": meeting["days_ahead"]}))
    for (_, before), (_, after) in pairwise(chain):
        total += int(ask("routing", "distance", {"origin": before["city"], "destination": after["city"]}))
    return total


def _order(question: Question, ask: Ask) -> int:
    return _orders_of_a_chain(question, ask) if question["level"] > LONGEST else _cost(question, ask)[0]


def _cost(question: Question, ask: Ask) -> tuple[int, str]:
    """Computes the cost of an order and its currency by calls of the services: read, count, price and convert."""
    level, person = question["level"], question["people"][0]
    product, quantity, currency = question["product"], question["quantity"], question["currency"]
    city = question["city"]
    if level >= 3:
        meeting = question.get("met") or ask("calendar", "next_meeting", {"person": person})
        person, city = meeting["with"], meeting["city"]
    if level >= 1:
        found = _lines(ask("files", "read_file", {"name": f"order-{person.lower()}.txt"}))
        product, quantity, currency = found["product"], int(found["quantity"]), found["pays in"]
    if level >= 2:
        warehouse = question["warehouses"][0]
        if level >= 4:
            place = question.get("place") or ask("inventory", "warehouses", {})
            ways = [
                (ask("routing", "distance", {"origin": place[one], "destination": city}), one)
                for one in question["warehouses"]
            ]
            warehouse = min(ways)[1]
        quantity = min(quantity, ask("inventory", "stock", {"product": product, "warehouse": warehouse}))
    price = ask("inventory", "price", {"product": product})
    rate = ask("currency", "rate", {"base": price["currency"], "quote": currency})
    return int(quantity) * int(price["amount"]) * int(rate["thousandths"]) // 1000, currency


def _trip(question: Question, ask: Ask) -> int:
    """Computes a number from people's meetings by calls of the services: rain, distances and minutes."""
    level, people = question["level"], question["people"]
    if level > LONGEST:
        return _trips_of_a_chain(question, ask)
    first = ask("calendar", "next_meeting", {"person": people[0]})
    if level == 0:
        return int(_forecast(first, ask)["rain"])
    if level == 3:
        second = ask("calendar", "next_meeting", {"person": first["with"]})
        way = {"origin": first["city"], "destination": second["city"]}
        busy = [
            ask("calendar", "busy_minutes", {"person": person, "days_ahead": meeting["days_ahead"]})
            for person, meeting in ((people[0], first), (first["with"], second))
        ]
        return int(ask("routing", "minutes", way)) + sum(map(int, busy))
    second = ask("calendar", "next_meeting", {"person": people[1]})
    if level == 1:
        return int(ask("routing", "distance", {"origin": first["city"], "destination": second["city"]}))
    if level == 2:
        return int(_forecast(first, ask)["rain"]) + int(_forecast(second, ask)["rain"])
    third = ask("calendar", "next_meeting", {"person": people[2]})
    tour = [first["city"], second["city"], third["city"], first["city"]]
    return sum(int(ask("routing", "distance", {"origin": a, "destination": b})) for a, b in pairwise(tour))


def _forecast(meeting: Mapping[str, Any], ask: Ask) -> Mapping[str, Any]:
    found: Mapping[str, Any] = ask(
        "weather", "forecast", {"city": meeting["city"], "days_ahead": meeting["days_ahead"]}
    )
    return found


def _openings(question: Question, ask: Ask) -> int:
    """Computes when offices in the cities of meetings open, in another time zone, and the ways between the cities."""
    level, people = question["level"], question["people"]
    if level < 3:
        chain = [ask("calendar", "next_meeting", {"person": person}) for person in people[: 1 + min(level, 1)]]
    else:
        count = PUBLISHED_CHAINS["openings"][level - 3]
        chain = [meeting for _, meeting in _followed(people[0], count, ask)]
    offices = [(meeting["city"], _noted(meeting["city"], ask)) for meeting in chain]
    total = 0
    for _, noted in offices if level >= 3 else offices[:1]:
        opens = _lines(ask("filesystem", "read_text_file", {"path": noted["opening hours"]}))["opens"]
        zones = noted["time zone"], question["zone"] if level in (0, 3, 4) else offices[1][1]["time zone"]
        asked = {"source_timezone": zones[0], "time": opens, "target_timezone": zones[1]}
        there = ask("time", "convert_time", asked)["target"]["datetime"].partition("T")[2]
        total += int(there[:2]) * 60 + int(there[3:5])
    for (before, _), (after, _) in pairwise(offices if level >= 2 else ()):
        total += int(ask("routing", "minutes", {"origin": before, "destination": after}))
    return total


def _supplies(question: Question, ask: Ask) -> int:
    """Computes what products cost at the prices of their suppliers, whose price lists a knowledge graph names."""
    level, total = question["level"], 0
    if level < 3:
        return _supplied(question, question["people"][0], ask)[0]
    for _, meeting in _followed(question["people"][0], PUBLISHED_CHAINS["supplies"][level - 3], ask):
        cost, currency = _supplied(question, meeting["with"], ask)
        rate = ask("currency", "rate", {"base": currency, "quote": question["currency"]})
        total += cost * int(rate["thousandths"]) // 1000
    return total


def _supplied(question: Question, person: str, ask: Ask) -> tuple[int, str]:
    """Computes the cost of an order and its currency: who supplies the product or what replaces it, and for what."""
    product, quantity, currency = question["product"], question["quantity"], question["currency"]
    if question["level"] >= 1:
        found = _lines(ask("files", "read_file", {"name": f"order-{person.lower()}.txt"}))
        product, quantity, currency = found["product"], int(found["quantity"]), found["pays in"]
    related = _related(product, ask)
    if question["level"] >= 2:
        product = related["is replaced by"]
        related = _related(product, ask)
    path = _noted(related["is supplied by"], ask)["price list"]
    lines = [line.split(",") for line in ask("filesystem", "read_text_file", {"path": path}).splitlines()]
    row = next(dict(zip(lines[0], line, strict=True)) for line in lines if line[0] == product)
    rate = ask("currency", "rate", {"base": row["currency"], "quote": currency})
    return quantity * int(row["amount"]) * int(rate["thousandths"]) // 1000, currency


def _noted(name: str, ask: Ask) -> dict[str, str]:
    """Returns what a knowledge graph notes about an entity, by what it is about."""
    [entity] = ask("memory", "open_nodes", {"names": [name]})["entities"]
    return _lines("\n".join(entity["observations"]))


def _related(name: str, ask: Ask) -> dict[str, str]:
    """Returns the entities that relations lead to from this one, by the kind of relation."""
    relations = ask("memory", "open_nodes", {"names": [name]})["relations"]
    return {one["relationType"]: one["to"] for one in relations if one["from"] == name}


def _lines(text: str) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)


PLANS: Mapping[str, Callable[[Question, Ask], int]] = {
    "orders": _order,
    "trips": _trip,
    "openings": _openings,
    "supplies": _supplies,
}
