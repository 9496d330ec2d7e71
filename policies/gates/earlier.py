"""Decides if an earlier night may add to the evidence of a later one.

Invariants: a night that a gate blocked for its own decision adds nothing to later ones. Only gates about the evaluation
itself are asked, each on that night's evidence and as of its time.
"""

from __future__ import annotations

from typing import Any

from policies.contract.decision import GateOutcome
from policies.contract.evidence import Evidence
from policies.gates import contamination, egress, hacks, integrity, selftest
from policies.gates.gate import AskedGates, Gate, GateContext

MUST_PASS: tuple[Gate[Any], ...] = (integrity.GATE, selftest.GATE)
"""Gates without which verdicts may be unreliable or missing."""
MUST_NOT_FAIL: tuple[Gate[Any], ...] = (contamination.GATE, hacks.GATE, egress.GATE)
"""Gates whose failure means that unsolved questions may have passed."""


def is_sound(night: Evidence, gates: AskedGates) -> bool:
    """True if an earlier night's evaluation is sound enough that its answers count in later decisions. `night` needs
    only its own measurements."""
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
