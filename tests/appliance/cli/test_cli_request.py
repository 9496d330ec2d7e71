"""From what a person types to a job: one question, exactly one way to check its answer."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.cli.request import JobRequest, RequestError, read_request
from appliance.client import ExactSpec, ExpressionSpec, IntegerSpec, PredicateSpec, printable


def test_a_check_needs_no_known_answer() -> None:
    submission = JobRequest(question="find n", check="n % 7 == 2", variable=("n",), domain="integer").to_submission()
    assert submission.spec == PredicateSpec(predicate="n % 7 == 2", variable="n", domain="integer")


@pytest.mark.parametrize(
    ("fields", "spec"),
    [
        ({"expect": "-42"}, IntegerSpec(expected="-42")),
        ({"expect": "1/2"}, ExpressionSpec(expected="1/2")),
        ({"expect": "x+1", "variable": ("x",)}, ExpressionSpec(expected="x+1", variables=("x",))),
        ({"expect": "42", "kind": "exact"}, ExactSpec(expected="42")),
        ({"spec": {"kind": "exact", "expected": "yes"}}, ExactSpec(expected="yes")),
    ],
)
def test_an_expected_answer_is_compared_as_its_form_says_or_as_told(fields, spec) -> None:
    assert JobRequest.model_validate({"question": "q", **fields}).to_submission().spec == spec


def test_a_family_brings_its_question_and_its_check() -> None:
    submission = JobRequest(family="divisors", level=0, item=3).to_submission()
    assert submission.question
    assert submission.spec is not None
    assert submission != JobRequest(family="divisors", level=0, item=4).to_submission()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"question": "q", "check": "x > 1", "expect": "2"}, "check and expect both"),
        ({"check": "x > 1"}, "no question"),
        ({"question": "q", "family": "divisors"}, "its own question"),
        ({"family": "astrology"}, "no family"),
        ({"family": "divisors", "level": 99}, "level"),
        ({"question": "q", "check": "x > 1", "variable": ("x", "y")}, "one variable"),
        ({"question": "q", "check": "x > 1", "variable": ("xy",)}, "cannot be used"),
        ({"question": "q", "expect": "1.5", "kind": "integer"}, "cannot be used"),
    ],
)
def test_contradictions_are_named_with_what_to_do(fields, message) -> None:
    with pytest.raises(RequestError, match=message) as met:
        JobRequest.model_validate(fields).to_submission()
    assert met.value.hint


def test_the_keys_of_a_file_are_the_names_of_the_flags() -> None:
    content = b'question = "find x"\ncheck = "7*x+3 == 45"\nattempts = 3\n'
    assert read_request(content, "job.toml") == JobRequest(question="find x", check="7*x+3 == 45", attempts=3)
    content = b'question = "double x + 1"\n[spec]\nkind = "expression"\nexpected = "2*x+2"\nvariables = ["x"]\n'
    assert read_request(content, "job.toml").to_submission().spec == ExpressionSpec(expected="2*x+2", variables=("x",))


@pytest.mark.parametrize(
    "content",
    [
        b"\xff\xfe",
        b"question = ",
        b'question = "q"\nanswer = "6"\n',
        b'question = ""\n',
        b"question = 7\n",
        b'question = "q"\nattempts = 0\n',
        b'question = "q"\n[spec]\nkind = "vibes"\n',
        b"#" * 1_000_001,
    ],
)
def test_a_file_that_is_no_job_is_refused_with_its_name(content) -> None:
    with pytest.raises(RequestError, match=r"job\.toml") as met:
        read_request(content, "job.toml")
    assert met.value.hint


@given(st.text(), st.integers(0, 40))
def test_what_is_printed_can_neither_steer_a_terminal_nor_hide(text: str, limit: int) -> None:
    shown = printable(text, limit=limit)
    assert all(unicodedata.category(character)[0] not in "C" for character in shown)
    assert "\n" not in shown
    if limit:
        assert len(shown) <= limit


@given(st.text(st.characters(categories=["L", "N", "P", "S", "Zs"]), max_size=50))
def test_ordinary_text_is_printed_as_it_is(text: str) -> None:
    assert printable(text) == text
    assert printable(f"{text}\n{text}", lines=True) == f"{text}\n{text}"
