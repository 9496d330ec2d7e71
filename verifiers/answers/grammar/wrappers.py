r"""Removes decoration around an answer: dollar signs, `\boxed{}`, `\text{}`, a full stop.

A wrapper is removed only if it encloses the whole text. Brackets are matched in one pass.
"""

from __future__ import annotations

import re

from verifiers.answers.grammar.errors import GrammarError, TooLargeError

MAX_WRAPPERS = 8
MAX_SUBMISSION = 1_000_000
"""Maximum characters of a text searched for a boxed answer."""
OPENED = re.compile(
    r"""(?:\\(boxed|fbox|text|textrm|textnormal|textup|textbf|textit|mbox|mathrm|mathbf|mathit|mathsf|displaystyle|underline
    |[Ll]arge|LARGE|huge|small)|\\(?:textcolor|color|colorbox)\s*\{[A-Za-z!0-9]{1,30}\})\s*\{""",
    re.VERBOSE,
)
"""Command that only decorates its braced argument."""
BARE_BOX = re.compile(
    r"\\(?:boxed|fbox)\s*([0-9]+(?:\.[0-9]+)?|(?<=\s)[A-Za-z])(?![A-Za-z0-9^_/\\({+*'-]|\s*[0-9]|[.,][0-9])"
)
"""Box without braces around one token, as TeX reads it; refused before further digits, which look the same."""
TRAILERS = "\\,;:!~d"
MAX_TRAILING = 40
TRAILING = re.compile(r"(?:(?<!\\)\\(?:[ ,;:!]|$)|\\q?quad|[\s~,;])+$")
"""Spaces and separators after an answer."""
UPRIGHT = frozenset(
    {"text", "textrm", "textnormal", "textup", "textbf", "textit", "mbox", "mathrm", "mathbf", "mathit", "mathsf"}
)
BOX = re.compile(r"\\(?:boxed|fbox)(?![A-Za-z])")
INLINE = re.compile(r"\\[()]")


def unwrapped(text: str) -> tuple[str, bool]:
    """Strips decoration that encloses all of an answer: dollar signs, boxes, fonts. Also returns True if the content
    was upright text. Raises GrammarError."""
    text = _without_formula_signs(text.strip())
    upright = False
    for _ in range(MAX_WRAPPERS):
        before = text
        if text[-1:] in TRAILERS:
            text = text[:-MAX_TRAILING] + TRAILING.sub("", text[-MAX_TRAILING:])
        if text[:1] == "\\":
            bare = BARE_BOX.fullmatch(text)
            text = bare[1] if bare else text
        if text.endswith(".") and not text.endswith(("..", "\\right.")):
            text = text[:-1].rstrip()
        if len(text) > 4 and text.startswith("**") and text.endswith("**") and "**" not in text[2:-2]:
            text = text[2:-2].strip()
        if text.startswith("\\[") and text.endswith("\\]"):
            text = text[2:-2].strip()
        match = OPENED.match(text)
        if match and text.endswith("}") and closing(text, match.end()) == len(text) - 1:
            inside = text[match.end() : -1].strip()
            if match[1] == "mathbf" and len(inside) == 1 and inside.islower():
                # A vector of that name, not the letter.
                break
            upright = upright or match[1] in UPRIGHT
            text = inside
        if text.startswith("\\displaystyle"):
            text = text.removeprefix("\\displaystyle").strip()
        if text == before:
            break
    return text, upright


def _without_formula_signs(text: str) -> str:
    r"""Drops `$`, `$$`, `\(` and `\)` around formulas. A single dollar sign is money."""
    if "$" in text:
        signs = len(re.findall(r"(?<!\\)\$", text))
        if signs % 2 == 0:
            text = re.sub(r"(?<!\\)\$", " ", text).strip()
    if "\\(" in text or "\\)" in text:
        found = INLINE.findall(text)
        if found != ["\\(", "\\)"] * (len(found) // 2):
            raise GrammarError("signs around a formula that do not match")
        text = INLINE.sub(" ", text).strip()
    return text


def closing(text: str, start: int) -> int:
    """Returns the index of the brace that closes the one before `start`, or -1."""
    depth = 1
    for match in re.compile(r"\\.|[{}]", re.DOTALL).finditer(text, start):
        sign = match.group()
        if sign == "{":
            depth += 1
        elif sign == "}":
            depth -= 1
            if depth == 0:
                return match.start()
    return -1


def boxed(text: str) -> str:
    """Returns the content of the only box of a text. Raises GrammarError for none, several, or an unclosed one."""
    if len(text) > MAX_SUBMISSION:
        raise TooLargeError(f"longer than {MAX_SUBMISSION} characters")
    boxes = list(BOX.finditer(text))
    if not boxes:
        raise GrammarError("no boxed answer")
    if len(boxes) > 1:
        raise GrammarError(f"{len(boxes)} boxed answers, where exactly one is required")
    bare = BARE_BOX.match(text, boxes[0].start())
    if bare:
        return bare[1]
    start = boxes[0].end()
    while start < len(text) and text[start] in " \t\n":
        start += 1
    if start >= len(text) or text[start] != "{":
        raise GrammarError("a box without braces")
    end = closing(text, start + 1)
    if end < 0:
        raise GrammarError("an unclosed box")
    return text[start + 1 : end]
