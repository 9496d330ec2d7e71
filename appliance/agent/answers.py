"""What counts as the final answer in a last turn, by the form that is asked for.

Pure: text in, at most one answer out. The text is the policy model's and hostile; nothing here looks at what it means.
What always holds: there is an answer only where there is exactly one; nothing is joined, chosen or repaired.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from appliance.records import Job, JobKind
from verifiers.answers.spec import AnswerSpec

BOX = "\\boxed{"
_OPENING = re.compile(r"( {0,3})(`{3,}(?=[^`]*\Z)|~{3,})")
_CLOSING = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*\Z")


class AnswerForm(StrEnum):
    BOXED = "boxed"
    r"""What stands in the one `\boxed{...}`."""
    BLOCK = "block"
    """The content of the one fenced code block, which is closed and not empty; what stands around it is not read."""
    WHOLE = "whole"
    """All of the last turn, but for blanks around it."""


FORMS = {
    JobKind.PROGRAM: AnswerForm.BLOCK,
    JobKind.CLAIM: AnswerForm.BLOCK,
    JobKind.THEOREM: AnswerForm.BLOCK,
    JobKind.TEXT: AnswerForm.WHOLE,
}


def form_of(job: Job) -> AnswerForm:
    """By the job's kind. A spec that looks for the box itself is given the whole turn."""
    if isinstance(job.spec, AnswerSpec) and job.spec.final == "boxed":
        return AnswerForm.WHOLE
    return FORMS.get(job.kind, AnswerForm.BOXED)


@dataclass(frozen=True)
class Final:
    answer: str | None
    """The text when there is exactly one."""
    answers: int


def final_answer(text: str, form: AnswerForm) -> Final:
    """The answer in a last turn's text."""
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
class Block:
    content: str
    """Its lines, each with its end; indented by less where the fence was indented, too."""
    closed: bool


def blocks(text: str) -> list[Block]:
    """Fenced code as CommonMark has it (0.31, section 4.5): a fence is closed by one of its own sort that is at least
    as long, so a block can hold shorter fences. A line ends with a line feed and with nothing else.
    """
    found: list[Block] = []
    lines: list[str] = []
    indent, fence = "", ""
    for line in text.split("\n"):
        bare = line.removesuffix("\r")
        if not fence:
            opening = _OPENING.match(bare)
            if opening:
                (indent, fence), lines = opening.groups(), []
        elif (closing := _CLOSING.match(bare)) and closing[1][0] == fence[0] and len(closing[1]) >= len(fence):
            found.append(Block("".join(lines), closed=True))
            fence = ""
        else:
            less = min(len(indent), len(line) - len(line.lstrip(" ")))
            lines.append(f"{line[less:]}\n")
    if fence:
        found.append(Block("".join(lines), closed=False))
    return found


def _only(found: list[Block]) -> list[str]:
    """A single block that was never closed, or holds nothing, is no answer; beside another one it is one too many."""
    if len(found) == 1 and not (found[0].closed and found[0].content.strip()):
        return []
    return [block.content for block in found]
