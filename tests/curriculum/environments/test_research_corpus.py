"""The corpus of the environment `research`: its pages state the facts, and its questions need every page of theirs."""

from __future__ import annotations

import hashlib
import re
from itertools import islice
from random import Random

import pytest

from curriculum.contract.errors import CurriculumError
from curriculum.environments.research import RESEARCH
from curriculum.environments.research.chains import (
    FactChain,
    Hop,
    derivable,
    drawn_chain,
    end_of,
    fact_of,
    facts_of,
    giveaways,
    needed_pages,
    phrase,
    research_corpus,
    value_of,
)
from curriculum.environments.research.graph import EDITIONS, FactGraph
from curriculum.environments.research.oracle import sentence
from curriculum.environments.research.pages import ResearchPage, page_count, page_of
from curriculum.environments.research.relations import COUNT, RELATIONS, YEAR

CORPUS = research_corpus(3)
GRAPH = CORPUS.graph
RECORDED = {0: "21b3f5f7b288", 11: "e975ad54fd3c"}
"""By edition: the digest of its pages. Whoever changes what an edition holds raises the environment's version."""


def read_back(page: ResearchPage, graph: FactGraph) -> set[tuple[int, str, int]]:
    """What a page of an entity states, taken out of its sentences."""
    number = int(page.id[1:])
    entity, found = graph.entities[number], set()
    for row in RELATIONS.values():
        own, there = row.subject == entity.kind, row.value == entity.kind
        for told, templates in ((True, row.told if own else ()), (False, row.told_there if there else ())):
            other_kind = row.value if told else row.subject
            hits = (hit for one in templates for hit in sentence(one, row.value if told else "").finditer(page.text))
            for hit in hits:
                seen = hit.groupdict()
                other = int(seen["number"].replace(",", "")) if seen.get("number") else int(seen["page"][1:])
                fits = other_kind in (YEAR, COUNT) or graph.entities[other].kind == other_kind
                if seen["here"] in ("", entity.name) and fits:
                    found.add((number, row.name, other) if told else (other, row.name, number))
    return found


def test_a_page_states_the_facts_that_it_is_the_home_of_and_no_others() -> None:
    for number in range(0, len(GRAPH.entities), 5):
        stated = {(*fact, GRAPH.facts[fact]) for fact in GRAPH.stated.get(number, ())}
        assert read_back(page_of(CORPUS, number), GRAPH) == stated


def test_pages_of_lists_state_what_they_list_and_other_pages_state_nothing() -> None:
    for number in range(len(GRAPH.entities), page_count(CORPUS)):
        page = page_of(CORPUS, number)
        if number < CORPUS.first_quiz:
            assert len(GRAPH.stated[number]) == page.text.count("\n- ") > 0
        elif number >= CORPUS.first_quiz + len(CORPUS.quizzes):
            assert not re.search(r"\d", re.sub(r"\(p\d+\)", "", page.text))


def test_a_corpus_has_thousands_of_facts_linked_pages_namesakes_and_facts_with_two_homes() -> None:
    assert len(GRAPH.facts) > 5_000
    assert page_count(CORPUS) > 1_500
    assert len(GRAPH.namesakes) > 20
    assert sum(len(homes) > 1 for homes in GRAPH.homes.values()) > 300
    assert all(homes for homes in GRAPH.homes.values())
    assert len({entity.title for entity in GRAPH.entities}) == len(GRAPH.entities)
    assert len({entity.described for entity in GRAPH.entities}) == len(GRAPH.entities)


def test_an_edition_is_the_same_everywhere() -> None:
    made = {one: hashlib.sha256(RESEARCH.files({"edition": one})["corpus.json"]).hexdigest()[:12] for one in RECORDED}
    assert made == RECORDED


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5])
def test_without_any_page_of_a_question_its_answer_does_not_follow(length: int) -> None:
    rng = Random(length)
    for end in ("entity", "year", "count"):
        chain = drawn_chain(CORPUS, rng, length, end)
        blocked = giveaways(CORPUS, chain)
        pages = needed_pages(CORPUS, chain, blocked)
        assert pages is not None
        assert len(set(pages)) == length
        assert derivable(CORPUS, chain, blocked)
        assert derivable(CORPUS, chain, set(range(page_count(CORPUS))) - set(pages)), "these pages are all one needs"
        assert not any(derivable(CORPUS, chain, {*blocked, page}) for page in pages)


def test_a_fact_that_two_pages_state_makes_neither_of_them_necessary() -> None:
    fact = next(one for one, homes in GRAPH.homes.items() if len(homes) > 1)
    chain = FactChain(fact[0], (Hop(fact[1]),))
    assert all(derivable(CORPUS, chain, {page}) for page in GRAPH.homes[fact])
    assert needed_pages(CORPUS, chain, ()) is None


def test_a_page_that_states_two_hops_makes_no_two_hops() -> None:
    """The founder of an institution, named on the founder's page alone, and where that founder was born."""
    fact = next(
        (subject, relation)
        for (subject, relation), homes in GRAPH.homes.items()
        if relation == "founder" and homes == (GRAPH.facts[subject, relation],)
        and GRAPH.homes.get((homes[0], "birthplace")) == homes
    )  # fmt: skip
    assert needed_pages(CORPUS, FactChain(fact[0], (Hop("founder"), Hop("birthplace"))), ()) is None


def test_a_quiz_page_that_answers_a_part_of_a_question_makes_its_hops_unnecessary_unless_it_is_blocked() -> None:
    page, known = next(
        (page, chain) for page, quiz in enumerate(CORPUS.quizzes, CORPUS.first_quiz) for chain in quiz
        if end_of(chain) not in (YEAR, COUNT)
    )  # fmt: skip
    longer = next(
        FactChain(known.start, (*known.hops, Hop(row.name)))
        for row in RELATIONS.values()
        if fact_of(GRAPH, value_of(GRAPH, known), Hop(row.name)) is not None
    )
    for chain in (known, longer):
        first = GRAPH.homes[facts_of(GRAPH, chain)[0]]
        assert page in giveaways(CORPUS, chain)
        assert derivable(CORPUS, chain, first)
        assert needed_pages(CORPUS, chain, ()) is None
        assert not derivable(CORPUS, chain, {*first, *giveaways(CORPUS, chain)})


def test_what_a_quiz_says_is_true_and_written_on_its_page() -> None:
    for number, quiz in islice(enumerate(CORPUS.quizzes, CORPUS.first_quiz), 10):
        text = page_of(CORPUS, number).text
        for chain in quiz:
            value = value_of(GRAPH, chain)
            shown = value if end_of(chain) in (YEAR, COUNT) else GRAPH.entities[value].name
            assert f"what is {phrase(GRAPH, chain)}? Answer: {shown}." in text


@pytest.mark.parametrize(
    "setup",
    [{}, {"edition": -1}, {"edition": EDITIONS}, {"edition": "x"}, {"edition": 0, "blocked": "p0001"},
     {"edition": 0, "more": 1}],
)  # fmt: skip
def test_a_setup_that_is_none_is_refused_with_what_to_do(setup: dict[str, object]) -> None:
    with pytest.raises(CurriculumError) as caught:
        RESEARCH.files(setup)
    assert "edition from 0 to 11" in caught.value.hint
