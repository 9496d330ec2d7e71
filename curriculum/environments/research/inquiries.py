"""Questions about the yearbooks of an institution: sums, leaders and the only person who meets all conditions.

Invariants: an answer is a function of the entries of the asked volumes, the same for the generator and for whoever
reads them (`answer_of`). Each of these volumes has an entry that matters, and the total changes without any of them. On
four volumes or more, reading without the corrections gives another answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from random import Random
from typing import Any, Literal, NamedTuple

from curriculum.environments.research.graph import FIELDS, fact_graph
from curriculum.environments.research.yearbooks import (
    PURPOSES,
    VOLUMES,
    Account,
    Entry,
    Register,
    in_years,
    leader,
    matching,
    register,
    settled,
    total,
)

Form = Literal["total", "leader", "match"]
_MANY = 4
"""Volumes from which on corrections decide the answer."""
_TRIES = 500
_LEAST = {"at least once": 1, "at least twice": 2}
_PHRASES: dict[tuple[Form, Account], str] = {
    ("total", "gifts"): "the gifts for {m} to {x} (by its {v})",
    ("total", "lectures"): "the lectures on {m} at {x} (by its {v})",
    ("leader", "gifts"): "the person who gave most crowns in all for {m} to {x} (by its {v})",
    ("leader", "lectures"): "the person who had most listeners in all on {m} at {x} (by its {v})",
    ("match", "gifts"): (
        "the only person who {t} gave for {m} to {x}, {t} lectured there on {f}, and was a member at the end "
        "(by its {v})"
    ),
}


class Inquiry(NamedTuple):
    form: Form
    account: Account
    matter: str
    first: int
    """Years of the first and the last volume that count."""
    last: int
    field: str = ""
    times: int = 1
    """Least number of gifts, and of lectures, of who matches."""


def answer_of(asked: Inquiry, entries: Iterable[Entry], *, naive: bool = False) -> Any:
    """Returns the answer that the entries of the asked volumes give: a person, or people and sum as `12/3450`. None
    unless exactly one person leads or matches. With `naive` nothing is corrected."""
    entries = list(entries)
    if asked.form == "match":
        gifts, lectures, members = (settled(entries, one, naive=naive) for one in ("gifts", "lectures", "members"))
        found = set.intersection(*matching(gifts, lectures, members, asked.matter, asked.field, asked.times))
        return found.pop() if len(found) == 1 else None
    rows = settled((one for one in entries if one.matter == asked.matter), asked.account, naive=naive)
    return "/".join(map(str, total(rows, asked.matter))) if asked.form == "total" else leader(rows, asked.matter)


def described(asked: Inquiry, house: str) -> str:
    """Describes what is asked in words, of the institution that `house` describes."""
    several = f"yearbooks from {asked.first} to {asked.last}"
    volumes = several if asked.last > asked.first else f"yearbook of {asked.first}"
    times = next(words for words, least in _LEAST.items() if least == asked.times)
    words = _PHRASES[asked.form, asked.account]
    return words.format(m=asked.matter, x=house, v=volumes, f=asked.field, t=times)


def parsed(phrase: str) -> tuple[Inquiry, str] | None:
    """Reads what `described` writes: the inquiry, and the words for its institution. None for other phrases."""
    for (form, account), words in _PHRASES.items():
        matters = PURPOSES if account == "gifts" else FIELDS
        pattern = re.escape(words).replace(r"\{", "{").replace(r"\}", "}")
        pattern = pattern.replace("{m}", f"(?P<m>{'|'.join(matters)})").replace("{x}", "(?P<x>the .*)")
        pattern = pattern.replace("{f}", f"(?P<f>{'|'.join(FIELDS)})")
        pattern = pattern.replace("{t}", f"(?P<t>{'|'.join(_LEAST)})", 1).replace("{t}", "(?P=t)")
        pattern = pattern.replace("{v}", r"yearbooks?(?: of| from) (?P<a>\d+)(?: to (?P<b>\d+))?")
        if found := re.fullmatch(pattern, phrase):
            more = found.groupdict()
            asked = Inquiry(form, account, found["m"], int(found["a"]), int(found["b"] or found["a"]))
            return asked._replace(field=more.get("f", ""), times=_LEAST[more.get("t", "at least once")]), found["x"]
    return None


def drawn_inquiry(edition: int, house: int, rng: Random, form: Form, volumes: int) -> Inquiry:
    """Draws an inquiry of so many yearbooks of an institution, for whose answer all of them must be read. A person who
    is the answer has a unique name. Raises LookupError if none is found."""
    graph, found = fact_graph(edition), register(edition, house)
    for _ in range(_TRIES):
        first = found.first + rng.randrange(VOLUMES - volumes + 1)
        account: Account = "gifts" if form == "match" else rng.choice(("gifts", "lectures"))
        asked = Inquiry(
            form, account, rng.choice(PURPOSES if account == "gifts" else found.fields), first, first + volumes - 1
        )
        if form == "match":
            asked = asked._replace(field=rng.choice(found.fields), times=2 if volumes >= 2 * _MANY else 1)
        answer = answer_of(asked, in_years(found, asked.first, asked.last))
        if answer is None or (form != "total" and graph.entities[answer].name in graph.namesakes):
            continue
        if _worth(found, asked, answer):
            return asked
    raise LookupError(f"no inquiry ({form}) of {volumes} yearbooks of {house} in edition {edition}")


def _worth(found: Register, asked: Inquiry, answer: Any) -> bool:
    """True if no volume can be skipped, no single entry gives the answer, and corrections decide it."""
    years = range(asked.first, asked.last + 1)
    entries = in_years(found, asked.first, asked.last)
    if len(years) >= _MANY and answer_of(asked, entries, naive=True) == answer:
        return False
    rows = [one for one in settled(entries, asked.account) if one.matter == asked.matter]
    if asked.form == "total":
        without = (answer_of(asked, in_years(found, asked.first, asked.last, {year})) for year in years)
        return len(rows) > 1 and all(other != answer for other in without)
    if asked.form == "leader":
        return len([one for one in rows if one.person == answer]) > 1
    gifts, lectures, members = (settled(entries, one) for one in ("gifts", "lectures", "members"))
    sets = matching(gifts, lectures, members, asked.matter, asked.field, asked.times)
    others = (set.intersection(*(one for one in sets if one is not left)) for left in sets)
    return len(years) == 1 or all(len(some) > 1 for some in others)
