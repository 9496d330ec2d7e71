"""Says whether an earlier night may add to the evidence of a later one.

What always holds: what a gate would not let decide on its own night decides on no later one either. The gates asked are
those about the evaluation itself, each on that night's own evidence and as of then.
"""

from __future__ import annotations

from typing import Any

from policies.contract.decision import GateOutcome
from policies.contract.evidence import Evidence
from policies.gates import contamination, egress, hacks, integrity, selftest
from policies.gates.gate import AskedGates, Gate, GateContext

MUST_PASS: tuple[Gate[Any], ...] = (integrity.GATE, selftest.GATE)
"""Without these nobody knows whether the verdicts can be relied on, or which of them are missing."""
MUST_NOT_FAIL: tuple[Gate[Any], ...] = (contamination.GATE, hacks.GATE, egress.GATE)
"""Where one fails, answers may have passed that solved nothing."""


def is_sound(night: Evidence, gates: AskedGates) -> bool:
    """Whether the items of that night count later on; `night` needs no more than was measured on it."""
    context = GateContext(gates, night.evaluated_at)
    for gate in (*MUST_PASS, *MUST_NOT_FAIL):
        section = gates.get(gate)
        if section is None:
            continue
        found = gate.judge(night, section, context)
        findings = found if isinstance(found, tuple) else (found,)
        outcomes = {one.outcome for one in findings}
        if GateOutcome.FAILED in outcomes or (gate in MUST_PASS and GateOutcome.UNDECIDED in outcomes):
            return False
    return True
