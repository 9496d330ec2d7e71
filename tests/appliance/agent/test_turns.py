"""A finished turn is a call, a final answer, or something that goes back to the policy model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.agent.answers import Final, boxed
from appliance.agent.dialect import SEEDLING
from appliance.agent.turns import Malformed, ToolRequest, read_turn, shown
from appliance.learning.recipe import AgentBudget
from runtime.sandbox import CallResult, CallStatus, Tier


def result(status: CallStatus, output: str = "", error: str = "") -> CallResult:
    return CallResult(status=status, output=output, error=error, seconds=0.1, tier=Tier.SHARED, sandbox="s1")


def test_a_turn_that_begins_with_the_marker_is_a_call() -> None:
    assert read_turn("<|tool|>print(1)", SEEDLING) == ToolRequest("print(1)")


def test_a_call_without_code_or_with_a_marker_inside_is_malformed() -> None:
    assert read_turn("<|tool|>  ", SEEDLING) == Malformed("  ", "empty call")
    assert isinstance(read_turn("<|tool|>print(1)<|tool|>print(2)", SEEDLING), Malformed)
    assert isinstance(read_turn("<|tool|>print(1)<|result|>5", SEEDLING), Malformed)


def test_a_marker_in_the_middle_is_malformed_not_an_answer() -> None:
    assert isinstance(read_turn("\\boxed{5} <|tool|>print(1)", SEEDLING), Malformed)


def test_exactly_one_box_is_an_answer() -> None:
    assert read_turn("so \\boxed{42}", SEEDLING) == Final("42", 1)
    assert read_turn("\\boxed{1} or \\boxed{2}", SEEDLING) == Final(None, 2)
    assert read_turn("42", SEEDLING) == Final(None, 0)


def test_braces_inside_a_box_are_balanced_and_an_open_box_counts() -> None:
    assert boxed("\\boxed{\\frac{1}{2}}") == ["\\frac{1}{2}"]
    assert boxed("\\boxed{1") == ["1"]
    assert boxed("\\boxed{\\boxed{3}}") == ["\\boxed{3}"]


@given(st.text())
def test_any_text_has_a_meaning(text: str) -> None:
    assert isinstance(read_turn(text, SEEDLING), ToolRequest | Malformed | Final)


def test_the_model_sees_output_of_a_call_that_worked_and_the_error_of_one_that_did_not() -> None:
    assert shown(result(CallStatus.OK, " 6\n"), 28) == "6"
    assert shown(result(CallStatus.EXCEPTION, error="NameError: gcd"), 28) == "NameError: gcd"
    assert shown(result(CallStatus.EXCEPTION, "1\n", "NameError: gcd"), 28) == "1\nNameError: gcd"
    assert shown(result(CallStatus.TIMEOUT), 28) == "error: timeout"
    assert shown(result(CallStatus.OK, "9" * 100), 28) == "9" * 28


@pytest.mark.parametrize("status", [status for status in CallStatus if status is not CallStatus.OK])
def test_every_failure_has_words_of_its_own_that_fit_where_results_are_short(status: CallStatus) -> None:
    budget = AgentBudget().max_result_chars
    told = {one: shown(result(one, error="NameError: x"), 1000) for one in CallStatus if one is not CallStatus.OK}
    assert len(told[status]) <= budget
    assert [one for one, words in told.items() if words == told[status]] == [status]
