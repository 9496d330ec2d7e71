"""Questions about the yearbooks of an institution: sums, leaders and the only person who meets all conditions.

Invariants: an answer is a function of the entries of the asked volumes, the same for the generator and for whoever
reads them (`answer_of`). Each of these volumes has an entry that matters, and the total changes without any of them. On
four volumes or more, reading without the corrections gives another answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from random import Random
from typing import Any, Literal, NamedTuple

from curriculum.environments.research.graph import FIELDS, fact_graph
from curriculum.environments.research.yearbooks import (
    PURPOSES,
    VOLUMES,
    Account,
    Entry,
    StandingEntry,
    YearbookSeries,
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


def answer_of(asked: Inquiry, entries: Iterable[Entry]) -> Any:
    """Returns the answer that the entries of the asked volumes give: a person, or people and sum as `12/3450`. None
    unless exactly one person leads or matches."""
    entries = list(entries)
    return _answer(asked, lambda account: settled(entries, account))


def _answer(asked: Inquiry, rows: Callable[[Account], Sequence[StandingEntry]]) -> Any:
    if asked.form == "match":
        sets = matching(rows("gifts"), rows("lectures"), rows("members"), asked.matter, asked.field, asked.times)
        found = set.intersection(*sets)
        return found.pop() if len(found) == 1 else None
    if asked.form == "leader":
        return leader(rows(asked.account), asked.matter)
    return "/".join(map(str, total(rows(asked.account), asked.matter)))


@lru_cache(1 << 11)
def _rows(edition: int, house: int, first: int, last: int, account: Account, *, naive: bool) -> Sequence[StandingEntry]:
    return settled(in_years(register(edition, house), first, last), account, naive=naive)


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
    """Draws an inquiry of `volumes` yearbooks of an institution, all of which must be read for its answer. A person who
    is the answer has a unique name. Raises LookupError if none is found."""
    graph, found = fact_graph(edition), register(edition, house)
    for _ in range(_TRIES):
        first = found.first + rng.randrange(VOLUMES - volumes + 1)
        last = first + volumes - 1
        account: Account = "gifts" if form == "match" else rng.choice(("gifts", "lectures"))
        asked = Inquiry(form, account, rng.choice(PURPOSES if account == "gifts" else found.fields), first, last)
        if form == "match":
            asked = asked._replace(field=rng.choice(found.fields), times=2 if volumes >= 2 * _MANY else 1)
        rows = partial(_rows, edition, house, first, last, naive=False)
        answer = _answer(asked, rows)
        if answer is None or (form != "total" and graph.entities[answer].name in graph.namesakes):
            continue
        if volumes >= _MANY and _answer(asked, partial(_rows, edition, house, first, last, naive=True)) == answer:
            continue
        if _worth(found, asked, answer, rows):
            return asked
    raise LookupError(f"no inquiry ({form}) of {volumes} yearbooks of {house} in edition {edition}")


def _worth(
    found: YearbookSeries, asked: Inquiry, answer: Any, rows: Callable[[Account], Sequence[StandingEntry]]
) -> bool:
    """True if no volume can be skipped and no single entry gives the answer; each condition of a match is needed."""
    years = range(asked.first, asked.last + 1)
    if asked.form == "match":
        sets = matching(rows("gifts"), rows("lectures"), rows("members"), asked.matter, asked.field, asked.times)
        others = (set.intersection(*(one for one in sets if one is not left)) for left in sets)
        return len(years) == 1 or all(len(some) > 1 for some in others)
    mine = [one for one in rows(asked.account) if one.matter == asked.matter]
    if asked.form == "leader":
        return len([one for one in mine if one.person == answer]) > 1
    entries = [one for one in in_years(found, asked.first, asked.last) if one.matter == asked.matter]
    without = (answer_of(asked, (one for one in entries if one.year != year)) for year in years)
    return len(mine) > 1 and all(other != answer for other in without)
