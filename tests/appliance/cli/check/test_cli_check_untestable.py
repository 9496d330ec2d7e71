"""A kind that this machine cannot check does not make a self-test fail; a case that should have run does."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from tables import table

from appliance.cli.check.selftest import cannot_run_here, code_of
from appliance.errors import ExitCode
from verifiers.selftest.report import NotRun, SelfTest

LEAN = NotRun(name="n", verifier="lean", sort="attack", reason="no Lean")
PROGRAM = NotRun(name="n", verifier="program", sort="attack", reason="no sandbox")


def report(*not_run: NotRun, **changes: object) -> SelfTest:
    whole = {"attacks": 3, "accepted": 0, "suspected_expected": 1, "suspected_found": 1, "controls": 2}
    empty = {"digest": "d", "versions": {}, "tools": {}, "isolations": (), "entries": (), "seconds": 1.0}
    made = {**whole, **empty, "controls_rejected": 0, "complete": not not_run, "clean": True, "not_run": not_run}
    return SelfTest(**{**made, "made_at": datetime.now(UTC), **changes})


@table(
    ("found", "missing", "code"),
    [
        (report(), (), ExitCode.OK),
        (report(LEAN), (LEAN,), ExitCode.OK),
        (report(PROGRAM), (PROGRAM,), ExitCode.INFRASTRUCTURE),
        (report(LEAN, PROGRAM), (LEAN, PROGRAM), ExitCode.INFRASTRUCTURE),
        (report(LEAN, attacks=0, controls=0, clean=False), (LEAN,), ExitCode.INFRASTRUCTURE),
        (report(LEAN, accepted=1, clean=False), (LEAN,), ExitCode.FAILED_VERDICT),
        (report(controls_rejected=1, clean=False), (), ExitCode.FAILED_VERDICT),
        (report(suspected_found=0, clean=False), (), ExitCode.FAILED_VERDICT),
    ],
)
def test_only_what_should_run_here_counts(found: SelfTest, missing: tuple[NotRun, ...], code: ExitCode) -> None:
    assert code_of(found, missing, {"lean": "no Lean is installed"}) is code


def test_a_kind_without_its_tool_is_named_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAN_TOOLCHAIN", "/nonexistent")
    assert list(cannot_run_here({"program", "lean"})) == ["lean"]
    assert "/nonexistent" in cannot_run_here({"lean"})["lean"]
