"""What the self-test found. Plain data: it is stored, shown, and asked for by whoever wants to know that the
verifiers hold.

A case that got no verdict (no sandbox, no Lean, a machine that is too slow) is `not_run`: it is neither refused nor
accepted, and a report that has one is not complete.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Literal

from pydantic import Field

from verifiers.contract.spec_data import SpecData
from verifiers.contract.verdict import Ground, Outcome


class SelfTestEntry(SpecData):
    """One case that got a verdict."""

    name: str
    verifier: str
    sort: Literal["attack", "agent", "control"]
    """`agent`: an attack that has nothing to say: null, empty, random, echo."""
    outcome: Outcome
    ground: Ground | None
    right: bool
    """An attack or an agent did not pass, and was suspected where it had to be; a control passed."""
    reason: str
    seconds: float
    rows: tuple[int, ...] = ()
    why: str = ""


class NotRun(SpecData):
    """One case without a verdict, and why."""

    name: str
    verifier: str
    sort: Literal["attack", "agent", "control"]
    reason: str


class SelfTest(SpecData):
    attacks: int = Field(ge=0)
    """That got a verdict, agents included."""
    accepted: int = Field(ge=0)
    """Attacks that passed. Must be 0."""
    suspected_expected: int = Field(ge=0)
    suspected_found: int = Field(ge=0)
    """Of the expected ones."""
    controls: int = Field(ge=0)
    controls_rejected: int = Field(ge=0)
    """Honest submissions that did not pass. Must be 0."""
    complete: bool
    """Every case of every verifier got a verdict."""
    clean: bool
    """Nothing accepted, nothing honest rejected, every suspicion raised, of attacks and controls that were run: there
    are some of each. It says nothing of cases that were not run."""
    digest: str
    """SHA-256 of the verifiers' versions and all cases: another one means that this report is about something else."""
    versions: dict[str, str]
    """Of each kind's verifier."""
    tools: dict[str, str]
    isolations: tuple[str, ...]
    """What submissions were held in."""
    made_at: datetime
    seconds: float
    entries: tuple[SelfTestEntry, ...]
    not_run: tuple[NotRun, ...]

    @property
    def wrong(self) -> tuple[SelfTestEntry, ...]:
        return tuple(entry for entry in self.entries if not entry.right)

    @property
    def gaps(self) -> tuple[str, ...]:
        """Verifiers that have a case which was not run: what holds of the others is known without them."""
        return tuple(sorted({missing.verifier for missing in self.not_run}))

    def vouches_for(self, verifiers: Collection[str]) -> bool:
        """Whether all cases of these kinds of verifiers were run, and each was right: there is at least one of each."""
        ran = {entry.verifier for entry in self.entries}
        faulty = {entry.verifier for entry in self.wrong}
        return set(verifiers) <= ran and not set(verifiers) & ({*self.gaps} | faulty)
