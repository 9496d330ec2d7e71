"""One problem of an owner, and what its text determines: key, split and estimated level.

Invariants: a question belongs to one split for ever, in any file, order or name, because the split depends on the
question's words alone. A sealed problem that is added again under another name stays sealed.
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
"""Weight of an answer's character relative to a question's: long answers take more work."""
_SHARES = (Split.SEALED, Split.VALIDATION, Split.TRAIN, Split.TRAIN, Split.TRAIN)


class OwnRow(FrozenModel):
    """An owner's problem with its check."""

    question: str = Field(min_length=1, max_length=QUESTION_CHARS)
    spec: Spec
    answer: str = ""
    """Submission that passed; empty if none was given."""
    origin: str
    files: Mapping[str, str] = Field(default_factory=dict)
    level: int = Field(default=0, ge=0, lt=LEVELS)
    environment: str = "python"
    """Environment of the problem's world; this and the next three fields are as those of a task."""
    world: Mapping[str, Any] = Field(default_factory=dict)
    tools: tuple[str, ...] = ("python",)
    turns: int | None = None

    @model_serializer(mode="wrap")
    def _without_what_nobody_set(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Serializes a row, without world fields if it has no world. So older rows keep their content and digests."""
        found: dict[str, Any] = dump(self)
        if self.environment == "python":
            for name in ("environment", "world", "tools", "turns"):
                found.pop(name, None)
        return found

    @property
    def key(self) -> str:
        """Identity of the question for all of the owner's tasksets, ignoring blanks and case."""
        return key_of_question(self.question)

    @property
    def texts(self) -> list[str]:
        """Contents of the row's files, and of its world's files."""
        placed = self.world.get("files", ())
        return [*self.files.values(), *(one["text"] for one in placed if isinstance(one, Mapping) and "text" in one)]

    @property
    def split(self) -> Split:
        return split_of_question(self.question)

    @property
    def form(self) -> AnswerForm:
        return kind_of(self.spec).answer_form(self.spec)


def key_of_question(text: str) -> str:
    """Returns a key that identifies a question, ignoring blanks and case."""
    return f"own:{digest_of(' '.join(text.casefold().split())).hex()[:32]}"


def split_of_question(text: str) -> Split:
    """Returns the split of a question: one in five sealed, one in five validation, the others training."""
    return _SHARES[int.from_bytes(digest_of("own split", key_of_question(text))[:8], "big") % len(_SHARES)]


def with_levels(rows: Sequence[OwnRow], known: Callable[[OwnRow], float] = lambda row: 0.0) -> tuple[OwnRow, ...]:
    """Returns the rows with estimated levels: five parts of equal size, by `known` difficulty, kind of check, then
    length. Keeps their order."""
    order = sorted(
        range(len(rows)),
        key=lambda at: (known(rows[at]), kind_of(rows[at].spec).seconds, _effort(rows[at]), rows[at].key),
    )
    level = {at: place * LEVELS // len(rows) for place, at in enumerate(order)}
    return tuple(row.model_copy(update={"level": level[at]}) for at, row in enumerate(rows))


def _effort(row: OwnRow) -> int:
    return len(row.question) + ANSWER_WEIGHT * len(row.answer)
