"""Python's parser, for what the author of a spec wrote; a candidate's source is never parsed outside its sandbox."""

from __future__ import annotations

import ast
from typing import Literal

TRIES = 5


def parsed(text: str, mode: Literal["exec", "eval"]) -> ast.AST:
    """Raises SyntaxError for what is not Python, or more than its parser bears."""
    for _ in range(TRIES):
        try:
            return ast.parse(text, mode=mode)
        except SystemError:  # CPython counts the depth of its parser for all threads together, and loses count
            continue
        except (ValueError, RecursionError, MemoryError) as error:
            raise SyntaxError(str(error)) from error
    raise SyntaxError("the parser broke")
