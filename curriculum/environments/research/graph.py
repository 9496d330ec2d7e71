"""Makes the facts of one edition of the corpus: its entities, their relations, and the pages that state them.

Invariants: an edition is a pure function of its number. A fact is a value of (subject, relation); `homes` lists the
pages that state it, so what can be known from given pages is decided without reading any.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import NamedTuple

from curriculum.environments.research.relations import COUNT, OF_KIND, RELATIONS, YEAR


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


COUNTRIES = (
    "Orvane", "Tessaly", "Merrow", "Kaldria", "Voskar", "Illune", "Pernath", "Sorrel", "Brannoch", "Yevane", "Dorrin",
    "Aquila",
)  # fmt: skip
"""Country of each edition."""
FIRST = _words(
    "Adela Agnes Albin Amalia Anselm Astrid Balthus Beata Bernard Cecily Clemens Corinna Damian Dorothea Edgar Elena"
    " Emeric Esther Fabian Felicia Florian Frida Gerard Greta Gustav Hanna Hector Helena Henrik Hilda Ignaz Irene"
    " Isidor Jasper Johanna Josepha Julian Karla Kaspar Konrad Lena Leonard Lucas Ludmila Magnus Marta Matthias Minna"
    " Nestor Nora Oskar Ottilie Pascal Petra Quentin Rafael Regina Roland Rosa Sabine Silvan Sophia Theodor Thekla"
    " Ulrich Ursula Valentin Verena Viktor Walburga Xaver Zita"
)
LAST_BEGIN = _words("Ast Bar Ber Cor Dal Eb Fal Gar Hal Il Jor Kel Lan Mar Nor Ol Per Quin Ros Sel Tor Ul Var Wes")
LAST_END = _words("ach berg don ell feld gren hart ings lund mann nick quist rath son stein ten vik wood")
PLACE_BEGIN = _words("Ald Bel Bram Cald Dun Esk Fen Gal Har Ith Kirk Lin Mor Nant Oak Pen Rav Stan Thorn Ulv Wend Yar")
PLACE_END = _words("bridge burn combe dale field ford gate ham haven hurst ley mere minster moor port stead wick")
PLACE_BEFORE = ("Upper", "Lower", "New", "Old", "Great", "Little")
PROVINCES = _words("Ambermark Coldshire Eastvale Fernland Greyreach Highmoor Lakeside Northam Redcliff Westfall")
PROFESSIONS = _words(
    "architect astronomer botanist cartographer chemist composer economist engraver geologist historian jurist"
    " librarian linguist mathematician naturalist novelist painter philosopher physician playwright poet printer"
    " sculptor surveyor translator zoologist"
)
EMBLEMS = _words(
    "Anchor Acorn Beacon Bell Candle Compass Crane Crown Falcon Garland Hammer Harp Heron Ivory Lantern Laurel Lyre"
    " Mirror Oak Olive Owl Pillar Quill Raven Rose Sable Sickle Spindle Star Swan Thistle Torch Willow"
)
SORTS = ("Academy", "College", "Guild", "Institute", "Press", "School", "Society")
FIELDS = _words(
    "Agriculture Anatomy Architecture Astronomy Botany Chemistry Engraving Geology History Law Letters Mathematics"
    " Mechanics Medicine Mining Music Navigation Optics Painting Philosophy Printing Surveying"
)
ADJECTIVES = _words(
    "Ancient Bitter Broken Burning Crooked Crystal Distant Drowned Empty Faithful Forgotten Frozen Gentle Gilded Hidden"
    " Hollow Idle Last Lonely Lost Narrow Nameless Northern Painted Pale Patient Quiet Restless Ruined Scarlet Secret"
    " Silent Silver Sleeping Stolen Sunken Tangled Unfinished Velvet Wandering White Winter"
)
NOUNS = _words(
    "Archive Atlas Bridge Cathedral Cellar Chapel Clockmaker Coast Court Ferry Forest Fountain Garden Gate Harbour"
    " Hillside House Island Journey Kingdom Lake Letter Lighthouse Market Meadow Mill Mountain Orchard Palace Quarry"
    " River Road Sailor Season Shepherd Shore Stair Station Theatre Tower Valley Village Voyage Well Window"
)
ORDINALS = ("First", "Second", "Third", "Fourth", "Fifth", "Sixth")
GATHERINGS = ("Congress", "Exhibition", "Fair", "Festival", "Games", "Regatta")


EDITIONS = len(COUNTRIES)
COUNTS = {"province": 10, "place": 150, "institution": 170, "person": 620, "work": 400, "event": 150}
_STATED = 0.9
"""Share of possible facts that the corpus states."""
_LISTED = 0.3
"""Share of possible lines that a list page has."""

FactKey = tuple[int, str]
"""Subject and relation."""


class CorpusEntity(NamedTuple):
    kind: str
    name: str
    """Name as link text; not necessarily unique."""
    title: str
    """Unique title of its page."""
    described: str


class ListPage(NamedTuple):
    title: str
    relation: str
    subjects: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class FactGraph:
    """Facts of one edition of the research corpus. Pages are numbered: entities first, then lists. `fact_graph` caches
    one per edition."""

    country: str
    entities: Sequence[CorpusEntity]
    of_kind: Mapping[str, Sequence[int]]
    facts: Mapping[FactKey, int]
    """Value of each fact: a number, or the number of an entity."""
    homes: Mapping[FactKey, tuple[int, ...]]
    stated: Mapping[int, Sequence[FactKey]]
    """Facts by page."""
    subjects: Mapping[tuple[str, int], Sequence[int]]
    """Subjects by relation and value, for values that are entities."""
    lists: Sequence[ListPage]
    namesakes: frozenset[str]


@cache
def fact_graph(edition: int) -> FactGraph:
    rng = Random(f"corpus {edition}")
    entities, born = _entities(rng)
    of_kind: dict[str, list[int]] = defaultdict(list)
    for number, entity in enumerate(entities):
        of_kind[entity.kind].append(number)
    facts = _facts(rng, entities, of_kind, born)
    subjects: dict[tuple[str, int], list[int]] = defaultdict(list)
    homes: dict[FactKey, tuple[int, ...]] = {}
    for (subject, relation), value in facts.items():
        row = RELATIONS[relation]
        if row.value in (YEAR, COUNT):
            homes[subject, relation] = (subject,)
            continue
        subjects[relation, value].append(subject)
        drawn = rng.random()
        there, here = drawn < row.there + row.both, not drawn < row.there
        homes[subject, relation] = (*((subject,) if here else ()), *((value,) if there else ()))
    lists = _lists(rng, entities, of_kind, facts)
    for page, one in enumerate(lists, len(entities)):
        for subject in one.subjects:
            homes[subject, one.relation] += (page,)
    stated: dict[int, list[FactKey]] = defaultdict(list)
    for fact, pages in homes.items():
        for number in pages:
            stated[number].append(fact)
    shared = frozenset(name for name, times in Counter(one.name for one in entities).items() if times > 1)
    return FactGraph(COUNTRIES[edition], entities, of_kind, facts, homes, stated, subjects, lists, shared)


def _entities(rng: Random) -> tuple[list[CorpusEntity], dict[int, int]]:
    """Invents all entities of a corpus. Returns them, with the birth years of people, who are sorted by year."""
    made: list[CorpusEntity] = []
    taken: set[str] = set()

    def new(kind: str, name: Callable[[], str], described: str) -> None:
        chosen = next(one for one in iter(name, "") if one not in taken)
        taken.add(chosen)
        made.append(CorpusEntity(kind, chosen, chosen, described.format(x=chosen)))

    for name in PROVINCES[: COUNTS["province"]]:
        new("province", lambda name=name: name, "the province {x}")  # type: ignore[misc]
    towns: list[str] = []

    def town() -> str:
        if towns and rng.random() < 0.2:
            return f"{rng.choice(PLACE_BEFORE)} {rng.choice(towns)}"
        towns.append(rng.choice(PLACE_BEGIN) + rng.choice(PLACE_END))
        return towns[-1]

    for _ in range(COUNTS["place"]):
        new("place", town, "the town {x}")
    for _ in range(COUNTS["institution"]):
        new("institution", lambda: f"{_any(rng, EMBLEMS, SORTS)} of {rng.choice(FIELDS)}", "the {x}")
    for _ in range(COUNTS["work"]):
        new("work", lambda: f"The {_any(rng, ADJECTIVES, NOUNS)}", 'the book "{x}"')
    for _ in range(COUNTS["event"]):
        new("event", lambda: _any(rng, ORDINALS, EMBLEMS, GATHERINGS), "the {x}")
    first = len(made)
    people: list[str] = []
    known: set[tuple[str, str]] = set()
    while len(known) < COUNTS["person"]:
        name = rng.choice(people) if people and rng.random() < 0.12 else _person(rng)
        if (one := (name, rng.choice(PROFESSIONS))) not in known:
            known.add(one)
            people.append(name)
            made.append(CorpusEntity("person", name, f"{name} ({one[1]})", f"the {one[1]} {name}"))
    years = sorted(rng.randint(1690, 1880) for _ in people)
    return made, dict(enumerate(years, first))


def _any(rng: Random, *words: Sequence[str]) -> str:
    """Returns a random word from each list, joined."""
    return " ".join(map(rng.choice, words))


def _person(rng: Random) -> str:
    return f"{rng.choice(FIRST)} {rng.choice(LAST_BEGIN)}{rng.choice(LAST_END)}"


def _facts(
    rng: Random, entities: Sequence[CorpusEntity], of_kind: Mapping[str, Sequence[int]], born: Mapping[int, int]
) -> dict[FactKey, int]:
    people = of_kind["person"]
    years = [born[one] for one in people]

    def living(first: int, last: int) -> int | None:
        """Returns a random person born from `first` to `last`; None if no person was."""
        low, high = bisect_left(years, first), bisect_left(years, last + 1)
        return people[rng.randrange(low, high)] if low < high else None

    facts: dict[FactKey, int] = {}
    for number, entity in enumerate(entities):
        year = born.get(number) or rng.randint(1720, 1900)
        if entity.kind in ("work", "institution"):  # its maker has a plausible age
            maker = living(year - 60, year - 22)
            facts[number, "author" if entity.kind == "work" else "founder"] = (
                rng.choice(people) if maker is None else maker
            )
        for row in OF_KIND[entity.kind]:
            if row.name in ("author", "founder"):
                continue
            if row.value == YEAR:
                value: int | None = rng.randint(1150, 1680) if row.name == "chartered" else year
            elif row.value == COUNT:
                value = round(10 ** rng.uniform(2.2, 2.95 if row.name == "pages" else 4.4))
            elif row.value == "person":
                value = living(year - 45, year - 15) if row.name == "teacher" else living(year - 75, year - 20)
            else:
                value = rng.choice(of_kind[row.value])
            if value is not None and value != number and rng.random() < _STATED:
                facts[number, row.name] = value
    return facts


def _lists(
    rng: Random, entities: Sequence[CorpusEntity], of_kind: Mapping[str, Sequence[int]], facts: Mapping[FactKey, int]
) -> list[ListPage]:
    def some(relation: str, subjects: Sequence[int]) -> tuple[int, ...]:
        return tuple(one for one in subjects if (one, relation) in facts and rng.random() < _LISTED)

    found = []
    for begin in PLACE_BEGIN:
        towns = [one for one in of_kind["place"] if entities[one].name.startswith(begin)]
        found.append(ListPage(f"Census: towns from {begin}", "inhabitants", some("inhabitants", towns)))
    for field in FIELDS:
        houses = [one for one in of_kind["institution"] if entities[one].name.endswith(field)]
        found.append(ListPage(f"Houses of {field.lower()}", "founded", some("founded", houses)))
    for letter in "ABCDEFGHILMNPQRSTUVW":
        books = [one for one in of_kind["work"] if entities[one].name.startswith(f"The {letter}")]
        found.append(ListPage(f"Catalogue of books: {letter}", "author", some("author", books)))
    return [one for one in found if one.subjects]
