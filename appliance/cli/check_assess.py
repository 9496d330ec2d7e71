"""`assay check code --assess`: whether a set of tests can tell a right program from a wrong one, before it is used."""

from __future__ import annotations

from typing import Any

from appliance.cli.broker_target import sessions
from appliance.cli.show import show_json, show_line, show_table
from appliance.errors import ExitCode
from runtime.settings import RuntimeSettings
from verifiers.contract.kinds import Kind
from verifiers.registry.spec import Spec

SECONDS = 120.0


def assess_tests(
    settings: RuntimeSettings, kind: Kind, spec: Spec, right: str, *, seconds: float | None, as_json: bool
) -> ExitCode:
    """1 when the tests let wrong programs pass. Raises SpecError without a right program, or when that fails."""
    assert kind.assess is not None
    with sessions(settings) as pool:
        found = kind.assess.load()(pool, settings.backend.value, spec, right, seconds=seconds or SECONDS)
    if as_json:
        show_json(found)
    else:
        _show(found)
    return ExitCode.OK if found.sound else ExitCode.FAILED_VERDICT


def _show(found: Any) -> None:
    show_line(f"{'sound' if found.sound else 'not sound'}: {found.reason}")
    show_line(f"  {found.killed} of {found.mutants} changes noticed, {found.untried} not tried, {found.seconds:.1f} s")
    for name in found.trivial:
        show_line(f"passes and does nothing: {name}")
    if found.survivors:
        rows = [(mutant.line, mutant.outcome, mutant.change, mutant.why) for mutant in found.survivors]
        show_table(("line", "", "change", "why"), rows, empty="")
