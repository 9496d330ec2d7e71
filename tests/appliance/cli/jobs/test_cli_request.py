"""From what a person types to a job: one question, exactly one way to check its answer."""

from __future__ import annotations

import os
import re
import unicodedata
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from property_budget import FROM_STRANGERS
from tables import table

from appliance.cli.jobs.limits import budget_of, deadline_of
from appliance.cli.jobs.request import JobRequest, read_request
from appliance.client import AnswerSpec, ExactSpec, PredicateSpec, SubmitJob, printable
from appliance.errors import UsageError
from appliance.records.jobs import Job, JobState
from verifiers.contract.errors import SpecError


def submission_of(request: JobRequest) -> SubmitJob:
    return request.prepared(Path(), datetime(2026, 5, 1, tzinfo=UTC)).submission


def test_a_check_needs_no_known_answer() -> None:
    submission = submission_of(JobRequest(question="find n", check="n % 7 == 2", variable=("n",), domain="integer"))
    assert submission.spec == PredicateSpec(predicate="n % 7 == 2", variable="n", domain="integer")


@pytest.mark.parametrize(
    ("fields", "spec"),
    [
        ({"expect": "-42"}, AnswerSpec(notation="digits", expected="-42")),
        ({"expect": "1/2"}, AnswerSpec(notation="plain", domain="complex", expected="1/2", variables=())),
        (
            {"expect": "x+1", "variable": ("x",)},
            AnswerSpec(notation="plain", domain="complex", expected="x+1", variables=("x",)),
        ),
        ({"expect": "42", "kind": "exact"}, ExactSpec(expected="42")),
        ({"expect": "Paris"}, ExactSpec(expected="Paris")),
        ({"expect": "2024-02-01"}, ExactSpec(expected="2024-02-01")),
        ({"expect": "Paris", "kind": "answer"}, AnswerSpec(expected="Paris")),
        ({"spec": {"kind": "exact", "expected": "yes"}}, ExactSpec(expected="yes")),
    ],
)
def test_an_expected_answer_is_compared_as_its_form_says_or_as_told(fields, spec) -> None:
    assert submission_of(JobRequest.model_validate({"question": "q", **fields})).spec == spec


def test_a_family_brings_its_question_and_its_check() -> None:
    submission = submission_of(JobRequest(family="divisors", level=0, item=3))
    assert submission.question
    assert submission.spec is not None
    assert submission != submission_of(JobRequest(family="divisors", level=0, item=4))


@table(
    ("fields", "message"),
    [
        ({"question": "q", "check": "x > 1", "expect": "2"}, "check and expect cannot be combined"),
        ({"check": "x > 1"}, "question: missing"),
        ({"question": "q", "family": "divisors"}, "its own question"),
        ({"family": "astrology"}, "unknown taskset"),
        ({"family": "divisors", "level": 99}, "level"),
        ({"question": "q", "check": "x > 1", "variable": ("x", "y")}, "variable: given more than once"),
        ({"question": "q", "check": "x > 1", "variable": ("xy",)}, "invalid check"),
        ({"question": "q", "expect": "1.5", "kind": "integer"}, "invalid kind"),
    ],
)
def test_contradictions_are_named_with_what_to_do(fields, message) -> None:
    with pytest.raises(UsageError, match=message) as met:
        submission_of(JobRequest.model_validate(fields))
    assert met.value.hint


def test_the_keys_of_a_file_are_the_names_of_the_flags() -> None:
    content = b'question = "find x"\ncheck = "7*x+3 == 45"\nbudget = "3 attempts"\n'
    assert read_request(content, "job.toml") == JobRequest(question="find x", check="7*x+3 == 45", budget="3 attempts")
    content = b'question = "double x + 1"\n[spec]\nkind = "answer"\nexpected = "2*x+2"\nvariables = ["x"]\n'
    content += b'notation = "plain"\ndomain = "complex"\n'
    assert submission_of(read_request(content, "job.toml")).spec == AnswerSpec(
        notation="plain", domain="complex", expected="2*x+2", variables=("x",)
    )


@table(
    "content",
    [
        b"\xff\xfe",
        b"question = ",
        b'question = "q"\nanswer = "6"\n',
        b'question = ""\n',
        b"question = 7\n",
        b'question = "q"\nbudget = [0]\n',
        b'question = "q"\n[spec]\nkind = "vibes"\n',
        b"#" * 1_000_001,
        b'question = "q"\nexpect = ' + b"[" * 50_000,
        b'question = "q"\nexpect = ' + b"9" * 5_000,
    ],
)
def test_a_file_that_is_no_job_is_refused_with_its_name(content) -> None:
    with pytest.raises(UsageError, match=r"job\.toml") as met:
        read_request(content, "job.toml")
    assert met.value.hint


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'question = "q"\nchek = "x==1"\n', "chek: unknown key; did you mean check?"),
        (b'question = "q"\nfile = "a.csv"\n', "file: must be a list"),
        (b'question = ""\n', "question: must not be empty"),
        (b'question = " "\nexpect = "6"\n', "question: must not be blank"),
    ],
)
def test_what_is_wrong_with_a_key_is_said_in_plain_words(content, message) -> None:
    with pytest.raises(UsageError) as met:
        read_request(content, "job.toml")
    assert message in str(met.value)


NOW = datetime(2026, 5, 1, 12, tzinfo=timezone(timedelta(hours=2)))


@pytest.mark.parametrize(
    ("given", "until"),
    [
        ("90m", "2026-05-01T11:30:00+00:00"),
        ("1d12h", "2026-05-02T22:00:00+00:00"),
        ("2026-05-01T18:00", "2026-05-01T16:00:00+00:00"),
        ("2026-05-01T18:00Z", "2026-05-01T18:00:00+00:00"),
        (datetime.fromisoformat("2026-05-02"), "2026-05-01T22:00:00+00:00"),
        (None, None),
    ],
)
def test_a_deadline_is_a_span_or_a_time_local_unless_it_has_a_zone(given, until) -> None:
    assert deadline_of(given, NOW) == until


@pytest.mark.parametrize("given", ["", "0s", "soon", "2026-05-01T09:59Z", "2h30", "9999-12-31T23:59-12:00"])
def test_what_is_no_deadline_or_has_passed_is_refused(given) -> None:
    with pytest.raises(UsageError) as met:
        deadline_of(given, NOW)
    assert met.value.hint


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"claim": "none.smt2"}, "none.smt2"),
        ({"statement": "."}, "Is a directory"),
        ({"spec": "a\0b", "question": "q"}, "invalid file name"),
        ({"spec": "not.toml", "question": "q"}, "is not TOML"),
        ({"spec": {"functions": "f"}}, "functions"),
        ({"spec": "tests.toml"}, "question: missing"),
        ({"question": "q", "expect": "1", "file": ("a b.csv",)}, "invalid file name"),
        ({"question": "q", "expect": "1", "file": ("x.csv", "sub/x.csv")}, "two files"),
        ({"question": "q", "expect": "1", "file": ("x.csv",) * 17}, "at most 16"),
        ({"question": "q", "expect": "1", "file": ("large.csv",)}, "larger than 8 MiB"),
        ({"checklist": "not.toml"}, "not TOML"),
        ({"claim": "not.toml"}, "not.toml"),
        ({"spec": "long.toml", "question": "q"}, "too many digits"),
        ({"spec": "pipe", "question": "q"}, "not a regular file"),
        ({"question": "q", "expect": "1", "file": ("pipe",)}, "not a regular file"),
    ],
)
def test_files_that_cannot_be_used_are_named(tmp_path, fields, message) -> None:
    (tmp_path / "sub").mkdir()
    for name in ("a b.csv", "x.csv", "sub/x.csv"):
        (tmp_path / name).write_text("1")
    (tmp_path / "not.toml").write_text("(((")
    (tmp_path / "long.toml").write_text(f'function = "f"\nlimit = {"9" * 5_000}\n')
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "tests.toml").write_text(
        'function = "f"\n[[examples]]\narguments = [1]\nexpected = 2\n[[examples]]\narguments = [2]\nexpected = 3\n'
    )
    with (tmp_path / "large.csv").open("wb") as large:
        large.truncate((8 << 20) + 1)
    with pytest.raises((UsageError, SpecError), match=re.escape(message)) as met:
        JobRequest.model_validate(fields).prepared(tmp_path, NOW)
    assert met.value.hint


@settings(max_examples=FROM_STRANGERS)
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


@pytest.mark.parametrize(
    ("given", "limits"),
    [
        (None, {}),
        ("60", {"budget_seconds": 60.0}),
        ("1.5s", {"budget_seconds": 1.5}),
        ("600.5 seconds", {"budget_seconds": 600.5}),
        (" 60 s ", {"budget_seconds": 60.0}),
        ("10 m", {"budget_seconds": 600.0}),
        ("1e3", {"budget_seconds": 1000.0}),
        ("0.30000000000000004", {"budget_seconds": 0.30000000000000004}),
        ("1h30m", {"budget_seconds": 5400.0}),
        ("20000 tokens", {"budget_tokens": 20_000}),
        ("8attempts", {"attempts": 8}),
        ("1 attempt, 10m, 500 Tokens", {"attempts": 1, "budget_seconds": 600.0, "budget_tokens": 500}),
    ],
)
def test_a_budget_is_seconds_tokens_attempts_or_several(given: str | None, limits: dict[str, float]) -> None:
    assert budget_of(given) == limits


@pytest.mark.parametrize(
    "given",
    ["", "0", "0 attempts", "-1", "many", "1.5 tokens", "2000 attempts", "8 attempts,", "1 attempt, 2 attempts",
     "1e300", "1e999", "60, 1m", "0.5 attempts", "20,000 tokens", "1e13 tokens", "nan",
     "inf", "9" * 40, "8 tries", "１２"],
)  # fmt: skip
def test_an_empty_or_unreadable_budget_is_refused_with_the_forms_that_can_be_given(given: str) -> None:
    with pytest.raises(UsageError, match="budget"):
        budget_of(given)


def test_a_job_shows_its_budget_in_the_words_in_which_it_can_be_given() -> None:
    made = Job(
        id="j", question="q", spec=ExactSpec(expected="1"), state=JobState.QUEUED, created="", updated="", attempts=1,
        budget_seconds=600.5, budget_tokens=1_234_567,
    )  # fmt: skip
    assert made.budget == "1 attempt, 600.5s, 1234567 tokens"
    assert budget_of(made.budget) == {"attempts": 1, "budget_seconds": 600.5, "budget_tokens": 1_234_567}
