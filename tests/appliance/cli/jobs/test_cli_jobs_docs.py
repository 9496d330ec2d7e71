"""docs/jobs.md: every example is a job of the kind that its heading says, and is admitted."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from appliance.cli.jobs.request import PreparedRequest, read_request
from appliance.records.jobs import Job, JobState
from verifiers import registry
from verifiers.registry import check_spec

TEXT = (Path(__file__).parents[4] / "docs" / "jobs.md").read_text()
NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
KINDS = {
    "question.toml": "question",
    "program.toml": "program",
    "claim.toml": "claim",
    "theorem.toml": "theorem",
    "data.toml": "data",
    "text.toml": "text",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The examples as files."""
    made = tmp_path_factory.mktemp("examples")
    for name, content in re.findall(r"^`([\w.]+)`\n\n```\w+\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL):
        (made / name).write_text(content)
    return made


def prepared(folder: Path, name: str) -> PreparedRequest:
    return read_request((folder / name).read_bytes(), name).prepared(folder, NOW)


@pytest.mark.parametrize("name", KINDS)
def test_an_example_is_a_job_of_its_kind_with_a_spec_that_decides(folder: Path, name: str) -> None:
    made = prepared(folder, name)
    wanted = made.submission
    assert wanted.spec is not None
    check_spec(wanted.spec)
    at = NOW.isoformat()
    fields = {"question": wanted.question, "spec": wanted.spec, "files": wanted.files}
    job = Job(id="j", state=JobState.QUEUED, created=at, updated=at, **fields)
    assert job.kind == KINDS[name]
    assert {file.sha256 for file in wanted.files} == set(made.contents)


def test_there_is_an_example_of_each_kind_that_needs_no_world() -> None:
    of_worlds = {"game", "files"}
    assert set(KINDS.values()) == {
        "data",
        *(kind.job for kind in registry.KINDS.values() if kind.name not in of_worlds),
    }


def test_what_is_asked_of_the_agent_is_the_claim_the_statement_the_list_and_what_is_visible(folder: Path) -> None:
    assert "(assert (< a b))" in prepared(folder, "claim.toml").submission.question
    assert "theorem target" in prepared(folder, "theorem.toml").submission.question
    assert prepared(folder, "text.toml").submission.question.startswith("Describe the water cycle")
    program = prepared(folder, "program.toml").submission.question
    assert "solve([3, 9, 4]) is 6" in program
    assert "solve([5])" not in program


def test_priority_deadline_and_budget_are_taken_along(folder: Path) -> None:
    assert prepared(folder, "program.toml").submission.priority == 6
    assert prepared(folder, "data.toml").submission.deadline == "2026-05-01T14:00:00+00:00"
    assert prepared(folder, "claim.toml").submission.budget_seconds == 60
