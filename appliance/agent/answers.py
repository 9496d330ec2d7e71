"""Finds the final answer in a last turn, by the form that is asked for.

Pure: text in, at most one answer out. The text is the policy model's and hostile; nothing here looks at what it means.
What always holds: there is an answer only where there is exactly one; nothing is joined, chosen or repaired.
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
    """The text when there is exactly one."""
    answers: int


NO_ANSWER = Final(None, 0)


def written(answer: str, form: AnswerForm) -> str:
    """A last turn's text that gives this answer and no more; `final_answer` reads it back."""
    if form is AnswerForm.BLOCK:
        return f"```\n{answer}\n```"
    return answer if form in (AnswerForm.WHOLE, AnswerForm.WORLD) else f"{BOX}{answer}}}"


def final_answer(text: str, form: AnswerForm) -> Final:
    """The answer in a last turn's text; none where the world submits it."""
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
    r"""The contents of every `\boxed{...}`, braces balanced. A box that never closes is counted with what it holds.

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
    """Its lines, each with its end; indented by less where the fence was indented, too."""
    closed: bool


def blocks(text: str) -> list[FencedBlock]:
    """Fenced code as CommonMark has it (0.31, section 4.5): a fence is closed by one of its own sort that is at least
    as long, so a block can hold shorter fences. A line ends with a line feed and with nothing else.
    """
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
    """A single block that was never closed, or holds nothing, is no answer; beside another one it is one too many."""
    if len(found) == 1 and not (found[0].closed and found[0].content.strip()):
        return []
    return [block.content for block in found]
