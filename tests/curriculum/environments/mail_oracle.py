"""Works on the questions about a mailbox with its two tools alone: by search, by the messages' own sentences."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from curriculum.environments.mail import phrases
from curriculum.environments.mail.phrases import MATTERS

Call = Callable[[str, dict[str, object]], str]
"""A call of a tool, and its text."""


class Found(NamedTuple):
    day: str
    text: str


class Oracle:
    def __init__(self, call: Call) -> None:
        self._call = call

    def answer(self, question: str) -> str:
        """The answer to a task's text; `unknown` where it finds none."""
        return self._answer(question) or "unknown"

    def _answer(self, question: str) -> str:
        asked = question.splitlines()[1]
        if found := re.match(r"How many invoices of (\w+) came in ([\d-]+),", asked):
            return self.invoices(*found.groups())
        if asked.startswith("Under which extension"):
            return self.extension(asked)
        for matter in MATTERS.values():
            if found := re.fullmatch(_pattern(matter.asked), asked):
                return self.said(found["project"], matter.says, "absent" in question)
        return ""

    def said(self, project: str, says: Sequence[str], may_be_absent: bool) -> str:
        messages = self.messages(project)
        told = self.told(messages, says, project=project)
        if told:
            return told[-1]["value"]
        return f"absent {max(message.day for message in messages)}" if may_be_absent else ""

    def invoices(self, company: str, month: str) -> str:
        messages = self.messages(company, after=f"{month}-01", before=f"{month}-31")
        told = self.told(messages, phrases.INVOICES, company=company)
        return f"{len(told)}/{sum(int(one['value']) for one in told)}"

    def extension(self, asked: str) -> str:
        if found := re.search(r"lead of the project that (\w+) supplies", asked):
            return self.reached(self.lead(self.one(phrases.SUPPLIES, "project", company=found[1])))
        if found := re.search(r"lead of the project (\w+) be", asked):
            return self.reached(self.lead(found[1]))
        if found := re.search(r"contact at (\w+) be", asked):
            company = found[1]
        elif found := re.search(r"supplier of the project (\w+) be", asked):
            company = self.one(phrases.SUPPLIES, "company", project=found[1])
        else:
            found = re.search(r"project that (\w+ \w+) leads", asked)
            assert found
            project = self.one(phrases.LEADS, "project", person=found[1])
            company = self.one(phrases.SUPPLIES, "company", project=project)
        return self.reached(self.one(phrases.CONTACTS, "person", company=company))

    def lead(self, project: str) -> str:
        return self.one(phrases.LEADS, "person", project=project)

    def reached(self, person: str) -> str:
        return self.one(phrases.EXTENSIONS, "value", person=person)

    def one(self, says: Sequence[str], wanted: str, **known: str) -> str:
        """What was said last."""
        told = self.told(self.messages(*known.values()), says, **known)
        return told[-1][wanted] if told else ""

    def messages(self, *words: str, **dates: str) -> list[Found]:
        """All messages with these words, as far as a search shows them, oldest first."""
        if not any(words):
            return []
        shown = self._call("search_inbox", {"keywords": " ".join(words), "limit": 20, **dates})
        numbers = [int(number) for number in re.findall(r"^(\d+)\. ", shown, re.MULTILINE)]
        texts = [self._call("read_email", {"number": number}) for number in numbers]
        return sorted(Found(re.findall(r"^date: (.*)$", text, re.MULTILINE)[0], text) for text in texts)

    def told(self, messages: Sequence[Found], says: Sequence[str], **known: str) -> list[dict[str, str]]:
        """What messages say in one of these sentences; rumours, reminders and what is forwarded are left out."""
        told = []
        for message in messages:
            body = message.text.split("\n\n", 1)[1].split("---- forwarded")[0]
            if any(rumour in body for rumour in phrases.RUMOURS) or "Reminder" in message.text:
                continue
            found = (one for sentence in says for one in re.finditer(_pattern(sentence), body))
            told += [one.groupdict() for one in found if known.items() <= one.groupdict().items()]
        return told


def _pattern(sentence: str) -> str:
    kinds = {"project": r"\w+", "company": r"\w+", "person": r"\w+ \w+", "value": r"[\w-]+", "number": r"\d+"}
    escaped = re.escape(sentence)
    for name, kind in kinds.items():
        escaped = escaped.replace(re.escape(f"{{{name}}}"), f"(?P<{name}>{kind})")
    return escaped
