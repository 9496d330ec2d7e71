"""Extracts the final answer from a last turn, by the requested form.

Pure: text in, at most one answer out. The text is the policy model's and hostile; its meaning is not interpreted.
Invariants: an answer exists only if there is exactly one; nothing is joined, chosen or repaired.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from verifiers.contract.kinds import AnswerForm

BOX = "\\boxed{"
_OPENING = re.compile(r"( {0,3})(`{3,}(?=[^`]*\Z)|~{3,})")
_CLOSING = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*\Z")


@dataclass(frozen=True)
class Final:
    answer: str | None
    """Text of the answer, if there is exactly one."""
    answers: int


NO_ANSWER = Final(None, 0)


def written(answer: str, form: AnswerForm) -> str:
    """Writes an answer as the text of a last turn, in the task's answer form; the inverse of `final_answer`."""
    if form is AnswerForm.BLOCK:
        return f"```\n{answer}\n```"
    return answer if form in (AnswerForm.WHOLE, AnswerForm.WORLD) else f"{BOX}{answer}}}"


def final_answer(text: str, form: AnswerForm) -> Final:
    """Extracts the answer from a last turn's text, and the number of answers; no answer if the world submits it."""
    if form is AnswerForm.WORLD:
        return NO_ANSWER
    if form is AnswerForm.WHOLE:
        found = [text.strip()] if text.strip() else []
    elif form is AnswerForm.BLOCK:
        found = _only(blocks(text))
    else:
        found = boxed(text)
    return Final(found[0] if len(found) == 1 else None, len(found))


def boxed(text: str) -> list[str]:
    r"""Returns the contents of every `\boxed{...}` with balanced braces. A box that never closes counts with its
    content.

      >>> boxed(r"so \boxed{\frac{1}{2}}")
      ['\\frac{1}{2}']
    """
    found: list[str] = []
    start = text.find(BOX)
    while start >= 0:
        depth, at = 1, start + len(BOX)
        while at < len(text) and depth:
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            at += 1
        found.append(text[start + len(BOX) : at - 1 if depth == 0 else at])
        start = text.find(BOX, at)
    return found


@dataclass(frozen=True)
class FencedBlock:
    content: str
    """Lines with their ends, without the fence's indentation."""
    closed: bool


def blocks(text: str) -> list[FencedBlock]:
    """Returns fenced code blocks as in CommonMark (0.31, section 4.5): a fence is closed by one of its own kind that is
    at least as long, so a block can contain shorter fences. Only a line feed ends a line."""
    found: list[FencedBlock] = []
    lines: list[str] = []
    indent, fence = "", ""
    for line in text.split("\n"):
        bare = line.removesuffix("\r")
        if not fence:
            opening = _OPENING.match(bare)
            if opening:
                (indent, fence), lines = opening.groups(), []
        elif (closing := _CLOSING.match(bare)) and closing[1][0] == fence[0] and len(closing[1]) >= len(fence):
            found.append(FencedBlock("".join(lines), closed=True))
            fence = ""
        else:
            less = min(len(indent), len(line) - len(line.lstrip(" ")))
            lines.append(f"{line[less:]}\n")
    if fence:
        found.append(FencedBlock("".join(lines), closed=False))
    return found


def _only(found: list[FencedBlock]) -> list[str]:
    """Returns the contents of fenced code blocks as answers. A single block that is unclosed or empty is not an answer,
    but counts beside another."""
    if len(found) == 1 and not (found[0].closed and found[0].content.strip()):
        return []
    return [block.content for block in found]
