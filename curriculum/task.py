"""The task: a question, what its answer is checked against, and where it came from.

A task is a pure function of (family, level, seed). Its id is the hash of its content, so the same question is the same
task wherever it turns up, and a question of the sealed set can be recognised in training data.
"""

from __future__ import annotations

import hashlib
import json
from enum import StrEnum
from functools import cached_property

from pydantic import BaseModel, ConfigDict, Field

from verifiers.spec import Spec


class Split(StrEnum):
    """Who may see a task. Seeds of different splits never meet."""

    TRAIN = "train"
    VALIDATION = "validation"
    SEALED = "sealed"
    JOB = "job"


class Task(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    family: str
    level: int = Field(ge=0)
    seed: int
    split: Split
    prompt: str
    spec: Spec
    """Never shown to the agent."""
    provenance: str = ""
    """`family@version` for generated tasks, `job:<id>` for submitted ones."""

    @cached_property
    def id(self) -> str:
        """First 20 hex digits of the SHA-256 of what is asked and how it is checked."""
        content = json.dumps([self.prompt, self.spec.model_dump(mode="json")], sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(content.encode()).hexdigest()[:20]
