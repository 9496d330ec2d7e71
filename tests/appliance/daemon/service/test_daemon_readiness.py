"""What is missing at the first attempt is missing at every other: it is said at once, by whichever command meets it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import guest_roots as building
import pytest
from checkpoint_records import checkpoint_record
from daemon_kit import submit

from appliance.client import SPEC
from appliance.config.configuration import Settings
from appliance.daemon.api.read_models import status_of
from appliance.daemon.contract import BrokenError
from appliance.daemon.coordination.core import Core
from appliance.daemon.service.readiness import fault_of
from appliance.ledger.lock import data_lock
from appliance.records.cycles import CycleState
from appliance.records.jobs import JobState
from appliance.settings.config_layers import ConfigError
from runtime.errors import RefusedError

SEEDLING = Path(__file__).parents[3] / "fixtures" / "seedling"
NOBODY = (sys.executable, "-c", "raise SystemExit('a worker was started')")
ANSWER = SPEC.validate_python({"kind": "answer", "notation": "digits", "expected": "1"})


def settings(data: Path, *, runsc: Path | None = None, model: Path | None = None) -> Settings:
    return Settings.load({"data": data, "sandbox.runsc": runsc, "model.path": model}, environ={}, xdg_dir=data)


def without_config(folder: Path) -> None:
    (folder / "config.json").unlink()


def alone(folder: Path) -> None:
    (folder / "config.json").rename(folder / "adapter_config.json")


def without_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()


def cut_short(folder: Path) -> None:
    os.truncate(folder / "model.safetensors", 10_000)


def no_header(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"\xff" * 64)


def no_json(folder: Path) -> None:
    (folder / "config.json").write_text("{")


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (shutil.rmtree, "no such folder"),
        (without_config, "no config.json"),
        (alone, "an adapter (LoRA) without its model"),
        (no_json, "not JSON"),
        (without_weights, "no safetensors"),
        (cut_short, "shorter or longer than its header says"),
        (no_header, "shorter or longer than its header says"),
    ],
)
def test_a_model_folder_that_cannot_be_one_is_refused_with_what_it_lacks(data, tmp_path, harm, message) -> None:
    folder = tmp_path / "model"
    shutil.copytree(SEEDLING, folder)
    assert fault_of(folder) == ""
    harm(folder)
    assert message in fault_of(folder)
    with Core(settings(data, model=folder), worker=NOBODY) as core:
        with pytest.raises(ConfigError, match=r"model\.path") as refused:
            core.cycles.start("night")
        assert "safetensors" in refused.value.hint
        assert core.ledger.cycles() == []


def test_without_runsc_no_cycle_begins_and_an_unfinished_one_fails_at_once(data) -> None:
    with Core(settings(data), worker=NOBODY) as core:
        cycle = core.cycles.start("night")
    with Core(settings(data, runsc=Path("/nope")), worker=NOBODY) as core:
        ended = core.cycles.run(cycle.id)
        assert ended.state is CycleState.FAILED
        assert "no runsc at /nope" in ended.failure
        assert "install" in ended.failure
        assert status_of(core).worker.state == "idle"
        with pytest.raises(RefusedError, match="no runsc at /nope"):
            core.cycles.start("night")
        assert [known.id for known in core.ledger.cycles()] == [cycle.id]


def test_without_runsc_a_job_fails_at_once_with_the_reason(data) -> None:
    with Core(settings(data, runsc=Path("/nope")), worker=NOBODY) as core:
        jobs = [submit(core, "q", ANSWER, seed=seed) for seed in range(2)]
        core.supervisor.run_jobs()
        for job in jobs:
            found = core.ledger.job(job.id)
            assert found is not None
            assert (found.state, "no runsc at /nope" in found.reason) == (JobState.FAILED, True)


def test_a_taskset_that_is_not_there_is_said_before_a_night_with_the_nearest_name(data) -> None:
    """It fails no night at one o'clock: none begins by hand, and one that the clock begins waits."""
    wrong = Settings.load(
        {"data": data, "recipe.tasksets": ["arithmetic", "own/phisics", "calenders"]}, environ={}, xdg_dir=data
    )
    with Core(wrong, worker=NOBODY) as core:
        (data / "tasksets").mkdir()
        (data / "tasksets" / "physics.json").write_text("{}")
        with pytest.raises(ConfigError, match="'own/phisics', 'calenders'") as refused:
            core.cycles.start("night")
        assert "did you mean own/physics?" in refused.value.hint
        assert core.ledger.cycles() == []
        assert "names unknown tasksets" in core.cycles.misconfigured()
        waiting = core.cycles.start("night", scheduled=True)
        blocked = core.readiness.blocked(waiting)
        assert blocked is not None
        assert (blocked.passes, blocked.blameless, "own/phisics" in blocked.text) == (True, True, True)
    with Core(settings(data), worker=NOBODY) as core:
        assert core.cycles.misconfigured() == "", "a night of which nothing was begun takes the recipe in force"


def test_serve_doctor_and_cycle_start_say_that_a_taskset_is_not_there(start, assay, tmp_path) -> None:
    (tmp_path / "assay").mkdir()
    (tmp_path / "assay" / "config.toml").write_text('[recipe]\ntasksets = ["arithmetic", "own/foo"]\n')
    environ = {"XDG_CONFIG_HOME": str(tmp_path)}
    daemon = start(**environ)
    daemon.ready()
    sentence = "recipe.tasksets names unknown tasksets: 'own/foo'"
    refused = assay("cycle", "start")
    assert (refused.returncode, sentence in refused.stderr) == (2, True), refused.stderr
    assert sentence in assay("status").stdout
    found = json.loads(assay("doctor", "--json", "--no-selftest", **environ).stdout)
    assert [check["figure"] for check in found["checks"] if check["name"] == "config"] == [sentence]
    assert sentence in daemon.end()


def test_a_model_in_service_that_is_damaged_is_said_before_a_worker_starts(data) -> None:
    with Core(settings(data), worker=NOBODY) as core:
        champion = checkpoint_record("c" * 64, stage="imported", step=0)
        core.ledger.put_checkpoint(champion)
        core.ledger.set_aliases({"champion": champion.manifest}, "for this test", champion.created)
        with pytest.raises(BrokenError, match="no such folder") as refused:
            core.cycles.start("night")
        assert "rollback" in refused.value.hint


@pytest.mark.parametrize(
    ("variable", "value", "code", "message"),
    [
        ("ASSAY_SANDBOX__RUNSC", "/nope", 5, "install.sh"),
        ("ASSAY_MODEL__PATH", "/nope", 2, "no such folder"),
        ("ASSAY_MODEL__PATHS", "/nope", 2, "did you mean model.path?"),
    ],
)
def test_the_demonstration_and_a_cycle_say_it_within_seconds(
    start, assay, data, guest_roots, variable, value, code, message
) -> None:
    environ = {variable: value}
    building.lend(guest_roots, data / "run")
    results = [assay("demo", **environ)]
    if not variable.endswith("PATHS"):
        start(**environ).ready()
        results.append(assay("cycle", "start"))
    for one in results:
        assert (one.returncode, message in one.stderr, "Traceback" in one.stderr) == (code, True, False), one.stderr
        assert len(one.stderr.splitlines()) == 2


def test_without_runsc_the_daemon_starts_says_so_and_answers(start, assay) -> None:
    daemon = start(ASSAY_SANDBOX__RUNSC="/nope")
    daemon.ready()
    assert json.loads(assay("status", "--json").stdout)["worker"]["state"] == "idle"
    printed = daemon.end()
    assert "no cycle and no job can run" in printed
    assert "no runsc at /nope" in printed


@pytest.mark.parametrize("command", [["demo"], ["demo", "--fresh"], ["serve"]], ids=" ".join)
def test_a_folder_that_another_process_works_on_is_left_alone(data, assay, command) -> None:
    with data_lock(data):
        refused = assay(*command)
        assert (refused.returncode, str(os.getpid()) in refused.stderr) == (5, True), refused.stderr
        assert "assay status" in refused.stderr
        assert (data / "run" / "lock").exists()


@pytest.fixture
def small_disk(data: Path) -> Iterator[Path]:
    """A disk of its own, where the data folder is: 2 MB."""
    data.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "assay-test", str(data)], check=True)
    yield data
    subprocess.run(["umount", "--lazy", str(data)], check=True)


def fill(disk: Path) -> Path:
    """A file that takes every byte that is left."""
    filling = disk / "filling"
    with filling.open("wb", buffering=0) as stream:
        try:
            while True:
                stream.write(bytes(4096))
        except OSError:
            return filling


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a disk of two megabytes needs root")
def test_on_a_full_disk_nothing_starts_and_the_message_names_the_folder(small_disk, assay) -> None:
    fill(small_disk)
    for command in ("serve", "demo"):
        refused = assay(command)
        assert (refused.returncode, "Traceback" in refused.stderr) == (5, False)
        assert str(small_disk) in refused.stderr
        assert "free some space" in refused.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a disk of two megabytes needs root")
def test_in_a_read_only_data_folder_nothing_starts_and_the_message_names_the_folder(small_disk, assay) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    for command in ("serve", "demo"):
        refused = assay(command)
        assert (refused.returncode, "Traceback" in refused.stderr) == (5, False)
        assert str(small_disk) in refused.stderr
        assert "read-only" in refused.stderr.lower()


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a disk of two megabytes needs root")
def test_a_disk_that_fills_up_refuses_work_keeps_answering_and_goes_on_when_there_is_room(
    small_disk, start, assay
) -> None:
    start(broker=True).ready()
    filling = fill(small_disk)
    question = ["submit", "--question", "find x with 7x+3=45", "--check", "7*x+3 == 45"]
    for command in (question, ["cycle", "start"]):
        refused = assay(*command)
        assert (refused.returncode, "ree some" in refused.stderr) == (5, True), refused.stderr
    assert json.loads(assay("jobs", "ls", "--json").stdout) == []
    filling.unlink()
    assert assay(*question).returncode == 0
    assert len(json.loads(assay("jobs", "ls", "--json").stdout)) == 1
