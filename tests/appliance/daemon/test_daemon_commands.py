"""Commands against a running daemon, as a person or a script types them."""

from __future__ import annotations

import json
import signal
import subprocess
import time

from daemon_kit import ASSAY, clean_environ

from appliance.client import SPEC, SubmitJob


def test_a_submitted_job_is_shown_as_json_and_in_words(start, assay) -> None:
    start().ready().close()
    submitted = assay("submit", "--question", "find x with 7x+3=45", "--check", "7*x+3 == 45", "--json")
    assert submitted.returncode == 0, submitted.stderr
    job = json.loads(submitted.stdout)
    assert (job["state"], job["spec"]["predicate"]) == ("queued", "7*x+3 == 45")
    assert json.loads(assay("jobs", "show", job["id"], "--json").stdout)["job"] == job
    assert "find x with 7x+3=45" in assay("jobs", "ls").stdout
    assert json.loads(assay("status", "--json").stdout)["jobs"] == {"queued": 1}
    assert "jobs waiting  1" in assay("status").stdout


def test_a_job_may_come_from_a_file_or_from_standard_input(start, assay, data) -> None:
    start().ready().close()
    text = 'question = "gcd of 12 and 18?"\nexpect = "6"\n'
    file = data.parent / "job.toml"
    file.write_text(text)
    for arguments, stdin in ((["submit", str(file), "--json"], ""), (["submit", "-", "--json"], text)):
        submitted = assay(*arguments, stdin=stdin)
        assert submitted.returncode == 0, submitted.stderr
        assert json.loads(submitted.stdout)["spec"] == {"kind": "integer", "expected": "6"}


def test_a_question_without_a_check_is_refused_with_what_to_add(start, assay) -> None:
    start().ready().close()
    refused = assay("submit", "--question", "what is the weather?")
    assert refused.returncode == 2
    assert all(flag in refused.stderr for flag in ("--check", "--expect", "--family"))


def test_a_hostile_question_cannot_steer_the_terminal(start, assay) -> None:
    with start().ready() as api:
        hostile = "\x1b]0;owned\x07\x1b[2J[red]x[/red]\u202egnp.\r\nfake row"
        job = api.submit(SubmitJob(question=hostile, spec=SPEC.validate_python({"kind": "integer", "expected": "1"})))
    for arguments in (["jobs", "ls"], ["jobs", "show", job.id], ["jobs", "show", job.id, "--json"]):
        shown = assay(*arguments)
        assert shown.returncode == 0
        assert not set(shown.stdout) & set("\x1b\x07\r\u202e")
        assert "owned" in shown.stdout
        assert "[red]" in shown.stdout


def test_the_refusals_of_governance_end_with_4_and_what_is_not_there_with_2(start, assay) -> None:
    start().ready().close()
    assert assay("model", "rollback").returncode == 4
    for arguments in (["approve", "candidate"], ["reject", "abcdef"], ["compare"]):
        failed = assay("model", *arguments)
        assert (failed.returncode, "Traceback" in failed.stderr) == (2, False)
    assert "no model yet" in assay("model", "ls").stdout
    assert json.loads(assay("model", "ls", "--json").stdout) == []
    assert json.loads(assay("cycle", "ls", "--json").stdout) == []


def test_ctrl_c_while_waiting_for_a_job_ends_with_130_and_leaves_the_job(start, assay, data) -> None:
    with start().ready() as api:
        waiting = subprocess.Popen(
            [*ASSAY, "submit", "--question", "q", "--expect", "1", "--wait"],
            env=clean_environ(data),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        deadline = time.monotonic() + 30
        while not api.jobs():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        waiting.send_signal(signal.SIGINT)
        said = waiting.communicate(timeout=30)[1]
        assert (waiting.returncode, "Traceback" in said) == (130, False)
        assert [job.state for job in api.jobs()] == ["queued"]
