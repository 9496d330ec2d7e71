"""A configured model that cannot be used is somebody's to put right: nights wait for that, and nothing else does."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from broken_models import HARMS, edit, sound
from daemon_kit import attempts, dispatched, until

from appliance.cli.service.commands import _show_status
from appliance.client.messages import SubmitJob
from appliance.config.configuration import Settings
from appliance.daemon.api.read_models import jobs_of, status_of
from appliance.daemon.contract import BrokenError
from appliance.daemon.coordination import threads
from appliance.daemon.coordination.core import Core
from appliance.daemon.service.supervisor import RetryPolicy
from appliance.learning.recipes.recipe import Recipe
from appliance.readiness import sandbox as sandbox_readiness
from appliance.records.cycles import Checkpoint, CycleState
from appliance.records.jobs import JobState
from appliance.records.training import StepRecord
from appliance.settings.config_layers import ConfigError
from verifiers.answers.spec import AnswerSpec

pytestmark = pytest.mark.usefixtures("lent")
CHILD = Path(__file__).parents[1] / "child_worker.py"
QUESTION = SubmitJob(question="6?", spec=AnswerSpec(notation="digits", expected="6"))


@pytest.fixture(autouse=True)
def broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox_readiness, "ask", lambda socket: SimpleNamespace(backends={"gvisor": "1"}))
    monkeypatch.setattr(threads, "WAITING_SECONDS", 0.02)


@pytest.fixture
def model(data: Path) -> Path:
    data.mkdir(mode=0o700)
    return sound(data / "model")


@contextmanager
def core(data: Path, mode: str = "finish", **flags: object) -> Iterator[Core]:
    given = {"data": data, "sandbox.broker": data / "broker.sock", "model.path": data / "model", **flags}
    settings = Settings.load(given, environ={}, xdg_dir=data)
    retry = RetryPolicy(attempts=2, first_seconds=0.01, factor=1.0)
    with Core(settings, worker=[sys.executable, str(CHILD), mode], retry=retry) as opened:
        yield opened


def said(running: Core, words: str) -> list[str]:
    return [event.text for _, event in running.ledger.events(limit=1000) if words in event.text]


@pytest.mark.parametrize(
    "name", ["no folder", "no tokenizer.json", "a tokenizer with one entry more", "more than the memory"]
)
def test_no_cycle_begins_by_hand_and_the_status_says_why(data, model, name, capsys) -> None:
    harm, message = HARMS[name]
    harm(model)
    with core(data) as running:
        with pytest.raises(ConfigError, match=r"model\.path") as refused:
            running.cycles.start("night")
        assert message in str(refused.value)
        assert status_of(running).cycles_wait_for == f"{refused.value}; {refused.value.hint}"
        _show_status(status_of(running))
        assert "cycles wait for" in capsys.readouterr().out
        assert running.ledger.cycles() == []


def test_a_scheduled_cycle_waits_with_an_event_and_begins_when_the_folder_is_whole(data, model) -> None:
    (model / "tokenizer.json").rename(data / "tokenizer.json")
    with core(data) as running:
        running.cycles.start("night", scheduled=True)
        assert len(said(running, "a cycle is due and waits: model.path")) == 1
        (cycle,) = running.ledger.cycles()
        with dispatched(running) as thread:
            until(lambda: "no tokenizer.json" in status_of(running).worker.waits_for)
            with pytest.raises(ConfigError, match=r"no tokenizer\.json"):
                running.cycles.start("night")
            assert [known.id for known in running.ledger.cycles()] == [cycle.id]
            assert (attempts(data), running.ledger.cycle(cycle.id).state) == (0, CycleState.RUNNING)
            (data / "tokenizer.json").rename(model / "tokenizer.json")
            thread.wake()
            until(lambda: running.ledger.cycle(cycle.id).state is CycleState.DONE)
        assert len(said(running, "waits for this to pass")) == 1
        assert (attempts(data), status_of(running).worker.last_failure) == (1, "")


def test_an_unfinished_cycle_waits_over_a_restart_and_takes_the_recipe_that_was_put_right(data, model) -> None:
    edit("config.json", max_position_embeddings=100)(model)
    with core(data) as running:
        running.cycles.start("night", scheduled=True)
        (cycle,) = running.ledger.cycles()
        assert running.cycles.run(cycle.id).state is CycleState.RUNNING
        assert "it supports 100 tokens" in status_of(running).worker.waits_for
    with core(data, **{"recipe.agent.max_tokens": 90}) as running:
        assert running.cycles.run(cycle.id).state is CycleState.DONE
        plan = running.ledger.cycle(cycle.id).plan
        assert Recipe.model_validate(plan["recipe"]).agent.max_tokens == 90


def test_a_cycle_whose_folder_is_taken_away_waits_and_nothing_counts_as_a_failure(data, model) -> None:
    with core(data, "loses-its-model") as running:
        cycle = running.cycles.start("night")
        with dispatched(running):
            until(lambda: "no such folder" in status_of(running).worker.waits_for)
            worker = status_of(running).worker
            assert (attempts(data), worker.failures, worker.last_failure) == (1, 0, "")
            assert running.ledger.cycle(cycle.id).state is CycleState.RUNNING
            (data / "elsewhere").rename(model)
            until(lambda: running.ledger.cycle(cycle.id).state is CycleState.DONE)
        assert said(running, "this is a bug") == said(running, " failed: ") == []


def test_what_only_a_worker_finds_wrong_is_tried_once_and_waited_for(data, model) -> None:
    with core(data, "misconfigured") as running:
        cycle = running.cycles.start("night")
        with dispatched(running) as thread:
            until(lambda: "3 weights are missing" in status_of(running).worker.waits_for)
            thread.wake()
            with pytest.raises(ConfigError, match="3 weights are missing"):
                running.cycles.start("night")
            assert (attempts(data), running.ledger.cycle(cycle.id).state) == (1, CycleState.RUNNING)
            edit("config.json", use_cache=False)(model)
            until(lambda: attempts(data) == 2)


def test_a_worker_that_blames_a_model_that_it_does_not_begin_from_is_not_tried_again(data, model) -> None:
    with core(data, "misconfigured", **{"model.path": None}) as running:
        cycle = running.cycles.run(running.cycles.start("night").id)
        assert (cycle.state, attempts(data)) == (CycleState.FAILED, 1)


def test_a_cycle_with_training_steps_is_parked_where_another_fails_and_can_be_resumed(data, model) -> None:
    with core(data, "misconfigured", **{"model.path": None}) as running:
        cycle = running.cycles.start("night")
        running.ledger.commit_step(StepRecord(cycle=cycle.id, step=0, tasks=(), judged=(), groups=(), metrics={}))
        parked = running.cycles.run(cycle.id)
        assert (parked.state, attempts(data)) == (CycleState.SET_ASIDE, 1)
        assert parked.failure.startswith("parked with its training steps: ")
        assert f"`assay cycle resume {cycle.id}` retries it" in parked.failure
    with core(data, **{"model.path": None}) as mended:
        assert mended.cycles.resume(cycle.id).state is CycleState.RUNNING
        assert mended.cycles.run(cycle.id).state is CycleState.DONE


def test_jobs_are_worked_on_while_a_cycle_waits_for_its_model(data, model) -> None:
    shutil.rmtree(model)
    with core(data) as running:
        running.cycles.start("night", scheduled=True)
        with dispatched(running) as thread:
            until(lambda: status_of(running).worker.waits_for)
            for _ in range(2):
                job = running.jobs.submit(QUESTION)
                assert "model.path" not in jobs_of(running, 1)[0].reason
                thread.wake()
                until(lambda job=job: running.ledger.job(job.id).state is JobState.UNSOLVED)
            until(lambda: "no such folder" in status_of(running).worker.waits_for)
        assert len(said(running, "waits for this to pass")) == 1


def test_doctor_serve_status_and_cycle_start_say_the_same(data, model, start, assay) -> None:
    (model / "tokenizer.json").unlink()
    environ = {"ASSAY_MODEL__PATH": str(model)}
    daemon = start(**environ)
    daemon.ready()
    sentence = f"model.path is {model}: it has no tokenizer.json"
    doctor = assay("doctor", "--json", "--no-selftest", **environ)
    (line,) = [check for check in json.loads(doctor.stdout)["checks"] if check["name"] == "model"]
    assert (doctor.returncode, line["grade"], line["figure"]) == (5, "failed", sentence)
    assert "save_pretrained" in line["advice"]
    refused = assay("cycle", "start", **environ)
    assert (refused.returncode, refused.stderr.splitlines()[0]) == (2, f"assay: {sentence}")
    assert f"cycles wait for  {sentence}" in assay("status", **environ).stdout
    assert json.loads(assay("status", "--json", **environ).stdout)["cycles_wait_for"].startswith(sentence)
    assert sentence in daemon.end()


def test_a_conversation_longer_than_the_model_in_service_reads_is_a_fault_of_the_configuration(data, model) -> None:
    with core(data, **{"recipe.agent.max_tokens": 300}) as running:
        put_in_service(running, "c" * 64, model)
        with pytest.raises(ConfigError, match=r"in service cannot be used: it supports 256 tokens, but recipe\.agent"):
            running.cycles.start("night")
        assert "cannot be used" in status_of(running).cycles_wait_for
        shutil.rmtree(data / "models" / ("c" * 64))
        assert status_of(running).cycles_wait_for == ""
        with pytest.raises(BrokenError, match="in service is damaged"):
            running.cycles.start("night")


def test_a_night_whose_beginning_was_lost_fails_and_says_so(data, model) -> None:
    with core(data) as running:
        cycle = running.cycles.start("night")
        put_in_service(running, "c" * 64, model, alias="previous")
        running.ledger.put_cycle(cycle.model_copy(update={"plan": {**cycle.plan, "start": "c" * 64}}))
        shutil.rmtree(model)
        assert running.readiness.blocked(running.ledger.cycle(cycle.id)) is None, "it needs the folder no more"
        shutil.rmtree(data / "models" / ("c" * 64))
        ended = running.cycles.run(cycle.id)
        assert (ended.state, attempts(data)) == (CycleState.FAILED, 0)
        assert "that the cycle began from is damaged" in ended.failure


def put_in_service(running: Core, digest: str, model: Path, alias: str = "champion") -> None:
    shutil.copytree(model, running.data / "models" / digest)
    at = "2026-11-20T02:00:00+00:00"
    made = Checkpoint(
        manifest=digest,
        parent=None,
        folder=f"models/{digest}",
        cycle="n",
        step=0,
        stage="imported",
        recipe="r",
        metrics={},
        created=at,
    )
    running.ledger.put_checkpoint(made)
    running.ledger.set_aliases({alias: digest}, "for this test", at)
