"""What is wrong with the fields of a spec, in words of whoever wrote it."""

from __future__ import annotations

from pydantic import ValidationError

WORDS = {"extra_forbidden": "there is no such field", "missing": "is missing"}
MOST_PLACE, MOST_WORDS = 60, 300


def first_fault(error: ValidationError, *, within: int = 0) -> str:
    """The first thing that pydantic found, as `where: what`, without the value itself, and how many more there are.
    `within` parts of the place are left out, such as the name of a union's member."""
    [fault, *others] = error.errors(include_url=False, include_context=False, include_input=False)
    where = _short(".".join(str(part) for part in fault["loc"][within:]), MOST_PLACE)
    what = WORDS.get(fault["type"]) or _short(str(fault["msg"]), MOST_WORDS)
    more = f" (and {len(others)} more)" if others else ""
    return f"{where}: {what}{more}" if where else f"{what}{more}"


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
