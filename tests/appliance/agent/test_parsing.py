"""What the policy model sees of a call, and how a box is read."""

from __future__ import annotations

from tables import table

from appliance.agent.answers import boxed
from appliance.agent.budget import AgentBudget
from appliance.agent.texts import shown
from runtime.sandbox import CallResult, CallStatus, Tier


def result(status: CallStatus, output: str = "", error: str = "") -> CallResult:
    return CallResult(status=status, output=output, error=error, seconds=0.1, tier=Tier.SHARED, sandbox="s1")


def test_braces_inside_a_box_are_balanced_and_an_open_box_counts() -> None:
    assert boxed("\\boxed{\\frac{1}{2}}") == ["\\frac{1}{2}"]
    assert boxed("\\boxed{1") == ["1"]
    assert boxed("\\boxed{\\boxed{3}}") == ["\\boxed{3}"]


def test_the_model_sees_output_of_a_call_that_worked_and_the_error_of_one_that_did_not() -> None:
    assert shown(result(CallStatus.OK, " 6\n"), 28) == "6"
    assert shown(result(CallStatus.EXCEPTION, error="NameError: gcd"), 28) == "NameError: gcd"
    assert shown(result(CallStatus.EXCEPTION, "1\n", "NameError: gcd"), 28) == "1\nNameError: gcd"
    assert shown(result(CallStatus.TIMEOUT), 28) == "error: timeout"
    assert shown(result(CallStatus.OK, "9" * 100), 28) == "9" * 28


@table("status", [status for status in CallStatus if status is not CallStatus.OK])
def test_every_failure_has_words_of_its_own_that_fit_where_results_are_short(status: CallStatus) -> None:
    budget = AgentBudget().max_result_chars
    messages = {one: shown(result(one, error="NameError: x"), 1000) for one in CallStatus if one is not CallStatus.OK}
    assert len(messages[status]) <= budget
    assert [one for one, message in messages.items() if message == messages[status]] == [status]
