"""Answers questions about a mailbox by its two tools alone, which measures whether the world makes them answerable.

It finds all messages that name a subject, reads them whole, and takes from their lines what was decided on which day.
It knows the wording of the messages, but none of their facts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date, timedelta
from functools import cache
from typing import Any

from curriculum.environments.mail import phrases
from curriculum.environments.mail.decisions import Act, decided, held
from curriculum.environments.mail.phrases import MATTERS, Matter

Call = Callable[[str, Mapping[str, Any]], str]
"""Call of a tool, and its text."""
_KINDS = {"project": r"(?:New )?[A-Z]\w+", "company": r"[A-Z]\w+(?: North)?", "person": r"[A-Z]\w+ [A-Z]\w+"}
_VALUE = r"[\w-]+(?: [A-Z]\w+)?"
_DAY = r"\d{4}-\d\d-\d\d"


class MailOracle:
    """Answers the questions of one mailbox."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._read: dict[int, tuple[str, str]] = {}

    def answer(self, question: str) -> str:
        """Returns the answer to a task's text; `unknown` if none is found."""
        asked = question.splitlines()[1]
        found = re.search(rf" at the end of ({_DAY})", asked)
        until = found[1] if found else "9"
        if several := re.match(r"How many of the projects (.*) and (\w+) have a budget", asked):
            budgets = [
                held(self._acts("budget", name), until) for name in [*several[1].split(", "), several[2]]
            ]  # fmt: skip
            return f"{sum(map(bool, budgets))}/{sum(int(one or 0) for one in budgets)}"
        phrase = re.match(rf"What is (.*?) (?:now|at the end of {_DAY})\b", asked)
        assert phrase is not None
        matter, subject = self._outermost(phrase[1], until)
        acts = self._acts(matter, subject)
        value = held(acts, until)
        if not decided(acts, until) and "absent" in question:
            return f"absent {max(day for day, _ in self._messages(subject))}"
        return f"{len(decided(acts, until))}/{value}" if "how many different values" in asked else value or "unknown"

    def _outermost(self, phrase: str, until: str) -> tuple[str, str]:
        """Returns the last matter that a phrase of a question names, and its subject."""
        for name, row in MATTERS.items():
            before, _, behind = row.phrase.partition("{s}")
            inner = phrase[len(before) : len(phrase) - len(behind)]
            if phrase.startswith(before) and phrase.endswith(behind):
                plain = re.fullmatch(r"the (?:project|company) (\w+)|([A-Z]\w+ [A-Z]\w+)", inner)
                if plain is not None:
                    return name, plain[1] or plain[2]
                matter, subject = self._outermost(inner, until)
                return name, held(self._acts(matter, subject), until)
        raise LookupError(phrase)

    def _acts(self, matter: str, subject: str) -> list[Act]:
        """Returns what messages say of a matter of a subject, in their own lines."""
        every = (one for day, text in (self._messages(subject) if subject else ()) for one in dated_lines(text, day))
        acts = (act_in(line, MATTERS[matter], subject, day) for day, line in every)
        return list({act for act in acts if act is not None})

    def _messages(self, words: str) -> list[tuple[str, str]]:
        """Returns all messages with these words, oldest first, with their days."""
        numbers = self._found(words, phrases.FIRST_DAY, phrases.FIRST_DAY + timedelta(days=phrases.DAYS))
        return [self._message(number) for number in sorted(numbers)]

    def _found(self, words: str, after: date, before: date) -> set[int]:
        days = {"after": after.isoformat(), "before": before.isoformat()}
        shown = self._call("search_inbox", {"keywords": words, "limit": 20, **days})
        found = {int(number) for number in re.findall(r"^(\d+)\. ", shown, re.MULTILINE)}
        if "more messages match" not in shown or after == before:
            return found
        middle = after + (before - after) // 2
        return self._found(words, after, middle) | self._found(words, middle + timedelta(days=1), before)

    def _message(self, number: int) -> tuple[str, str]:
        if number not in self._read:
            parts: list[str] = []
            count, day = 1, ""
            while len(parts) < count:
                shown = self._call("read_email", {"number": number, "part": len(parts) + 1})
                head, _, text = shown.partition("\n\n")
                found = re.search(r"part \d+ of (\d+)", head)
                if found is None:
                    raise LookupError(f"message {number} is not shown")
                count, day = int(found[1]), re.findall(rf"^date: ({_DAY})$", head, re.MULTILINE)[0]
                parts.append(text)
            self._read[number] = (day, "\n".join(parts))
        return self._read[number]


def dated_lines(text: str, day: str) -> Iterator[tuple[str, str]]:
    """Yields each line of a message of that day with the day on which it was written: quoted and forwarded lines have
    their own."""
    days = {0: day}
    for line in text.splitlines():
        plain = re.sub(r"^(?:> ?)+", "", line)
        depth = line[: len(line) - len(plain)].count(">")
        if quoted := re.fullmatch(rf"On ({_DAY}) .* wrote:", plain):
            days[depth + 1] = quoted[1]
        elif forwarded := re.fullmatch(rf"---- forwarded message of ({_DAY}), .*", plain):
            days[depth] = forwarded[1]
        yield days[depth], plain


def act_in(line: str, matter: Matter, subject: str, day: str) -> Act | None:
    """Reads the act of a matter of a subject that one line of a message states; None for any other line."""
    for kind, pattern in _patterns(matter):
        found = pattern.fullmatch(line)
        if found is not None and found["s"] == subject:
            more = found.groupdict()
            return Act(day, kind, more.get("v") or "", more.get("day") or "")  # type: ignore[arg-type]
    return None


@cache
def _patterns(matter: Matter) -> list[tuple[str, re.Pattern[str]]]:
    rows = [
        ("set", f"(?:(?:{'|'.join(map(re.escape, filter(None, phrases.CHANGES)))}) )?", says) for says in matter.says
    ]
    rows += [("cancel", "", one) for one in phrases.CANCELS]
    rows += [("restore", "", one) for one in phrases.RESTORES]
    rows += [("retract", "", one) for one in phrases.RETRACTS]
    made = []
    for kind, before, template in rows:
        text = re.escape(template).replace(r"\{", "{").replace(r"\}", "}").replace("{title}", re.escape(matter.title))
        text = text.replace("{s}", f"(?P<s>{_KINDS[matter.of]})").replace("{v}", f"(?P<v>{_VALUE})")
        made.append((kind, re.compile(before + text.replace("{day}", f"(?P<day>{_DAY})"))))
    return made
