"""Runs the commands of README, docs/features.md and the how-to pages as written, over made-up nights.

What cannot be run so is in `ELSEWHERE`, with the test that runs it or the reason. A command on these pages that is in
neither list fails here.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from check_commands import Checked
from sandbox_commands import in_process

from appliance.cli.demo.appliance import PASSPHRASE, DemoAppliance, demo_appliance
from policies.policy import read_content

Assay = Callable[[str], CompletedProcess[str]]
ROOT = Path(__file__).parents[4]
PAGES = [ROOT / "README.md", ROOT / "docs" / "features.md", *sorted((ROOT / "docs" / "howto").glob("*.md"))]
JOBS = (ROOT / "docs" / "jobs.md").read_text()
TYPED = re.compile(r"(?m)^ {4,}assay (.+)$")

RUN = (
    *("status", "report", "rollouts ls", "curriculum stats", "schedule show", "cycle watch", "model ls", "model show"),
    *("submit --question", "submit job.toml", "backup create", "connect", "gateway sessions ls"),
    *("policy show", "policy check", "policy backtest", "policy sign", "curriculum collect", "logs --follow"),
)
CHECKED = ("check answer", "check smt", "check checklist")
SIGNED = ("key new", "model approve", "policy sign")
"""In the order in which README has them; and what one edits meanwhile."""
ELSEWHERE = {
    "serve": "appliance/daemon/processes/test_daemon_serve.py",
    "tui": "appliance/cli/demo/test_demo_data.py",
    "doctor": "appliance/cli/machine/test_cli_doctor.py",
    "train": "appliance/cli/training/test_cli_train.py",
    "plan": "appliance/cli/models/test_cli_base_models.py",
    "model import": "appliance/cli/models/test_cli_base_models.py",
    "model use": "appliance/cli/models/test_cli_model_use.py",
    "selftest gpu": "appliance/worker/gpu/test_gpu_selftest.py",
    "curriculum try": "appliance/cli/curriculum/test_cli_curriculum_try.py",
    "curriculum add": "appliance/daemon/service/test_daemon_own_work.py",
    "curriculum show own/sessions": "appliance/daemon/service/test_daemon_collected.py",
    "curriculum show own/physics": "appliance/daemon/service/test_daemon_own_work.py",
    "curriculum adapter": "appliance/daemon/service/test_daemon_mcp_server.py",
    "curriculum show own/ledger": "appliance/daemon/service/test_daemon_mcp_server.py",
    "curriculum certify": "appliance/cli/curriculum/test_cli_curriculum.py",
    "cycle start": "appliance/daemon/service/test_daemon_model.py",
    "verify": "appliance/jobs/test_bundle_commands.py",
    "jobs validate": "appliance/daemon/governance/test_daemon_validate_command.py",
    "policy simulate": "appliance/daemon/governance/test_daemon_policy.py",
    "sandbox run": "appliance/cli/sandbox/test_cli_sandbox_run.py",
    "sandbox shell": "appliance/cli/sandbox/test_cli_sandbox_shell.py",
    "check lean": "appliance/cli/check/test_cli_check_kinds.py",
    "check code": "appliance/cli/check/test_cli_check_kinds.py",
    "check selftest": "appliance/cli/check/test_cli_check_kinds.py",
    "cluster": "appliance/cli/sandbox/test_cli_cluster.py",
}
"""What needs a person at a terminal, a model, sandboxes, several hosts or a night: the tests that have one."""

FILES = {
    "job.toml": re.findall(r"^`question.toml`\n\n```toml\n(.*?)^```$", JOBS, re.MULTILINE | re.DOTALL)[0],
    "policy.toml": read_content(None)[0].decode(),
    "pairs.jsonl": '{"id": "a", "gold": "1/2", "prediction": "0.5"}\n',
    "claim.smt2": "(declare-const x Int)\n(assert (not (= (+ x 1) (+ 1 x))))\n",
    "list.toml": 'question = "A letter."\n[[items]]\nitem = "words"\nrequired = ["Dear"]\n',
    "letter.md": "Dear Ada,\nhow are you?\n",
}


def typed() -> list[str]:
    """Every command of these pages, once, without what the shell does with it."""
    lines = [line for page in PAGES for line in TYPED.findall(page.read_text())]
    return list(dict.fromkeys(shlex.join(shlex.split(line, comments=True)) for line in lines))


def begins(line: str, several: object) -> bool:
    return any(f"{line} ".startswith(f"{one} ") or line.startswith(f"{one}/") for one in several)  # type: ignore[attr-defined]


def lines(several: tuple[str, ...]) -> list[str]:
    return [line for line in typed() if begins(line, several)]


@pytest.fixture(scope="module")
def demo() -> Iterator[DemoAppliance]:
    with demo_appliance(nights=2) as made:
        yield made


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where one types, with the files that the pages speak of."""
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path


@pytest.fixture
def assay(demo: DemoAppliance, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Assay:
    data = demo.socket.parents[1]
    monkeypatch.setenv("ASSAY_AUDIT__HEAD", str(data.parent / "head"))
    return lambda line: in_process(["--data", str(data), *shlex.split(line.replace("/mnt/backup", "backup"))])


def test_every_command_of_readme_and_the_how_to_pages_is_run_here_or_says_where() -> None:
    assert [line for line in typed() if not begins(line, (*RUN, *CHECKED, *SIGNED, *ELSEWHERE))] == []
    unused = [one for one in (*RUN, *CHECKED, *SIGNED, *ELSEWHERE) if not any(begins(line, (one,)) for line in typed())]
    assert unused == [], "on none of these pages any more"
    for file in set(ELSEWHERE.values()):
        assert (ROOT / "tests" / file).exists(), file


@pytest.mark.parametrize("line", lines(RUN))
def test_what_one_types_next_is_answered(
    assay: Callable[[str], CompletedProcess[str]], demo, line: str, folder
) -> None:
    if line.startswith("policy show"):
        (folder / "policy.toml").unlink()
    if line.startswith("policy sign"):
        (folder / "phrase").write_text(PASSPHRASE)
        line += f" --key {demo.key} --passphrase-file {folder / 'phrase'}"
    ran = assay(line.removesuffix(" --follow"))  # which ends with Ctrl-C alone
    assert (ran.returncode, ran.stderr if "assay: " in ran.stderr else "") == (0, ""), ran.stdout
    assert ran.stdout


@pytest.mark.parametrize("line", lines(CHECKED))
def test_what_others_wrote_is_checked(checked: Checked, folder: Path, line: str) -> None:
    ran = checked(*shlex.split(line)[1:])
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_a_key_an_approval_and_the_way_back_as_readme_has_them(assay: Assay, demo: DemoAppliance, folder: Path) -> None:
    (folder / "phrase").write_text(PASSPHRASE)
    phrase = f"--passphrase-file {folder / 'phrase'}"
    new, approve = (next(line for line in typed() if line.startswith(one)) for one in ("key new", "model approve"))
    made = assay(f"{new} --as ben {phrase}")
    assert made.returncode == 0, made.stderr
    (waits,) = re.findall(r"key admit (.+)", made.stdout)
    (print_,) = re.findall(r"fingerprint +SHA256:(.{8})", made.stdout)
    admitted = assay(f"key admit {waits} --key {demo.key} --confirm {print_} {phrase}")
    assert admitted.returncode == 0, admitted.stderr
    shown = assay("model show candidate")
    decision = shown.stdout.split()[-1]
    signed = assay(f"{approve} --as ben --decision {decision} {phrase}")
    assert signed.returncode == 0, signed.stdout + signed.stderr
    assert "undo this with `assay model rollback`" in signed.stdout
    goes = re.findall(r"([0-9a-f]{12}) is tried beside it|champion is ([0-9a-f]{12})", signed.stdout)
    going = next((tried for tried, _ in goes if tried), goes[0][1])
    assert "`assay model rollback`" in (ROOT / "README.md").read_text()
    back = assay(f"model rollback --confirm {going}")
    assert back.returncode == 0, back.stdout + back.stderr
