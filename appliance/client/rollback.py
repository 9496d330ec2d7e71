"""Effects of a rollback in the words shown to a person, shared by the command and the screen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

QUARANTINE = "only a new evaluation (`assay model evaluate`) and an approval of its decision bring it back"
TAKE_IT_OUT = "take it out of service"
"""Action that the typed digits confirm."""


@dataclass(frozen=True)
class TakingBack:
    going: str
    """Model that leaves service; its first digits are typed to confirm."""
    back: str | None
    """Model that returns; None if the champion stays."""

    @property
    def effects(self) -> tuple[str, str]:
        """Effects of a rollback in two sentences: the change of service, and the fate of the withdrawn model."""
        then = "the champion stays" if self.back is None else f"{_short(self.back)} comes back"
        return (
            f"{_short(self.going)} goes out of service, and {then}.",
            f"{_short(self.going)} is then in quarantine: {QUARANTINE}.",
        )


def taking_back(aliases: Mapping[str, str | None]) -> TakingBack | None:
    """Returns the model that a rollback withdraws, the canary or else the champion, and the one that comes back. None
    if nothing can be rolled back."""
    canary, champion, previous = (aliases.get(name) for name in ("canary", "champion", "previous"))
    if canary is not None:
        return TakingBack(canary, None)
    return TakingBack(champion, previous) if champion is not None and previous is not None else None


def _short(digest: str) -> str:
    return digest[:12]
