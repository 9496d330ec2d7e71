"""Yearbooks of some institutions of an edition: entries whose facts later volumes correct, strike, restore and repeat.

Invariants: a register is a pure function of edition and institution. Within a volume no two entries of an account have
the same person and matter, so (year, person, matter) names an entry. Each volume has an entry of every matter, so no
volume can be skipped. Answers follow from the entries alone (`settled`), by one rule for generator and oracle: the last
correction of an amount, a person or an entry's validity holds, and a repetition adds nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from random import Random
from typing import Any, Literal, NamedTuple, get_args

from curriculum.environments.research.graph import FIELDS, FactGraph, fact_graph

REGISTERS, VOLUMES = 12, 18
"""Institutions of an edition that have yearbooks, and yearbooks of each."""
_PEOPLE, _NAMESAKES = 18, 3
"""People whom one register names, besides pairs of namesakes."""
_REMARKS, _NOISE = 14, 62
"""Corrections and repetitions of a volume, and entries of no account."""
PURPOSES = (
    "the garden", "the infirmary", "the library", "the observatory", "the printing press", "the roof",
    "the school", "the widows' fund",
)  # fmt: skip
_FIELDS = 8
"""Fields that one register has lectures on."""
Account = Literal["gifts", "lectures", "members"]
Kind = Literal["told", "changed", "moved", "struck", "restored", "repeated"]
KINDS: tuple[Kind, ...] = get_args(Kind)


class Entry(NamedTuple):
    year: int
    """Volume in which the entry stands."""
    kind: Kind
    account: Account
    of: int
    """Year of the entry that is meant: its own, or an earlier one that it corrects or repeats."""
    person: Any
    """Person of the entry that is meant, as first entered: a number in the corpus, or words in an oracle."""
    matter: str
    amount: int = 0
    """Amount as stated; for `changed` the new one."""
    other: Any = None
    """New person of a `moved` entry."""


class YearbookSeries(NamedTuple):
    house: int
    """Institution whose yearbooks these are."""
    first: int
    """Year of the first volume."""
    entries: Mapping[int, Sequence[Entry]]
    """Entries that state something, by year."""
    people: Sequence[int]
    fields: Sequence[str]


@cache
def houses(edition: int) -> Sequence[int]:
    """Returns the institutions of an edition that have yearbooks."""
    graph = fact_graph(edition)
    return sorted(Random(f"houses {edition}").sample(list(graph.of_kind["institution"]), REGISTERS))


@cache
def register(edition: int, house: int) -> YearbookSeries:
    graph, rng = fact_graph(edition), Random(f"register {edition} {house}")
    people, fields = _people(graph, rng), sorted(rng.sample(FIELDS, _FIELDS))
    first, entries, told = rng.randrange(1800, 1860), {}, list[Entry]()
    corrected: dict[Entry, str] = {}
    for year in range(first, first + VOLUMES):
        own = _told(year, people, fields, rng)
        earlier = [one for one in told if one.year >= year - 6]
        remarks = _remarks(year, earlier, people, corrected, rng) if earlier else []
        told += own
        entries[year] = [*own, *remarks]
        rng.shuffle(entries[year])
    return YearbookSeries(house, first, entries, people, fields)


def _people(graph: FactGraph, rng: Random) -> list[int]:
    by_name: dict[str, list[int]] = defaultdict(list)
    for one in graph.of_kind["person"]:
        by_name[graph.entities[one].name].append(one)
    shared = [two[:2] for name, two in by_name.items() if name in graph.namesakes]
    alone = [two[0] for name, two in by_name.items() if name not in graph.namesakes]
    pairs = rng.sample(shared, min(_NAMESAKES, len(shared)))
    return [*rng.sample(alone, _PEOPLE), *(one for pair in pairs for one in pair)]


def _told(year: int, people: Sequence[int], fields: Sequence[str], rng: Random) -> list[Entry]:
    accounts: tuple[tuple[Account, Sequence[str], float], ...] = (("gifts", PURPOSES, 3.2), ("lectures", fields, 2.5))
    own = [
        Entry(year, "told", account, year, person, matter, round(10 ** rng.uniform(1.2, most)))
        for account, matters, most in accounts
        for matter in matters
        for person in rng.sample(people, rng.randint(1, 4))
    ]
    moves = enumerate(rng.sample(people, 8))
    return [*own, *(Entry(year, "told", "members", year, person, "in" if at < 5 else "out") for at, person in moves)]


def _remarks(
    year: int, earlier: Sequence[Entry], people: Sequence[int], corrected: dict[Entry, str], rng: Random
) -> list[Entry]:
    """Draws corrections and repetitions of earlier entries, one for each entry meant; large amounts more often."""
    found: dict[Entry, Entry] = {}
    for one in rng.choices(earlier, [1 + entry.amount / 100 for entry in earlier], k=_REMARKS):
        if one in found:
            continue
        kinds: tuple[Kind, ...] = ("struck", "repeated") if one.account == "members" else (
            "changed", "moved", "struck", "repeated",
        )  # fmt: skip
        kind: Kind = "restored" if corrected.get(one) == "struck" else rng.choice(kinds)
        remark = Entry(year, kind, one.account, one.year, one.person, one.matter, one.amount)
        if kind == "changed":
            remark = remark._replace(amount=max(1, round(one.amount * rng.uniform(0.2, 1.8))) + 1)
        if kind == "moved":
            remark = remark._replace(other=rng.choice([other for other in people if other != one.person]))
        if kind in ("struck", "restored"):
            corrected[one] = kind
        found[one] = remark
    return list(found.values())


class StandingEntry(NamedTuple):
    """Entry of an account as the volumes leave it after all corrections."""

    year: int
    person: Any
    matter: str
    amount: int


def settled(entries: Iterable[Entry], account: Account, *, naive: bool = False) -> list[StandingEntry]:
    """Returns the entries of an account that stand after these volumes, corrected; with `naive`, as first entered."""
    standing: dict[tuple[int, Any, str], StandingEntry] = {}
    struck: set[tuple[int, Any, str]] = set()
    later: list[Entry] = []
    for one in entries:
        if one.account != account:
            continue
        if one.kind == "told":
            standing[one.year, one.person, one.matter] = StandingEntry(one.year, one.person, one.matter, one.amount)
        else:
            later.append(one)
    for one in sorted(later, key=lambda remark: remark.year):
        key = (one.of, one.person, one.matter)
        if naive or key not in standing:
            continue
        if one.kind == "changed":
            standing[key] = standing[key]._replace(amount=one.amount)
        elif one.kind == "moved":
            standing[key] = standing[key]._replace(person=one.other)
        elif one.kind == "struck":
            struck.add(key)
        elif one.kind == "restored":
            struck.discard(key)
    return [standing[key] for key in standing if key not in struck]


def in_years(found: YearbookSeries, first: int, last: int) -> list[Entry]:
    """Returns the entries of the volumes from `first` to `last`."""
    return [one for year in range(first, last + 1) for one in found.entries[year]]


def total(rows: Iterable[StandingEntry], matter: str) -> tuple[int, int]:
    """Returns the number of different people of a matter, and the sum of its amounts."""
    of = [one for one in rows if one.matter == matter]
    return len({one.person for one in of}), sum(one.amount for one in of)


def leader(rows: Iterable[StandingEntry], matter: str) -> Any:
    """Returns the person with the largest sum of a matter; None if two have it."""
    sums: Counter[Any] = Counter()
    for one in rows:
        if one.matter == matter:
            sums[one.person] += one.amount
    best = sums.most_common(2)
    return None if not best or (len(best) == 2 and best[0][1] == best[1][1]) else best[0][0]


def matching(
    gifts: Iterable[StandingEntry],
    lectures: Iterable[StandingEntry],
    members: Iterable[StandingEntry],
    purpose: str,
    field: str,
    times: int,
) -> tuple[set[Any], set[Any], set[Any]]:
    """Returns the people who gave for a purpose and lectured on a field the given number of times, and the members."""
    gave = Counter(one.person for one in gifts if one.matter == purpose)
    spoke = Counter(one.person for one in lectures if one.matter == field)
    last: dict[Any, StandingEntry] = {}
    for one in sorted(members, key=lambda row: row.year):
        last[one.person] = one
    return (
        {person for person, count in gave.items() if count >= times},
        {person for person, count in spoke.items() if count >= times},
        {person for person, one in last.items() if one.matter == "in"},
    )  # fmt: skip


_TOLD: Mapping[str, tuple[str, ...]] = {
    "gifts": ("{p} gave {n} crowns for {m}", "For {m} {p} paid in {n} crowns", "{n} crowns for {m} came from {p}"),
    "lectures": ("{p} lectured on {m} before {n} listeners", "A lecture on {m} by {p} drew {n} listeners",
                 "{n} listeners heard {p} on {m}"),
    "in": ("{p} was admitted as a member", "The members admitted {p}", "{p} joined the house"),
    "out": ("{p} left the house", "{p} gave back the key of a member", "The roll of members lost {p}"),
}  # fmt: skip
_THING = {
    "gifts": "the gift of {p} for {m}", "lectures": "the lecture of {p} on {m}", "in": "the admission of {p}",
    "out": "the departure of {p}",
}  # fmt: skip
_UNIT = {"gifts": "crowns", "lectures": "listeners"}
_LATER: Mapping[str, tuple[str, ...]] = {
    "changed": ("Correction to the yearbook for {y}: {t} came to {n} {u}",
                "Counted again, {t} in the yearbook for {y} comes to {n} {u}"),
    "moved": ("Correction to the yearbook for {y}: {t} must be put down to {q}",
              "Not rightly named was {t} in the yearbook for {y}, for it was of {q}"),
    "struck": ("Struck out of the yearbook for {y} is {t}", "Wrongly entered in the yearbook for {y} was {t}"),
    "restored": ("Put back into the yearbook for {y} is {t}",
                 "Valid again in the yearbook for {y}, for it was struck out in error, is {t}"),
    "repeated": ("Readers will remember {t} from the yearbook for {y}",
                 "The house recalls with thanks {t} in the yearbook for {y}"),
}  # fmt: skip
_NOISES = (
    "{p} stayed for {n} days and slept badly", "{p} sent {n} letters from {t}", "The candles cost {n} crowns",
    "{p} broke {n} cups at the yearly dinner", "From {t} came {n} visitors, and {p} showed them round",
    "{p} borrowed {n} books and brought back fewer", "The stove was mended by {p} after {n} cold days",
    "A quarrel of {p} with a guest from {t} lasted {n} evenings", "{p} counted {n} bats under the eaves",
    "In {t} {p} bought paper for {n} crowns",
)  # fmt: skip
_DETAILS = (
    "which the minutes mention twice", "as was expected", "although the weather was poor", "to the surprise of many",
    "and asked for no thanks", "as the porter noted in the evening", "before the summer holidays", "late in the year",
    "and the neighbours heard of it at once", "which took less time than planned", "after a long discussion",
    "while the great clock stood still", "in the presence of the whole board", "for reasons that are not given",
    "and a short note was put up at the gate", "on the day of the yearly dinner", "as a letter in the archive shows",
    "without any ceremony", "although two members objected", "and nobody spoke against it",
)  # fmt: skip
PERSON = r"the [a-z]+ [A-Z][a-z]+ [A-Z][a-z]+"


def volume_title(graph: FactGraph, house: int, year: int) -> str:
    return f"Yearbook of the {graph.entities[house].name}, {year}"


def volume_text(edition: int, house: int, year: int) -> str:
    """Writes one yearbook: its entries in sentences, among others of no account, in paragraphs."""
    graph, found = fact_graph(edition), register(edition, house)
    rng = Random(f"volume {edition} {house} {year}")
    towns = graph.of_kind["place"]
    lines = [_sentence(graph, one, rng) for one in found.entries[year]]
    for _ in range(_NOISE):
        person, town = (graph.entities[rng.choice(some)] for some in (found.people, towns))
        lines.append(rng.choice(_NOISES).format(p=person.described, t=town.name, n=rng.randint(2, 60)))
    rng.shuffle(lines)
    whole = [f"{line[0].upper()}{line[1:]}, {rng.choice(_DETAILS)}." for line in lines]
    return "\n\n".join(" ".join(whole[at : at + 6]) for at in range(0, len(whole), 6))


def templates(entry_kind: Kind, account: Account, matter: str = "") -> Sequence[str]:
    """Returns the beginnings of sentences that state an entry; `matter` tells those of members apart."""
    sort = matter if account == "members" else account
    if entry_kind == "told":
        return _TOLD[sort]
    return [one.replace("{t}", _THING[sort]).replace("{u}", _UNIT.get(sort, "")) for one in _LATER[entry_kind]]


def _sentence(graph: FactGraph, one: Entry, rng: Random) -> str:
    other = "" if one.other is None else graph.entities[one.other].described
    return rng.choice(templates(one.kind, one.account, one.matter)).format(
        p=graph.entities[one.person].described, m=one.matter, n=one.amount, y=one.of, q=other
    )
