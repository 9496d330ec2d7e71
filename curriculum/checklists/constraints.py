"""Constraints by construction: the sentence in an instruction, the item that checks it, and text that satisfies it.

Invariants: a text that follows the sentence satisfies the item, and an item requires nothing beyond the sentence and
its circumstances. An *implicit* constraint is given as a circumstance (`it will be read aloud`), not as a rule.
Constraints of one list are independent: none follows from another (`verifiers.checklists.assess` verifies it). Explicit
and implicit constraints: ACE-RL (2509.04903, section 3.1).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from curriculum.tasksets.prose import LongPool
from curriculum.tasksets.statements import GOODS, PEOPLE, TOWNS, listed
from verifiers.checklists.spec import (
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
    WordsItem,
)


@dataclass
class DraftPassage:
    """Paragraph with an optional heading."""

    heading: str = ""
    sentences: list[str] = field(default_factory=list)

    def text(self) -> str:
        body = " ".join(self.sentences)
        return f"{self.heading}\n\n{body}" if self.heading else body


@dataclass
class DraftText:
    """Text under construction; each constraint adds what it requires."""

    opening: str = ""
    passages: list[DraftPassage] = field(default_factory=lambda: [DraftPassage(), DraftPassage()])
    listed: list[str] = field(default_factory=list)
    """Points of a list after the first passage."""
    closing: str = ""
    planted: list[str] = field(default_factory=list)
    """Sentences that must occur in this order, anywhere in the text."""

    def filled(self, target: int, subject: str, rng: Random) -> str:
        """Returns the whole text, filled up with sentences about the subject: at least `target` words, at most one
        sentence more."""
        pool = LongPool(subject, rng)
        share = -(-len(self.planted) // len(self.passages))
        for at, passage in enumerate(self.passages):
            passage.sentences += [pool.take(), *self.planted[at * share : (at + 1) * share]]
        words, at = len(self._whole().split()), 0
        while words < target:
            more = pool.take()
            words += len(more.split())
            self.passages[at % len(self.passages)].sentences.append(more)
            at += 1
        return self._whole()

    def _whole(self) -> str:
        first, *others = [passage.text() for passage in self.passages]
        points = "\n".join(f"- {point}" for point in self.listed)
        return "\n\n".join(part for part in (self.opening, first, points, *others, self.closing) if part)


TITLES = ("Background", "Situation", "People", "Costs", "Risks", "Plans", "Lessons", "Outlook", "Access", "Repairs")
TERMS = {
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
AVOIDED = ("very", "really", "amazing", "basically", "obviously", "incredible", "literally", "unique")
MOTTOES = ("Keep it burning", "Leave it open", "Mend it early", "Listen first", "Ask the oldest", "Bring a cup")
"""At most three words each: a longer line of keywords counts as keyword stuffing."""
THINGS = (
    "A new {} has been ordered for the entrance.",
    "The {} has to be taken away before the end of the month.",
    "Perhaps the joiner can say whether the {} is worth mending.",
    "Somebody has offered a {} that is as good as new.",
    "As for the {}, no place has been found for it.",
    "There is also a {} in the cellar that nobody claims.",
)
NOTES = (
    "Repairs on {s} were put off twice because no builder was free.",
    "According to the minutes, the roof of {s} leaks on its northern side.",
    "The insurance of {s} does not cover damage by frost.",
    "A survey found that most guests of {s} come on foot.",
    "The owner of {s} wishes to keep the original windows.",
    "The fire brigade asks for another exit at {s}.",
    "Local schools would use {s} more often if there were heating.",
)
QUESTIONS = (
    "What would be lost if nobody came any more?",
    "Who will hold the keys when the old ones are gone?",
    "Is that not reason enough to begin?",
)
SMALL = 3
"""Largest whole number that is allowed without a source when figures are checked: `one of them`, `twice`."""


@dataclass
class InProgress:
    """Writing instruction under construction, with the text that will satisfy it."""

    level: int
    subject: str
    rng: Random
    text: DraftText = field(default_factory=DraftText)
    sources: list[CitedSource] = field(default_factory=list)


@dataclass(frozen=True)
class Constraint:
    """One point of a writing instruction: its sentence, and the items that check it."""

    said: str
    """Sentences of the constraint in the instruction."""
    items: tuple[HardItem, ...]
    implicit: bool = False


Maker = Callable[[InProgress], Constraint]


def terms(work: InProgress) -> Constraint:
    """Requires words to occur, and adds sentences with them to `work.text`."""
    wanted = work.rng.sample(sorted(TERMS), 2 + (work.level + 1) // 2)
    work.text.planted += [TERMS[word] for word in wanted]
    said = f"Use each of these words at least once: {', '.join(wanted)}."
    return Constraint(said, (WordsItem(name="words to use", required=tuple(wanted)),))


def avoided(work: InProgress) -> Constraint:
    """Forbids some words in the text."""
    words = sorted(work.rng.sample(AVOIDED, 2 + work.level // 2))
    return Constraint(
        f"Do not use any of these words: {', '.join(words)}.",
        (WordsItem(name="words to avoid", forbidden=tuple(words)),),
    )


def impersonal(_work: InProgress) -> Constraint:
    """Requires the third person: no *I* or *we*."""
    words = ("I", "me", "my", "we", "us", "our")
    said = f"Nobody is to hear a single voice in it: keep to the third person, without {listed(words, 'or')}."
    return Constraint(said, (WordsItem(name="third person", forbidden=words),))


def sections(work: InProgress) -> Constraint:
    """Requires headings in a given order, and divides `work.text` by them."""
    titles = work.rng.sample(TITLES, 2 + (work.level + 1) // 2)
    work.text.passages = [DraftPassage(heading=f"## {title}") for title in titles]
    said = (
        f"Divide it with these headings of the second level in Markdown, in this order and no others, each with text "
        f"below it: {', '.join(titles)}."
    )
    item = HeadingsItem(name="headings", headings=tuple(titles), level=2, only=True)
    return Constraint(said, (item,))


def paragraphs(work: InProgress) -> Constraint:
    """Requires an exact number of paragraphs, and gives `work.text` that many."""
    count = 3 + work.level
    work.text.passages = [DraftPassage() for _ in range(count)]
    item = CountItem(name="paragraphs", of="paragraphs", least=count, most=count)
    return Constraint(f"It has exactly {count} paragraphs.", (item,))


def order(work: InProgress) -> Constraint:
    """Requires things to be mentioned in a given order, and adds sentences about them to `work.text`."""
    things = work.rng.sample(GOODS, 2 + (work.level + 1) // 2)
    frames = work.rng.sample(THINGS, len(things))
    work.text.planted += [frame.format(thing) for frame, thing in zip(frames, things, strict=True)]
    said = f"It speaks of these, each for the first time in this order: {', '.join(things)}."
    return Constraint(said, (OrderItem(name="order", phrases=tuple(things)),))


def figures(work: InProgress) -> Constraint:
    """Allows only figures that are in the instruction's notes, and adds a sentence with one of them to `work.text`."""
    towns = work.rng.sample(TOWNS, 2 + work.level // 2)
    counts = work.rng.sample(range(21, 900), len(towns))
    asked = work.rng.randrange(len(towns))
    work.text.planted.append(f"From {towns[asked]} alone {counts[asked]} visitors came.")
    told = listed([f"{count} visitors from {town}" for town, count in zip(towns, counts, strict=True)])
    said = (
        f"The visitors' book knows of {told}. Say how many came from {towns[asked]}. "
        "Whoever prints it strikes out every figure, in digits or in words, that is not in that book."
    )
    item = NumbersItem(name="figures", facts=tuple(map(str, counts)), required=(str(counts[asked]),), free_up_to=SMALL)
    return Constraint(said, (item,), implicit=True)


def citations(work: InProgress) -> Constraint:
    """Requires cited sources from the instruction's notes; from level 3 on, one quoted word for word."""
    notes = [one.format(s=work.subject) for one in work.rng.sample(NOTES, 4 + work.level // 2)]
    keys = [f"{letter}{work.rng.randint(1, 9)}" for letter in "ABCDEFG"[: len(notes)]]
    least, quoted = 2 + work.level // 2, int(work.level >= 3)
    work.sources += [CitedSource(key=key, text=note) for key, note in zip(keys, notes, strict=True)]
    work.text.planted += [f"So it stands in the papers of the house [{key}]." for key in keys[quoted:least]]
    if quoted:
        work.text.planted.append(f'The papers put it like this: "{notes[0]}" [{keys[0]}].')
    given = "\n".join(f"[{key}] {note}" for key, note in zip(keys, notes, strict=True))
    said = (
        f"It cites at least {least} of the notes below by their keys in square brackets, and nothing else"
        f"{', one of them word for word in quotation marks' if quoted else ''}.\n{given}"
    )
    return Constraint(said, (CitationsItem(name="sources", least=least, least_quotations=quoted),))


def points(work: InProgress) -> Constraint:
    """Requires a Markdown list with a minimum number of points, and gives `work.text` one."""
    count = 3 + work.level
    places = work.rng.sample(TOWNS, count)
    work.text.listed = [f"What the people of {place} asked for" for place in places]
    item = CountItem(name="list", of="list_items", least=count)
    return Constraint(f"It has a list in Markdown of at least {count} points.", (item,))


def motto(work: InProgress) -> Constraint:
    """Requires a line to occur an exact number of times, and adds it to `work.text` as often."""
    line, times = work.rng.choice(MOTTOES), 2 + (work.level + 1) // 2
    work.text.planted += [f"{line}."] * times
    item = OccurrencesItem(name="motto", phrase=line, least=times, most=times)
    return Constraint(f'The line "{line}" comes back exactly {times} times.', (item,))


def spoken(_work: InProgress) -> Constraint:
    """Requires plain text that can be read aloud, without Markdown."""
    said = (
        "It will be read aloud by somebody who reads out everything on the page, so nothing may stand there that is "
        "only for the eye: no headings, lists or other marks of Markdown."
    )
    return Constraint(said, (FormatItem(name="for the ear", format="plain"),), implicit=True)


def thanked(work: InProgress) -> Constraint:
    """Requires a person to be thanked by name, and adds such a sentence to `work.text`."""
    name = work.rng.choice(PEOPLE)
    work.text.planted.append(f"Without {name} nothing of this would have begun.")
    said = f"All of it was the idea of {name}, who will read it first and hopes to be thanked by name."
    return Constraint(said, (OccurrencesItem(name="thanks", phrase=name, least=1),), implicit=True)


def asks_last(work: InProgress) -> Constraint:
    """Requires a question as the last sentence, and closes `work.text` with one."""
    work.text.closing = work.rng.choice(QUESTIONS)
    item = PatternItem(name="last sentence", pattern=r"\?\W*\Z")
    return Constraint("People should go home with a question: the last sentence is one.", (item,))


def addressed(work: InProgress) -> Constraint:
    """Requires a letter's greeting and signature, for two drawn names, and adds both to `work.text`."""
    to, sender = work.rng.sample(PEOPLE, 2)
    work.text.opening, work.text.closing = f"Dear {to},", f"With kind regards,\n{sender}"
    said = (
        f'It is a letter to {to}: its first line is "Dear {to}," and it ends with the line "With kind regards," and, '
        f"below it, the name {sender}."
    )
    items = (
        PatternItem(name="greeting", pattern=rf"\ADear {to},\s*\n"),
        PatternItem(name="signature", pattern=rf"\nWith kind regards,\s*\n\s*{sender}\s*\Z"),
    )
    return Constraint(said, items)


def chosen(first: Sequence[Maker], others: Sequence[Maker], count: int, rng: Random) -> list[Maker]:
    """Returns `count` constraint makers for one instruction: all of `first`, and a random sample of the others."""
    return [*first, *rng.sample(list(others), max(0, count - len(first)))]
