"""Finding for one item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from verifiers.checklists.spec import HardItem

MAX_LISTED = 10
"""Maximum number of problems shown in evidence."""


@dataclass(frozen=True)
class ItemFinding:
    name: str
    grade: float
    """Grade from 0 to 1; 1 exactly if the item holds."""
    reason: str
    """One sentence; quoted text is escaped."""
    evidence: dict[str, Any]

    @property
    def holds(self) -> bool:
        return self.grade == 1.0

    def shown(self) -> dict[str, Any]:
        content = {"name": self.name, "holds": self.holds, "grade": round(self.grade, 6), "reason": self.reason}
        return {**content, **({"evidence": self.evidence} if self.evidence else {})}


def finding(item: HardItem, holds: bool, reason: str, *, half: bool = False, **evidence: Any) -> ItemFinding:
    """Builds the finding about one checklist item. `half`: the item does not hold, but at least half is present."""
    return ItemFinding(item.name, 1.0 if holds else 0.5 if half else 0.0, reason, evidence)


def listed(wrong: list[str]) -> str:
    """Joins problems into one sentence."""
    return "; ".join(wrong[:MAX_LISTED]) + (f"; and {len(wrong) - MAX_LISTED} more" if len(wrong) > MAX_LISTED else "")
