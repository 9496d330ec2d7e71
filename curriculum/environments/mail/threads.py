"""Writes messages in threads: new text above quotations of the message that is answered, and forwarded messages.

Invariants: what a message says itself stands in lines of its own above the first quotation; quoted lines begin with
`>`, and what stands below a mark of forwarding was written on the day that the mark names. A message that the mailbox
lacks is quoted in an answer that it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from curriculum.environments.mail import phrases
from curriculum.environments.mail.decisions import Act
from curriculum.environments.mail.phrases import Matter

DEPTH = 2
"""Levels of quotations that a message keeps."""


class Letter(NamedTuple):
    """Message of a thread as written, before quotations are added."""

    day: str
    sender: str
    recipient: str
    subject: str
    own: str
    """Greeting, text and sender."""


def act_line(act: Act, matter: Matter, subject: str, rng: Random) -> str:
    """Writes an act in one line."""
    if act.kind in ("set", "talk"):
        before = rng.choice(phrases.CHANGES if act.kind == "set" else phrases.PROPOSALS)
        return f"{before} {rng.choice(matter.says).format(s=subject, v=act.value)}".strip()
    ways = {"cancel": phrases.CANCELS, "restore": phrases.RESTORES, "retract": phrases.RETRACTS}[act.kind]
    return rng.choice(ways).format(s=subject, title=matter.title, day=act.back)


def paragraphs(lines: Sequence[str], rng: Random) -> str:
    """Joins lines to a text with paragraphs of two to four lines."""
    text, at = [], 0
    while at < len(lines):
        size = rng.randint(2, 4)
        text.append("\n".join(lines[at : at + size]))
        at += size
    return "\n\n".join(text)


def thread(letters: Sequence[Letter], rng: Random, lost: float) -> list[tuple[Letter, str]]:
    """Returns the messages of a thread that a mailbox has, with their bodies: most answer the one before, some an
    earlier one, and a few forward one. A share of about `lost` is only quoted in an answer."""
    parents: list[int | None] = []
    found = []
    for at, letter in enumerate(letters):
        parent = None if at == 0 else at - 1 if rng.random() < 0.75 else rng.randrange(at)
        parents.append(parent)
        body = letter.own
        if parent is not None:
            body += "\n\n" + _quoted(letters, parents, parent, DEPTH)
        if at > 2 and rng.random() < 0.15:
            old = letters[rng.randrange(at - 1)]
            body += f"\n\n{phrases.FORWARD.format(day=old.day, sender=old.sender)}\n{old.own}"
        found.append((letter, body))
    quoting: set[int] = set()
    missing: set[int] = set()
    for at in range(len(letters)):
        answers = [answer for answer, parent in enumerate(parents) if parent == at]
        if answers and at not in quoting and rng.random() < lost:
            missing.add(at)
            quoting.add(answers[0])
    return [one for at, one in enumerate(found) if at not in missing]


def _quoted(letters: Sequence[Letter], parents: Sequence[int | None], at: int, depth: int) -> str:
    letter, parent = letters[at], parents[at]
    text = letter.own
    if parent is not None and depth > 1:
        text += "\n\n" + _quoted(letters, parents, parent, depth - 1)
    lines = [f"> {line}".rstrip() for line in text.split("\n")]
    return "\n".join([phrases.QUOTE.format(day=letter.day, sender=letter.sender), *lines])
