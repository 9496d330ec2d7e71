"""A Prometheus server is told all that the newest step of a night came to."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from short_nights import SHORT, train_night

from appliance.config.configuration import Settings
from appliance.daemon.api.metrics import exposition
from appliance.daemon.api.read_models import status_of
from appliance.daemon.coordination.core import Core
from appliance.ledger.sqlite import SqliteLedger
from appliance.scheduling.engine_pool import EnginePool
from appliance.settings.policy_files import load_policy
from appliance.worker.setup.context import WorkContext
from runtime.settings import RuntimeSettings


def test_a_step_is_told_with_what_was_known_of_it_after_it_was_learned(
    tmp_path: Path, runtime: RuntimeSettings
) -> None:
    data = tmp_path / "data"
    with Core(Settings(data=data)) as core:
        with WorkContext(data, core.ledger, runtime, SHORT.agent, load_policy(data)) as context:
            train_night(context, "n")
        status, (*_, before, recorded) = status_of(core), core.ledger.step_metrics("n")
    told = {
        sample.name.removeprefix("assay_training_"): sample.value
        for family in text_string_to_metric_families(exposition(status))
        for sample in family.samples
        if sample.name.startswith("assay_training_")
    }
    assert told.items() >= recorded.items()
    assert told["step"] == 1
    assert told["learning_entropy"] > 0
    assert told["learning_semantic_entropy"] >= 0
    assert 0 <= told["learning_mismatch_kl"] < 1
    assert told["length"] == told["tokens"] / told["rollouts"] > 0
    assert told["tokens_per_second"] == pytest.approx(told["tokens"] / told["sampling_seconds"])
    assert 0 < told["engine_seconds"] <= told["sampling_seconds"]
    assert 0 < told["engine_wait_share"] < 1
    # Held-out tasks are asked before every second step.
    assert before["watch_seconds"] > 0 == told["watch_seconds"]
    parts = ("checkpoint", "push", "sampling", "verifying", "learning", "ledger")
    assert min(told[f"{part}_seconds"] for part in parts) > 0
    assert status.cycle is not None
    assert sum(told[f"{part}_seconds"] for part in parts) < status.cycle.seconds["training"]


def test_the_seconds_of_learning_are_all_that_pass_around_the_learner(
    tmp_path: Path, ledger: SqliteLedger, runtime: RuntimeSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A learner knows its own time alone; here engines take long to sleep before it."""
    slept = [0.0]

    def sleep(_pool: EnginePool) -> None:
        slept[0] += 1e6

    monkeypatch.setattr(EnginePool, "sleep", sleep)
    settings = (tmp_path, ledger, runtime, SHORT.agent, load_policy(tmp_path))
    with WorkContext(*settings, clock=lambda: time.monotonic() + slept[0]) as context:
        train_night(context, "n")
    steps = [event.figures for _, event in ledger.events(limit=10_000) if event.kind == "step"]
    assert [one["learning_seconds"] // 1e6 for one in steps] == [1, 1]
