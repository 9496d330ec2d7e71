"""Splits Lean text into words, to tell code from comments and strings.

Invariants: no character is lost, the words' texts in order are the text; linear in the text's length; nothing raises.
Lean might read differently where a longer symbol swallows the start of a comment or quotation (`|--`, `⁻¹'`), where a
comment starts at the start of a documentation comment, or where a quoted name is too long. Such words are marked
`doubtful`: a search for forbidden words must then search everything, since all that follows may be read another way.

Source: Lean.Parser.Basic (whitespace, tokenFn, identFn, charLitFn), Lean 4.35.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import Enum, auto
from typing import NamedTuple

FIRST = r"A-Za-z_\u03b1-\u03ba\u03bc-\u03c9\u0391-\u039f\u03a1\u03a2\u03a4-\u03a9\u2100-\u214f"
"""First characters of identifiers: fewer than Lean allows, never more, so that no keyword hides behind a letter."""
REST = FIRST + r"0-9'!?\u2080-\u2089\u2090-\u209c\u1d62-\u1d6a"
PART = rf"(?:[{FIRST}][{REST}]*|«[^»\n]{{0,300}}»)"

WORD = re.compile(
    rf"""
    (?P<space>\s+)
  | (?P<line>--[^\n]*)
  | (?P<block>/-)
  | (?P<raw>r(?P<hashes>\#*)")
  | (?P<string>")
  | (?P<name>{PART}(?:\.{PART})*)
  | (?P<number>0[xX][0-9A-Fa-f]+|0[bB][01]+|0[oO][0-7]+|[0-9]+(?:_+[0-9]+)*(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)
  | (?P<char>'(?:\\(?:x[0-9A-Fa-f]{{2}}|u[0-9A-Fa-f]{{4}}|.)|[^\\'])')
  | (?P<attribute>@\[)
  | (?P<command>\#[A-Za-z_][A-Za-z0-9_]*!?)
  | (?P<assign>:=)
  | (?P<mark>(?P<one>[()\[\]{{}}⟨⟩¬])(?P=one){{7,}} | .)
    """,
    re.VERBOSE | re.DOTALL,
)
BLOCK = re.compile(r"/-|-/")
STRING_END = re.compile(r'(?:[^"\\]|\\.)*"', re.DOTALL)
ROOM = re.compile(rf"[\s{REST}()\[\]{{}},;.⟨⟩»\"`]")
"""Characters that cannot begin a symbol which swallows the start of a comment or quotation."""

NO_END_OF_LINE = re.compile(r"[^\n]")

NESTED = re.compile(r"/-[-!]\s*(?:--|/-)")


class TokenKind(Enum):
    SPACE = auto()
    COMMENT = auto()
    UNCLOSED = auto()
    """A comment without an end."""
    STRING = auto()
    NAME = auto()
    NUMBER = auto()
    CHAR = auto()
    ATTRIBUTE = auto()
    """`@[`"""
    COMMAND = auto()
    """`#word`"""
    MARK = auto()
    """One character of a symbol, or `:=`, or a run of the same bracket."""


class LeanToken(NamedTuple):
    kind: TokenKind
    text: str
    start: int
    """Offset in characters from the start of the text."""
    doubtful: bool = False

    @property
    def end(self) -> int:
        return self.start + len(self.text)


KINDS = {kind.name.lower(): kind for kind in TokenKind} | {
    "line": TokenKind.COMMENT,
    "block": TokenKind.COMMENT,
    "raw": TokenKind.STRING,
    "assign": TokenKind.MARK,
}
"""Token kind by group name of `WORD`."""


def words(text: str) -> Iterator[LeanToken]:
    """Yields all words of a Lean text, including white space and comments."""
    position = 0
    closed: int | None = None
    while position < len(text):
        found = WORD.match(text, position)
        assert found is not None  # `mark` matches any character
        group = {"hashes": "raw", "one": "mark"}.get(found.lastgroup or "", found.lastgroup)
        assert group is not None
        end = found.end()
        if group == "block":
            # Lean does not look at the character after `/-`: in `/-/- -/` one comment begins and ends.
            found_end = _block_end(text, end if text[end : end + 1] in ("-", "!") else min(end + 1, len(text)))
            end = len(text) if found_end is None else found_end
            group = "unclosed" if found_end is None else group
        elif group in ("string", "raw"):
            closed = _string_end(text, end) if group == "string" else _raw_end(text, end, found["hashes"])
            end = len(text) if closed is None else closed
        doubtful = group in ("line", "block", "char", "string", "raw") and (
            (position > 0 and ROOM.match(text[position - 1]) is None) or NESTED.match(text, position) is not None
        )
        if found.group() == "«":
            doubtful = True  # a name that is too long or spans lines: Lean reads up to `»` regardless
        if group == "unclosed" or (group in ("raw", "string") and closed is None):
            doubtful = True  # Lean reports an error and resumes elsewhere
        yield LeanToken(KINDS[group], text[position:end], position, doubtful)
        position = end


def code(text: str) -> list[LeanToken]:
    """Returns the words of a Lean text without white space and comments."""
    return without_room(words(text))


def without_room(every: Iterable[LeanToken]) -> list[LeanToken]:
    return [word for word in every if word.kind is not TokenKind.SPACE and word.kind is not TokenKind.COMMENT]


Edit = tuple[int, int, str]
"""Start, end and replacement text."""


def edited(text: str, start: int, end: int, edits: list[Edit]) -> str:
    """Returns the text from `start` to `end` with these non-overlapping edits."""
    pieces: list[str] = []
    for first, last, new in sorted(edits):
        pieces += [text[start:first], new]
        start = last
    return "".join([*pieces, text[start:end]])


def normalized(text: str) -> str:
    """Removes a byte order mark and normalizes line ends as Lean does."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n")


def without_comments(text: str, every: Iterable[LeanToken]) -> str:
    """Replaces a Lean text's comments by spaces, without moving anything. Lean then takes no comment as code."""
    pieces: list[str] = []
    position = 0
    for word in every:
        if word.kind is TokenKind.COMMENT:
            pieces += [text[position : word.start], NO_END_OF_LINE.sub(" ", word.text)]
            position = word.end
    return "".join([*pieces, text[position:]])


def plain(name: str) -> str:
    """Removes the quotation marks of a Lean name, which change nothing: `«debug».«x»` is `debug.x`."""
    return name.replace("«", "").replace("»", "")


def turn(word: LeanToken) -> int:
    """Number of brackets that a word opens; negative if it closes them."""
    first = word.text[0]
    if word.kind is TokenKind.ATTRIBUTE or first in "([{⟨⦃":
        return 1 if word.kind is TokenKind.ATTRIBUTE else len(word.text)
    return -len(word.text) if first in ")]}⟩⦄" else 0


def line_and_column(text: str, position: int) -> tuple[int, int]:
    """Returns the line and column of a position in a text, both from 1."""
    line = text.count("\n", 0, position) + 1
    return line, position - text.rfind("\n", 0, position)


def _block_end(text: str, position: int) -> int | None:
    depth = 1
    while depth:
        found = BLOCK.search(text, position)
        if found is None:
            return None
        depth += 1 if found.group() == "/-" else -1
        position = found.end()
    return position


def _string_end(text: str, position: int) -> int | None:
    found = STRING_END.match(text, position)
    return None if found is None else found.end()


def _raw_end(text: str, position: int, hashes: str) -> int | None:
    found = text.find('"' + hashes, position)
    return None if found < 0 else found + 1 + len(hashes)
