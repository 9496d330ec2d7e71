"""`assay check KIND --assess`: whether a check can tell right from wrong, before it is used."""

from __future__ import annotations

from appliance.cli.check_target import CheckTarget
from appliance.cli.show import show_json, show_line
from appliance.errors import ExitCode
from verifiers.contract.kinds import Kind
from verifiers.registry.spec import Spec

SECONDS = 120.0


def assess_spec(
    target: CheckTarget, kind: Kind, spec: Spec, right: str, *, seconds: float | None, as_json: bool
) -> ExitCode:
    """1 for a check that lets through what it should not. Raises SpecError for one that cannot be used, or that what
    is right does not pass."""
    assert kind.assess is not None
    if kind.runs:
        _ = target.broker  # what runs submissions is refused without one, before anything is begun
    with target.checker(jobs=1) as checker:
        found = kind.assess.load()(checker, spec, right, seconds=seconds or SECONDS)
    if as_json:
        show_json(found)
    else:
        show_line(f"{'sound' if found.sound else 'not sound'}: {found.reason}")
        for line in found.lines():
            show_line(f"  {line}")
    return ExitCode.OK if found.sound else ExitCode.FAILED_VERDICT
