"""The seam: one verifier decides one kind of spec, deterministically, in a process that can be killed."""

from __future__ import annotations

from typing import Protocol, TypeVar

from pydantic import BaseModel

from verifiers.contract.verdict import Verdict

S = TypeVar("S", bound=BaseModel, contravariant=True)


class Verifier(Protocol[S]):
    name: str
    version: str
    """Changes whenever the same input might give another verdict."""

    def check(self, spec: S, *, prove: bool = False) -> None:
        """Raises SpecError, with a hint, for a spec that cannot decide anything, or would accept everything. Cheap,
        unless it may `prove`: then in a worker only."""

    def verify(self, spec: S, submission: str) -> Verdict:
        """Decides. Never raises for what a submission holds: a submission that cannot be read has failed."""
