"""The environment `mail`: two tools that search and read a mailbox, which no call changes.

Invariants: the same setup gives the same mailbox, byte for byte: a task's messages among thousands that are irrelevant.
Only the task's own messages use the reserved names, so they alone decide the answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from curriculum.contract.environment import ToolSchema
from curriculum.contract.errors import CurriculumError
from curriculum.environments.mail import phrases
from curriculum.environments.mail.phrases import COMPANIES, FIRST, LAST, PROJECTS

MOST = 20_000
"""Messages per mailbox."""


class Mail(NamedTuple):
    day: str
    """ISO date."""
    sender: str
    """First name and surname."""
    recipient: str
    subject: str
    body: str


def address(name: str) -> str:
    """Returns the e-mail address of an employee of the mailbox's company.

    >>> address("Ada Berg") 'ada.berg@orbisol.example'
    """
    return f"{name.lower().replace(' ', '.')}@orbisol.example"


def day_number(number: int) -> str:
    return (phrases.FIRST_DAY + timedelta(days=number)).isoformat()


def setup_of(seed: int, messages: int, reserved: Iterable[str], mails: Iterable[Mail]) -> dict[str, Any]:
    """Returns the setup of a mailbox world: seed, number of other messages, reserved names and own messages."""
    return {"seed": seed, "messages": messages, "reserved": sorted(reserved), "mails": [list(mail) for mail in mails]}


def mails_of(setup: Mapping[str, Any]) -> list[Mail]:
    """Returns all messages of a mailbox, by day. Raises CurriculumError for an invalid setup."""
    try:
        own = [Mail(*map(str, mail)) for mail in setup["mails"]]
        count, rng = int(setup["messages"]), Random(f"mail {int(setup['seed'])}")
        reserved = frozenset(map(str, setup["reserved"]))
        days = [date.fromisoformat(mail.day) for mail in own]
    except (KeyError, TypeError, ValueError) as error:
        raise CurriculumError(
            f"invalid setup of a mailbox: {error}",
            hint="give `seed`, `messages`, `reserved` and `mails`, as curriculum.environments.mail makes them",
        ) from error
    if not 0 <= count <= MOST:
        raise CurriculumError(f"a mailbox has at most {MOST} other messages, not {count}")
    assert len(days) == len(own)
    return sorted([*own, *_others(rng, count, reserved)])


def file_of(setup: Mapping[str, Any]) -> bytes:
    """Returns the mailbox of a setup as JSON lines."""
    return "".join(f"{json.dumps(list(mail), ensure_ascii=False)}\n" for mail in mails_of(setup)).encode()


def _others(rng: Random, count: int, reserved: frozenset[str]) -> Iterable[Mail]:
    """Yields `count` distracting messages, about projects, companies and people that are not reserved."""
    people = [name for first in FIRST for last in LAST if (name := f"{first} {last}") not in reserved]
    people = rng.sample(people, 120)
    projects = [one for one in PROJECTS if one not in reserved]
    companies = [one for one in COMPANIES if one not in reserved]
    for _ in range(count):
        sender, recipient, other = rng.choice(people), rng.choice(people), rng.choice(people)
        project, company, kind = rng.choice(projects), rng.choice(companies), rng.randrange(8)
        name, matter = rng.choice(list(phrases.MATTERS.items()))
        subject = {"project": project, "company": company, "person": other}[matter.of]
        named = {"supplier": company, "successor": rng.choice(projects), "contact": rng.choice(people)}
        value = named.get(name) or matter.value(rng)
        if kind < 5:
            title, text = f"{subject}: {matter.title}", rng.choice(matter.says).format(s=subject, v=value)
        else:
            about = (project, company, other)[kind - 5]
            title, text = f"About {about}", rng.choice(phrases.CHATTER).format(s=about)
        yield Mail(day_number(rng.randrange(phrases.DAYS)), sender, recipient, title, phrases.around(text, sender, rng))


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
    description="Shows one part of a message.",
    parameters={
        "type": "object",
        "properties": {
            "number": {"type": "integer", "minimum": 1, "description": "As search_inbox says it."},
            "part": {"type": "integer", "minimum": 1, "maximum": 1000, "description": "1 unless given."},
        },
        "required": ["number"],
    },
)


@dataclass(frozen=True)
class MailEnvironment:
    name: str = "mail"
    version: int = 3
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
