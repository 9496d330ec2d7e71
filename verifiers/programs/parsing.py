"""Python's parser, for what the author of a spec wrote; a candidate's source is never parsed outside its sandbox."""

from __future__ import annotations

import ast
from typing import Literal

from runtime.parsing import PARSING

TRIES = 5


def parsed(text: str, mode: Literal["exec", "eval"]) -> ast.AST:
    """Raises SyntaxError for what is not Python, or more than its parser bears."""
    for _ in range(TRIES):
        try:
            with PARSING:
                return ast.parse(text, mode=mode)
        except SystemError:  # somebody else's thread parses, too
            continue
        except (ValueError, RecursionError, MemoryError) as error:
            raise SyntaxError(str(error)) from error
    raise SyntaxError("the parser broke")
