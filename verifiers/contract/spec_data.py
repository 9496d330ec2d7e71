"""Base classes of all specs: frozen plain data."""

from __future__ import annotations

from pydantic import ConfigDict

from common.bounded_models import FirstErrorModel


class SpecData(FirstErrorModel):
    """Part of a spec."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class SpecModel(SpecData):
    """A complete spec; each kind subclasses it."""

    kind: str

    def summary(self) -> str:
        """Returns one line about the spec for people. May contain untrusted text: escape it before display."""
        return self.kind
