"""Writes the pages of a corpus: facts in varied sentences, among filler sentences; and the yearbooks.

Invariants: a page is a pure function of edition and number. Filler has no names and no numbers. Links are written
`[text](p0123)`.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import NamedTuple

from curriculum.environments.research.chains import ResearchCorpus, phrase, value_of
from curriculum.environments.research.graph import FactKey
from curriculum.environments.research.relations import COUNT, RELATIONS, YEAR
from curriculum.environments.research.yearbooks import VOLUMES, houses, register, volume_text, volume_title

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
    """Returns the number of pages besides the yearbooks."""
    return corpus.first_quiz + len(corpus.quizzes) + ESSAYS


def all_pages(corpus: ResearchCorpus) -> list[ResearchPage]:
    return [*(page_of(corpus, number) for number in range(page_count(corpus))), *yearbook_pages(corpus)]


def yearbook_pages(corpus: ResearchCorpus) -> Iterator[ResearchPage]:
    """Yields the yearbooks of the corpus, each register after a page that lists its volumes."""
    number = page_count(corpus)
    for house in houses(corpus.edition):
        first = register(corpus.edition, house).first
        titles = [volume_title(corpus.graph, house, first + at) for at in range(VOLUMES)]
        lines = [f"- [{title}]({page_id(number + at)})" for at, title in enumerate(titles, 1)]
        name = corpus.graph.entities[house].name
        yield ResearchPage(page_id(number), f"Yearbooks of the {name}", "\n".join(["The volumes:", *lines]))
        for at, title in enumerate(titles):
            text = volume_text(corpus.edition, house, first + at)
            yield ResearchPage(page_id(number + at + 1), title, text)
        number += VOLUMES + 1


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
