"""Report of the self-test: plain data that is stored, shown, and read by anything that must know if the verifiers are
sound.

A case without a verdict (no sandbox, no Lean, a machine that is too slow) is `not_run`: neither refused nor accepted. A
report with such a case is not complete.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Literal

from pydantic import Field

from verifiers.contract.spec_data import SpecData
from verifiers.contract.verdict import Ground, Outcome


class SelfTestEntry(SpecData):
    """One case of the self-test that got a verdict."""

    name: str
    verifier: str
    sort: Literal["attack", "agent", "control"]
    """Sort of case. `agent`: an attack without content: null, empty, random, echo."""
    outcome: Outcome
    ground: Ground | None
    right: bool
    """True if an attack or agent did not pass (and was suspected if required), or a control passed."""
    reason: str
    seconds: float
    rows: tuple[int, ...] = ()
    why: str = ""


class NotRun(SpecData):
    """One case of the self-test without a verdict, with the reason."""

    name: str
    verifier: str
    sort: Literal["attack", "agent", "control"]
    reason: str


class SelfTest(SpecData):
    attacks: int = Field(ge=0)
    """Attacks that got a verdict, agents included."""
    accepted: int = Field(ge=0)
    """Attacks that passed. Must be 0."""
    suspected_expected: int = Field(ge=0)
    suspected_found: int = Field(ge=0)
    """Attacks that were suspected, out of those that must be."""
    controls: int = Field(ge=0)
    controls_rejected: int = Field(ge=0)
    """Honest submissions that did not pass. Must be 0."""
    complete: bool
    """True if every case of every verifier got a verdict."""
    clean: bool
    """True if attacks and controls were run (some of each), no attack passed, no control failed, and every required
    suspicion was raised. Cases that were not run do not count."""
    digest: str
    """SHA-256 of the verifiers' versions and all cases. A different digest means different verifiers or cases."""
    versions: dict[str, str]
    """Version of each kind's verifier."""
    tools: dict[str, str]
    isolations: tuple[str, ...]
    """Sandbox backends that isolated the submissions."""
    made_at: datetime
    seconds: float
    entries: tuple[SelfTestEntry, ...]
    not_run: tuple[NotRun, ...]

    @property
    def wrong(self) -> tuple[SelfTestEntry, ...]:
        return tuple(entry for entry in self.entries if not entry.right)

    @property
    def gaps(self) -> tuple[str, ...]:
        """Verifiers with a self-test case that was not run. Results for the other verifiers still count."""
        return tuple(sorted({missing.verifier for missing in self.not_run}))

    def vouches_for(self, verifiers: Collection[str]) -> bool:
        """True if every self-test case of these verifiers was run and was right, with at least one case of each."""
        ran = {entry.verifier for entry in self.entries}
        faulty = {entry.verifier for entry in self.wrong}
        return set(verifiers) <= ran and not set(verifiers) & ({*self.gaps} | faulty)
