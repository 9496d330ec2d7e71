"""Describes a check in plain words for the person who validates it. Pure and deterministic.

Invariants: every field of a spec that affects the verdict is stated, so that a wrong domain, tolerance, quantifier or
limit is visible; truncated text states how much is missing and the digest of the whole. Texts are shown as they are:
whoever prints a line escapes it.
"""

from __future__ import annotations

import hashlib

from verifiers.registry import kind_of
from verifiers.registry.spec import Spec

MOST_LINES = 300
MOST_CHARACTERS = 400
"""Maximum length of a line."""
MOST_TEXT = 60_000
"""Maximum bytes of all lines, counted with non-ASCII characters escaped."""


def in_words(spec: Spec) -> tuple[str, ...]:
    """Describes a job's check in plain lines; indented ones quote it or continue the line before."""
    return bounded(list(kind_of(spec).explain.load()(spec)))


def question_lines(question: str) -> tuple[str, ...]:
    """Returns the lines of a job's question, truncated for display."""
    return bounded(question.splitlines())


def bounded(lines: list[str]) -> tuple[str, ...]:
    """Truncates lines to an amount that a person can read, and adds a line that states what was left out."""
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
