"""Servers that others publish: how a world starts each, the data that it gives them, and what they then answer.

Invariants: none of this runs in a world, where the real servers answer. The services here are a second way to the same
answers, from seed and day, in which ground truth is worked out. Time zones are some whose clocks never change, so no
answer depends on the date. Only the named tools are offered: they change nothing, and tell nothing of clock or machine.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from curriculum.environments.orchestration.services import (
    CITIES,
    CURRENCIES,
    PRODUCTS,
    SERVICES,
    TOOLS,
    Service,
)

ZONES = {
    "Africa/Lagos": 60,
    "America/Bogota": -300,
    "America/Phoenix": -420,
    "Asia/Dubai": 240,
    "Asia/Kathmandu": 345,
    "Asia/Kolkata": 330,
    "Asia/Tokyo": 540,
    "Asia/Yangon": 390,
    "Australia/Brisbane": 600,
    "Australia/Darwin": 570,
    "Pacific/Honolulu": -600,
    "Pacific/Marquesas": -570,
}
"""Minutes east of Greenwich, by name."""
SUPPLIERS = ("Ostrel", "Pinnock", "Quill", "Rasmus", "Sorrel", "Tamber")
SHARED = "/work/shared"
"""The folder that the filesystem server serves."""
GRAPH = "/work/graph.jsonl"
"""The file of the memory server."""


class Memory(Service):
    """A knowledge graph of the firm's offices, products and suppliers."""

    def open_nodes(self, names: list[str]) -> dict[str, list[dict[str, object]]]:
        """The entities of these names, and the relations from or to them."""
        entities, relations = self.graph()
        return {
            "entities": [one for one in entities if one["name"] in names],
            "relations": [one for one in relations if one["from"] in names or one["to"] in names],
        }

    def graph(self) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
        """All entities and relations."""
        folder = Filesystem(self._seed, self._day)
        entities: list[tuple[str, str, list[str]]] = []
        relations: list[tuple[str, str, str]] = []
        for city in CITIES:
            zone, before = (self._one(tuple(ZONES), when, city) for when in ("zone", "old zone"))
            hours = f"opening hours: {folder.hours(city)}"
            entities.append((city, "office", [f"time zone: {zone}", f"time zone in the register of last year: {before}", hours]))
        for product in PRODUCTS:
            entities.append((product, "product", [f"weight: {self._draw(1, 90, 'kg', product)} kg"]))
            others = tuple(one for one in PRODUCTS if one != product)
            relations.append((product, "is replaced by", self._one(others, "next", product)))
            relations.append((product, "is supplied by", self._one(SUPPLIERS, "supplier", product)))
        for supplier in SUPPLIERS:
            entities.append((supplier, "supplier", [f"price list: {folder.prices(supplier)}"]))
            relations.append((supplier, "delivers from", self._one(CITIES, "from", supplier)))
        return (
            [{"name": name, "entityType": kind, "observations": told} for name, kind, told in entities],
            [{"from": start, "to": end, "relationType": kind} for start, kind, end in relations],
        )


class Filesystem(Service):
    """A folder of opening hours and suppliers' price lists."""

    def hours(self, city: str) -> str:
        return f"{SHARED}/hours-{city.lower()}-{self._draw(100, 999, 'hours', city)}.txt"

    def prices(self, supplier: str) -> str:
        return f"{SHARED}/prices-{supplier.lower()}-{self._draw(100, 999, 'prices', supplier)}.csv"

    def read_text_file(self, path: str) -> str:
        """The text of a file."""
        return self.texts()[path]

    def texts(self) -> dict[str, str]:
        """All files by path."""
        found = {}
        for city in CITIES:
            opens, closes, before = (
                f"{self._draw(*between, when, city, self._day):02}:{self._draw(0, 59, when, 'minute', city, self._day):02}"
                for when, between in (("opens", (6, 10)), ("closes", (16, 20)), ("opened", (6, 10)))
            )
            found[self.hours(city)] = f"Office of {city}\nopens: {opens}\ncloses: {closes}\nopened last year: {before}\n"
        for supplier in SUPPLIERS:
            lines = ["product,amount,currency,last year"]
            for product in PRODUCTS:
                amount, before = (self._draw(11, 480, when, supplier, product, self._day) for when in ("now", "before"))
                lines.append(f"{product},{amount},{self._one(CURRENCIES, 'in', supplier)},{before}")
            found[self.prices(supplier)] = "\n".join(lines) + "\n"
        return found


class Time(Service):
    """Times of day in other time zones."""

    def convert_time(self, source_timezone: str, time: str, target_timezone: str) -> dict[str, dict[str, str]]:
        """A time of day in another zone, in the form of the server's answer; its date means nothing."""
        hours, minutes = map(int, time.split(":"))
        found = (hours * 60 + minutes + ZONES[target_timezone] - ZONES[source_timezone]) % 1440
        return {"target": {"datetime": f"2000-01-01T{found // 60:02}:{found % 60:02}:00"}}


class Server(NamedTuple):
    """A server that others publish."""

    service: type[Service]
    """What it answers."""
    tools: tuple[str, ...]
    """Those that are offered."""
    package: str
    """Started as by `python -m`."""
    arguments: tuple[str, ...] = ()


PUBLISHED = {
    "memory": Server(Memory, ("open_nodes", "search_nodes", "read_graph"), "server_memory"),
    "filesystem": Server(
        Filesystem,
        ("read_text_file", "list_directory", "search_files", "list_allowed_directories"),
        "server_filesystem",
        (SHARED,),
    ),
    "time": Server(Time, ("convert_time",), "mcp_server_time", ("--local-timezone", "UTC")),
}
"""By name: two from npm, and one from PyPI."""
ALL_SERVICES = SERVICES | {name: one.service for name, one in PUBLISHED.items()}
ALL_TOOLS = TOOLS | {name: one.tools for name, one in PUBLISHED.items()}


GIVEN = "given.json"
"""The file that a world gets, with what `given` returns."""


def given(seed: int, day: int, servers: Sequence[str]) -> Mapping[str, Any]:
    """Returns what a world needs for these of the servers: how it starts each, and their files by path."""
    entities, relations = Memory(seed, day).graph()
    lines = [{"type": "entity", **one} for one in entities] + [{"type": "relation", **one} for one in relations]
    return {
        "servers": {
            name: {
                "about": PUBLISHED[name].service.__doc__,
                "package": PUBLISHED[name].package,
                "arguments": PUBLISHED[name].arguments,
                "tools": PUBLISHED[name].tools,
            }
            for name in servers
        },
        "environment": {"MEMORY_FILE_PATH": GRAPH},
        "files": {GRAPH: "\n".join(map(json.dumps, lines)), **Filesystem(seed, day).texts()},
    }
