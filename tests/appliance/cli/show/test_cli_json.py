"""Every command that prints a result has `--json`, prints what its schema says, and goes on doing so."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from cli_commands import leaves
from forked_commands import run_forked
from sandbox_commands import environ, in_process

from appliance.cli.demo.appliance import PASSPHRASE, DemoAppliance, demo_appliance
from appliance.cli.main import app
from appliance.cli.show.docs import definitions, said_of, type_of
from appliance.cli.show.printing import show_json_line
from appliance.cli.show.schema import all_outputs, schema_of
from appliance.gateway.sessions import SaidText
from policies.contract.decision import Decision
from policies.policy import read_content

ROOT = Path(__file__).parents[4]
OUTPUTS = all_outputs(imported=False)
FIELDS = Path(__file__).with_name("json_fields.txt")

SERVES = "serves until it is ended"
TALKS = "talks with a person"
CODE = "its exit code says all"
AS_IT_IS = "prints a file as it is"
WITHOUT = {
    **dict.fromkeys(("serve", "broker", "gateway serve", "cluster start", "cluster join"), SERVES),
    **dict.fromkeys(("tui", "sandbox shell", "curriculum try"), TALKS),
    **dict.fromkeys(("stop", "sandbox rm", "cluster leave", "docs build"), CODE),
    **dict.fromkeys(("logs", "policy show"), AS_IT_IS),
    "demo": "writes its result into the file that --json names",
}
ELSEWHERE = {
    "daemon/test_daemon_commands.py": "submit, jobs cancel, jobs retry",
    "daemon/service/test_daemon_own_work.py": "curriculum add",
    "daemon/governance/test_daemon_validate_command.py": "jobs validate",
    "daemon/governance/test_daemon_policy.py": "policy simulate, policy backtest",
    "daemon/service/test_daemon_train.py": "train",
    "daemon/service/test_daemon_model_commands.py": "model rollback, audit verify",
    "daemon/service/test_daemon_collected.py": "curriculum collect, gateway sessions delete",
    "worker/gpu/test_gpu_selftest.py": "selftest gpu",
    "worker/evaluation/test_attest.py": "model provenance",
    "jobs/test_bundle_commands.py": "bundle pack, bundle unpack",
    "jobs/bundle_kit.py": "verify",
    "cli/models/test_cli_base_models.py": "model import, plan",
    "cli/models/test_cli_model_use.py": "model use",
    "cli/check/test_cli_check_answer.py": "check answer",
    "cli/check/test_cli_check_kinds.py": "check code, check checklist, check selftest",
    "cli/sandbox/test_cli_cluster.py": "cluster status",
    "cli/test_cli_config.py": "config show",
    "cli/curriculum/test_cli_curriculum.py": "curriculum ls, curriculum sample",
    "cli/curriculum/test_cli_measure.py": "curriculum measure",
    "cli/machine/test_cli_doctor.py": "doctor",
    "plugins/test_plugin_from_outside.py": "plugins ls, plugins certify",
    "cli/sandbox/test_cli_sandbox_run.py": "sandbox run, sandbox snapshot, sandbox ls, sandbox stats, sandbox sweep",
    "cli/sandbox/test_cli_sandbox_selftest.py": "sandbox selftest, sandbox bench",
}
"""Which tests run a command with --json whose way of running it holds what was printed against the schema."""
BY_MODEL = (
    "curriculum certify, curriculum reverify, curriculum audit, curriculum adapter install, curriculum adapter sets, "
    "curriculum adapter add, curriculum rm, warm-start, evaluate, engine serve, model export, model evaluate, "
    "model approve, jobs resume, cycle start, cycle cancel, cycle resume, schedule notify, check exact, "
    "check predicate, check smt, check lean, check draft, gateway sessions show, key revoke"
)
"""What takes a model, a sandbox or a night, which no test runs with --json: `show_json` takes nothing but models, and
these print the one that another command here prints, or that the type checker holds them to."""


@pytest.fixture(scope="module")
def demo() -> Iterator[DemoAppliance]:
    with demo_appliance(nights=2) as made:
        yield made


@pytest.fixture
def ask(demo: DemoAppliance, monkeypatch: pytest.MonkeyPatch) -> Callable[..., object]:
    """Runs a command at an appliance with made-up nights; what it prints is held against its schema."""
    made_up = demo.socket.parents[1]
    monkeypatch.setenv("ASSAY_AUDIT__HEAD", str(made_up.parent / "head"))

    def asked(*arguments: str, data: Path = made_up) -> object:
        ran = in_process(["--data", str(data), *arguments, "--json"])
        assert ran.returncode == 0, (arguments, ran.stderr)
        return json.loads(ran.stdout)

    return asked


def test_a_command_without_json_says_why_here_and_every_other_one_has_a_schema() -> None:
    commands = dict(leaves(typer.main.get_command(app)))
    has = {path for path, command in commands.items() if any("--json" in p.opts for p in command.params)} - {"demo"}
    assert has == set(OUTPUTS)
    assert set(commands) - has == set(WITHOUT)


def fields() -> list[str]:
    """Lists everything printed with `--json`. One line per command and document, per field with its type, and per value
    of an enumeration."""
    printed = [
        f"{words}: {said_of(output)}".rstrip() for words, outputs in sorted(OUTPUTS.items()) for output in outputs
    ]
    return printed + [f"{name}.{part}" for name, schema in definitions().items() for part in _parts(schema)]


def _parts(schema: dict[str, Any]) -> Iterator[str]:
    for name, one in schema.get("properties", {}).items():
        yield f"{name}: {type_of(one)}"
    for value in schema.get("enum", ()):
        yield json.dumps(value)
    if "properties" not in schema and "enum" not in schema:
        yield f"*: {type_of(schema)}"


def test_no_field_that_was_printed_once_is_gone_or_of_another_type() -> None:
    before, now = set(FIELDS.read_text().splitlines()), set(fields())
    assert sorted(before - now) == [], "fields are only added: programs read these"
    assert sorted(now - before) == [], f"new: add these lines to {FIELDS.name}"


def test_a_schema_allows_further_fields_and_names_the_command() -> None:
    for command in ("jobs show", "config show", "check answer"):
        schema = schema_of(command)
        assert schema["title"] == f"assay {command} --json"
        assert '"additionalProperties": false' not in json.dumps(schema)


READ = (
    "status",
    "cycle ls",
    "cycle show",
    "cycle watch",
    "model ls",
    "model history",
    "model compare champion candidate",
    "model show candidate",
    "policy explain candidate",
    "policy check",
    "policy budget",
    "key ls",
    "key show demo",
    "audit ls",
    "report",
    "schedule show",
    "schedule pause",
    "schedule resume",
    "rollouts ls",
    "prune --nights 1 --dry-run",
    "curriculum stats",
    "curriculum show digits",
    "curriculum adapter ls",
    "jobs ls",
    "jobs show job-5f0c21",
    "jobs watch job-5f0c21",
    "gateway token new notebook --consent",
    "connect codex",
    "gateway token ls",
    "gateway token revoke editor",
    "gateway sessions ls",
    "schema",
)


@pytest.mark.parametrize("words", READ)
def test_what_a_command_prints_is_what_its_schema_says(ask, words: str) -> None:
    assert ask(*words.split()) is not None


def test_one_rollout_is_printed_as_its_schema_says(ask) -> None:
    (newest,) = ask("rollouts", "ls", "--limit", "1")
    assert ask("rollouts", "show", newest["id"])["rollout"]["id"] == newest["id"]


def test_what_leaves_files_says_where_as_json(ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = str(tmp_path / "store")
    made = ask("backup", "create", store)
    assert ask("backup", "ls", store)["backups"][0]["backup"] == made["backup"]
    assert ask("backup", "verify", store)["files"] == made["files"]
    other, before = tmp_path / "other", os.environ["ASSAY_AUDIT__HEAD"]
    monkeypatch.setenv("ASSAY_AUDIT__HEAD", str(tmp_path / "head"))
    assert ask("backup", "restore", store, data=other)["restored"] == str(other)
    assert ask("audit", "accept", data=other)["files"] == [str(tmp_path / "head")]
    assert ask("audit", "renew", "--reason", "a trial", data=other)["old_log"]
    monkeypatch.setenv("ASSAY_AUDIT__HEAD", before)
    assert ask("backup", "rm", store, made["backup"])["freed_bytes"] > 0
    exported = ask("audit", "export", str(tmp_path / "log.jsonl"))
    assert (tmp_path / "log.jsonl").exists()
    assert exported["entries"] >= 1
    assert "doctor.json" in ask("bug-report", "--out", str(tmp_path / "report.tar.gz"))["parts"]
    task = str(tmp_path / "task")
    assert ask("curriculum", "export", "terminal_repairs", task)["folder"] == task
    assert ask("curriculum", "harbor", task)["solution"] is True


def test_a_key_and_an_approval_are_said_as_json(ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    phrase = tmp_path / "phrase"
    phrase.write_text(PASSPHRASE)
    made = ask("key", "new", "--as", "ben", "--passphrase-file", str(phrase))
    assert (made["known"], "another person runs" in made["waits_for"]) == (False, True)
    assert ask("key", "admit", "--as", "ben", "--passphrase-file", str(phrase))["person"] == "ben"


def test_what_a_person_signs_is_said_as_json(ask, demo, tmp_path: Path) -> None:
    phrase = tmp_path / "phrase"
    phrase.write_text(PASSPHRASE)
    signs = ("--key", str(demo.key), "--passphrase-file", str(phrase))
    digest = ask("model", "show", "candidate")[0]["id"]
    assert ask("policy", "explain", digest)["id"] == digest
    decision = Decision.model_validate(ask("model", "show", "candidate")[0]).digest()
    assert ask("model", "reject", "candidate", "--decision", decision, *signs)["approval"]["verdict"] == "reject"
    policy = tmp_path / "policy.toml"
    policy.write_bytes(read_content(None)[0])
    assert ask("policy", "sign", str(policy), *signs)["changed"] is False


def test_every_command_is_held_against_its_schema_somewhere() -> None:
    here = {command for command in OUTPUTS for words in (*READ, *FILES) if f"{words} ".startswith(f"{command} ")}
    others = set()
    for file, commands in ELSEWHERE.items():
        text = (ROOT / "tests" / "appliance" / file).read_text()
        for command in commands.split(", "):
            assert f'"{command.split()[-1]}"' in text, (file, command)
            assert '"--json"' in text, file
            others.add(command)
    assert set(OUTPUTS) - here - others == set(BY_MODEL.split(", "))


FILES = (
    *("backup restore", "audit accept", "audit renew", "model reject", "policy sign"),
    *("backup create", "backup ls", "backup verify", "backup rm", "audit export", "bug-report", "rollouts show"),
    *("curriculum export", "curriculum harbor", "key new", "key admit"),
)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("jobs ls --limit x --json", "not a whole number"),
        ("jobs ls --json --nothing", "No such option: --nothing"),
        ("jobs show --json", "Missing argument"),
        ("jobs lss --json", "Did you mean 'ls'?"),
        ("statsu --json", "Did you mean 'status'?"),
        ("logs --json", "No such option: --json"),
    ],
)
def test_what_is_mistyped_is_one_document_too(tmp_path: Path, words: str, said: str) -> None:
    ran = run_forked(tuple(words.split()), environ(tmp_path))
    assert (ran.returncode, ran.stdout) == (2, b"")
    failure = json.loads(ran.stderr)
    assert (said in failure["message"], "--help" in failure["hint"], failure["exit_code"]) == (True, True, 2)


def test_a_line_of_json_steers_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    show_json_line(SaidText(role="user", text="\x9b31m \u202e \x1b[31m"))
    out = capsys.readouterr().out
    assert out.isascii()
    assert out.count("\n") == 1
    assert json.loads(out)["text"] == "\x9b31m \u202e \x1b[31m"


def test_what_failed_is_one_document_on_standard_error(tmp_path: Path) -> None:
    ran = run_forked(("status", "--json"), environ(tmp_path))
    assert (ran.returncode, ran.stdout) == (3, b"")
    failure = json.loads(ran.stderr)
    assert (failure.keys(), failure["exit_code"]) == ({"message", "hint", "exit_code"}, 3)
    assert run_forked(("status",), environ(tmp_path)).stderr.startswith(b"assay: the daemon is not running")
