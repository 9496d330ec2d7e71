"""Questions over several pages: chains of facts from an entity to a value, with proofs that each hop is needed.

A hop is proved necessary if the answer cannot be derived once the page that states it is deleted. This is decided over
the facts: exactly the facts that a set of pages states, and those that quiz pages give away, follow from it, because
relations have one value each and none follows from others. So an answer without a needed page is a guess or leaked;
nothing is said about how likely a guess is.
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
    among: Collection[int] = (),
    tries: int = _TRIES,
) -> FactChain:
    """Draws a chain of `length` hops over the corpus's facts; in a corpus without quizzes, all are proved necessary.
    Its value is a number of the kind `end`, or an entity (one of `among`, if given) with a unique name that its
    question does not contain; with `plain` the page of each hop's start states it. Raises LookupError if none is
    found."""
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
        if among and now not in among:
            continue
        chain = FactChain(first, tuple(hops))
        if len(hops) == length and (end != "entity" or _is_telling(graph, chain, now)):
            way = _way(graph, chain)
            if _needed(corpus, chain, way, _given_away(corpus, chain, way)) is not None:
                return chain
    raise LookupError(f"no chain of {length} hops from {start} to a value of {end}")


def _is_telling(graph: FactGraph, chain: FactChain, value: int) -> bool:
    entity = graph.entities[value]
    return entity.kind != "province" and entity.name not in graph.namesakes and entity.name not in phrase(graph, chain)


def phrase(graph: FactGraph, chain: FactChain, start: str = "") -> str:
    """Describes the value at the end of a chain of facts in words, for a question; `start` describes its start."""
    text = start or graph.entities[chain.start].described
    for hop in chain.hops:
        row = RELATIONS[hop.relation]
        text = (row.only if hop.back else row.phrase).format(x=text)
    return text
