"""Table-driven tasksets: for each topic, a function that makes one item of a level.

    TASKSET = TopicTaskset(name="geometry", version=1, makers={"areas": _areas, ...}, null_answers=("0", "1"))

Invariants: a topic is drawn uniformly, and everything else from the same generator; keys begin with the names of
taskset and topic, so that no two tasksets share one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from curriculum.contract.task import asked
from curriculum.contract.taskset import TaskDraft, require_level
from verifiers.answers.spec import AnswerSpec
from verifiers.contract.kinds import AnswerForm
from verifiers.registry.spec import Spec

LEVELS = 5
IMPOSSIBLE = 10**19
"""Lower bound of numbers with more digits than any answer."""


@dataclass(frozen=True, kw_only=True)
class Item:
    """Question of one topic at one level. Fields of the same names are `TaskDraft`'s."""

    text: str
    key: str
    """Identity of the question within its topic, independent of wording."""
    spec: Spec
    answer: str
    """Reference answer, which passes."""
    files: Mapping[str, str] = field(default_factory=dict)
    world: Mapping[str, Any] = field(default_factory=dict)
    turns: int | None = None
    """Limit of this item's tool calls; the taskset's if None."""


def answered(text: str, key: str, answer: str, spec: AnswerSpec | None = None) -> Item:
    """Makes an item whose answer is a number or an expression, checked by `spec`, by default in any equal form."""
    return Item(text=text, key=key, spec=spec or AnswerSpec(expected=answer, form="equal"), answer=answer)


def never_met(draft: TaskDraft, number: int) -> Spec:
    """Returns a spec that no honest answer passes: a number of twenty digits, unrelated to the question."""
    return AnswerSpec(notation="digits", expected=str(IMPOSSIBLE + number))


@dataclass(frozen=True, kw_only=True)
class TopicTaskset:
    name: str
    version: int
    makers: Mapping[str, Callable[[int, Random], Item]]
    """Item makers by topic, in listing order."""
    null_answers: Sequence[str]
    level_count: int = LEVELS
    form: AnswerForm = AnswerForm.BOXED
    tools: tuple[str, ...] = ("python",)
    environment: str = "python"
    turns: int | None = None
    tokens: int | None = None
    contradicted: Callable[[TaskDraft, int], Spec] = never_met
    """Makes a spec of the same kind that no honest answer passes."""
    lacking: Callable[[], str] = str
    """Returns the reason why answers cannot be checked on this machine; empty if they can."""

    @property
    def topics(self) -> Sequence[str]:
        return tuple(self.makers)

    def topic_of(self, rng: Random) -> str:
        return rng.choice(self.topics)

    def draft(self, level: int, rng: Random) -> TaskDraft:
        """Makes one item of that level, its topic drawn uniformly. Raises LevelError for an unknown level."""
        require_level(self, level)
        topic = self.topic_of(rng)
        item = self.makers[topic](level, rng)
        return TaskDraft(
            topic=topic,
            key=f"{self.name} {topic}:{item.key}",
            messages=asked(item.text),
            spec=item.spec,
            answer=item.answer,
            form=self.form,
            tools=self.tools,
            files=item.files,
            environment=self.environment,
            world=item.world,
            turns=item.turns or self.turns,
            tokens=self.tokens,
        )

    def unsolvable(self, draft: TaskDraft, number: int) -> Spec:
        return self.contradicted(draft, number)

    def missing(self) -> str:
        return self.lacking()
