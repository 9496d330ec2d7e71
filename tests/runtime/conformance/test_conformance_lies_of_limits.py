"""The same for limits that are not enforced and sandboxes that are not removed, which takes its time to see."""

from __future__ import annotations

from pathlib import Path

import pytest
from conformance_lies import MISTAKES, found_out, lies_about

from runtime.conformance import CheckOutcome
from runtime.sessions import Sessions


@pytest.mark.parametrize(("name", "lie"), lies_about("limits", "leftovers"), ids=str)
def test_a_check_of_limits_or_leftovers_finds_the_lie(gvisor: Sessions, tmp_path: Path, name: str, lie: str) -> None:
    result = found_out(gvisor, tmp_path, name, lie)
    assert result.outcome is CheckOutcome.FAIL
    assert result.detail
    assert not result.detail.startswith(MISTAKES)
