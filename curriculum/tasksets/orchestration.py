"""Questions whose answer takes several servers of the Model Context Protocol, ours and those that others publish.

Invariants: the answer is the plan's result on the day of the setup, executed on the services themselves; for servers
that others publish on a second way to what they answer, never on them. The servers and tools include some that the plan
does not need, and some with other data (last year's, the catalogue's, long-term means).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from random import Random

from curriculum.contract.topics import Item, TopicTaskset
from curriculum.environments.orchestration.plans import CHAINS, LONGEST, PUBLISHED_CHAINS, drawn, executed, is_straight
from curriculum.environments.orchestration.published import ALL_SERVICES
from curriculum.environments.orchestration.services import SERVICES
from curriculum.tasksets.statements import digest
from verifiers.answers.spec import AnswerSpec

_FILE = "(a file of the folder of orders)"
_PAYS = "in the currency that {a} pays in, at today's price and rate"
_THEIRS = f"Somebody meets {{a}} at {{a}}'s next meeting. That person's order {_FILE} is delivered from"
_COST = "What does that cost in the currency that this person pays in, at today's price and rate?"
_DELIVERED = f"The order of {{a}} {_FILE} is delivered from the warehouse {{w}}, but no more units than it has today."
_NEAREST = (
    "whichever warehouse is in the city from which fewer kilometres of open road lead to the city of the meeting (the "
    "name that is first in the alphabet, if they are equal), but no more units than this warehouse has today"
)
_CHAIN = (
    "Somebody meets {{a}} at {{a}}'s next meeting; that person has a next meeting, too, with another person, and so "
    "on. Follow this chain for {n} meetings."
)
_ORDERS = (
    "What do {quantity} units of the {product} cost today in {currency}, at today's price and rate?",
    f"What does the order of {{a}} {_FILE} cost today {_PAYS}?",
    f"{_DELIVERED} What does that cost {_PAYS}?",
    f"{_THEIRS} the warehouse {{w}}, but no more units than it has today. {_COST}",
    f"{_THEIRS} {{w}} or {{v}}, {_NEAREST}. {_COST}",
    *(
        f"{_CHAIN.format(n=n)} Each person that is met in one of these meetings has an order {_FILE}, which is "
        f"delivered from {{w}} or {{v}}, {_NEAREST}. Compute what each order costs in the currency that its person "
        "pays in, at today's price and rate, and round it down. Convert each of these amounts to {currency} at today's "
        "rate, and round it down. What do all orders cost together?"
        for n in CHAINS["orders"]
    ),
)
_ALONG = (
    "Add the rain (in mm) that is forecast for each of these meetings, in its city and for its day; the busy minutes "
    "of each person of the chain but the last, on the day of that person's next meeting; and the kilometres of open "
    "road from the city of each of these meetings to that of the next one."
)
_NEXT = "the city of the next meeting of {a}"
_BOTH_WAYS = (
    "Somebody meets {a} at {a}'s next meeting, and then has a next meeting, too. Add the minutes of the way from the "
    "city of the first meeting to that of the second, the busy minutes of {a} on the day of the first, and those of "
    "the other person on the day of the second."
)
_TRIPS = (
    f"How much rain (in mm) is forecast for {_NEXT}, for the day of that meeting?",
    f"How many kilometres of open road lead from {_NEXT} to that of the next meeting of {{b}}?",
    "How much rain (in mm) is forecast in all for the next meetings of {a} and {b}, each in its city and for its day?",
    _BOTH_WAYS,
    f"A tour leads from {_NEXT} to that of {{b}}, on to that of {{c}}, and back. How many kilometres of open road?",
    *(f"{_CHAIN.format(n=n)} {_ALONG}" for n in CHAINS["trips"]),
)


_OPENS = "does the office open that is in the city of the next meeting of {a}?"
_THERE = f"At what time of day, in the time zone of the city of the next meeting of {{b}}, {_OPENS}"
_OFFICES = "The knowledge graph has each office's time zone, and names the file of its opening hours."
_BETWEEN = "from the city of the next meeting of {a} to that of the next meeting of {b}"
_OPENINGS = (
    f"At what time of day, in the time zone {{zone}}, {_OPENS} Give the minutes after midnight. {_OFFICES}",
    f"{_THERE} Give the minutes after midnight. {_OFFICES}",
    f"{_THERE} Take it in minutes after midnight, and add the minutes of the way {_BETWEEN}. {_OFFICES}",
    *(
        f"{_CHAIN.format(n=n)} For each of these meetings, take the time of day at which the office in its city opens, "
        "in the time zone {zone} and in minutes after midnight. What do these numbers come to, together with the "
        f"minutes of the way from the city of each of these meetings to that of the next one? {_OFFICES}"
        for n in PUBLISHED_CHAINS["openings"]
    ),
)
_PRICED = "at the price of the product's supplier and at today's rate"
_LISTS = "The knowledge graph names each product's supplier, what replaces it, and the suppliers' price lists."
_REPLACED = f"The product in the order of {{a}} {_FILE} is replaced by another one."
_SUPPLIES = (
    f"What do {{quantity}} units of the {{product}} cost in {{currency}}, {_PRICED}? {_LISTS}",
    f"What does the order of {{a}} {_FILE} cost in the currency that {{a}} pays in, {_PRICED}? {_LISTS}",
    f"{_REPLACED} What do as many units of that other one cost in the currency that {{a}} pays in, {_PRICED}? {_LISTS}",
    *(
        f"{_CHAIN.format(n=n)} Each person that is met in one of these meetings has an order {_FILE}, whose product is "
        "replaced by another one. Compute what as many units of that other one cost in the currency that the person "
        f"pays in, {_PRICED}, and round it down. Convert each of these amounts to {{currency}} at today's rate, and "
        f"round it down. What do all orders cost together? {_LISTS}"
        for n in PUBLISHED_CHAINS["supplies"]
    ),
)
_MONEY = {"orders": LONGEST, "supplies": 2}
"""Highest level whose question does not say itself where amounts are rounded, by plan."""


def _item(
    plan: str, texts: tuple[str, ...], level: int, rng: Random, services: Iterable[str] = tuple(SERVICES)
) -> Item:
    while True:
        # The data are drawn from the seed, which no text shows: what is asked cannot be computed without the servers.
        seed, day, question = rng.getrandbits(62), rng.randint(1, 365), drawn(plan, level, rng)
        found = executed(question, seed, day)
        if found.answer >= 10 and is_straight(question, found.steps):
            break
    needed = list(dict.fromkeys(step.server for step in found.steps))
    others = [name for name in services if name not in needed]
    servers = [*needed, *rng.sample(others, min(len(others), 2 + level))]
    rng.shuffle(servers)
    people, warehouses = question["people"], question["warehouses"]
    asked = texts[level].format(
        a=people[0], b=people[1], c=people[2], w=warehouses[0], v=warehouses[1],
        **{name: question.get(name) for name in ("product", "quantity", "currency", "zone")},
    )  # fmt: skip
    rounded = " Round down to whole units of the currency." if level <= _MONEY.get(plan, -1) else ""
    opening = rng.choice(
        (
            *("Today is day {d} at firm {s}.", "It is day {d} at firm {s}.", "Firm {s}, day {d}."),
            "You work for firm {s}, and it is day {d}.",
        )
    )
    firm = rng.randint(1, 9_999)
    text = (
        f"{opening.format(d=day, s=firm)} Several servers have the firm's data; list_tools says which, and what they "
        f"can do. {asked}{rounded} Answer with the whole number."
    )
    value = str(found.answer)
    return Item(
        text=text,
        key=digest(f"{seed} {day} {asked}"),
        spec=AnswerSpec(expected=value),
        answer=value,
        world={"seed": seed, "day": day, "servers": servers, "question": question},
    )


def _lacking() -> str:
    from curriculum.environments.orchestration import ORCHESTRATION

    return ORCHESTRATION.missing()


def _unpublished() -> str:
    from curriculum.environments.orchestration import PUBLISHED_SERVERS

    return PUBLISHED_SERVERS.missing()


TOOL_ORCHESTRATION = TopicTaskset(
    name="orchestration",
    version=3,
    level_count=len(_ORDERS),
    makers={
        "orders_across_servers": lambda level, rng: _item("orders", _ORDERS, level, rng),
        "trips_across_servers": lambda level, rng: _item("trips", _TRIPS, level, rng),
    },
    null_answers=("0", "1", "10", "100", "1000", "unknown"),
    tools=("list_tools", "call_tool", "python"),
    environment="orchestration",
    lacking=_lacking,
)
PUBLISHED_ORCHESTRATION = replace(
    TOOL_ORCHESTRATION,
    name="published_servers",
    version=1,
    level_count=len(_OPENINGS),
    makers={
        "openings_across_servers": lambda level, rng: _item("openings", _OPENINGS, level, rng, ALL_SERVICES),
        "supplies_across_servers": lambda level, rng: _item("supplies", _SUPPLIES, level, rng, ALL_SERVICES),
    },
    environment="published_servers",
    lacking=_unpublished,
)
