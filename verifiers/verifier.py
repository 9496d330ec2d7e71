"""The seam: one verifier decides one kind of spec, deterministically, in a process that can be killed."""

from __future__ import annotations

from typing import Protocol, TypeVar

from pydantic import BaseModel

from verifiers.verdict import Verdict

S = TypeVar("S", bound=BaseModel, contravariant=True)


class Verifier(Protocol[S]):
    name: str
    version: str
    """Changes whenever the same input might give another verdict."""

    def verify(self, spec: S, submission: str) -> Verdict:
        """Decides. Never raises for what a submission holds: a submission that cannot be read has failed."""
        ...
