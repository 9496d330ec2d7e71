"""What is said of one item."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

MAX_LISTED = 10
"""Of what is wrong, shown in evidence."""


@dataclass(frozen=True)
class Finding:
    name: str
    holds: bool
    reason: str
    """One sentence; what of the text is in it is escaped."""
    grade: float = -1.0
    """From 0 to 1; 1 exactly where the item holds."""
    evidence: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.grade < 0:
            object.__setattr__(self, "grade", 1.0 if self.holds else 0.0)

    def shown(self) -> dict[str, Any]:
        content = {"name": self.name, "holds": self.holds, "grade": round(self.grade, 6), "reason": self.reason}
        return {**content, **({"evidence": self.evidence} if self.evidence else {})}


def listed(wrong: list[str]) -> str:
    """What is wrong as one sentence."""
    return "; ".join(wrong[:MAX_LISTED]) + (f"; and {len(wrong) - MAX_LISTED} more" if len(wrong) > MAX_LISTED else "")
