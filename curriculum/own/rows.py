"""One problem of an owner's, and what follows from its text: its key, its split, an estimate of its level.

What always holds: a question belongs to one split for ever, whatever file, order or name it comes in, because the split
follows from the question's words alone. So a sealed problem that is added again under another name stays sealed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from curriculum.contract.task import Split
from curriculum.seeds import digest_of
from runtime.model import FrozenModel
from verifiers.contract.kinds import AnswerForm
from verifiers.registry import kind_of
from verifiers.registry.spec import Spec

LEVELS = 5
QUESTION_CHARS = 40_000
ANSWER_WEIGHT = 4
"""A character of the answer counts as so many of the question: what is long to write is long to work out."""
_SHARES = (Split.SEALED, Split.VALIDATION, Split.TRAIN, Split.TRAIN, Split.TRAIN)


class OwnRow(FrozenModel):
    """A problem with its check."""

    question: str = Field(min_length=1, max_length=QUESTION_CHARS)
    spec: Spec
    answer: str = ""
    """A submission that passed; empty where none was given."""
    origin: str
    """File and row that it came from."""
    files: Mapping[str, str] = Field(default_factory=dict)
    level: int = Field(default=0, ge=0, lt=LEVELS)
    environment: str = "python"
    """Whose world the problem is worked on in, and the three next are as those of a task."""
    world: Mapping[str, Any] = Field(default_factory=dict)
    tools: tuple[str, ...] = ("python",)
    turns: int | None = None

    @model_serializer(mode="wrap")
    def _without_what_nobody_set(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Rows from before there were worlds have the same content, and so the same digests, as they had."""
        found: dict[str, Any] = dump(self)
        if self.environment == "python":
            for name in ("environment", "world", "tools", "turns"):
                found.pop(name, None)
        return found

    @property
    def key(self) -> str:
        """What it asks: the same for every owner's taskset, whatever the blanks and capitals."""
        return key_of_question(self.question)

    @property
    def texts(self) -> list[str]:
        """What is in its files, and in those of its world."""
        placed = self.world.get("files", ())
        return [*self.files.values(), *(one["text"] for one in placed if isinstance(one, Mapping) and "text" in one)]

    @property
    def split(self) -> Split:
        return split_of_question(self.question)

    @property
    def form(self) -> AnswerForm:
        return kind_of(self.spec).answer_form(self.spec)


def key_of_question(text: str) -> str:
    """Equal for questions that differ in blanks and capitals alone."""
    return f"own:{digest_of(' '.join(text.casefold().split())).hex()[:32]}"


def split_of_question(text: str) -> Split:
    """One in five is sealed, one in five is for validation, the others are trained on."""
    return _SHARES[int.from_bytes(digest_of("own split", key_of_question(text))[:8], "big") % len(_SHARES)]


def with_levels(rows: Sequence[OwnRow], known: Callable[[OwnRow], float] = lambda row: 0.0) -> tuple[OwnRow, ...]:
    """Estimates levels: five parts of equal size, by what is `known` of how hard a row is, then by kind of check, then
    by length. The order of the rows stays."""
    order = sorted(
        range(len(rows)),
        key=lambda at: (known(rows[at]), kind_of(rows[at].spec).seconds, _effort(rows[at]), rows[at].key),
    )
    level = {at: place * LEVELS // len(rows) for place, at in enumerate(order)}
    return tuple(row.model_copy(update={"level": level[at]}) for at, row in enumerate(rows))


def _effort(row: OwnRow) -> int:
    return len(row.question) + ANSWER_WEIGHT * len(row.answer)
