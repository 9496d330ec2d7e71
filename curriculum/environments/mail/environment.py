"""The environment `mail`: two tools that search and read a mailbox, which no call changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from curriculum.contract.environment import ToolSchema
from curriculum.environments.mail.mailbox import file_of

_DAY = {"type": "string", "description": "A date such as 2025-03-14, itself included."}
SEARCH = ToolSchema(
    name="search_inbox",
    description="Finds messages that have all of these words: number, date, people, subject and an extract of each.",
    parameters={
        "type": "object",
        "properties": {
            "keywords": {"type": "string", "description": "Words of the subject or the text."},
            "sender": {"type": "string", "description": "Words of the sender's name."},
            "recipient": {"type": "string", "description": "Words of the recipient's name."},
            "after": _DAY,
            "before": _DAY,
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": 20,
                "description": "Messages at most; 10 by default.",
            },
        },
    },
)
READ = ToolSchema(
    name="read_email",
    description="Shows one whole message.",
    parameters={
        "type": "object",
        "properties": {"number": {"type": "integer", "minimum": 1, "description": "As search_inbox says it."}},
        "required": ["number"],
    },
)


@dataclass(frozen=True)
class MailEnvironment:
    name: str = "mail"
    version: int = 1
    tools: tuple[ToolSchema, ...] = (SEARCH, READ)
    shareable: bool = True

    @cached_property
    def program(self) -> str:
        return Path(__file__).with_name("world.py").read_text()

    def files(self, setup: Mapping[str, Any]) -> Mapping[str, bytes]:
        """Returns the mailbox as the world's one file. Pure; raises CurriculumError for an invalid setup."""
        return {"mails.jsonl": file_of(setup)}

    def missing(self) -> str:
        return ""


MAIL = MailEnvironment()
