"""What a way of proposing came to."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class ProposalReply(BaseModel):
    """What a way of proposing came to. It decides nothing."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    texts: tuple[str, ...] = ()
    """The likeliest first."""
    by: str = ""
    """The tool that found them, with its version."""
    note: str = ""
    """One sentence: why there are none, or no more."""
    hopeless: bool = False
    """Whether the tool has shown that there is no answer at all; `note` then says how."""
    complete: bool = False
    """Whether nothing but these texts can be an answer."""
