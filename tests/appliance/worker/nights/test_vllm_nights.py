"""Nights whose engine is the real vLLM: nothing is learned from a sample that was not proved, whatever breaks."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from chat_models import qwen3_folder
from short_nights import FIXTURE, SHORT, run_night, train_night
from vllm_engines import Faults, needs_vllm

from appliance.agent.budget import AgentBudget
from appliance.inference.engine import ModelFiles, PushProof, Turn
from appliance.inference.engines import ENGINES
from appliance.inference.vllm.engine import VllmEngine
from appliance.learning.recipes.recipe import Recipe
from appliance.learning.signal.grouping import is_masked
from appliance.ledger.sqlite import SqliteLedger
from appliance.records.cycles import CycleState
from appliance.records.rollouts import Role, Rollout
from appliance.records.training import RolloutFilter
from appliance.settings.policy_files import load_policy
from appliance.worker.setup.context import WorkContext
from runtime.settings import RuntimeSettings

pytestmark = [needs_vllm, pytest.mark.timeout(900)]
CHAT = SHORT.model_copy(
    update={
        "agent": AgentBudget(concurrent=48, max_tokens=304),
        "training": SHORT.training.model_copy(
            update={"steps": 1, "tasks_per_step": 2, "rollouts_per_task": 4, "watch_every": 1}
        ),
    }
)
LORA = {"method": "lora", "lora_rank": 4}


class WatchedEngine(VllmEngine):
    """Keeps what was proved, and breaks when it is told to: a push by its version, and one engine while it samples."""

    def __init__(self, rows: int, slots: int, faults: Faults) -> None:
        super().__init__(rows, slots, start=faults.start)
        self.proofs: list[PushProof] = []
        self.spoiled: dict[str, Any] = {}
        self.killed_at = 0
        self.worst = 0.0

    def push(self, weights: ModelFiles | Any, version: str) -> PushProof:
        self.spoiled.pop(version, lambda: None)()
        self.proofs.append(super().push(weights, version))
        self.worst = max(self.worst, self.supervisor.worst_difference)
        return self.proofs[-1]

    def step(self) -> list[Turn]:
        if self.killed_at and self.tokens_sampled > self.killed_at and self.supervisor.pid:
            self.killed_at = 0
            os.kill(self.supervisor.pid, signal.SIGKILL)
        return super().step()


@pytest.fixture
def faults(tmp_path: Path) -> Faults:
    return Faults(tmp_path)


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch, faults: Faults) -> list[WatchedEngine]:
    made: list[WatchedEngine] = []

    def make(rows: int, slots: int, threads: int | None) -> WatchedEngine:
        made.append(WatchedEngine(rows, slots, faults))
        return made[-1]

    monkeypatch.setitem(ENGINES, "vllm", make)
    return made


def rollouts_of(ledger: SqliteLedger) -> list[Rollout]:
    return [one.rollout for one in ledger.rollouts(RolloutFilter(cycle="n", purpose="train"), limit=500)]


def versions(rollouts: list[Rollout]) -> set[str]:
    """Of the weights that drew their tokens: every one of them is asked for."""
    found = set()
    for rollout in rollouts:
        for node in rollout.nodes:
            if node.role is Role.ASSISTANT:
                assert [span.start for span in node.weights] == [0, *(span.end for span in node.weights[:-1])]
                assert node.weights[-1].end == len(node.ids)
                found |= {span.version for span in node.weights}
    return found


@pytest.mark.parametrize("method", [pytest.param("full", marks=pytest.mark.long_vllm), "lora"])
def test_a_chat_model_is_trained_on_proved_samples_alone(
    tmp_path: Path, ledger: SqliteLedger, runtime: RuntimeSettings, watched: list[WatchedEngine], method: str
) -> None:
    folder = qwen3_folder(tmp_path / "model", head=32)
    training = CHAT.training.model_copy(update=LORA if method == "lora" else {})
    recipe: Recipe = CHAT.model_copy(update={"training": training})
    with WorkContext(tmp_path, ledger, runtime, CHAT.agent, load_policy(tmp_path), engine="vllm") as context:
        train_night(context, "n", model=folder, recipe=recipe)
    (engine,) = watched
    tried = rollouts_of(ledger)
    assert len(tried) == 2 * 4
    assert versions(tried) == {"n@0"} <= {proof.version for proof in engine.proofs}
    assert engine.supervisor.quarantined == []
    assert engine.worst < 1e-4
    assert bool([proof for proof in engine.proofs if proof.base]) == (method == "lora")


@pytest.mark.slow
def test_a_night_with_an_adapter_goes_on_when_an_engine_dies_and_when_a_push_goes_wrong(
    tmp_path: Path, ledger: SqliteLedger, runtime: RuntimeSettings, watched: list[WatchedEngine], faults: Faults
) -> None:
    training = SHORT.training.model_copy(update={**LORA, "steps": 2, "learning_rate": 3e-3})
    recipe: Recipe = SHORT.model_copy(update={"training": training})
    with WorkContext(tmp_path, ledger, runtime, SHORT.agent, load_policy(tmp_path), engine="vllm") as context:
        assert context.engine.unfinished == 0  # it is made when it is first asked for
        (engine,) = watched
        engine.killed_at = 300
        engine.spoiled["n@1"] = lambda: faults.once_adapted("bound")
        decision = run_night(context, "n", model=FIXTURE, recipe=recipe)
    cycle = ledger.cycle("n")
    assert cycle is not None
    assert cycle.state is CycleState.DONE
    assert decision.candidate != decision.champion, "nothing was learned: the night has shown nothing"
    died, misled = engine.supervisor.quarantined
    assert "during step" in died
    assert "put the adapter on" in misled
    tried = rollouts_of(ledger)
    assert len(tried) == 2 * 4 * 8
    assert versions(tried) == {"n@0", "n@1"} <= {proof.version for proof in engine.proofs}
    assert engine.worst < 1e-3
    for step in range(2):
        record = ledger.step("n", step)
        assert record is not None
        assert len(record.judged) == 4 * 8
        assert not [one for one in record.judged if is_masked(one)], "no failure of an engine became a rollout's"
