"""Limits of a program are of its own time, and its wall clock has an end, too."""

from __future__ import annotations

import pytest

from runtime.errors import InfrastructureError
from runtime.sandbox import CallStatus, ExecResult
from verifiers.boxes.own_time import PATIENCE
from verifiers.programs.clocks import Limit, SubmissionClock, late

INFINITE = float("inf")


def ended(seconds: float, computed: float | None, waited: float) -> ExecResult:
    return ExecResult(
        status=CallStatus.TIMEOUT,
        exit_code=None,
        stdout=b"",
        stderr=b"",
        seconds=seconds,
        computed=computed,
        waited=waited,
    )


def test_what_others_took_counts_for_the_wall_clock_only() -> None:
    clock = SubmissionClock(10.0, 60.0)
    clock.took(ended(30.0, 3.0, 26.0))
    assert clock.left == 6.0
    assert clock.limit(2.0) == Limit(2.0, 20.0)
    clock.took(ended(25.0, 3.0, 25.0))
    assert clock.left == 5.0
    assert clock.limit(2.0) == Limit(2.0, 5.0)
    clock.took(ended(4.98, 1.0, 4.0))
    assert clock.limit(2.0) is None
    assert clock.over() == "all tests together did not end within 60 s on a busy machine"


def test_rest_counts_as_its_own_time() -> None:
    clock = SubmissionClock(2.0, INFINITE)
    clock.took(ended(1.99, 0.0, 0.0))
    assert clock.limit(1.0) is None
    assert clock.over() == "all tests together took more than 2 s"


def test_a_call_may_take_its_patience_of_wall_clock() -> None:
    limit = SubmissionClock(INFINITE, INFINITE).limit(3.0)
    assert limit == Limit.of(3.0)
    assert limit.patience == PATIENCE
    assert SubmissionClock(0.5, 0.5).limit(3.0) == Limit(0.5, 0.5)


def test_the_reason_says_which_limit_it_was() -> None:
    two = Limit.of(2.0)
    assert late(ended(2.1, 2.0, 0.0), two) == "computed for more than 2 s"
    assert late(ended(9.0, 2.0, 7.2), two) == "computed for more than 2 s"
    assert late(ended(2.1, 0.1, 0.0), two) == "took more than 2 s, some of it at rest"
    assert late(ended(0.5, None, 0.0), two) == "took more than 2 s"
    assert late(ended(20.0, 0.1, 18.5), two) == "did not end within 20 s on a busy machine"


def test_who_was_kept_from_computing_is_not_judged() -> None:
    with pytest.raises(InfrastructureError, match="kept from computing for 20 s") as failure:
        late(ended(20.0, 0.09, 19.0), Limit.of(2.0))
    assert failure.value.hint
