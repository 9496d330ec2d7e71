"""The world of the environment `research`: what its tools give, what they never show, and what its tasks are worth."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest
from plain_worlds import Counted, PlainToolError, plain_world

from curriculum.contract.taskset import TaskDraft
from curriculum.environments.research import CORPUS, RESEARCH
from curriculum.environments.research.chains import (
    FactChain,
    ResearchCorpus,
    drawn_chain,
    giveaways,
    needed_pages,
    phrase,
    research_corpus,
    value_of,
)
from curriculum.environments.research.oracle import ResearchOracle
from curriculum.environments.research.pages import page_id, page_of
from curriculum.registry import make_draft
from curriculum.worlds.world import World
from runtime.sandbox import Limits
from runtime.sessions import Sessions
from runtime.settings import BrokerSettings, RuntimeSettings
from verifiers.checklists.spec import ChecklistSpec
from verifiers.contract.verdict import Outcome
from verifiers.registry import decide

EDITION = 3
EACH = 5
"""Tasks per level."""
Call = Callable[[str, Mapping[str, Any]], str]


def drafts(taskset: str, level: int) -> list[TaskDraft]:
    """Some that rest on one edition, so that they can share a world."""
    made = (make_draft(taskset, level, seed) for seed in range(2_000))
    return [next(one for one in made if one.world["edition"] == EDITION) for _ in range(EACH)]


@pytest.fixture(scope="module")
def corpus() -> ResearchCorpus:
    return research_corpus(EDITION)


@pytest.fixture(scope="module")
def call(tmp_path_factory: pytest.TempPathFactory) -> Call:
    setup = {"edition": EDITION, "blocked": [], "phrases": []}
    return plain_world(RESEARCH, setup, tmp_path_factory.mktemp("world"))


def answered(draft: TaskDraft, call: Call) -> str:
    """By the tools alone."""
    try:
        return ResearchOracle(call).value(draft.world["phrases"][0]).text
    except LookupError:
        return ""


def passes(draft: TaskDraft, answer: str) -> bool:
    return decide(draft.spec, answer).outcome is Outcome.PASS


def test_an_agent_that_searches_and_reads_answers_the_questions_and_one_that_guesses_does_not(
    call: Call, corpus: ResearchCorpus
) -> None:
    """And what one has to read grows to at least 40,000 tokens, four characters each."""
    every, right, medians = [], 0, []
    for level in range(5):
        tokens = []
        for draft in drafts("research", level):
            counted = Counted(call)
            right += passes(draft, answered(draft, counted))
            tokens.append(counted.read // 4)
            assert counted.calls <= 0.75 * (draft.turns or 0)
            every.append(draft)
        medians.append(sorted(tokens)[EACH // 2])
    assert right >= 0.95 * len(every)
    assert medians == sorted(medians)
    assert medians[0] < 5_000
    assert medians[-1] >= 40_000
    rng = Random(1)
    guesses = [entity.name for entity in corpus.graph.entities] + [str(rng.randint(1, 2_000)) for _ in range(1_000)]
    guessed = [passes(draft, guess) for draft in every for guess in rng.sample(guesses, 40)]
    assert sum(guessed) <= 0.02 * len(guessed)


@pytest.mark.parametrize("length", [2, 3, 4, 5])
def test_without_one_page_of_its_way_an_agent_that_reads_everything_has_no_answer(
    length: int, corpus: ResearchCorpus, tmp_path: Path
) -> None:
    chain = drawn_chain(corpus, Random(length), length, "year")
    blocked = giveaways(corpus, chain)
    pages = needed_pages(corpus, chain, blocked)
    assert pages is not None
    for at, page in enumerate(pages):
        setup = {"edition": EDITION, "blocked": [page_id(one) for one in [*blocked, page]], "phrases": []}
        without = plain_world(RESEARCH, setup, tmp_path / str(at))
        with pytest.raises((LookupError, PlainToolError)):
            ResearchOracle(without).value(phrase(corpus.graph, chain))


def leaky(corpus: ResearchCorpus) -> tuple[FactChain, str, str]:
    """A question that a quiz page answers: the chain, that page's id, and the answer's words."""
    page, chain = next((corpus.first_quiz + at, quiz[0]) for at, quiz in enumerate(corpus.quizzes))
    found = re.search(re.escape(phrase(corpus.graph, chain)) + r"\? (Answer: [^.]*)", page_of(corpus, page).text)
    assert found is not None
    return chain, page_id(page), found[1]


def everything_about(call: Call, question: str, answer: str, pages: list[str]) -> str:
    """All that the tools give to somebody who looks for the leak."""
    shown = [
        call("search", {"query": query}) for query in (question, answer, "quiz evening question answer", "planted")
    ]
    for page in pages:
        try:
            shown.append(call("read_page", {"page": page, "part": 1}))
        except PlainToolError as error:
            shown.append(str(error))
    return "\n".join(shown)


def test_a_quiz_that_answers_the_question_is_shown_unless_the_task_blocks_it(
    call: Call, corpus: ResearchCorpus, tmp_path: Path
) -> None:
    chain, page, answer = leaky(corpus)
    question = phrase(corpus.graph, chain)
    assert answer in everything_about(call, question, answer, [page])
    blocked = [page_id(one) for one in giveaways(corpus, chain)]
    assert page in blocked
    for setup in ({"blocked": blocked, "phrases": []}, {"blocked": [], "phrases": [question]}):
        within = plain_world(RESEARCH, {"edition": EDITION, **setup}, tmp_path / str(len(setup["phrases"])))
        shown = everything_about(within, question, answer, [page])
        assert answer not in shown
        assert f"{page} |" not in shown
        assert f"there is no page '{page}'" in shown


def test_a_planted_leak_reaches_no_snippet_no_page_and_no_list_of_links(corpus: ResearchCorpus, tmp_path: Path) -> None:
    chain = drawn_chain(corpus, Random(8), 3, "year")
    question, answer = phrase(corpus.graph, chain), str(value_of(corpus.graph, chain))
    pages = json.loads(RESEARCH.files({"edition": EDITION})[CORPUS])
    disguised = question.upper().replace(" ", "  \n")
    pages.append(["p9001", "Planted solution", f"{disguised}: the answer is {answer}-planted."])
    pages.append(["p9002", f"On {question}", f"It is {answer}-planted, see [Planted solution](p9001)."])
    pages.append(["p9003", "A planted friend", "Ask [Planted solution](p9001) and [somebody](p0007) of planted roses."])
    changed = {CORPUS: json.dumps(pages).encode()}
    setup = {"edition": EDITION, "blocked": [], "phrases": [question]}
    ids = ["p9001", "p9002", "p9003"]
    open_world = plain_world(RESEARCH, {**setup, "phrases": []}, tmp_path / "open", changed)
    assert f"{answer}-planted" in everything_about(open_world, question, f"{answer}-planted", ids)
    shown = everything_about(plain_world(RESEARCH, setup, tmp_path / "shut", changed), question, "planted", ids)
    assert f"{answer}-planted" not in shown
    assert "Planted solution" not in shown
    assert not re.search(r"p900[12] \|", shown)
    assert "Ask [...] and [somebody](p0007) of planted roses." in shown


@pytest.mark.parametrize(
    "query",
    ['" OR 1=1 --', "NEAR(a b", "title:*", "^", "-" * 400, "\x00\x1b[31m",
     "𝕬 ☃ \ud800", "AND OR NOT", "'; DROP TABLE pages"],
)  # fmt: skip
def test_whatever_is_searched_for_is_words_and_changes_nothing(call: Call, query: str) -> None:
    before = call("search", {"query": "harbour"})
    if re.search(r"\w", query):
        assert len(call("search", {"query": query})) < 5_000
    else:
        with pytest.raises(PlainToolError, match="the query has no words"):
            call("search", {"query": query})
    assert call("search", {"query": "harbour"}) == before


@pytest.mark.parametrize("page", ["", "p", "../corpus.json", "/etc/passwd", "p00010000000000000000000000000", "\x00"])
def test_a_page_that_is_not_there_is_said_to_be_none(call: Call, page: str) -> None:
    with pytest.raises(PlainToolError, match="there is no page"):
        call("read_page", {"page": page})


def test_a_long_page_is_read_in_parts_that_together_are_all_of_it(corpus: ResearchCorpus, tmp_path: Path) -> None:
    text = "\n\n".join(f"Sentence {number} of a long page, " + "word " * 60 for number in range(40)) + "x" * 4_000
    changed = {CORPUS: json.dumps([["p0001", "Long", text]]).encode()}
    call = plain_world(RESEARCH, {"edition": 0, "blocked": [], "phrases": []}, tmp_path, changed)
    first = call("read_page", {"page": "p0001"})
    count = int(re.findall(r"part 1 of (\d+)", first)[0])
    parts = [call("read_page", {"page": "p0001", "part": one}).split("\n\n", 1)[1] for one in range(1, count + 1)]
    assert "".join("".join(parts).split()) == "".join(text.split())
    assert max(map(len, parts)) <= 3_600
    for part in (0, -1, count + 1):
        with pytest.raises(PlainToolError, match=f"has parts 1 to {count}"):
            call("read_page", {"page": "p0001", "part": part})


def test_a_report_needs_each_figure_beside_the_page_that_states_it() -> None:
    for level in (0, 4):
        draft = make_draft("research_reports", level, 5)
        assert passes(draft, draft.answer)
        keys = list(dict.fromkeys(re.findall(r"\[(p\d+)\]", draft.answer)))
        swapped = draft.answer.replace(keys[0], "KEY").replace(keys[1], keys[0]).replace("KEY", keys[1])
        assert not passes(draft, swapped), "a figure beside another page than the one that states it"
        assert not passes(draft, draft.answer.replace(f"[{keys[0]}]", "")), "a figure without its page"
        assert not passes(draft, draft.answer.replace(keys[-1], "p9999")), "a page that is not there"
        number = re.findall(r"\d{3,}(?= \[)", draft.answer)[0]
        assert not passes(draft, draft.answer.replace(number, str(int(number) + 1))), "another number"
        with_comma = re.sub(r"\b(\d+)(\d{3}) \[", r"\1,\2 [", draft.answer)
        assert passes(draft, with_comma)


def test_a_page_s_id_is_no_figure() -> None:
    """In the report of this seed a figure is 1295, and another one is stated by page p1295."""
    draft = make_draft("research_reports", 2, 8)
    assert "has 1295 [p0153]" in draft.answer
    assert "[p1295]" in draft.answer
    assert passes(draft, draft.answer)
    assert not passes(draft, draft.answer.replace("has 1295 [p0153]", "has it [p0153]"))


def test_a_report_that_leaves_it_open_which_page_states_what_fails() -> None:
    """All figures beside all ids, each figure beside each id in turn, and every number that the pages have."""
    more = (
        "Readers who want to know more should look at other pages of the same book. Much was written there long ago by "
        "people who knew these places well. Whoever compares editions sees small differences in style. This account "
        "keeps to what was found in a short search. No attempt was made to rank sources, because each seemed careful "
        "enough. Open questions may be taken up by somebody else later. Thanks go to all who helped with reading, "
        "checking, sorting, copying and typing. Nothing important should have got lost between shelf and desk."
    )
    for seed in range(0, 16, 4):
        draft = make_draft("research_reports", 2, seed)
        pairs = re.findall(r"(\d{3,}) \[(p\d+)\]", draft.answer) or re.findall(r"(\d{3,}).*\[(p\d+)\]", draft.answer)
        values, keys = [one for one, _ in pairs], list(dict.fromkeys(key for _, key in pairs))
        sources = "# Sources\n\n" + "\n".join(f"- [{key}]" for key in keys)
        assert len(keys) > 1
        spec = draft.spec
        assert isinstance(spec, ChecklistSpec)
        dumped = [f"{', '.join(re.findall(r'[0-9]{3,}', one.text))} [{one.key}]." for one in spec.sources]
        for lines in (
            [f"{', '.join(values)} {' '.join(f'[{key}]' for key in keys)}."],
            [f"It is {value} [{key}]." for value in values for key in keys],
            dumped,
        ):
            assert not passes(draft, "\n\n".join(["# Figures", *lines, more, sources]))


def test_in_a_sandbox_the_program_answers_as_it_does_here_and_changes_nothing(
    call: Call, guest_roots: Path, tmp_path: Path
) -> None:
    own = BrokerSettings(state_dir=tmp_path, root_dir=guest_roots, ready=0)
    setup = {"edition": EDITION, "blocked": [], "phrases": []}
    asked = [("search", {"query": "lantern academy"}), ("read_page", {"page": "p0500", "part": 1})]
    with (
        Sessions(RuntimeSettings(own=own, limits=Limits(call_seconds=60))) as pool,
        World.open(pool, RESEARCH, setup) as world,
    ):
        before = world.digest()
        assert [world.call(*one).text for one in asked] == [call(*one) for one in asked]
        refused = [world.call(*one) for one in (("search", {"query": ""}), ("read_page", {"page": "p9", "more": 1}))]
        assert [(one.failed, one.reached) for one in refused] == [(True, False), (True, False)]
        assert world.call("read_page", {"page": "p9999"}).failed
        assert world.digest() == before
