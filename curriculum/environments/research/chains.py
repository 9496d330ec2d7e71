"""Questions over several pages: chains of facts from an entity to a value, with proofs that each hop is needed.

A hop is proved necessary if the answer cannot be derived once the page that states it is deleted. This is decided over
the facts: exactly the facts that a set of pages states, and those that quiz pages give away, follow from it, because
relations have one value each and none follows from others. So an answer without a needed page is a guess or leaked;
nothing is said about how likely a guess is.

Writes the pages of a corpus: facts in varied sentences, among filler sentences.

Invariants: a page is a pure function of edition and number. Filler has no names and no numbers. Links are written
`[text](p0123)`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from random import Random
from typing import Literal, NamedTuple

from curriculum.environments.research.graph import FactGraph, FactKey, fact_graph
from curriculum.environments.research.relations import COUNT, OF_KIND, RELATIONS, TO_KIND, YEAR

QUIZZES = 40
QUIZ_QUESTIONS = 4
_TRIES = 400
End = Literal["entity", "year", "count"]


class Hop(NamedTuple):
    relation: str
    back: bool = False
    """True for the step from the value to its only subject."""


class FactChain(NamedTuple):
    start: int
    hops: tuple[Hop, ...]


@dataclass(frozen=True)
class ResearchCorpus:
    """Edition of the research corpus: its facts, and quiz pages that give answers away."""

    edition: int
    graph: FactGraph
    quizzes: Sequence[tuple[FactChain, ...]]
    given: Mapping[int, Sequence[tuple[int, tuple[Hop, ...]]]]
    """Chains that the quizzes give away: by start entity, the page and the hops."""

    @property
    def first_quiz(self) -> int:
        """Page number of the corpus's first quiz page; the other quiz pages follow."""
        return len(self.graph.entities) + len(self.graph.lists)


@cache
def research_corpus(edition: int) -> ResearchCorpus:
    graph, rng = fact_graph(edition), Random(f"quiz {edition}")
    plain = ResearchCorpus(edition, graph, (), {})
    quizzes = []
    for _ in range(QUIZZES):
        ends: list[End] = [rng.choice(("entity", "year", "count")) for _ in range(QUIZ_QUESTIONS)]
        quizzes.append(tuple(drawn_chain(plain, rng, rng.choice((2, 2, 3)), end) for end in ends))
    given: dict[int, list[tuple[int, tuple[Hop, ...]]]] = {}
    for page, quiz in enumerate(quizzes, plain.first_quiz):
        for chain in quiz:
            given.setdefault(chain.start, []).append((page, chain.hops))
    return ResearchCorpus(edition, graph, quizzes, given)


def fact_of(graph: FactGraph, entity: int, hop: Hop) -> FactKey | None:
    """Returns the fact that leads from an entity along one hop; None unless exactly one such fact exists."""
    if not hop.back:
        return (entity, hop.relation) if (entity, hop.relation) in graph.facts else None
    subjects = graph.subjects.get((hop.relation, entity), ())
    return (subjects[0], hop.relation) if len(subjects) == 1 else None


def facts_of(graph: FactGraph, chain: FactChain) -> list[FactKey]:
    """Returns the facts that a valid chain of hops takes, in order."""
    return [fact for _, fact in _way(graph, chain)]


def _way(graph: FactGraph, chain: FactChain) -> list[tuple[int, FactKey]]:
    """Returns, for each hop of a chain, the entity before it and the fact that it takes."""
    found, now = [], chain.start
    for hop in chain.hops:
        fact = fact_of(graph, now, hop)
        assert fact is not None
        found.append((now, fact))
        now = fact[0] if hop.back else graph.facts[fact]
    return found


def value_of(graph: FactGraph, chain: FactChain) -> int:
    """Returns the answer that a chain of facts leads to: a number, or the number of an entity."""
    subject, relation = facts_of(graph, chain)[-1]
    return subject if chain.hops[-1].back else graph.facts[subject, relation]


def end_of(chain: FactChain) -> str:
    """Returns the kind of value at the end of a chain of facts: year, count, or a kind of entity."""
    row = RELATIONS[chain.hops[-1].relation]
    return row.subject if chain.hops[-1].back else row.value


def derivable(corpus: ResearchCorpus, chain: FactChain, without: Collection[int]) -> bool:
    """True if the chain's final value follows from the corpus without the pages `without`."""
    return _follows(corpus, chain, _way(corpus.graph, chain), without)


def _follows(
    corpus: ResearchCorpus, chain: FactChain, way: list[tuple[int, FactKey]], without: Collection[int]
) -> bool:
    homes, hops, given = corpus.graph.homes, chain.hops, corpus.given
    reached = {0}
    for at, (now, fact) in enumerate(way):
        if at not in reached:
            continue
        for page in homes[fact]:
            if page not in without:
                reached.add(at + 1)
                break
        if now in given:
            for page, some in given[now]:
                if page not in without and hops[at : at + len(some)] == some:
                    reached.add(at + len(some))
    return len(hops) in reached


def giveaways(corpus: ResearchCorpus, chain: FactChain) -> list[int]:
    """Returns the quiz pages that answer a chain of facts, or a part of it that begins anywhere in it."""
    return _given_away(corpus, chain, _way(corpus.graph, chain))


def _given_away(corpus: ResearchCorpus, chain: FactChain, way: list[tuple[int, FactKey]]) -> list[int]:
    found = set()
    for at, (now, _) in enumerate(way):
        for page, hops in corpus.given.get(now, ()):
            common = min(len(hops), len(chain.hops) - at)
            if chain.hops[at : at + common] == hops[:common]:
                found.add(page)
    return sorted(found)


def needed_pages(corpus: ResearchCorpus, chain: FactChain, blocked: Collection[int]) -> list[int] | None:
    """Returns the page of each hop if all are distinct and each is necessary for the chain's value; None otherwise."""
    return _needed(corpus, chain, _way(corpus.graph, chain), blocked)


def _needed(
    corpus: ResearchCorpus, chain: FactChain, way: list[tuple[int, FactKey]], blocked: Collection[int]
) -> list[int] | None:
    pages = []
    for _, fact in way:
        homes = [page for page in corpus.graph.homes[fact] if page not in blocked]
        if len(homes) != 1:
            return None
        pages += homes
    if len(set(pages)) < len(pages):
        return None
    if any(_follows(corpus, chain, way, {*blocked, page}) for page in pages):
        return None
    return pages if _follows(corpus, chain, way, blocked) else None


@lru_cache(1 << 14)
def _steps(graph: FactGraph, entity: int, *, plain: bool) -> Sequence[Hop]:
    """Returns possible hops from an entity along the corpus's facts; with `plain`, those that its own page states."""
    kind = graph.entities[entity].kind
    steps = [
        Hop(row.name)
        for row in OF_KIND[kind]
        if row.value not in (YEAR, COUNT) and (entity, row.name) in graph.facts
        and (not plain or entity in graph.homes[entity, row.name])
    ]  # fmt: skip
    if not plain:
        steps += [Hop(row.name, True) for row in TO_KIND[kind] if len(graph.subjects.get((row.name, entity), ())) == 1]
    return steps


def drawn_chain(
    corpus: ResearchCorpus,
    rng: Random,
    length: int,
    end: End,
    *,
    plain: bool = False,
    start: int | None = None,
    tries: int = _TRIES,
) -> FactChain:
    """Draws a chain of `length` hops over the corpus's facts; in a corpus without quizzes, all are proved necessary.
    Its value is a number of the kind `end`, or an entity with a unique name that its question does not contain; with
    `plain` the page of each hop's start states it. Raises LookupError if none is found."""
    graph = corpus.graph
    for _ in range(tries):
        first = rng.randrange(len(graph.entities)) if start is None else start
        now, hops, seen = first, [], {first}
        for _ in range(length - (end != "entity")):
            steps = _steps(graph, now, plain=plain)
            if not steps:
                break
            hop = rng.choice(steps)
            fact = fact_of(graph, now, hop)
            assert fact is not None
            found = fact[0] if hop.back else graph.facts[fact]
            if found in seen:
                break
            now = found
            hops.append(hop)
            seen.add(now)
        if end != "entity":
            rows = [one for one in OF_KIND[graph.entities[now].kind] if one.value == end]
            hops += [Hop(one.name) for one in rows if (now, one.name) in graph.facts][:1]
        chain = FactChain(first, tuple(hops))
        if len(hops) == length and (end != "entity" or _is_telling(graph, chain, now)):
            way = _way(graph, chain)
            if _needed(corpus, chain, way, _given_away(corpus, chain, way)) is not None:
                return chain
    raise LookupError(f"no chain of {length} hops from {start} to a value of {end}")


def _is_telling(graph: FactGraph, chain: FactChain, value: int) -> bool:
    entity = graph.entities[value]
    return entity.kind != "province" and entity.name not in graph.namesakes and entity.name not in phrase(graph, chain)


def phrase(graph: FactGraph, chain: FactChain) -> str:
    """Describes the value at the end of a chain of facts in words, for a question."""
    text = graph.entities[chain.start].described
    for hop in chain.hops:
        row = RELATIONS[hop.relation]
        text = (row.only if hop.back else row.phrase).format(x=text)
    return text


ESSAYS = 60
_OPENING = {
    "person": ("{t} left more traces than one might think.", "{t} is remembered in several towns.",
               "Of {t} no portrait has survived.", "{t} appears in many letters of the time."),
    "place": ("{s} is best reached on foot.", "{s} grew along a river.", "{s} has a market on most days.",
              "Few travellers forget {s}."),
    "province": ("{s} is known for its weather.", "Old maps show {s} in green.", "{s} has many small roads."),
    "institution": ("{s} keeps a large archive.", "{s} has moved more than once.", "{s} prints a yearly report."),
    "work": ("{s} is still read.", "Copies of {s} turn up at auctions.", "{s} was rarely translated."),
    "event": ("{s} was talked about for years.", "Newspapers wrote at length about {s}.",
              "Photographs of {s} are rare."),
}  # fmt: skip
_NOTHING = (
    "Little else is known for certain.", "Opinions about this differ to the present day.",
    "The sources contradict each other here.", "A later fire destroyed part of the papers.",
    "Some of the accounts were embellished afterwards.", "The handwriting is hard to read.",
    "An exhibition was devoted to this not long ago.", "Visitors are often surprised by how small everything is.",
    "The weather is said to have been dreadful.", "Nobody thought it important at the time.",
    "A plaque recalls this, although it is easily overlooked.", "The rest has to be pieced together from letters.",
    "Much of the correspondence is lost.", "It caused less of a stir than was expected.",
    "Descendants dispute the usual version.", "The archive has a drawing of it.",
    "That was by no means usual then.", "Money was short, as so often.",
    "The story has been told in many ways.", "An older account says nothing about it.",
    "Whether it was planned is an open question.", "The neighbours complained, and were ignored.",
)  # fmt: skip
_MENTIONS = (
    "Readers who look for {a} are often led to {b} instead.", "A walk through the archive passes {a} and ends at {b}.",
    "{a} and {b} are seldom named in one breath.", "What {a} and {b} have in common would fill a book.",
    "An old joke confuses {a} with {b}.",
)  # fmt: skip
_TOPICS = (
    "archives bridges calendars candles clocks coins copies dialects dust errors feasts footnotes fountains gardens"
    " handwriting harbours hats ink inns kitchens lamps letters libraries locks maps markets medals memory mills"
    " mirrors mud names newspapers notebooks orchards paper pigeons portraits postage printers proverbs rain ribbons"
    " roads roofs rumours salt schools ships silence snow stairs statues tea theatres tides trade travel walls windows"
)  # fmt: skip


class ResearchPage(NamedTuple):
    id: str
    title: str
    text: str


def page_id(number: int) -> str:
    return f"p{number:04d}"


def page_count(corpus: ResearchCorpus) -> int:
    return corpus.first_quiz + len(corpus.quizzes) + ESSAYS


def all_pages(corpus: ResearchCorpus) -> list[ResearchPage]:
    return [page_of(corpus, number) for number in range(page_count(corpus))]


def link(corpus: ResearchCorpus, entity: int) -> str:
    return f"[{corpus.graph.entities[entity].name}]({page_id(entity)})"


def number_text(value: int, relation: str, rng: Random) -> str:
    """Returns a number in digits; counts of 1,000 and more have a comma at random."""
    return f"{value:,}" if RELATIONS[relation].value == COUNT and rng.random() < 0.5 else str(value)


def page_of(corpus: ResearchCorpus, number: int) -> ResearchPage:
    graph, rng = corpus.graph, Random(f"page {corpus.edition} {number}")
    if number < len(graph.entities):
        title, text = graph.entities[number].title, _about(corpus, number, rng)
    elif number < corpus.first_quiz:
        one = graph.lists[number - len(graph.entities)]
        title = one.title
        text = "\n".join(
            [rng.choice(_NOTHING), *(_line(corpus, subject, one.relation, rng) for subject in one.subjects)]
        )
    elif number < corpus.first_quiz + len(corpus.quizzes):
        title = f"Quiz evening {number - corpus.first_quiz + 1}"
        text = _quiz(corpus, number - corpus.first_quiz)
    else:
        title = f"On {_TOPICS.split()[number - corpus.first_quiz - len(corpus.quizzes)]}"
        text = _essay(corpus, rng)
    return ResearchPage(page_id(number), title, text)


def _about(corpus: ResearchCorpus, number: int, rng: Random) -> str:
    entity = corpus.graph.entities[number]
    said = [_sentence(corpus, number, fact, rng) for fact in corpus.graph.stated.get(number, ())]
    said += rng.sample(_NOTHING, rng.randint(2, 5))
    rng.shuffle(said)
    described = entity.described[0].upper() + entity.described[1:]
    opening = rng.choice(_OPENING[entity.kind]).format(s=entity.name, t=described)
    cut = rng.randint(2, max(2, len(said) - 2))
    return "\n\n".join(" ".join(part) for part in ([opening, *said[:cut]], said[cut:]) if part)


def _sentence(corpus: ResearchCorpus, page: int, fact: FactKey, rng: Random) -> str:
    subject, relation = fact
    row, graph = RELATIONS[relation], corpus.graph
    value = graph.facts[fact]
    if page != subject:
        return rng.choice(row.told_there).format(v=graph.entities[page].name, s=link(corpus, subject))
    shown = number_text(value, relation, rng) if row.value in (YEAR, COUNT) else link(corpus, value)
    return rng.choice(row.told).format(s=graph.entities[page].name, o=shown)


def _line(corpus: ResearchCorpus, subject: int, relation: str, rng: Random) -> str:
    value = corpus.graph.facts[subject, relation]
    number = RELATIONS[relation].value in (YEAR, COUNT)
    shown = number_text(value, relation, rng) if number else link(corpus, value)
    return "- " + RELATIONS[relation].listed.format(s=link(corpus, subject), o=shown)


def _quiz(corpus: ResearchCorpus, quiz: int) -> str:
    graph, lines = corpus.graph, ["The questions of the evening, and what was right."]
    for chain in corpus.quizzes[quiz]:
        value = value_of(graph, chain)
        row, back = RELATIONS[chain.hops[-1].relation], chain.hops[-1].back
        shown = str(value) if not back and row.value in (YEAR, COUNT) else graph.entities[value].name
        lines.append(f"Question: what is {phrase(graph, chain)}? Answer: {shown}.")
    return "\n\n".join(lines)


def _essay(corpus: ResearchCorpus, rng: Random) -> str:
    named = rng.sample(range(len(corpus.graph.entities)), 6)
    said = [
        rng.choice(_MENTIONS).format(a=link(corpus, a), b=link(corpus, b))
        for a, b in zip(named[::2], named[1::2], strict=True)
    ]
    said += rng.sample(_NOTHING, 4)
    rng.shuffle(said)
    return " ".join(said)
