"""Limits of a program are of its own time; the end of its wall clock says something of the machine only."""

from __future__ import annotations

import pytest

from runtime.errors import InfrastructureError
from runtime.sandbox import CallStatus, ExecResult
from verifiers.boxes.late import late
from verifiers.programs.clocks import CandidateClock, NotMeasuredError, SubmissionClock, spec_clock

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
    assert clock.limit(2.0) == 2.0
    clock.took(ended(25.0, 3.0, 25.0))
    assert clock.left == 6.0
    assert clock.limit(9.0) == 6.0
    clock.took(ended(5.0, 1.0, 4.0))
    with pytest.raises(InfrastructureError, match="too busy: all tests together got too little CPU time in 60 s"):
        clock.limit(2.0)


def test_rest_counts_as_its_own_time() -> None:
    clock = SubmissionClock(2.0, INFINITE)
    clock.took(ended(1.99, 0.0, 0.0))
    assert clock.limit(1.0) is None
    assert clock.over() == "all tests together took more than 2 s"


def test_the_reason_says_which_limit_it_was() -> None:
    assert late(ended(2.1, 2.0, 0.0), 2.0) == "computed for more than 2 s"
    assert late(ended(9.0, 2.0, 7.2), 2.0) == "computed for more than 2 s"
    assert late(ended(2.1, 0.1, 0.0), 2.0) == "took more than 2 s, partly idle"
    assert late(ended(0.5, None, 0.0), 2.0) == "took more than 2 s"


@pytest.mark.parametrize("computed", [0.0, 0.09, 0.11, 1.5])
def test_what_only_the_wall_clock_ended_is_not_judged(computed: float) -> None:
    with pytest.raises(InfrastructureError, match="too little CPU time in 80 s") as failure:
        late(ended(80.0, computed, 78.5), 2.0)
    assert failure.value.hint


def answered(seconds: float) -> ExecResult:
    return ended(seconds, None, 0.0).model_copy(update={"status": CallStatus.OK})


def test_quick_calls_that_fit_into_the_limit_by_any_clock_are_not_looked_at() -> None:
    clock = CandidateClock(2.0)
    for _ in range(9):
        clock.took(answered(0.2))
        assert clock.limit(1.0) == 1.0
    assert not clock.settle()


def test_quick_calls_that_do_not_fit_are_asked_again_where_they_are_measured() -> None:
    clock = CandidateClock(2.0)
    clock.took(answered(1.99))
    with pytest.raises(NotMeasuredError):
        clock.limit(1.0)
    with pytest.raises(NotMeasuredError):
        clock.settle()


@pytest.mark.parametrize("slowdown", [1.0, 9.0])
@pytest.mark.parametrize(("each", "calls", "passes"), [(0.1, 19, True), (0.1, 25, False), (0.001, 1_500, True)])
def test_what_quick_calls_computed_decides_whatever_the_load_is(
    slowdown: float, each: float, calls: int, passes: bool
) -> None:
    computed = [0.5]
    clock = CandidateClock(2.0, measured=True)
    clock.opened("a", lambda: computed[0])
    over = False
    for _ in range(calls):
        over = over or clock.limit(1.0) is None
        clock.took(answered(each * slowdown))
        computed[0] += each
    clock.closing("a")
    assert (over or clock.settle()) is not passes


def test_what_was_measured_by_itself_counts_once() -> None:
    computed = [0.0]
    clock = CandidateClock(2.0, measured=True)
    clock.opened("a", lambda: computed[0])
    clock.took(ended(5.0, 1.0, 4.0))
    computed[0] = 1.2
    clock.took(answered(1.5))
    assert clock.limit(1.0) == 0.8


def test_a_submission_that_computed_nothing_in_all_its_wall_clock_is_not_judged() -> None:
    clock = CandidateClock(2.0, measured=True)
    clock.opened("a", lambda: 0.0)
    for _ in range(100):
        clock.took(answered(0.9))
    with pytest.raises(InfrastructureError, match="too little CPU time in 90 s"):
        clock.limit(1.0)


def test_what_a_specs_own_code_computed_decides_however_long_its_many_quick_calls_took() -> None:
    clock = spec_clock(1.0)
    for _ in range(6):
        clock.took(answered(0.9))
    with pytest.raises(NotMeasuredError):
        clock.limit(1.0)
    computed = [3.0]
    clock = spec_clock(1.0, measured=True)
    clock.opened("a", lambda: computed[0])
    for _ in range(6):
        clock.took(answered(0.9))
    computed[0] = 4.0
    assert clock.limit(9.0) == 4.0
    for _ in range(9):
        clock.took(answered(0.9))
    computed[0] = 8.0
    assert clock.limit(1.0) is None
    assert clock.over() == "the spec's own code took more than 5 s"
