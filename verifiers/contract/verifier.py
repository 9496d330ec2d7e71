"""Verifier interface: decides specs of one kind deterministically, in a process that can be killed."""

from __future__ import annotations

from typing import Protocol, TypeVar

from pydantic import BaseModel

from verifiers.contract.verdict import Verdict

S = TypeVar("S", bound=BaseModel, contravariant=True)


class Verifier(Protocol[S]):
    name: str
    version: str
    """Changes whenever the same input might get another verdict."""

    def check(self, spec: S, *, prove: bool = False) -> None:
        """Raises SpecError, with a hint, for a spec that cannot decide anything or would accept everything. Cheap
        unless `prove` is set, which is for workers only."""

    def verify(self, spec: S, submission: str) -> Verdict:
        """Returns the verdict on a submission. Never raises because of its content: an unreadable submission fails."""
