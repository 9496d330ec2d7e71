"""A gate is one object: its name, its section of the policy file, what a night measures for it, and how it judges.

What always holds: a gate is a pure function of evidence, its section and the time that comes in; it reads no clock,
store or file. It has three outcomes, because "not shown" is not "shown not to be": undecided lets nothing through, and
no gate passes for want of evidence. Each finding says what was seen and what would have changed it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar, cast

from policies.contract.decision import GateFinding, GateOutcome
from policies.contract.evidence import Evidence
from policies.contract.rules import Section

PASSED, FAILED, UNDECIDED = GateOutcome.PASSED, GateOutcome.FAILED, GateOutcome.UNDECIDED
EVALUATE_AGAIN = "evaluate the candidate again: a night measures it"

S = TypeVar("S", bound=Section)


@dataclass(frozen=True)
class Gate(Generic[S]):
    name: str
    """Also of its section: `[gates.NAME]`."""
    section: type[S]
    judge: Callable[[Evidence, S, GateContext], GateFinding | tuple[GateFinding, ...]]
    """Gives the finding, or several that are called `NAME/PART`."""
    measures: str = ""
    """The field of `Measurements` that it needs; empty where the evaluation itself is enough."""
    never_missing: str = ""
    """Why no policy can leave it out; empty where one can. A gate that a later release adds has none: it would make
    installed files invalid."""
    conditional: bool = False
    """Whether it may have nothing to find; a candidate is held for want of any other gate's finding."""


class AskedGates(Section):
    """The gates that a policy asks for: a field with the section of each, None for those that it does not name.
    `gates_model` makes the subclass whose fields are the rows of a registry."""

    registry: ClassVar[tuple[Gate[Any], ...]] = ()

    def get(self, gate: Gate[S]) -> S | None:
        """The gate's section; None where it is not asked for."""
        return cast("S | None", getattr(self, gate.name, None))

    def findings(self, evidence: Evidence, *, now: str) -> tuple[GateFinding, ...]:
        """What every gate that is asked finds, in the registry's order. `now` is UTC in ISO 8601."""
        found: list[GateFinding] = []
        for gate in self.asked:
            judged = gate.judge(evidence, self[gate], GateContext(self, now))
            found += judged if isinstance(judged, tuple) else (judged,)
        return tuple(found)

    def __getitem__(self, gate: Gate[S]) -> S:
        """Raises LookupError for a gate that is not asked for."""
        section = self.get(gate)
        if section is None:
            raise LookupError(f"the policy does not ask for the gate {gate.name!r}")
        return section

    @property
    def asked(self) -> tuple[Gate[Any], ...]:
        """Lists the gates that are asked for, in the registry's order."""
        return tuple(gate for gate in self.registry if self.get(gate) is not None)


@dataclass(frozen=True)
class GateContext:
    """What a gate may know beside the evidence and its own section."""

    gates: AskedGates
    now: str
    """UTC, ISO 8601."""


@dataclass(frozen=True)
class GateFigure:
    """What a gate measured; each method makes the finding with that outcome."""

    gate: str
    figure: float | None
    threshold: float | None
    unit: str = "points"
    low: float | None = None
    high: float | None = None

    def passed(self, reason: str) -> GateFinding:
        return self.found(PASSED, reason, "")

    def failed(self, reason: str, would_change: str) -> GateFinding:
        return self.found(FAILED, reason, would_change)

    def undecided(self, reason: str, would_change: str) -> GateFinding:
        return self.found(UNDECIDED, reason, would_change)

    def not_on_record(self, what: str, would_change: str = EVALUATE_AGAIN) -> GateFinding:
        return self.undecided(f"{what} is not on record", would_change)

    def found(self, outcome: GateOutcome, reason: str, would_change: str) -> GateFinding:
        return GateFinding(
            gate=self.gate,
            outcome=outcome,
            figure=self.figure,
            low=self.low,
            high=self.high,
            threshold=self.threshold,
            unit=self.unit,
            reason=reason,
            would_change=would_change,
        )


def items_to_decide(items: int, gain: float, reach: float, threshold: float, of: str = "") -> str:
    """About how many items would decide were the gain to stay; the interval shrinks with the root of their number.

    `gain`, `reach` (from the gain to the interval's lower end) and `threshold` in points.
    """
    distance = abs(gain - threshold)
    if distance < 0.05:
        return f"another candidate: this gain is so close to {threshold:+g} points that no number of questions decides"
    needed = max(items + 1, math.ceil(items * (reach / distance) ** 2))
    return f"about {needed} questions{of} would decide at this gain"
