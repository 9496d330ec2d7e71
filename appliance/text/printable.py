"""Text from a policy model, a guest or a stranger, made fit to be shown: it can say anything and do nothing.

Terminal escapes, other control characters and marks that reorder or hide text come out as visible escapes like \\x1b.
Line ends are kept only when asked for. Whoever uses a markup (rich, Textual) passes the result as plain text.
"""

from __future__ import annotations

import unicodedata

_HIDDEN = {"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"}


def printable(text: str, *, limit: int = 0, lines: bool = False) -> str:
    """`limit` in characters of the result, 0 for none; what is cut off is shown as one `…`."""
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
