"""Research over a frozen corpus of linked pages whose facts are known, in the manner of SFR-DeepResearch (2509.06283).

The setup names the edition, the pages hidden from a task, and the phrases that give its answer away.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from curriculum.contract.environment import ToolSchema
from curriculum.contract.errors import CurriculumError
from curriculum.environments.research.chains import research_corpus
from curriculum.environments.research.graph import EDITIONS
from curriculum.environments.research.pages import all_pages
from runtime.model import FrozenModel

CORPUS = "corpus.json"
TOOLS = (
    ToolSchema(
        name="search",
        description="Finds pages by words. Gives up to 8 lines: the page's id, its title, and a piece of its text.",
        parameters={
            "type": "object",
            "properties": {"query": {"type": "string", "minLength": 1, "maxLength": 400}},
            "required": ["query"],
            "additionalProperties": False,
        },
    ),
    ToolSchema(
        name="read_page",
        description="Shows one part of a page, and the ids of the pages that it links to.",
        parameters={
            "type": "object",
            "properties": {
                "page": {"type": "string", "maxLength": 20, "description": "Its id, such as p0042."},
                "part": {"type": "integer", "minimum": 1, "maximum": 1000, "description": "1 unless given."},
            },
            "required": ["page"],
            "additionalProperties": False,
        },
    ),
)


class ResearchSetup(FrozenModel):
    edition: int = Field(ge=0, lt=EDITIONS)
    blocked: tuple[str, ...] = Field(default=(), max_length=1_000)
    """Ids of pages that no tool shows or names."""
    phrases: tuple[str, ...] = Field(default=(), max_length=100)
    """Phrases; pages that contain one, ignoring case and punctuation, are blocked too."""


class ResearchEnvironment:
    name = "research"
    version = 2
    tools: Sequence[ToolSchema] = TOOLS
    shareable = True

    @property
    def program(self) -> str:
        return Path(__file__).with_name("world.py").read_text(encoding="utf-8")

    def files(self, setup: Mapping[str, Any]) -> Mapping[str, bytes]:
        """Returns the file with all corpus pages of the setup's edition. Raises CurriculumError for a wrong setup."""
        try:
            asked = ResearchSetup.model_validate(setup)
        except ValidationError as error:
            raise CurriculumError(
                f"invalid setup of a world of research: {error.errors()[0]['msg']}",
                hint=f"give an edition from 0 to {EDITIONS - 1}, and lists of blocked pages and phrases",
            ) from error
        return {CORPUS: _corpus_file(asked.edition)}

    def missing(self) -> str:
        return ""


@lru_cache(maxsize=EDITIONS // 2)  # those of training fit
def _corpus_file(edition: int) -> bytes:
    return json.dumps(all_pages(research_corpus(edition)), separators=(",", ":")).encode()


RESEARCH = ResearchEnvironment()
