"""Reply of a proposal method."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class ProposalReply(BaseModel):
    """Candidate answers of one proposal method. It decides nothing."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    texts: tuple[str, ...] = ()
    """Candidate answers, most likely first."""
    by: str = ""
    """Tool that found them, with its version."""
    note: str = ""
    """One sentence: the reason for an empty or incomplete list."""
    hopeless: bool = False
    """True if the tool has proved that no answer exists; `note` gives the proof method."""
    complete: bool = False
    """True if the answer, if any, must be among these candidates."""
