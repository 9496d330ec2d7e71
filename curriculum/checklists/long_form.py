"""Long texts after an instruction with explicit and implicit constraints, of about a given length.

Invariants: the reference satisfies the checklist, and the checklist is sound by `verifiers.checklists.assess`: no idle
text passes, and no item follows from another.
"""

from __future__ import annotations

from functools import partial
from random import Random

from curriculum.checklists.constraints import TERMS, TITLES
from curriculum.checklists.instructions import GENRES, instruction
from curriculum.contract.taskset import TaskDraft
from curriculum.contract.topics import IMPOSSIBLE, Item, TopicTaskset
from curriculum.tasksets.statements import digest
from verifiers.checklists.spec import ChecklistSpec, OccurrencesItem
from verifiers.contract.kinds import AnswerForm
from verifiers.registry.spec import Spec


def _item(genre: str, level: int, rng: Random) -> Item:
    made = instruction(genre, level, rng)
    return Item(text=made.text, key=digest(made.key), spec=made.spec, answer=made.answer)


def _never(draft: TaskDraft, number: int) -> Spec:
    """Returns the draft's checklist plus a required phrase unrelated to the question, so no honest answer passes."""
    assert isinstance(draft.spec, ChecklistSpec)
    more = OccurrencesItem(name="number", phrase=str(IMPOSSIBLE + number), least=1)
    return draft.spec.model_copy(update={"items": (*draft.spec.items, more)})


LONG_FORM = TopicTaskset(
    name="long_form",
    version=1,
    makers={genre: partial(_item, genre) for genre in GENRES},
    null_answers=(
        "I do not know.",
        "Here is the text. It meets all constraints, has the length that was asked for and uses every word.",
        ", ".join(TERMS),
        "\n\n".join(f"## {title}\n\nText." for title in TITLES),
    ),
    form=AnswerForm.WHOLE,
    tools=(),
    contradicted=_never,
)
