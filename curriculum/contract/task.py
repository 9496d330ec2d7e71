"""The task: what is asked, with what it may be worked on, what its answer is checked against, and where it came from.

A task is a pure function of (taskset, level, seed). Its id is the hash of its content, so the same question is the same
task wherever it turns up, and a question of the sealed set can be recognised in training data. Tasks that were recorded
when a task was a family's prompt are read as what they are now.
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
    """Who may see a task. Seeds of different splits never meet."""

    TRAIN = "train"
    VALIDATION = "validation"
    SEALED = "sealed"
    JOB = "job"


class TaskMessage(FrozenModel):
    """One message that the policy model meets before its first turn."""

    role: Literal["system", "user"] = "user"
    text: str


class Task(FrozenModel):
    taskset: str
    """Its name in `curriculum.registry`; `job` for a job's task."""
    level: int = Field(ge=0)
    seed: int
    split: Split
    messages: tuple[TaskMessage, ...] = Field(min_length=1)
    spec: Spec
    """Never shown to the agent."""
    form: AnswerForm = AnswerForm.BOXED
    """How the final answer is marked."""
    tools: tuple[str, ...] = ("python",)
    """What may be called: `python`, and tools of the environment. Without any, a call ends like one that cannot be
    read."""
    files: dict[str, str] = Field(default_factory=dict)
    """Texts that lie in the working folder at first, by name."""
    environment: str = "python"
    """What a call changes: the names and files of a Python session, and beside it the world of an environment, by its
    name in `curriculum.environments`."""
    world: dict[str, Any] = Field(default_factory=dict)
    """What that world is made from (`Environment.files`), as plain JSON. Never shown to the agent."""
    turns: int | None = Field(default=None, ge=0)
    """Tool calls at most; None, or more than the agent's budget: as many as that."""
    tokens: int | None = Field(default=None, ge=1)
    """Of the whole conversation at most; None, or more than the agent's budget: as many as that."""
    key: str = ""
    """What it asks, whatever the words: equal keys are the same question. Empty for a task that no taskset made."""
    provenance: str = ""
    """`taskset@version` for generated tasks, `job:<id>` for submitted ones."""

    @model_validator(mode="before")
    @classmethod
    def _from_before(cls, data: Any) -> Any:
        """Reads what earlier versions recorded: `family` and `prompt`, and the id beside the fields."""
        if not isinstance(data, dict):
            return data
        known = {name: value for name, value in data.items() if name not in ("id", "family", "prompt")}
        if "family" in data:
            known.setdefault("taskset", data["family"])
        if "prompt" in data:
            known.setdefault("messages", ({"role": "user", "text": data["prompt"]},))
        return known

    @property
    def question(self) -> str:
        """All that is asked, as text."""
        return "\n".join(message.text for message in self.messages)

    @cached_property
    def id(self) -> str:
        """First 20 hex digits of the SHA-256 of what is asked, with what it is worked on, and how it is checked."""
        fields = {"messages", "form", "tools", "files", "environment", "spec"} | ({"world"} if self.world else set())
        asked = self.model_dump(mode="json", include=fields)
        content = json.dumps(asked, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(content.encode()).hexdigest()[:20]

    def record(self) -> dict[str, Any]:
        """Gives its fields in JSON, and the id, for the ledger."""
        return {**self.model_dump(mode="json"), "id": self.id}


def asked(text: str) -> tuple[TaskMessage, ...]:
    """The messages of a task that is one question."""
    return (TaskMessage(text=text),)
