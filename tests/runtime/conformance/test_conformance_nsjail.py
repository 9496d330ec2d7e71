"""nsjail passes every check of the suite but those about snapshots, which it refuses as its documentation says."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.conformance import CheckOutcome, ConformanceCheck
from runtime.conformance.check import Subject, examine
from runtime.conformance.suite import CHECKS
from runtime.sessions import Sessions


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_nsjail_does_what_every_backend_has_to_or_refuses(
    nsjail: Sessions, tmp_path: Path, check: ConformanceCheck
) -> None:
    result = examine(check, Subject(nsjail, tmp_path, "tokennsjail0123"), area="any", snapshots=False)
    expected = CheckOutcome.REFUSED if check.needs_snapshots else CheckOutcome.PASS
    assert result.outcome is expected, result.detail
