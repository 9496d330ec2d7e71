"""A check in plain words, for the person who has to say whether it is what was meant. Pure, and always the same.

What always holds: every field of a spec that decides whether something passes is said, so that a wrong domain,
tolerance, quantifier or limit can be seen; what is too long to be shown says how much of it is not, and by which digest
the rest is known. Texts are shown as they are: whoever prints a line escapes it.
"""

from __future__ import annotations

import hashlib

from verifiers.registry import kind_of
from verifiers.registry.spec import Spec

MOST_LINES = 300
MOST_CHARACTERS = 400
"""Of a line."""
MOST_TEXT = 60_000
"""Bytes of all lines, with what is not ASCII escaped."""


def in_words(spec: Spec) -> tuple[str, ...]:
    """Lines; those that begin with blanks are the spec's own text, or belong to the line before."""
    return bounded(list(kind_of(spec).explain.load()(spec)))


def question_lines(question: str) -> tuple[str, ...]:
    """The question as it is shown."""
    return bounded(question.splitlines())


def bounded(lines: list[str]) -> tuple[str, ...]:
    """So much of them as a person reads, and how much is left out."""
    shown: list[str] = []
    total = 0
    for line in lines:
        short = line if len(line) <= MOST_CHARACTERS else f"{line[: MOST_CHARACTERS - 30]}… ({len(line)} characters)"
        total += len(short.encode("ascii", "backslashreplace"))
        if len(shown) == MOST_LINES or total > MOST_TEXT:
            break
        shown.append(short)
    if shown != lines:
        digest = hashlib.sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()
        shown.append(
            f"(not shown: {len(lines) - len(shown)} of {len(lines)} lines, and the ends of long ones; all of it has "
            f"the SHA-256 {digest}, and `assay jobs show JOB --json` prints it)"
        )
    return tuple(shown)
