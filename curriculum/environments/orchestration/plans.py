"""Plans behind orchestration questions: which server to call with what, and how to compute the answer.

Invariants: a plan is a pure function of its question and of the replies. Executed on the services themselves it gives
the ground truth and its steps; executed through a world, the answer of an oracle.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from random import Random
from typing import Any, NamedTuple

from curriculum.environments.orchestration.services import (
    CITIES,
    CURRENCIES,
    PEOPLE,
    PRODUCTS,
    SERVICES,
    TOOLS,
    WAREHOUSES,
)

Ask = Callable[[str, str, Mapping[str, Any]], Any]
"""Calls a tool of a server, and returns its answer as parsed JSON."""
Question = Mapping[str, Any]


class PlanStep(NamedTuple):
    server: str
    tool: str
    arguments: Mapping[str, Any]


class ExecutedPlan(NamedTuple):
    answer: int
    steps: tuple[PlanStep, ...]


def executed(question: Question, seed: int, day: int) -> ExecutedPlan:
    """Executes a question's plan on the services themselves, and returns its answer and steps. `seed` and `day` fix the
    services' data."""
    steps: list[PlanStep] = []

    def ask(server: str, tool: str, arguments: Mapping[str, Any]) -> Any:
        steps.append(PlanStep(server, tool, dict(arguments)))
        assert tool in TOOLS[server]
        return getattr(SERVICES[server](seed, day), tool)(**arguments)

    return ExecutedPlan(answer(question, ask), tuple(steps))


def answer(question: Question, ask: Ask) -> int:
    return PLANS[question["plan"]](question, ask)


def drawn(plan: str, level: int, rng: Random) -> dict[str, Any]:
    """Draws an orchestration question of that plan and level: people, cities, product, amounts and currency."""
    people, cities = rng.sample(PEOPLE, 3), rng.sample(CITIES, 2)
    return {
        "plan": plan, "level": level, "people": people, "city": cities[0], "product": rng.choice(PRODUCTS),
        "quantity": rng.randint(5, 60), "warehouses": rng.sample(WAREHOUSES, 2), "currency": rng.choice(CURRENCIES),
    }  # fmt: skip


def _order(question: Question, ask: Ask) -> int:
    """Computes the cost of an order in a currency by calls of the services: read, count, price and convert."""
    level, person = question["level"], question["people"][0]
    product, quantity, currency = question["product"], question["quantity"], question["currency"]
    city = question["city"]
    if level >= 3:
        meeting = ask("calendar", "next_meeting", {"person": person})
        person, city = meeting["with"], meeting["city"]
    if level >= 1:
        lines = ask("files", "read_file", {"name": f"order-{person.lower()}.txt"}).splitlines()
        found = dict(line.split(": ", 1) for line in lines if ": " in line)
        product, quantity, currency = found["product"], int(found["quantity"]), found["pays in"]
    if level >= 2:
        warehouse = question["warehouses"][0]
        if level >= 4:
            place = ask("inventory", "warehouses", {})
            ways = [
                (ask("routing", "distance", {"origin": place[one], "destination": city}), one)
                for one in question["warehouses"]
            ]
            warehouse = min(ways)[1]
        quantity = min(quantity, ask("inventory", "stock", {"product": product, "warehouse": warehouse}))
    price = ask("inventory", "price", {"product": product})
    rate = ask("currency", "rate", {"base": price["currency"], "quote": currency})
    return int(quantity) * int(price["amount"]) * int(rate["thousandths"]) // 1000


def _trip(question: Question, ask: Ask) -> int:
    """Computes a number from people's meetings by calls of the services: rain, distances and minutes."""
    level, people = question["level"], question["people"]
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


PLANS: Mapping[str, Callable[[Question, Ask], int]] = {"orders": _order, "trips": _trip}
