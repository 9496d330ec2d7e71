"""Splits interactively typed Python into blocks, and prepares them for the sandbox. Pure.

Invariants: nothing is executed here; text that this Python cannot parse is passed on, so that the guest's reports the
error.
"""

from __future__ import annotations

import ast
import codeop
import re
import warnings

GOES_ON = re.compile(r"(else|elif|except|finally)\b|[\s#]|$")
"""Matches a line that does not begin a new statement."""
UNPARSABLE = (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError)


class Blocks:
    """Splits typed lines of Python into complete blocks."""

    def __init__(self, *, patient: bool = False) -> None:
        """Creates a splitter without lines. `patient`: as in a file, only the next statement or the end of input ends a
        block, not an empty line."""
        self._patient = patient
        self._lines: list[str] = []

    @property
    def open(self) -> bool:
        """True if a block of Python has begun and not ended."""
        return bool(self._lines)

    @property
    def between(self) -> bool:
        """True if a shell command may come now. That is at a prompt for a new block, or after a complete one in a
        file."""
        return not self._lines or (self._patient and _whole(self._source()))

    def feed(self, line: str) -> list[str]:
        """Takes one more line of Python and returns the blocks that end with it. None, one, or two: the previous one
        and itself."""
        ended = []
        if self._lines and not GOES_ON.match(line) and _whole(self._source()):
            ended.append(self._take())
        if self._patient and self._lines and not line.strip():
            self._lines.append("")
            return ended
        self._lines.append(line)
        if not self._source().strip():
            self._lines.clear()
        elif _complete(self._source()):
            ended.append(self._take())
        return ended

    def rest(self) -> list[str]:
        """Returns the block of Python that the end of input completes, if any, in a list."""
        return [self._take()] if self._source().strip() else []

    def drop(self) -> None:
        self._lines.clear()

    def _source(self) -> str:
        return "\n".join(self._lines)

    def _take(self) -> str:
        source = self._source()
        self._lines.clear()
        return source


def _whole(source: str) -> bool:
    try:
        ast.parse(source)
    except UNPARSABLE:
        return False
    return True


def _complete(source: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return codeop.compile_command(source, "<shell>", "single") is not None
        except UNPARSABLE:
            return True


def shown_value(source: str) -> str:
    """Returns Python code changed so that a single expression shows its value, as at Python's prompt."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            body = ast.parse(source).body
    except UNPARSABLE:
        return source
    if len(body) != 1 or not isinstance(body[0], ast.Expr):
        return source
    segment = ast.get_source_segment(source, body[0].value)
    return source if segment is None else f"__import__('sys').displayhook(({segment}))"


def as_typed(traceback: str, block: str) -> str:
    """Replaces the code lines in a traceback by those that the person typed, which `shown_value` had changed."""
    lines = block.splitlines()

    def typed(found: re.Match[str]) -> str:
        number = int(found[1])
        return f"line {number}, in <module>: {lines[number - 1].strip()}" if 0 < number <= len(lines) else found[0]

    return re.sub(r"^line (\d{1,6}), in <module>: .*$", typed, traceback, flags=re.MULTILINE)
