"""gVisor passes every check of the suite, each seen by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.conformance import CheckOutcome, ConformanceCheck
from runtime.conformance.check import Subject, examine
from runtime.conformance.suite import CHECKS
from runtime.sessions import Sessions


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_gvisor_does_what_every_backend_has_to(gvisor: Sessions, tmp_path: Path, check: ConformanceCheck) -> None:
    result = examine(check, Subject(gvisor, tmp_path, "tokengvisor0123"), area="any", snapshots=True)
    assert (result.outcome, result.detail) == (CheckOutcome.PASS, "")
