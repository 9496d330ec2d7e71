"""What taking a model back does, in the words in which a person is asked: command and screen ask for the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

QUARANTINE = "only a new evaluation (`assay model evaluate`) and an approval of the decision on that bring it back"
TAKE_IT_OUT = "take it out of service"
"""What the first digits of the model that goes are typed for."""


@dataclass(frozen=True)
class TakingBack:
    going: str
    """The model whose first digits are to be typed."""
    back: str | None
    """The one that comes back; None where the champion stays."""

    @property
    def effects(self) -> tuple[str, str]:
        """A sentence each: who goes and who answers then, and what becomes of what goes."""
        then = "the champion stays" if self.back is None else f"{_short(self.back)} comes back"
        return (
            f"{_short(self.going)} goes out of service, and {then}.",
            f"{_short(self.going)} is then in quarantine: {QUARANTINE}.",
        )


def taking_back(aliases: Mapping[str, str | None]) -> TakingBack | None:
    """The canary goes, or the champion where there is none; None where nothing can be taken back."""
    canary, champion, previous = (aliases.get(name) for name in ("canary", "champion", "previous"))
    if canary is not None:
        return TakingBack(canary, None)
    return TakingBack(champion, previous) if champion is not None and previous is not None else None


def _short(digest: str) -> str:
    return digest[:12]
