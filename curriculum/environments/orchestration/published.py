"""Servers that others publish: how a world starts each, the data that it gives them, and what they then answer.

Invariants: none of this runs in a world, where the real servers answer. The services here are a second way to the same
answers, from seed and day, in which ground truth is worked out. Time zones are some whose clocks never change, so no
answer depends on the date. Only the named tools are offered: they change nothing, and tell nothing of clock or machine.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from curriculum.environments.orchestration.services import CITIES, CURRENCIES, PRODUCTS, SERVICES, TOOLS, Service

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
ENTITIES = (*CITIES, *PRODUCTS, *SUPPLIERS)
SHARED = "/work/files"
"""The folder that the filesystem server serves."""
GRAPH = "/work/graph.jsonl"
"""The file of the memory server."""


class Memory(Service):
    """A knowledge graph of the firm's offices, products and suppliers."""

    def open_nodes(self, names: list[str]) -> dict[str, list[dict[str, Any]]]:
        """The entities of these names, and the relations from or to them."""
        found = [one for one in self.relations() if one["from"] in names or one["to"] in names]
        return {"entities": [self.entity(name) for name in ENTITIES if name in names], "relations": found}

    def entity(self, name: str) -> dict[str, Any]:
        folder = Filesystem(self._seed, self._day)
        if name in CITIES:
            kind, zones = "office", [self._one(tuple(ZONES), when, name) for when in ("zone", "old zone")]
            noted = [f"time zone: {zones[0]}", f"time zone in the register of last year: {zones[1]}"]
            noted.append(f"opening hours: {folder.hours(name)}")
        elif name in PRODUCTS:
            kind, noted = "product", [f"weight: {self._draw(1, 90, 'kg', name)} kg"]
        else:
            kind, noted = "supplier", [f"price list: {folder.prices(name)}"]
        return {"name": name, "entityType": kind, "observations": noted}

    def relations(self) -> list[dict[str, Any]]:
        found = []
        for product in PRODUCTS:
            other = self._one(tuple(one for one in PRODUCTS if one != product), "next", product)
            found.append((product, "is replaced by", other))
            found.append((product, "is supplied by", self._one(SUPPLIERS, "supplier", product)))
        found += [(supplier, "delivers from", self._one(CITIES, "from", supplier)) for supplier in SUPPLIERS]
        return [{"from": start, "to": end, "relationType": kind} for start, kind, end in found]


class Filesystem(Service):
    """A folder of opening hours and suppliers' price lists."""

    def hours(self, city: str) -> str:
        return f"{SHARED}/hours-{city.lower()}-{self._draw(100, 999, 'hours', city)}.txt"

    def prices(self, supplier: str) -> str:
        return f"{SHARED}/prices-{supplier.lower()}-{self._draw(100, 999, 'prices', supplier)}.csv"

    def read_text_file(self, path: str) -> str:
        """The text of a file."""
        for city in CITIES:
            if path == self.hours(city):
                hours = [self._time(when, city) for when in ("opens", "closes", "opened last year")]
                return "Office of {}\nopens: {}\ncloses: {}\nopened last year: {}\n".format(city, *hours)
        [supplier] = [one for one in SUPPLIERS if path == self.prices(one)]
        lines = ["product,amount,currency,last year"]
        for product in PRODUCTS:
            amount, before = (self._draw(11, 480, when, supplier, product, self._day) for when in ("now", "before"))
            lines.append(f"{product},{amount},{self._one(CURRENCIES, 'in', supplier)},{before}")
        return "\n".join(lines) + "\n"

    def paths(self) -> list[str]:
        return [*map(self.hours, CITIES), *map(self.prices, SUPPLIERS)]

    def _time(self, when: str, city: str) -> str:
        first = 16 if when == "closes" else 6
        hour, minute = divmod(self._draw(60 * first, 60 * first + 299, when, city, self._day), 60)
        return f"{hour:02}:{minute:02}"


class Time(Service):
    """Times of day in other time zones."""

    def convert_time(self, source_timezone: str, time: str, target_timezone: str) -> dict[str, dict[str, str]]:
        """A time of day in another zone, in the form of the server's answer; its date means nothing."""
        hours, minutes = map(int, time.split(":"))
        found = (hours * 60 + minutes + ZONES[target_timezone] - ZONES[source_timezone]) % 1440
        return {"target": {"datetime": f"2000-01-01T{found // 60:02}:{found % 60:02}:00"}}


class PublishedServer(NamedTuple):
    """A server that others publish."""

    service: type[Service]
    """What it answers."""
    tools: tuple[str, ...]
    """Those that are offered."""
    package: str
    """Started as by `python -m`."""
    arguments: tuple[str, ...] = ()


PUBLISHED = {
    "memory": PublishedServer(Memory, ("open_nodes", "search_nodes", "read_graph"), "server_memory"),
    "filesystem": PublishedServer(
        Filesystem,
        ("read_text_file", "list_directory", "search_files", "list_allowed_directories"),
        "server_filesystem",
        (SHARED,),
    ),
    "time": PublishedServer(Time, ("convert_time",), "mcp_server_time", ("--local-timezone", "UTC")),
}
"""By name: two from npm, and one from PyPI."""
ALL_SERVICES = SERVICES | {name: one.service for name, one in PUBLISHED.items()}
ALL_TOOLS = TOOLS | {name: one.tools for name, one in PUBLISHED.items()}
GIVEN = "given.json"
"""The file that a world gets, with what `given` returns."""


def given(seed: int, day: int, servers: Sequence[str]) -> Mapping[str, Any]:
    """Returns what a world needs for these of the servers: how it starts each, and their files by path."""
    graph, folder = Memory(seed, day), Filesystem(seed, day)
    lines = [{"type": "entity", **graph.entity(name)} for name in ENTITIES]
    lines += [{"type": "relation", **one} for one in graph.relations()]
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
        "files": {GRAPH: "\n".join(map(json.dumps, lines))}
        | {path: folder.read_text_file(path) for path in folder.paths()},
    }
