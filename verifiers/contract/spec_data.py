"""What all specs share: frozen, strict, plain data; and what is wrong with such data, in words of whoever wrote it."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, ValidationError

from verifiers.contract.text import clip

WORDS = {"extra_forbidden": "there is no such field", "missing": "is missing"}
MOST_PLACE, MOST_WORDS = 60, 300


class SpecData(BaseModel):
    """A part of a spec."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class SpecModel(SpecData):
    """A whole spec; each kind has a class of its own."""

    kind: str

    def summary(self) -> str:
        """One line for people. It may hold what others wrote: whoever shows it escapes it."""
        return self.kind


def first_fault(error: ValidationError) -> str:
    """The first thing that pydantic found, as `where: what`, without the value itself, and how many more there are."""
    [fault, *others] = error.errors(include_url=False, include_context=False, include_input=False)
    where = clip(".".join(str(part) for part in fault["loc"]), MOST_PLACE)
    what = WORDS.get(fault["type"]) or clip(str(fault["msg"]), MOST_WORDS)
    more = f" (and {len(others)} more)" if others else ""
    return f"{where}: {what}{more}" if where else f"{what}{more}"
