r"""Makes text from a policy model, a guest or a stranger safe to show.

Terminal escapes, other control characters and marks that reorder or hide text become visible escapes like \x1b. Line
ends are kept only on request. Callers with a markup language (rich, Textual) must pass the result as plain text.
"""

from __future__ import annotations

import unicodedata

_HIDDEN = {"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"}


def printable(text: str, *, limit: int = 0, lines: bool = False) -> str:
    """Returns the text with hidden and control characters escaped. `limit` bounds the result's characters (0: none); a
    cut text ends with `…`."""
    looked_at = text[: limit + 1] if limit else text
    plain = looked_at.isprintable()  # nothing of what is hidden; most texts are, and there are thousands on a screen
    escaped = looked_at if plain else "".join(_shown(character, lines=lines) for character in looked_at)
    return escaped[: limit - 1] + "…" if limit and len(escaped) > limit else escaped


def _shown(character: str, *, lines: bool) -> str:
    if character == "\n" and lines:
        return character
    if character == "\t":
        return " "
    if unicodedata.category(character) in _HIDDEN:
        return character.encode("unicode_escape").decode("ascii")
    return character
