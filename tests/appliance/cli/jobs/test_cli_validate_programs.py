"""The tests of a program are shown with what they let through, by running them."""

from __future__ import annotations

from check_commands import Checked

from appliance.jobs.validation import page_of
from appliance.records.jobs import Job, JobState
from verifiers.programs.spec import Example, ProgramSpec

AT = "2026-01-02T03:04:05+00:00"


def test_neighbours_of_the_reference_that_the_tests_let_through_come_first(checked: Checked) -> None:
    spec = ProgramSpec(
        function="f",
        examples=(Example(arguments="1", expected="2", visible=True), Example(arguments="5", expected="10")),
        reference="def f(x):\n    if x > 1000:\n        return 0\n    return 2 * x\n",
    )
    job = Job(id="j", question="Twice x.", spec=spec, state=JobState.QUEUED, created=AT, updated=AT)
    found = page_of(job, None, lambda pairs, _: checked.checker.check_many(pairs, 60.0), lambda: 0.0)
    accepted = {one.what: one.accepted for one in found.examples}
    assert accepted["the reference"]
    assert accepted["line 2: 1000 becomes 1001"]
    assert not accepted["line 4: 2 becomes 3"]
    assert not accepted["a table of the visible examples"]
    assert found.first[0].startswith(
        "WEAK: 4 of 11 variants that were changed on purpose are accepted: line 2: 1000 becomes 999"
    )
