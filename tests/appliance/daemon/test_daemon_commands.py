"""Commands against a running daemon, as a person or a script types them."""

from __future__ import annotations

import json
import signal
import subprocess

from daemon_kit import ASSAY, clean_environ, until

from appliance.client import SPEC, SubmitJob

WAITS = SPEC.validate_python({"kind": "checklist", "items": [{"item": "length", "name": "length", "target": 60}]})
"""No solver tries it, so that it waits for a model."""
LIST = 'question = "About rain."\n[[items]]\nitem = "length"\nname = "length"\ntarget = 60\n'


def test_a_submitted_job_is_shown_as_json_and_in_words(standing, ask, tmp_path) -> None:
    (tmp_path / "list.toml").write_text(LIST)
    api = standing.ready()
    until(lambda: all(job.solvers_done or job.state.ended for job in api.jobs()))  # of earlier tests: the rest stays
    waiting = api.status().jobs.get("queued", 0)
    submitted = ask("submit", "--checklist", str(tmp_path / "list.toml"), "--priority", "7", "--json")
    assert submitted.returncode == 0, submitted.stderr
    job = json.loads(submitted.stdout)
    assert (job["state"], job["question"], job["priority"]) == ("queued", "About rain.", 7)
    assert json.loads(ask("jobs", "show", job["id"], "--json").stdout)["job"] == job
    assert "About rain." in ask("jobs", "ls").stdout
    assert json.loads(ask("status", "--json").stdout)["jobs"]["queued"] == waiting + 1
    assert f"jobs waiting  {waiting + 1}" in ask("status").stdout


def test_a_job_may_come_with_its_files_from_a_file_or_from_standard_input(standing, ask, tmp_path) -> None:
    (tmp_path / "rain.csv").write_text("day,mm\n1,4\n")
    (tmp_path / "list.toml").write_text(LIST)
    text = f'checklist = "{tmp_path}/list.toml"\nfile = ["{tmp_path}/rain.csv"]\n'
    (tmp_path / "job.toml").write_text(text.replace(f"{tmp_path}/", ""))
    for arguments, stdin in ((["submit", str(tmp_path / "job.toml"), "--json"], ""), (["submit", "-", "--json"], text)):
        submitted = ask(*arguments, stdin=stdin)
        assert submitted.returncode == 0, submitted.stderr
        job = json.loads(submitted.stdout)
        assert (job["spec"]["kind"], job["files"][0]["name"]) == ("checklist", "rain.csv")
        assert (standing.data / "files" / job["files"][0]["sha256"]).read_text() == "day,mm\n1,4\n"


def test_a_job_is_watched_cancelled_and_tried_again(standing, ask) -> None:
    api = standing.ready()
    job = api.submit(SubmitJob(question="q", spec=WAITS)).id
    watching = subprocess.Popen(
        [*ASSAY, "jobs", "watch", job], env=clean_environ(standing.data), stdout=subprocess.PIPE, text=True
    )
    assert watching.stdout is not None
    assert watching.stdout.readline().startswith("queued, waits for the first model")
    cancelled = json.loads(ask("jobs", "cancel", job, "--json").stdout)
    assert (cancelled["id"], cancelled["state"]) == (job, "cancelled")
    output = watching.communicate(timeout=120)[0]
    assert (watching.returncode, output.splitlines()[0]) == (1, "cancelled")
    assert "reason    cancelled by a person" in output
    again = json.loads(ask("jobs", "retry", job, "--json").stdout)
    assert (again["retry_of"], again["seed"], again["state"]) == (job, 1, "queued")
    refused = ask("jobs", "retry", again["id"])
    assert (refused.returncode, "has not ended" in refused.stderr) == (4, True)


def test_the_shell_offers_the_ids_of_jobs_that_the_daemon_knows(standing, ask) -> None:
    job = standing.ready().submit(SubmitJob(question="q", spec=WAITS)).id
    line = f"assay jobs show {job[:9]}"
    found = ask(_ASSAY_COMPLETE="complete_bash", COMP_WORDS=line, COMP_CWORD="3")
    assert (job in found.stdout.split(), found.stderr) == (True, "")


def test_a_question_without_a_check_is_refused_with_what_to_add(ask) -> None:
    refused = ask("submit", "--question", "what is the weather?")
    assert refused.returncode == 2
    assert all(flag in refused.stderr for flag in ("--check", "--expect", "--family"))


def test_a_hostile_question_cannot_steer_the_terminal(standing, ask) -> None:
    api = standing.ready()
    hostile = "\x1b]0;owned\x07\x1b[2J[red]x[/red]\u202egnp.\r\nfake row"
    job = api.submit(SubmitJob(question=hostile, spec=WAITS))
    for arguments in (["jobs", "ls"], ["jobs", "show", job.id], ["jobs", "show", job.id, "--json"]):
        shown = ask(*arguments)
        assert shown.returncode == 0
        assert not set(shown.stdout) & set("\x1b\x07\r\u202e")
        assert "owned" in shown.stdout
        assert "[red]" in shown.stdout


def test_the_refusals_of_governance_end_with_4_and_what_is_not_there_with_2(ask) -> None:
    assert ask("model", "rollback").returncode == 4
    for arguments in (["approve", "candidate"], ["reject", "abcdef"], ["compare"]):
        failed = ask("model", *arguments)
        assert (failed.returncode, "Traceback" in failed.stderr) == (2, False)
    assert "no model yet" in ask("model", "ls").stdout
    assert json.loads(ask("model", "ls", "--json").stdout) == []
    assert json.loads(ask("cycle", "ls", "--json").stdout) == []
    none_yet = ask("cycle", "show")
    assert (none_yet.returncode, "`assay cycle start`" in none_yet.stderr) == (2, True)
    assert ask("cycle", "show", "night-x").returncode == 2


def test_ctrl_c_while_waiting_for_a_job_ends_with_130_and_leaves_the_job(standing, tmp_path) -> None:
    (tmp_path / "list.toml").write_text(LIST)
    api = standing.ready()
    before = [job.id for job in api.jobs(1)]
    waiting = subprocess.Popen(
        [*ASSAY, "submit", "--checklist", str(tmp_path / "list.toml"), "--wait"],
        env=clean_environ(standing.data),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    until(lambda: [job.id for job in api.jobs(1)] != before)
    waiting.send_signal(signal.SIGINT)
    errors = waiting.communicate(timeout=120)[1]
    assert (waiting.returncode, "Traceback" in errors) == (130, False)
    job, *earlier = api.jobs(2)
    assert ([one.id for one in earlier], job.question, job.state) == (before, "About rain.", "queued")
