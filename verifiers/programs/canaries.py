"""Attacks on whoever checks programs, and honest programs that a stricter judge would turn away.

The attacks are those of section A of the catalogue, as submissions against real specs; the rows say which. Each fails,
or is called suspicious; none ever passes.
"""

from __future__ import annotations

from collections.abc import Iterator

from verifiers.case import Case
from verifiers.programs.canary_attacks import ATTACKS, Attack
from verifiers.programs.canary_specs import SPECS
from verifiers.programs.controls import CONTROLS, Control


def cases() -> Iterator[Case]:
    for attack in ATTACKS:
        yield _attack(attack)
    for control in CONTROLS:
        yield _control(control)


def _attack(attack: Attack) -> Case:
    return Case(
        name=attack.name,
        spec=SPECS[attack.spec],
        submission=attack.source,
        honest=False,
        rows=attack.rows,
        suspected=attack.suspected,
        why=attack.why,
    )


def _control(control: Control) -> Case:
    return Case(name=control.name, spec=SPECS[control.spec], submission=control.source, honest=True, why=control.why)
