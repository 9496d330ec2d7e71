"""A check that cannot fail is worth nothing: each one finds every lie that is told about what it asserts."""

from __future__ import annotations

from pathlib import Path

import pytest
from conformance_lies import LIES, MISTAKES, found_out, lies_about

from runtime.conformance import AREAS, CheckOutcome
from runtime.conformance.suite import CHECKS
from runtime.sessions import Sessions

HERE = [area for area in AREAS if area not in ("limits", "leftovers")]


def test_a_lie_is_told_about_every_check() -> None:
    assert set(LIES) == {check.name for check in CHECKS}


@pytest.mark.parametrize(("name", "lie"), lies_about(*HERE), ids=str)
def test_a_check_finds_the_lie(gvisor: Sessions, tmp_path: Path, name: str, lie: str) -> None:
    result = found_out(gvisor, tmp_path, name, lie)
    assert result.outcome is CheckOutcome.FAIL
    assert result.detail
    assert not result.detail.startswith(MISTAKES)
