"""What of an owner's days becomes tasks: jobs and sessions with a verdict, where the policy and the person said so."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from daemon_kit import until
from gateway_kit import running_gateway
from people import admit
from pydantic import ValidationError
from test_daemon_trust import sign_policy

from appliance.client.gateway import becomes_task
from appliance.client.own_tasks import CollectedRows
from appliance.config.configuration import Settings
from appliance.curriculum.own_tasksets import read_own
from appliance.daemon.contract import RefusedByPolicyError, RequestError
from appliance.daemon.coordination.core import Core
from appliance.daemon.coordination.threads import collect_tasks
from appliance.daemon.service.collected import passed_job, row_of
from appliance.gateway.sessions import KeptSession, KeptSessions, SaidText, last_day
from appliance.records.jobs import Artifact, Job, JobState
from appliance.records.rollouts import Message, Role
from appliance.system.clock import utc_now
from curriculum.own.rows import OwnRow
from policies.policy import read_content
from runtime.settings import BrokerSettings, RuntimeSettings
from verifiers.answers.spec import AnswerSpec
from verifiers.checker import Checker
from verifiers.contract.verdict import Outcome, Verdict
from verifiers.registry.spec import Spec


def verdict(outcome: Outcome = Outcome.PASS) -> Verdict:
    score = float(outcome is Outcome.PASS)
    return Verdict(outcome=outcome, score=score, reason="so", verifier="v", version="1", seconds=0.0)


def job(number: int = 1, question: str = "What is 6 times 7?", **fields: Any) -> Job:
    known = {
        "id": f"job-{number:012x}",
        "question": question,
        "spec": AnswerSpec(expected="42"),
        "state": JobState.SOLVED,
        "solved_by": "policy model",
        "artifact": f"artifact-{number}",
        "created": utc_now(),
        "updated": utc_now(),
    }
    return Job.model_validate({**known, **fields})


def artifact(number: int = 1, outcome: Outcome = Outcome.PASS) -> Artifact:
    known = {"id": f"artifact-{number}", "job": f"job-{number:012x}", "folder": "x", "manifest": "0" * 64}
    return Artifact(**known, answer="42", weights="", verdict=verdict(outcome), created=utc_now())


def keep(data: Path, question: str, digit: str = "a", spec: Spec | None = None, **fields: Any) -> None:
    session = KeptSession(
        id=f"gs-{digit * 16}",
        token="agent",
        created=utc_now(),
        updated=utc_now(),
        expires=last_day(utc_now(), 30.0),
        version="v1",
        said=(SaidText(role="user", text=question), SaidText(role="assistant", text="42")),
        nodes=(
            Message(parent=None, role=Role.USER, ids=(1, 2, 3), sampled=False),
            Message(parent=0, role=Role.ASSISTANT, ids=(4, 5), sampled=True),
            Message(parent=0, role=Role.ASSISTANT, ids=(6,), sampled=True, why="drawn at temperature 0"),
        ),
        questions=1,
        answer="42",
        submission="42",
        spec=spec or AnswerSpec(expected="42"),
        verdict=fields.pop("verdict", verdict()),
    )
    KeptSessions(data).put(session.model_copy(update=fields), new=True)


def test_a_job_is_a_candidate_only_where_the_policy_says_so(data: Path) -> None:
    with Core(Settings(data=data)) as core:
        admit(core, "ada")
        core.ledger.put_artifact(artifact())
        core.ledger.put_job(job())
        assert core.policy.data.jobs_as_tasks is False
        assert core.collected.candidates() == []
        allowed = read_content(None)[0].replace(b"jobs_as_tasks = false", b"jobs_as_tasks = true")
        core.governance.change_policy(allowed, sign_policy(core, allowed, "ada"))
        (found,) = core.collected.candidates()
        assert (found.taskset, found.row.answer, found.row.origin) == ("jobs", "42", f"job {job().id}, policy model")


@pytest.mark.parametrize(
    ("made", "outcome", "files"),
    [
        (job(), Outcome.FAIL, {}),
        (job(), Outcome.INFRA_ERROR, {}),
        (job(state=JobState.UNSOLVED), Outcome.PASS, {}),
        (job(replay_of="job-2"), Outcome.PASS, {}),
        (job(), Outcome.HACK_SUSPECTED, {}),
        (job(), Outcome.PASS, {"a.bin": b"\xff\xfe"}),
        (job(), Outcome.PASS, {"a.txt": b"x" * 300_000}),
        (
            job(
                validation={
                    "verdict": "not_meant",
                    "shown": "",
                    "person": "ada",
                    "created": utc_now(),
                    "key": "",
                    "envelope": "",
                }
            ),
            Outcome.PASS,
            {},
        ),
    ],
)
def test_nothing_is_made_of_a_job_without_a_verdict_that_passed_or_that_is_no_task(
    made: Job, outcome: Outcome, files: dict[str, bytes]
) -> None:
    assert passed_job(made, artifact(outcome=outcome), files) is None


def test_a_jobs_files_go_with_it_and_a_question_that_is_too_long_is_no_task() -> None:
    passed = passed_job(job(), artifact(), {"t.csv": b"a,b\n1,2\n"})
    row = row_of(passed)
    assert (row.files, row.key) == (
        {"t.csv": "a,b\n1,2\n"},
        OwnRow(question="what  is 6 TIMES 7?", spec=job().spec, origin="").key,
    )
    assert row_of(passed_job(job(question="x" * 50_000), artifact(), {})) is None


def test_the_daemon_deletes_what_is_past_its_last_day_whoever_looks(data: Path, start) -> None:
    keep(data, "old", "a", expires=utc_now())
    keep(data, "new", "b")
    start().ready()
    until(lambda: KeptSessions(data).names() == [f"gs-{'b' * 16}"])


def test_a_session_says_what_became_of_it(data: Path) -> None:
    with Core(Settings(data=data)) as core:
        questions = {"a": "How much is 6 times 7 owls?", "b": "And 7 times 6 owls?", "c": "And owls that are 42?"}
        for digit, question in questions.items():
            keep(data, question, digit)
        keep(data, questions["a"].upper(), "d")
        keep(data, "x" * 50_000, "e")
        keys = {digit: OwnRow(question=one, spec=job().spec, origin="").key for digit, one in questions.items()}
        taken = next(one.row for one in core.collected.candidates() if one.row.key == keys["a"])
        refused = {keys["b"]: "too near to a sealed question"}
        core.collected.collect(CollectedRows(taskset="sessions", keys=(taken.key,), refused=refused))
        rows = {one.id[3]: one for one in core.gateway.sessions(10)}
        assert {rows[digit].task_of for digit in "bc"} == {""}
        assert rows["b"].no_task == "refused: too near to a sealed question"
        assert becomes_task(rows["c"], "yes") == "yes"
        first, second = ("a", "d") if taken.origin == f"session {rows['a'].id}" else ("d", "a")
        assert becomes_task(rows[first], "yes") == "is one of own/sessions"
        assert rows[second].no_task == "its question is in own/sessions already"
        assert "at most 40,000 characters" in rows["e"].no_task
        assert core.gateway.session(rows["b"].id).row == rows["b"]


def test_sessions_are_collected_checked_and_never_twice(standing, ask) -> None:
    standing.ready()
    keep(standing.data, "How much is 6 times 7 in the year of the owl?", "a")
    keep(
        standing.data,
        "Say anything at all to the owl.",
        "b",
        AnswerSpec(expected="42", notation="digits"),
        verdict=verdict(Outcome.FAIL),
    )
    shown = json.loads(ask("gateway", "sessions", "ls", "--json").stdout)
    assert {one["id"][3]: bool(one["no_task"]) for one in shown} == {"a": False, "b": True}
    ran = ask("curriculum", "collect", "--json")
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == {"taken": {f"session gs-{'a' * 16}": "own/sessions"}, "refused": []}
    assert "no new passing verdict" in ask("curriculum", "collect").stdout
    shown = {one["id"][3]: one for one in json.loads(ask("gateway", "sessions", "ls", "--json").stdout)}
    assert (shown["a"]["task_of"], shown["a"]["no_task"], shown["b"]["task_of"]) == ("own/sessions", "", "")
    assert "is one of own/sessions" in ask("gateway", "sessions", "show", f"gs-{'a' * 16}").stdout
    assert "sessions at the gateway" in ask("curriculum", "show", "own/sessions").stdout
    (row,) = read_own(standing.data, "own/sessions").content.rows
    assert (row.origin, row.answer) == (f"session gs-{'a' * 16}", "42")
    assert "taskset.collected" in ask("audit", "ls").stdout
    submitted = ask("submit", "--family", "own/sessions", "--level", str(row.level), "--json")
    if row.split.value == "train":
        assert json.loads(submitted.stdout)["question"].startswith("How much is 6 times 7")
    words = ask("gateway", "sessions", "show", f"gs-{'a' * 16}").stdout
    for beginning in ("gs-aaaaaa", "AAAAAAA"):
        assert ask("gateway", "sessions", "show", beginning).stdout == words
    assert ask("gateway", "sessions", "show", "gs-aaaaa").returncode == 2
    assert "\n\nuser:\nHow much is 6 times 7" in words, words
    assert "1 of 2 turns, in 2 samples" in words
    assert "  turn 1: 2 tokens, yes\n  turn 2: 1 token, no: drawn at temperature 0\n" in words
    assert ask("gateway", "sessions", "delete", "gs-aaaaaaaa").returncode == 0
    assert ask("gateway", "sessions", "show", f"gs-{'a' * 16}").returncode == 2
    unsure = ask("gateway", "sessions", "delete", "--all")
    assert (unsure.returncode, "add --yes" in unsure.stderr) == (2, True)
    assert json.loads(ask("gateway", "sessions", "delete", "--all", "--yes", "--json").stdout) == {"deleted": 1}
    assert ask("curriculum", "rm", "own/sessions").returncode == 0


def test_what_is_collected_grows_is_not_changed_while_a_cycle_uses_it_and_keeps_its_name(data: Path) -> None:
    def rows(*numbers: int) -> tuple[OwnRow, ...]:
        return tuple(
            OwnRow(question=f"{one}?", spec=AnswerSpec(expected="1"), answer="1", origin="job") for one in numbers
        )

    with Core(Settings(data=data)) as core:
        first = core.own_work.collect("jobs", rows(1, 2), {"own:x": "no"})
        second = core.own_work.collect("jobs", rows(3), {})
        assert (first.rows, second.rows, first.digest != second.digest) == (2, 3, True)
        assert "own:x" in core.own_work.decided_keys()
        with pytest.raises(RequestError, match="same question"):
            core.own_work.collect("jobs", rows(3), {})
        content = read_own(data, "own/jobs").content
        with pytest.raises(RequestError, match="reserved for collected work"):
            core.own_work.add(content)
        recipe = core.settings.recipe.model_copy(update={"tasksets": ("digits", "own/jobs")})
        cycle = core.cycles._begin("night", 0, {"recipe": recipe.model_dump(mode="json")})
        with pytest.raises(RefusedByPolicyError, match="uses own/jobs"):
            core.own_work.collect("jobs", rows(4), {})
        collect_tasks(core)  # does nothing meanwhile
        core.cycles.cancel(cycle.id)
        assert len(read_own(data, "own/jobs").content.rows) == 3


def test_whoever_asks_says_which_work_becomes_tasks_and_never_what_a_task_is(data: Path) -> None:
    with Core(Settings(data=data)) as core:
        keep(data, "How much is 6 times 7?")
        ((name, row),) = [(one.taskset, one.row) for one in core.collected.candidates()]
        for asked in ({"keys": ("own:made-up",)}, {"keys": (), "refused": {"own:made-up": "no"}}):
            with pytest.raises(RequestError, match="no candidate task"):
                core.collected.collect(CollectedRows(taskset="sessions", **asked))
        with pytest.raises(RequestError, match="no candidate task"):
            core.collected.collect(CollectedRows(taskset="jobs", keys=(row.key,)))
        with pytest.raises(ValidationError):
            CollectedRows.model_validate({"taskset": name, "rows": [row.model_dump(mode="json")]})
        assert core.collected.collect(CollectedRows(taskset="sessions", keys=(row.key, row.key))).rows == 1
        assert core.collected.candidates() == []


def test_tokens_are_made_listed_and_revoked_by_commands(standing, ask) -> None:
    standing.ready()
    made = ask("gateway", "token", "new", "editor", "--consent")
    assert (made.returncode, made.stdout.startswith("assay-"), "recorded" in made.stderr) == (0, True, True)
    assert ask("gateway", "token", "new", "editor").returncode == 2
    assert ask("gateway", "token", "new", "A B").returncode == 2
    listed = ask("gateway", "token", "ls")
    assert ("editor" in listed.stdout, made.stdout.strip() in listed.stdout) == (True, False)
    assert ask("gateway", "token", "revoke", "editor").returncode == 0
    assert ask("gateway", "token", "revoke", "editor").returncode == 2
    assert ask("gateway", "sessions", "delete").returncode == 2
    audit = ask("audit", "ls").stdout
    assert ("gateway.token.made" in audit, "gateway.token.revoked" in audit) == (True, True)
    for path in (standing.data / "gateway").rglob("*.json"):
        assert made.stdout.strip() not in path.read_text()


def test_an_agent_program_gets_a_token_of_its_own_and_is_started_with_it_or_told_how(
    standing, ask, tmp_path, monkeypatch
) -> None:
    standing.ready()
    told = ask("connect", "claude", "--consent")
    assert told.returncode == 0, told.stderr
    *exports, command = told.stdout.splitlines()
    assert command == "claude"
    assert all(line.startswith("export ") for line in exports)
    program = tmp_path / "codex"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$ASSAY_GATEWAY_TOKEN" "$@"\nexit 7\n')
    program.chmod(0o755)
    assert (refused := ask("connect", "codex", "--run")).returncode == 2
    assert "npm install" in refused.stderr
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    started = ask("connect", "codex", "--run", "--", "exec", "a question")
    secret, *arguments = started.stdout.splitlines()
    assert (started.returncode, secret.startswith("assay-"), arguments[-2:]) == (7, True, ["exec", "a question"])
    assert 'model_providers.assay.base_url="http://127.0.0.1:8210/v1"' in arguments
    for wrong in (("connect", "emacs"), ("connect", "openai", "--run"), ("connect", "codex", "--", "exec")):
        assert ask(*wrong).returncode == 2
    assert ask("connect", "codex", "--run").stdout.startswith("assay-")
    program.write_text("#!/bin/sh\nkill -TERM $PPID\nsleep 100\n")
    assert ask("connect", "codex", "--run", "--consent").returncode == 128 + signal.SIGTERM
    revoked = {one["name"]: one["revoked"] for one in json.loads(ask("gateway", "token", "ls", "--json").stdout)}
    assert all(when is not None for name, when in revoked.items() if name.startswith("codex"))
    assert revoked["claude-1"] is None
    assert revoked["codex-1"] is not None
    assert "codex-2" not in revoked


DOUBLE = "Write double(n), which gives twice the number of the owl's eggs."
TESTS = {"kind": "program", "function": "double"} | {
    "examples": [{"arguments": str(n), "expected": str(2 * n)} for n in (2, 3, 17, -4)]
}


def test_a_session_that_passes_the_owner_s_tests_in_a_sandbox_becomes_a_task_and_one_that_fails_does_not(
    standing, ask
) -> None:
    standing.ready()
    state = standing.data / "run"
    at = RuntimeSettings(broker=state / "broker.sock", own=BrokerSettings(state_dir=state, root_dir=state / "nowhere"))
    names, found = {}, {}
    with Checker(at) as checker, running_gateway(standing.data, checker) as gateway:
        for name, source in {"right": "return 2 * n", "wrong": "return n * n", "unasked": "return n + n"}.items():
            gateway.says(gateway.renderer.answer(f"```python\ndef double(n):\n    {source}\n```"))
            body = {} if name == "unasked" else {"assay": {"check": TESTS}}
            said = gateway.ask(f"{DOUBLE} ({name})", token="agent", extra_body=body).assay
            names[name], found[name] = said["session"], said["verdict"]
    assert (found["right"]["outcome"], found["right"]["isolation"]) == ("pass", "gvisor"), found
    assert (found["wrong"]["outcome"], found["unasked"]) == ("fail", None)
    ran = ask("curriculum", "collect", "--json")
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == {"taken": {f"session {names['right']}": "own/sessions"}, "refused": []}
    (row,) = read_own(standing.data, "own/sessions").content.rows
    assert (row.question, row.spec.kind, "return 2 * n" in row.answer) == (f"{DOUBLE} (right)", "program", True)
    shown = {one["id"]: one["no_task"] for one in json.loads(ask("gateway", "sessions", "ls", "--json").stdout)}
    assert {name: bool(shown[one]) for name, one in names.items()} == {"right": False, "wrong": True, "unasked": True}
    assert ask("gateway", "sessions", "delete", "--all", "--yes").returncode == 0
    assert ask("curriculum", "rm", "own/sessions").returncode == 0
