"""Instructions composed of a writer, a reader, a genre and constraints, each with its checklist and a passing text.

Invariants: an instruction has about five constraints and a target length. Code decides all of them except voice and
reader, which a judge decides, for at most a fifth of the score. The reward is ACE-RL's (2509.04903): 1, .5 or 0 per
constraint, averaged, and equal weight for the length: 1 within 20 % of the target, falling to 0 over the next 50 %.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from curriculum.checklists import constraints as c
from curriculum.tasksets.prose import SUBJECTS
from verifiers.checklists.spec import ChecklistSpec, CitedSource, HardItem, LengthItem, SoftItem

TARGETS = (120, 200, 320, 480, 640)
"""Target length in words, by level."""
SOFT_SHARE = 0.2
PERSONAS = (
    ("a lock keeper who has seen four mayors come and go", "It sounds like somebody who has watched for a long time."),
    ("a school nurse who has no time for long words", "Its words are short and plain."),
    ("the treasurer of a small club", "It is careful about money and promises nothing."),
    ("a retired stage manager", "It has the timing of somebody who knows a stage."),
    ("an apprentice in the first year", "It is curious, and does not pretend to know everything."),
    ("the editor of the parish paper", "It is friendly and fair to everybody."),
)
READERS = (
    ("people who have just moved here", "Somebody who does not know the place can follow it."),
    ("a council that has ten minutes", "What matters most comes first."),
    ("children of about twelve and their parents", "A child of twelve can follow it."),
    ("neighbours who are against every change", "It takes the worries of its readers seriously."),
    ("volunteers at the end of a long day", "It is kind to tired readers."),
)


@dataclass(frozen=True)
class Genre:
    """Kind of text, with the constraints that suit it."""

    said: str
    always: tuple[c.Maker, ...]
    others: tuple[c.Maker, ...]


GENRES: Mapping[str, Genre] = {
    "radio_talks": Genre(
        "a talk for the radio", (c.spoken,), (c.motto, c.order, c.avoided, c.terms, c.thanked, c.asks_last)
    ),
    "articles": Genre("an article", (c.sections, c.citations), (c.avoided, c.terms, c.thanked, c.impersonal)),
    "handbooks": Genre(
        "a short handbook", (c.sections, c.points), (c.terms, c.avoided, c.order, c.figures, c.impersonal)
    ),
    "petitions": Genre("a petition", (c.addressed,), (c.order, c.figures, c.terms, c.avoided, c.motto)),
    "exhibition_texts": Genre(
        "a text for the wall of an exhibition",
        (c.paragraphs,),
        (c.figures, c.impersonal, c.terms, c.thanked, c.avoided),
    ),
}


@dataclass(frozen=True)
class Instruction:
    """Writing instruction with its checklist and a text that satisfies it."""

    text: str
    spec: ChecklistSpec
    answer: str
    constraints: tuple[c.Constraint, ...]

    @property
    def key(self) -> str:
        """Identity of the writing instruction, independent of wording, voice and reader: its hard items and sources, as
        JSON."""
        asked = [item.model_dump(mode="json") for item in self.spec.hard]
        return json.dumps([asked, [source.model_dump() for source in self.spec.sources]], sort_keys=True)


def instruction(genre: str, level: int, rng: Random) -> Instruction:
    """Composes a writing instruction of a genre and level, with its checklist. Raises KeyError for an unknown genre."""
    kind = GENRES[genre]
    subject = rng.choice(SUBJECTS)
    (persona, voice), (reader, follows) = rng.choice(PERSONAS), rng.choice(READERS)
    target = TARGETS[level] + 10 * rng.randrange(-2, 3)
    work = c.InProgress(level=level, subject=subject, rng=rng)
    found = tuple(make(work) for make in c.chosen(kind.always, kind.others, 3 + (level + 1) // 2, rng))
    said = [one.said for one in found]
    rng.shuffle(said)
    said.sort(key=lambda one: "\n" in one)
    text = "\n".join(
        [
            f"You are {persona}. Write {kind.said} about {subject}, for {reader}.",
            f"It has about {target} words, a fifth more or less at most.",
            *said,
            "Your last turn is the text, and nothing else.",
        ]
    )
    hard = [item for one in found for item in one.items]
    return Instruction(
        text=text,
        spec=listed_spec(text, target, hard, (voice, follows), work.sources),
        answer=work.text.filled(target, subject, rng),
        constraints=found,
    )


def listed_spec(
    question: str, target: int, hard: Sequence[HardItem], points: Sequence[str], sources: Sequence[CitedSource] = ()
) -> ChecklistSpec:
    """Builds the checklist of a writing instruction; its length weighs as much as all other hard items together."""
    length = LengthItem(name="length", target=target, weight=max(1, len(hard)))
    soft = [SoftItem(name=f"judged {number}", point=point) for number, point in enumerate(points, 1)]
    return ChecklistSpec(
        items=(length, *hard, *soft), question=question, sources=tuple(sources), soft_share=SOFT_SHARE, credit="items"
    )
