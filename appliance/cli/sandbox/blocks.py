"""Says when a person who types Python line by line has finished a block, and what of it is sent into the sandbox. Pure.

What always holds: nothing is run here; a text that this Python cannot parse is handed on, so that the guest's says why.
"""

from __future__ import annotations

import ast
import codeop
import re
import warnings

GOES_ON = re.compile(r"(else|elif|except|finally)\b|[\s#]|$")
"""A line at the left edge that does not begin a statement of its own."""
UNPARSABLE = (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError)


class Blocks:
    """Lines in, complete blocks out."""

    def __init__(self, *, patient: bool = False) -> None:
        """Begins with nothing. `patient`: an empty line ends no block, as in a file; only the next statement or the end
        does."""
        self._patient = patient
        self._lines: list[str] = []

    @property
    def open(self) -> bool:
        """Says whether a block has begun and not ended."""
        return bool(self._lines)

    @property
    def between(self) -> bool:
        """Says whether a command of the shell may come now: at a prompt for a new block, or after what is one in a
        file."""
        return not self._lines or (self._patient and _whole(self._source()))

    def feed(self, line: str) -> list[str]:
        """Gives the blocks that end with this line: none, one, or the one before it and itself."""
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
        """Gives what the end of the input ends."""
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
    """Gives the same code, but that a single expression shows its value, as at Python's own prompt."""
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
    """Gives a traceback with the lines of the block as they were typed, and not as `shown_value` sent them."""
    lines = block.splitlines()

    def typed(found: re.Match[str]) -> str:
        number = int(found[1])
        return f"line {number}, in <module>: {lines[number - 1].strip()}" if 0 < number <= len(lines) else found[0]

    return re.sub(r"^line (\d{1,6}), in <module>: .*$", typed, traceback, flags=re.MULTILINE)
