"""A solved job is shown in plain words and validated; the bundle and the word on it are then checked together."""

from __future__ import annotations

import json
import shlex

import pytest
import test_daemon_validations as built

from appliance.client.messages import SubmitJob
from appliance.config.configuration import Settings
from appliance.daemon.coordination.core import Core
from verifiers.answers.spec import AnswerSpec
from verifiers.registry import decide

PASSPHRASE = "correct horse battery"
NO_SOLVER_TRIES = """
question = "q"

[[items]]
item = "length"
target = 60
"""


@pytest.fixture
def job(data) -> str:
    """One that was solved, with its bundle, as a worker leaves it."""
    spec = AnswerSpec(notation="digits", expected="6")
    with Core(Settings(data=data)) as core:
        made = core.jobs.submit(SubmitJob(question="What is 2 * 3?", spec=spec))
        built.solve(core, made, verdict=decide(spec, "6"))
    return made.id


def test_a_job_is_shown_and_validated_and_its_bundle_says_both(start, assay, data, tmp_path, job) -> None:
    start(broker=True).ready()
    secret = tmp_path / "passphrase"
    secret.write_text(f"{PASSPHRASE}\n")
    signs = ("--passphrase-file", str(secret))
    assert assay("key", "new", "--as", "ada", *signs).returncode == 0
    assert [one["id"] for one in json.loads(assay("jobs", "validate", "--json").stdout)] == [job]

    unconfirmed = assay("jobs", "validate", job, *signs)
    assert (unconfirmed.returncode, "no terminal to confirm" in unconfirmed.stderr) == (2, True)
    for text in (
        "What is 2 * 3?",
        "the whole number 6",
        "variants that were changed on purpose are rejected",
        "a different integer",
    ):
        assert text in unconfirmed.stdout
    shown = unconfirmed.stdout.split()[-1]
    given = assay("jobs", "validate", job, "--confirm", shown[:8], *signs)
    assert given.returncode == 0, given.stderr
    meaning = json.loads(assay("jobs", "show", job, "--json").stdout)["job"]["validation"]
    assert (meaning["verdict"], meaning["person"], meaning["shown"]) == ("meant", "ada", shown)

    printed = shlex.split(given.stdout.split("`")[-2])
    assert printed[:3] == ["assay", "verify", str(data / "artifacts" / job)]
    checked = assay(*printed[1:])
    assert (checked.returncode, "verified and validated" in checked.stdout) == (0, True), checked.stdout


def test_a_job_that_was_called_off_is_refused_before_anything_is_shown(ask, tmp_path) -> None:
    (tmp_path / "text.toml").write_text(NO_SOLVER_TRIES)
    made = ask("submit", "--checklist", str(tmp_path / "text.toml"), "--json")
    job = json.loads(made.stdout)["id"]
    assert ask("jobs", "cancel", job).returncode == 0
    cancelled = ask("jobs", "validate", job)
    assert (cancelled.returncode, "is cancelled" in cancelled.stderr, cancelled.stdout) == (4, True, "")
