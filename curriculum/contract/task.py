"""Tasks: the question, the tools and files to work with, the spec that checks the answer, and the provenance.

A task is a pure function of (taskset, level, seed). Its id is the hash of its content, so a question keeps its id
everywhere, and a sealed question can be recognised in training data. Tasks in older records (`family`, `prompt`) are
read as current ones.
"""

from __future__ import annotations

import hashlib
import json
from enum import StrEnum
from functools import cached_property
from typing import Any, Literal

from pydantic import Field, model_validator

from runtime.model import FrozenModel
from verifiers.contract.kinds import AnswerForm
from verifiers.registry.spec import Spec


class Split(StrEnum):
    """Split of a task: who may see it. Splits share no seeds."""

    TRAIN = "train"
    VALIDATION = "validation"
    SEALED = "sealed"
    JOB = "job"


class TaskMessage(FrozenModel):
    """Message that the policy model gets before its first turn."""

    role: Literal["system", "user"] = "user"
    text: str


class Task(FrozenModel):
    taskset: str
    """Name of the taskset in `curriculum.registry`; `job` for a job's task."""
    level: int = Field(ge=0)
    seed: int
    split: Split
    topic: str = ""
    """Topic of the taskset, by which the difficulty is observed. Not part of the question."""
    messages: tuple[TaskMessage, ...] = Field(min_length=1)
    spec: Spec
    """Check of the answer. Never shown to the agent."""
    form: AnswerForm = AnswerForm.BOXED
    """Marking of the final answer."""
    tools: tuple[str, ...] = ("python",)
    """Callable tools: `python`, and tools of the environment. If empty, a call ends like an unreadable one."""
    files: dict[str, str] = Field(default_factory=dict)
    """Texts in the working folder at the start, by name."""
    environment: str = "python"
    """Name in `curriculum.environments` of the world that calls change; `python` for none."""
    world: dict[str, Any] = Field(default_factory=dict)
    """Setup of that world (`Environment.files`), as plain JSON. Never shown to the agent."""
    turns: int | None = Field(default=None, ge=0)
    """Limit of tool calls; the agent's budget applies if lower or if this is None."""
    tokens: int | None = Field(default=None, ge=1)
    """Limit of tokens in the conversation; the agent's budget applies if lower or if this is None."""
    key: str = ""
    """Identity of the question, independent of wording: equal keys, equal questions. Empty if no taskset made it."""
    provenance: str = ""
    """`taskset@version` for generated tasks, `job:<id>` for submitted ones."""

    @model_validator(mode="before")
    @classmethod
    def _without_id(cls, data: Any) -> Any:
        """Drops the id that `record` adds: it follows from the fields."""
        return {name: data[name] for name in data if name != "id"} if isinstance(data, dict) else data

    @property
    def question(self) -> str:
        """Text of all messages of the task, a line each."""
        return "\n".join(message.text for message in self.messages)

    @cached_property
    def id(self) -> str:
        """First 20 hex digits of the SHA-256 of the task's question, its working conditions and its check."""
        fields = {"messages", "form", "tools", "files", "environment", "spec"} | ({"world"} if self.world else set())
        asked = self.model_dump(mode="json", include=fields)
        content = json.dumps(asked, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(content.encode()).hexdigest()[:20]

    def record(self) -> dict[str, Any]:
        """Returns the task's fields as JSON, with its id, for the ledger."""
        return {**self.model_dump(mode="json"), "id": self.id}


def asked(text: str) -> tuple[TaskMessage, ...]:
    """Returns the messages of a task that is one question."""
    return (TaskMessage(text=text),)
