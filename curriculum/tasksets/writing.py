"""Texts of some length, checked by what code can decide: length, headings, words, figures, tables, sources.

Invariants: the reference satisfies the checklist; an empty text, a string of the required words, the question itself or
a claim of completion does not. No checklist decides quality beyond that.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from curriculum.contract.taskset import TaskDraft
from curriculum.contract.topics import IMPOSSIBLE, Item, TopicTaskset
from curriculum.tasksets.prose import SUBJECTS, SentencePool
from curriculum.tasksets.statements import GOODS, PEOPLE, TOWNS, listed
from verifiers.checklists.spec import (
    ChecklistSpec,
    CitationsItem,
    CitedSource,
    CountItem,
    FormatItem,
    HardItem,
    HeadingsItem,
    NumbersItem,
    OccurrencesItem,
    OrderItem,
    PatternItem,
    TableItem,
    WordsItem,
)
from verifiers.contract.kinds import AnswerForm
from verifiers.registry.spec import Spec

_TITLES = ("Background", "Situation", "People", "Costs", "Risks", "Plans", "Lessons", "Outlook")
_WANTED = (
    "patience",
    "timber",
    "harvest",
    "lantern",
    "courage",
    "neighbour",
    "orchard",
    "compass",
    "rumour",
    "bargain",
)
_WANTED_SENTENCES = {
    "patience": "Whoever waits here needs patience and a warm coat.",
    "timber": "Good timber has become rare in this part of the country.",
    "harvest": "After the harvest there are more hands to help.",
    "lantern": "Somebody always leaves a lantern beside the gate.",
    "courage": "It took courage to say so in front of the whole meeting.",
    "neighbour": "A neighbour lent the ladder and never asked for it back.",
    "orchard": "Behind the wall lies an orchard that nobody has pruned for years.",
    "compass": "The surveyor carried a compass that had belonged to his father.",
    "rumour": "A rumour about the sale went round before breakfast.",
    "bargain": "The second-hand stove was a bargain by any standard.",
}
_FORBIDDEN = ("very", "really", "amazing", "basically", "obviously", "incredible", "literally", "unique")
_ASKED = ("Write", "Please write", "Compose")


def _item(text: str, key: str, items: Sequence[HardItem], answer: str, sources: tuple[CitedSource, ...] = ()) -> Item:
    question = f"{text}\nYour last turn is the text, and nothing else."
    return Item(
        text=question,
        key=key,
        spec=ChecklistSpec(items=tuple(items), question=question, sources=sources),
        answer=answer,
    )


def _essay(level: int, rng: Random) -> Item:
    """Makes a task to write an essay with required words, forbidden words, a length and a number of paragraphs."""
    subject, parts = rng.choice(SUBJECTS), 2 + level
    least = 60 + 45 * level
    most = least + 80
    wanted = rng.sample(_WANTED, 2 + level)
    forbidden = sorted(rng.sample(_FORBIDDEN, 1 + level))
    pool = SentencePool(subject, rng)
    paragraphs = [pool.words(least // parts + 1) for _ in range(parts)]
    for at, word in enumerate(wanted):
        paragraphs[at % parts] += f" {_WANTED_SENTENCES[word]}"
    most = max(most, sum(len(one.split()) for one in paragraphs) + 10)
    text = (
        f"{rng.choice(_ASKED)} an essay about {subject}, of {least} to {most} words in exactly {parts} paragraphs, "
        f"without headings or "
        f"lists. Use each of these words at least once: {', '.join(wanted)}. Do not use any of "
        f"these: {', '.join(forbidden)}."
    )
    items: list[HardItem] = [
        CountItem(name="length", of="words", least=least, most=most),
        CountItem(name="paragraphs", of="paragraphs", least=parts, most=parts),
        CountItem(name="no headings", of="headings", most=0),
        CountItem(name="no lists", of="list_items", most=0),
        WordsItem(name="words", required=tuple(wanted), forbidden=tuple(forbidden)),
    ]
    key = f"{subject} {parts} {least} {most} {sorted(wanted)} {forbidden}"
    return _item(text, key, items, "\n\n".join(paragraphs))


def _report(level: int, rng: Random) -> Item:
    """Makes a task to write a report with given headings, a table with a sum, and correct figures."""
    subject = rng.choice(SUBJECTS)
    titles = rng.sample(_TITLES, 2 + level)
    towns = rng.sample(TOWNS, 3 + level)
    figures = [rng.randint(20, 900) for _ in towns]
    total = sum(figures)
    most_town = towns[figures.index(max(figures))]
    least = 60 + 40 * level
    pool = SentencePool(subject, rng)
    table = "\n".join(
        [
            "| Town | Visitors |",
            "| --- | --- |",
            *(f"| {town} | {value} |" for town, value in zip(towns, figures, strict=True)),
            f"| Total | {total} |",
        ]
    )
    sections = [f"## {title}\n\n{pool.words(least // len(titles) + 1)}" for title in titles]
    sections[0] += (
        f" Altogether {total} visitors came, more of them from {most_town} than from anywhere else.\n\n{table}"
    )
    said = listed([f"{town} {value}" for town, value in zip(towns, figures, strict=True)])
    text = (
        f"{rng.choice(_ASKED)} a report in Markdown on the visitors of {subject}, of at least {least} words. It has "
        f"these headings of "
        f"the second level, in this order and no others: {', '.join(titles)}. Below each there is text. Visitors by "
        f"town: {said}. "
        "The report has one table with the columns Town and Visitors, a row for each town and a last row Total with "
        "the sum. The "
        f"text names the town with the most visitors and the sum. It has no other numbers than these, in digits or "
        f"in words."
    )
    items: list[HardItem] = [
        CountItem(name="length", of="words", least=least),
        HeadingsItem(name="headings", headings=tuple(titles), level=2, only=True),
        TableItem(
            name="table",
            columns=("Town", "Visitors"),
            least_rows=len(towns) + 1,
            most_rows=len(towns) + 1,
            sums=("Visitors",),
        ),
        OccurrencesItem(name="the most", phrase=most_town, least=1),
        NumbersItem(
            name="figures",
            facts=tuple(map(str, (*figures, total))),
            required=tuple(map(str, (*figures, total))),
            free_up_to=2,
        ),
    ]
    return _item(text, f"{subject} {titles} {said}", items, "\n\n".join(sections))


def _letter(level: int, rng: Random) -> Item:
    """Makes a task to write a letter to and from named people, with things in an order and an ending."""
    subject, (to, sender) = rng.choice(SUBJECTS), rng.sample(PEOPLE, 2)
    things = rng.sample(GOODS, 2 + level)
    least = 50 + 35 * level
    pool = SentencePool(subject, rng)
    sentences = (
        "We have ordered a new {} for the entrance.",
        "The {} has to be taken away before the end of the month.",
        "Please ask the joiner whether the {} can be mended.",
        "My sister would gladly lend us her {} for a while.",
        "As for the {}, I have not yet found a place for it.",
        "There is also a {} in the cellar that nobody claims.",
    )
    body = [f"{rng.choice(('I write to you because of', 'This letter is about'))} {subject}. {pool.words(12)}"]
    share = max(0, least - 14 * len(things)) // len(things)
    for thing, sentence in zip(things, rng.sample(sentences, len(things)), strict=True):
        body.append(f"{sentence.format(thing)} {pool.words(share + 1)}")
    answer = "\n\n".join([f"Dear {to},", *body, "Yours sincerely,", sender])
    word = rng.choice(_FORBIDDEN)
    text = (
        f"{rng.choice(_ASKED)} a letter from {sender} to {to} about {subject}, of at least {least} words. It begins "
        f"with the line "
        f'"Dear {to}," and ends with "Yours sincerely," and, on a line below, the name {sender}. It speaks of these '
        "things, each for "
        f"the first time in this order: {', '.join(things)}. It is plain text without any Markdown, it has at least "
        f"{2 + level} "
        f"paragraphs besides greeting and end, and it never says the word {word}."
    )
    items: list[HardItem] = [
        CountItem(name="length", of="words", least=least),
        PatternItem(name="greeting", pattern=rf"\ADear {to},\s*\n"),
        PatternItem(name="end", pattern=rf"\nYours sincerely,\s*\n\s*{sender}\s*\Z"),
        OrderItem(name="things", phrases=tuple(things)),
        CountItem(name="paragraphs", of="paragraphs", least=4 + level),
        WordsItem(name="left out", forbidden=(word,)),
        FormatItem(name="plain", format="plain"),
    ]
    return _item(text, f"{subject} {to} {sender} {things} {word} {least}", items, answer)


_NOTES = (
    "Repairs on {s} were put off twice because no builder was free.",
    "According to the minutes, the roof of {s} leaks on its northern side.",
    "The insurance of {s} does not cover damage by frost.",
    "A survey found that most guests of {s} come on foot.",
    "The owner of {s} wishes to keep the original windows.",
    "The fire brigade asks for a second exit at {s}.",
    "Local schools would use {s} more often if there were heating.",
)


def _briefing(level: int, rng: Random) -> Item:
    """Makes a task to write a briefing that cites given sources, with points in a list."""
    subject, count = rng.choice(SUBJECTS), 3 + level
    notes = [one.format(s=subject) for one in rng.sample(_NOTES, min(count, len(_NOTES)))]
    keys = [f"{letter}{rng.randint(1, 9)}" for letter in "ABCDEFG"[: len(notes)]]
    cited = 2 + level
    least, points = 60 + 35 * level, 2 + level
    pool = SentencePool(subject, rng)
    paragraphs = [f"{pool.words(max(10, least // cited))[:-1]} [{key}]." for key in keys[:cited]]
    listed_points = "\n".join(f"- {_WANTED_SENTENCES[word]}" for word in rng.sample(_WANTED, points))
    answer = "\n\n".join(["# Briefing", *paragraphs, "# Points", listed_points])
    said = "\n".join(f"[{key}] {note}" for key, note in zip(keys, notes, strict=True))
    text = (
        f"{rng.choice(_ASKED)} a briefing about {subject} in Markdown, of at least {least} words, with the headings "
        f"Briefing and Points of "
        f"the first level. Below Points stands a list of at least {points} items. It cites at least {cited} of "
        f"these sources, by "
        f"their keys in square brackets, and no others:\n{said}"
    )
    items: list[HardItem] = [
        CountItem(name="length", of="words", least=least),
        HeadingsItem(name="headings", headings=("Briefing", "Points"), level=1, only=True),
        CountItem(name="points", of="list_items", least=points),
        CitationsItem(name="sources", least=cited),
    ]
    sources = tuple(CitedSource(key=key, text=note) for key, note in zip(keys, notes, strict=True))
    return _item(text, f"{subject} {said} {cited}", items, answer, sources)


def _never(draft: TaskDraft, number: int) -> Spec:
    """Returns the draft's checklist plus a required phrase unrelated to the question, so no honest answer passes."""
    assert isinstance(draft.spec, ChecklistSpec)
    more = OccurrencesItem(name="number", phrase=str(IMPOSSIBLE + number), least=1)
    return draft.spec.model_copy(update={"items": (*draft.spec.items, more)})


CLAIM = "All items of the checklist are fulfilled: length, headings, words and figures are as they were asked for."
WRITING = TopicTaskset(
    name="writing",
    version=1,
    makers={"essays": _essay, "reports": _report, "correspondence": _letter, "briefings": _briefing},
    null_answers=(
        "I do not know.",
        CLAIM,
        ", ".join(_WANTED),
        "\n\n".join(f"## {title}\n\nText." for title in _TITLES),
    ),
    form=AnswerForm.WHOLE,
    tools=(),
    contradicted=_never,
)
