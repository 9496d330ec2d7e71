"""Questions and reports over a corpus that is searched and read page by page, in the world `research`.

Invariants: each hop of a question is stated on a page of its own, and without that page the answer does not follow from
the corpus (`needed_pages`); of yearbooks, all that are asked about must be read (`inquiries`). Pages that give an
answer away exist, but no tool shows them. An edition of the corpus serves one split: facts remembered from training
answer no evaluation question.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from random import Random

from curriculum.contract.taskset import TaskDraft
from curriculum.contract.topics import IMPOSSIBLE, LEVELS, Item, TopicTaskset
from curriculum.environments.research.chains import (
    End,
    FactChain,
    ResearchCorpus,
    drawn_chain,
    end_of,
    giveaways,
    needed_pages,
    phrase,
    research_corpus,
    value_of,
)
from curriculum.environments.research.graph import EDITIONS
from curriculum.environments.research.inquiries import Form, answer_of, described, drawn_inquiry
from curriculum.environments.research.pages import page_id, page_of
from curriculum.environments.research.relations import COUNT, YEAR
from curriculum.environments.research.yearbooks import houses, in_years, register
from curriculum.seeds import about
from curriculum.tasksets.statements import digest, listed
from verifiers.answers.spec import AnswerSpec
from verifiers.checklists.spec import (
    ChecklistSpec,
    CitationsItem,
    CitedSource,
    CountItem,
    HardItem,
    HeadingsItem,
    NumbersItem,
    OccurrencesItem,
    PatternItem,
)
from verifiers.contract.kinds import AnswerForm
from verifiers.exact.spec import ExactSpec
from verifiers.registry.spec import Spec

_HOPS = (2, 3)
"""Hops of the plain chains of the first levels; later ones lead over yearbooks."""
_BEFORE, _AFTER = (0, 0, 1, 1, 2), (0, 0, 1, 1, 2)
"""Hops to the institution whose yearbooks are asked about, and from the person that they tell."""
_VOLUMES = (1, 2, 4, 8, 15)
"""Yearbooks to read, of three to four parts each."""
_TURNS = (12, 24, 48, 80, 150)
_OPENINGS = (
    "The encyclopedia of {c} can be searched and read with the tools.",
    "You can search the encyclopedia of {c}, and read its pages.",
    "This is about what the encyclopedia of {c} says; search it and read its pages.",
)
_ASKED = ("Find out {x}.", "Find {x}.", "Look for {x}.")


def _world(corpus: ResearchCorpus, chains: Sequence[FactChain]) -> dict[str, object]:
    blocked = sorted({page for chain in chains for page in giveaways(corpus, chain)})
    phrases = [phrase(corpus.graph, chain) for chain in chains]
    return {"edition": corpus.edition, "blocked": [page_id(page) for page in blocked], "phrases": phrases}


def _key(corpus: ResearchCorpus, sort: str, chains: Sequence[FactChain]) -> str:
    asked = f"{corpus.edition} {sort} {[(one.start, [tuple(hop) for hop in one.hops]) for one in chains]}"
    return about(f"edition {corpus.edition}", digest(asked))


def _opening(corpus: ResearchCorpus, rng: Random) -> str:
    return rng.choice(_OPENINGS).format(c=corpus.graph.country)


_RULES = (
    "Only the entries of these yearbooks count. Where one of them corrects, strikes out or puts back an entry of "
    "another, which it names as that was first entered, the last word holds; what is merely recalled is nothing new."
)


def _chain(level: int, rng: Random) -> Item:
    """Asks for the value at the end of a chain of facts over several corpus pages, from level 2 on over yearbooks."""
    if level >= len(_HOPS):
        return _inquiry(level, rng, "leader", _AFTER[level])
    corpus = research_corpus(rng.randrange(EDITIONS))
    chain = drawn_chain(corpus, rng, _HOPS[level], rng.choice(_ENDS), plain=level == 0)
    asked = _asked(corpus, rng, phrase(corpus.graph, chain))
    return _item(corpus, level, f"{asked} {_how(chain)}", [chain], "chain", *_value(corpus, chain))


def _totals(level: int, rng: Random) -> Item:
    """Asks for the number of different people and the sum of amounts in an institution's yearbooks."""
    return _inquiry(level, rng, "total", 0)


def _matches(level: int, rng: Random) -> Item:
    """Asks for the only person who meets three conditions by an institution's yearbooks."""
    return _inquiry(level, rng, "match", 0)


_ENDS: tuple[End, ...] = ("entity", "entity", "year", "count")
_TOTAL = {
    "gifts": "how many different people gave, and how many crowns in all? Answer as in 12/3450.",
    "lectures": "how many different people lectured, and before how many listeners in all? Answer as in 12/3450.",
}


def _inquiry(level: int, rng: Random, form: Form, after: int) -> Item:
    """Asks what the yearbooks of an institution say, to which a chain of facts leads; another one, of `after` hops,
    leads on from the person who is the answer."""
    corpus = research_corpus(rng.randrange(EDITIONS))
    edition, graph = corpus.edition, corpus.graph
    while True:
        before = _to_house(corpus, rng, _BEFORE[level])
        house = value_of(graph, before) if before.hops else before.start
        try:
            asked = drawn_inquiry(edition, house, rng, form, _VOLUMES[level])
            answer = answer_of(asked, in_years(register(edition, house), asked.first, asked.last))
            chains = [before]
            if after:
                chains.append(drawn_chain(corpus, rng, after, rng.choice(_ENDS), start=answer))
        except LookupError:
            continue
        pages = [needed_pages(corpus, chain, giveaways(corpus, chain)) or [] for chain in chains]
        if len({page for some in pages for page in some}) == sum(len(chain.hops) for chain in chains):
            break
    words = described(asked, phrase(graph, before))
    if form == "total":
        end = f"{_asked(corpus, rng, words)[:-1]}: {_TOTAL[asked.account]}"
        return _item(corpus, level, f"{end} {_RULES}", chains, f"{asked}", answer, ExactSpec(expected=answer), [words])
    if not after:
        name = graph.entities[answer].name
        end = f"{_asked(corpus, rng, words)} {_MEMBER} {_NAME}"
        return _item(corpus, level, f"{end} {_RULES}", chains, f"{asked}", name, ExactSpec(expected=name), [words])
    words = phrase(graph, chains[1], words)
    end = f"{_asked(corpus, rng, words)} {_how(chains[1])}"
    return _item(corpus, level, f"{end} {_RULES}", chains, f"{asked}", *_value(corpus, chains[1]), [words])


def _to_house(corpus: ResearchCorpus, rng: Random, hops: int) -> FactChain:
    """Draws a chain of facts that leads to an institution with yearbooks."""
    among = houses(corpus.edition)
    if not hops:
        return FactChain(rng.choice(among), ())
    return drawn_chain(corpus, rng, hops, "entity", among=among, tries=20_000)


_MEMBER = "A member at the end is who was admitted and has not left since."
_NAME = "Answer with the name alone, as links to its page have it."


def _how(chain: FactChain) -> str:
    return "Answer with the number." if end_of(chain) in (YEAR, COUNT) else _NAME


def _value(corpus: ResearchCorpus, chain: FactChain) -> tuple[str, Spec]:
    """Returns the answer at the end of a chain of facts, and its check."""
    value = value_of(corpus.graph, chain)
    if end_of(chain) in (YEAR, COUNT):
        return str(value), AnswerSpec(expected=str(value))
    name = corpus.graph.entities[value].name
    return name, ExactSpec(expected=name)


def _asked(corpus: ResearchCorpus, rng: Random, words: str) -> str:
    return f"{_opening(corpus, rng)} {rng.choice(_ASKED).format(x=words)}"


def _item(
    corpus: ResearchCorpus,
    level: int,
    text: str,
    chains: Sequence[FactChain],
    sort: str,
    answer: str,
    spec: Spec,
    phrases: Sequence[str] = (),
) -> Item:
    world = _world(corpus, chains)
    return Item(
        text=text,
        key=_key(corpus, sort, chains),
        spec=spec,
        answer=answer,
        world={**world, "phrases": list(phrases)} if phrases else world,
        turns=_TURNS[level],
    )  # fmt: skip


_SAID = (
    "{p} gives {x} as {v} [{k}].", "As for {x}, {p} has {v} [{k}].", "According to {p}, {x} is {v} [{k}].",
    "{p} says that {x} is {v} [{k}].", "One reads in {p} that {x} is {v} [{k}].",
    "The figure in {p} for {x} is {v} [{k}].", "For {x} we rely on {p}, which has {v} [{k}].",
)  # fmt: skip


def _report(level: int, rng: Random, starts: int) -> Item:
    """Asks for a report that states figures from the corpus, each beside the page it is from."""
    corpus = research_corpus(rng.randrange(EDITIONS))
    chains = _figures(corpus, level, rng, starts)
    blocked = {page for chain in chains for page in giveaways(corpus, chain)}
    pages = [(needed_pages(corpus, chain, blocked) or [])[-1] for chain in chains]
    values = [value_of(corpus.graph, chain) for chain in chains]
    phrases = [phrase(corpus.graph, chain) for chain in chains]
    keys, least = [page_id(page) for page in pages], 15 * len(chains)
    topics = list(dict.fromkeys(corpus.graph.entities[chain.start].described for chain in chains))
    wanted = "\n".join(f"- {one}" for one in phrases)
    text = (
        f"{_opening(corpus, rng)} {rng.choice(('Write', 'Please write'))} a report in Markdown on {listed(topics)}, of "
        f"at least {least} words, with the headings Figures and Sources of the first level. Below Figures it states, "
        "each in a sentence and on a line of its own, as digits and beside the id in square brackets of the page that "
        f"states it and of no other, such as [p0042]:\n{wanted}\nBelow Sources it lists the pages that it cites. It "
        "has no other numbers than these figures, and cites no pages but such as one needs for them."
    )
    on_the_way = _read(corpus, chains, blocked)
    sources = tuple(_source(corpus.edition, page) for page in on_the_way)
    figures = tuple(map(str, values))
    items: list[HardItem] = [
        CountItem(name="length", of="words", least=least),
        HeadingsItem(name="headings", headings=("Figures", "Sources"), level=1, only=True),
        NumbersItem(name="numbers", facts=figures, required=figures),
        CitationsItem(name="citations", least=len(set(keys))),
    ]
    for at, (value, key) in enumerate(zip(values, keys, strict=True), 1):
        before = r"(?<![\w.,])"  # no digits of a page's id
        number = rf"{before}{value // 1000},?{value % 1000:03d}" if value > 999 else rf"{before}{value}"
        line = rf"^(?=[^\n]*{number}(?![\d]|[.,]\d))[^\n]*"
        items.append(PatternItem(name=f"figure {at} beside its page", pattern=rf"{line}\[[^\]\n]*\b{key}\b"))
        # Otherwise all figures beside all ids would pass, without knowing which page states which.
        others = rf"{line}\bp(?!{key[1:]}\b)\d+\b"
        items.append(PatternItem(name=f"figure {at} beside no other page", pattern=others, how="absent"))
    lines = [
        rng.choice(_SAID).format(p=corpus.graph.entities[page].name, x=one, v=value, k=key)
        for page, one, value, key in zip(pages, phrases, values, keys, strict=True)
    ]
    cited = "\n".join(f"- {corpus.graph.entities[page].name} [{page_id(page)}]" for page in dict.fromkeys(pages))
    answer = "# Figures\n\n" + "\n\n".join(line[0].upper() + line[1:] for line in lines) + f"\n\n# Sources\n\n{cited}"
    spec = ChecklistSpec(items=tuple(items), question=text, sources=sources, allowed=("copy",))
    return Item(text=text, key=_key(corpus, "report", chains), spec=spec, answer=answer, world=_world(corpus, chains))


@lru_cache(1 << 13)
def _source(edition: int, page: int) -> CitedSource:
    shown = page_of(research_corpus(edition), page)
    return CitedSource(key=shown.id, text=f"{shown.title}\n{shown.text}")


def _figures(corpus: ResearchCorpus, level: int, rng: Random, starts: int) -> list[FactChain]:
    """Draws chains of facts that lead from `starts` entities to different numbers of at least three digits."""
    while True:
        first = [rng.randrange(len(corpus.graph.entities)) for _ in range(starts)]
        chains: dict[int, FactChain] = {}
        for at in range(8 * (3 + level)):
            length, end = 1 + (at + level) % (2 + level // 2), rng.choice((YEAR, COUNT))
            try:
                chain = drawn_chain(
                    corpus, rng, length, "year" if end == YEAR else "count", plain=level == 0, start=first[at % starts],
                    tries=6,
                )  # fmt: skip
            except LookupError:
                continue
            value = value_of(corpus.graph, chain)
            if value > 99 and chain not in chains.values():
                chains.setdefault(value, chain)
            if len(chains) == 3 + level:
                break
        found = list(chains.values())
        blocked = {page for chain in found for page in giveaways(corpus, chain)}
        if len(found) == 3 + level and all(needed_pages(corpus, chain, blocked) for chain in found):
            return found


def _read(corpus: ResearchCorpus, chains: Sequence[FactChain], blocked: set[int]) -> list[int]:
    """Returns the corpus pages to read for these chains of facts: those of the hops, and those of the starts."""
    needed = (page for chain in chains for page in [chain.start, *(needed_pages(corpus, chain, blocked) or ())])
    return list(dict.fromkeys(needed))


def _profile(level: int, rng: Random) -> Item:
    return _report(level, rng, 1)


def _comparison(level: int, rng: Random) -> Item:
    return _report(level, rng, 2)


def _never(draft: TaskDraft, number: int) -> Spec:
    """Returns the draft's checklist plus a required phrase unrelated to the question, so no honest answer passes."""
    assert isinstance(draft.spec, ChecklistSpec)
    more = OccurrencesItem(name="number", phrase=str(IMPOSSIBLE + number), least=1)
    return draft.spec.model_copy(update={"items": (*draft.spec.items, more)})


_TOOLS = ("search", "read_page", "python")
RESEARCH_QUESTIONS = TopicTaskset(
    name="research",
    version=3,
    makers={"document_chains": _chain, "yearbook_totals": _totals, "yearbook_matches": _matches},
    null_answers=("0", "1", "100", "1800", "0/0", "unknown", "I do not know."),
    tools=_TOOLS,
    environment="research",
)
RESEARCH_REPORTS = TopicTaskset(
    name="research_reports",
    version=3,
    makers={"profiles_with_figures": _profile, "comparisons_with_figures": _comparison},
    null_answers=(
        "I do not know.",
        "# Figures\n\nAll figures are stated beside their pages.\n\n# Sources\n\nThe encyclopedia.",
        "\n\n".join(
            f"The page [{page_id(number)}] gives {number} [{page_id(number)}]." for number in range(1700, 1730)
        ),
    ),
    form=AnswerForm.WHOLE,
    tools=_TOOLS,
    environment="research",
    contradicted=_never,
)
assert len(_BEFORE) == len(_AFTER) == len(_VOLUMES) == len(_TURNS) == LEVELS
