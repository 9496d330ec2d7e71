"""A worker whose configuration names another engine runs its nights and its jobs with that one."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripted_engine import Ids, ScriptedEngine
from short_nights import AT, FIXTURE, SHORT, cycle_of

from appliance.config.configuration import Settings
from appliance.daemon.service.decision import decide_cycle, next_phase
from appliance.inference.engine import GenerationRequest, ModelError
from appliance.inference.engines import ENGINES
from appliance.inference.folder import read_model
from appliance.ledger.sqlite import SqliteLedger
from appliance.promotion.evidence import CHAMPION
from appliance.records.jobs import Job, JobState
from appliance.rendering.formats import load_renderer
from appliance.settings.policy_files import load_policy
from appliance.worker.tasks import run_cycle, run_jobs
from runtime.settings import RuntimeSettings
from verifiers.predicate.spec import PredicateSpec

SIX = "\\boxed{6}"


@pytest.fixture
def settings(tmp_path: Path, runtime: RuntimeSettings) -> Settings:
    given = {"data": str(tmp_path), "model.engine": "scripted", "model.path": str(FIXTURE)}
    loaded = Settings.load({**given, "sandbox.broker": str(runtime.broker)}, environ={}, etc_dir=tmp_path)
    return loaded.model_copy(update={"recipe": SHORT})


def test_a_night_and_a_job_are_worked_by_the_engine_that_the_configuration_names(
    tmp_path: Path, ledger: SqliteLedger, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    renderer = load_renderer(read_model(FIXTURE))
    engines: list[ScriptedEngine] = []

    def script(request: GenerationRequest, known: Ids) -> Ids:
        if len(known) == len(request.prompt):
            return renderer.call("print(2 * 3)")
        return renderer.answer(SIX if request.seed % 2 else "six")

    def make(rows: int, slots: int, threads: int | None) -> ScriptedEngine:
        engines.append(ScriptedEngine(script, slots=slots, version=""))
        return engines[-1]

    monkeypatch.setitem(ENGINES, "scripted", make)
    ledger.put_cycle(cycle_of("n"))
    run_cycle("train", "n", tmp_path, settings, ledger, load_policy(tmp_path))
    run_cycle("evaluate", "n", tmp_path, settings, ledger, load_policy(tmp_path))
    cycle = ledger.cycle("n")
    assert cycle is not None
    assert next_phase(cycle, ledger) == "decide"
    assert ledger.alias(CHAMPION) is None
    decide_cycle(cycle, ledger, load_policy(tmp_path), tmp_path)
    question = PredicateSpec(predicate="7*x + 3 == 45", domain="integer")
    asked = Job(
        id="j", question="find x", spec=question, solvers_done=True, state=JobState.QUEUED, created=AT, updated=AT
    )
    ledger.put_job(asked.model_copy(update={"attempts": 12}))
    run_jobs("any", tmp_path, settings, ledger, load_policy(tmp_path))
    job = ledger.job("j")
    assert job is not None
    assert (job.state, job.weights) == (JobState.SOLVED, ledger.alias(CHAMPION))
    assert len(engines) == 3
    assert all(engine.tokens_sampled and engine.version == "" for engine in engines), "used, and closed at the end"


def test_a_name_that_no_engine_has_is_refused_with_those_that_exist(
    tmp_path: Path, ledger: SqliteLedger, settings: Settings
) -> None:
    ledger.put_cycle(cycle_of("n"))
    with pytest.raises(ModelError, match="unknown engine 'scripted'") as refused:
        run_cycle("train", "n", tmp_path, settings, ledger, load_policy(tmp_path))
    assert "torch" in refused.value.hint
