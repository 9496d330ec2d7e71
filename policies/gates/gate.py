"""Gate interface: a name, a policy section, the measurement it needs, and a judging function.

Invariants: a gate is a pure function of evidence, its section and the given time; it reads no clock, store or file. It
has three outcomes, because "not shown" differs from "shown not to be": undecided promotes nothing, and no gate passes
for lack of evidence. Each finding states the observed figure and what would have changed it.
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
    """Name of the gate and of its section, `[gates.NAME]`."""
    section: type[S]
    judge: Callable[[Evidence, S, GateContext], GateFinding | tuple[GateFinding, ...]]
    """Returns one finding, or several named `NAME/PART`."""
    measures: str = ""
    """Required field of `Measurements`; empty if the evaluation itself is enough."""
    never_missing: str = ""
    """Reason why no policy may omit the gate; empty if it may. A gate added by a later release has none, because a
    reason would invalidate installed files."""
    conditional: bool = False
    """True if the gate may have no finding; a candidate is held without any other gate's finding."""


class AskedGates(Section):
    """Gates requested by a policy: one field per gate with its section, or None.

    `gates_model` creates the subclass with one field per registry row.
    """

    registry: ClassVar[tuple[Gate[Any], ...]] = ()

    def get(self, gate: Gate[S]) -> S | None:
        """Returns a gate's section of the policy; None if the policy does not request the gate."""
        return cast("S | None", getattr(self, gate.name, None))

    def findings(self, evidence: Evidence, *, now: str) -> tuple[GateFinding, ...]:
        """Judges the evidence by all requested gates; returns findings in registry order. `now` is UTC in ISO 8601."""
        found: list[GateFinding] = []
        for gate in self.asked:
            judged = gate.judge(evidence, self[gate], GateContext(self, now))
            found += judged if isinstance(judged, tuple) else (judged,)
        return tuple(found)

    def __getitem__(self, gate: Gate[S]) -> S:
        """Returns a gate's section of the policy. Raises LookupError for a gate that is not requested."""
        section = self.get(gate)
        if section is None:
            raise LookupError(f"the policy does not ask for the gate {gate.name!r}")
        return section

    @property
    def asked(self) -> tuple[Gate[Any], ...]:
        """Gates that the policy requests, in registry order."""
        return tuple(gate for gate in self.registry if self.get(gate) is not None)


def is_about(finding: GateFinding, gate: str) -> bool:
    """True if the finding is this gate's, or about a part of it. A name from outside has a slash of its own."""
    return finding.gate == gate or finding.gate.startswith(f"{gate}/")


@dataclass(frozen=True)
class GateContext:
    """Inputs of a gate beside the evidence and its own section: the policy's other gates, and the time."""

    gates: AskedGates
    now: str
    """UTC, ISO 8601."""


@dataclass(frozen=True)
class GateFigure:
    """Measured figure and threshold of a gate; each method makes the gate's finding with that outcome."""

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


def items_to_decide(items: int, gain: float, reach: float, threshold: float) -> str:
    """Estimates, as a sentence, the number of questions that would decide at this gain. The interval shrinks with the
    square root of that number. `gain`, `reach` (from the gain to the interval's lower end) and `threshold` are in
    points."""
    distance = abs(gain - threshold)
    if distance < 0.05:
        return f"another candidate: this gain is so close to {threshold:+g} points that no number of questions decides"
    needed = max(items + 1, math.ceil(items * (reach / distance) ** 2))
    return f"about {needed} questions would decide at this gain"
