"""Reads the parts of a proposal: fenced blocks, each with a name.

    ```python
    def f(x): ...
    ```
    ```input
    [3, 1, 2]
    ```

Pure. The text is the model's and hostile. Invariants: each requested part occurs exactly once, closed, within bounds,
in printable characters; other blocks are refused, and text around blocks is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from curriculum.proposing.refusals import Reason, RefusedProposal

MOST_CHARACTERS = 8_000
MOST_OF_A_PART = 2_000
_FENCE = re.compile(r"^```([a-z]{0,20})[ \t]*$")


def parts(text: str, names: Sequence[str]) -> dict[str, str]:
    """Returns the contents of the named fenced blocks in a proposal. Raises RefusedProposal if one is missing, repeated
    or unclosed."""
    if len(text) > MOST_CHARACTERS:
        raise RefusedProposal(Reason.UNREADABLE, f"longer than {MOST_CHARACTERS} characters")
    found: dict[str, str] = {}
    name: str | None = None
    lines: list[str] = []
    for line in text.replace("\r\n", "\n").split("\n"):
        fence = _FENCE.match(line)
        if name is None:
            if fence:
                name, lines = fence[1], []
        elif fence and not fence[1]:
            if name not in names or name in found:
                raise RefusedProposal(Reason.UNREADABLE, "a block that is not asked for, or twice the same")
            found[name] = "\n".join(lines).strip("\n")
            name = None
        else:
            lines.append(line)
    missing = [one for one in names if not found.get(one, "").strip()]
    if name is not None or missing:
        raise RefusedProposal(Reason.UNREADABLE, f"no whole block for {', '.join(missing) or 'the last fence'}")
    for one in found.values():
        if len(one) > MOST_OF_A_PART or not one.replace("\n", "").isprintable():
            raise RefusedProposal(Reason.UNREADABLE, f"a part beyond {MOST_OF_A_PART} characters, or not printable")
    return found
