"""Plans behind orchestration questions: which server to call with what; and the failure modes of a rollout.

Invariants: a plan is a pure function of its question and of the replies. Executed on the services themselves it gives
the ground truth and its steps; executed through a world, the answer of an oracle.

The seven failure modes are those of LiveMCP-101 (2508.15760, section 4.3), narrowed to what code can decide from the
plan's steps, the calls and whether the answer passed:

    ignoring_requirement        it failed, and some tools of the plan were called, but not all
    overconfident_self_solving  it answered, and no tool of the plan was ever called
    unproductive_thinking       it ended without an answer, or made the same call three times
    wrong_tool                  calls of a tool that the plan does not need, or that does not exist; listing is exempt
    syntactic_errors            calls whose arguments do not fit the tool's schema
    semantic_errors             calls of a tool of the plan that fit its schema, with arguments that no step has
    output_parsing_errors       it failed, answered, and each step of the plan had been called with its arguments
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from random import Random
from typing import Any, NamedTuple

from curriculum.contract.environment import MadeCall
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


CHAINS = {"orders": (2, 4), "trips": (3, 6)}
"""Meetings that the questions of the levels above `LONGEST` follow, by plan."""
LONGEST = 4
"""Highest level whose question follows at most two meetings of one chain."""


def is_straight(question: Question, steps: Sequence[PlanStep]) -> bool:
    """True if a plan asks nobody twice for the next meeting: its chain meets no person again before it ends."""
    asked = [str(step.arguments["person"]) for step in steps if step.tool == "next_meeting"]
    return question["level"] <= LONGEST or len(set(asked)) == len(asked)


def _chained(question: Question, ask: Ask) -> list[tuple[str, Mapping[str, Any]]]:
    """Follows a chain of meetings: returns each person with the next meeting, whose other person comes next."""
    person, found = question["people"][0], []
    for _ in range(CHAINS[question["plan"]][question["level"] - LONGEST - 1]):
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
        lines = ask("files", "read_file", {"name": f"order-{person.lower()}.txt"}).splitlines()
        found = dict(line.split(": ", 1) for line in lines if ": " in line)
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


PLANS: Mapping[str, Callable[[Question, Ask], int]] = {"orders": _order, "trips": _trip}


MODES = (
    "ignoring_requirement",
    "overconfident_self_solving",
    "unproductive_thinking",
    "wrong_tool",
    "syntactic_errors",
    "semantic_errors",
    "output_parsing_errors",
)
REPEATED = 3
REFUSED = "arguments refused: "


def failure_modes(
    steps: Sequence[PlanStep], calls: Sequence[MadeCall], *, answered: bool, passed: bool
) -> dict[str, int]:
    """Counts each failure mode of LiveMCP-101 in a rollout's tool calls. The first three and the last are 0 or 1.
    `steps` are those of the question's plan."""
    wanted = {(step.server, step.tool) for step in steps}
    of_plan = {_key(step.server, step.tool, step.arguments) for step in steps}
    found = Counter(dict.fromkeys(MODES, 0))
    tried: set[tuple[str, str]] = set()
    done: set[str] = set()
    for call in calls:
        server, tool = str(call.arguments.get("server")), str(call.arguments.get("tool"))
        if not call.reached or (call.failed and call.text.startswith(REFUSED)):
            found["syntactic_errors"] += 1
        elif call.tool == "list_tools":
            continue
        elif (server, tool) not in wanted:
            found["wrong_tool"] += 1
        else:
            key = _key(server, tool, call.arguments.get("arguments") or {})
            done.add(key)
            found["semantic_errors"] += key not in of_plan
        tried.add((server, tool))
    missed = wanted - tried
    repeated = Counter(json.dumps([call.tool, call.arguments], sort_keys=True) for call in calls)
    found["ignoring_requirement"] = int(not passed and bool(missed) and missed != wanted)
    found["overconfident_self_solving"] = int(answered and missed == wanted)
    found["unproductive_thinking"] = int(not answered or any(times >= REPEATED for times in repeated.values()))
    found["output_parsing_errors"] = int(not passed and answered and of_plan <= done)
    return dict(found)


def _key(server: str, tool: str, arguments: Mapping[str, Any]) -> str:
    return json.dumps([server, tool, dict(arguments)], sort_keys=True)
