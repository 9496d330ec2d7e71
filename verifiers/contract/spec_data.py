"""Base classes of all specs: frozen, strict, plain data; and readable validation errors."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, ValidationError

from verifiers.contract.text import clip

WORDS = {"extra_forbidden": "unknown field", "missing": "is missing"}
MOST_PLACE, MOST_WORDS = 60, 300


class SpecData(BaseModel):
    """Part of a spec."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class SpecModel(SpecData):
    """A complete spec; each kind subclasses it."""

    kind: str

    def summary(self) -> str:
        """Returns one line about the spec for people. May contain untrusted text: escape it before display."""
        return self.kind


def first_fault(error: ValidationError) -> str:
    """Returns pydantic's first error as `where: what`, without the value, and the count of further errors."""
    [fault, *others] = error.errors(include_url=False, include_context=False, include_input=False)
    where = clip(".".join(str(part) for part in fault["loc"]), MOST_PLACE)
    what = WORDS.get(fault["type"]) or clip(str(fault["msg"]), MOST_WORDS)
    more = f" (and {len(others)} more)" if others else ""
    return f"{where}: {what}{more}" if where else f"{what}{more}"
