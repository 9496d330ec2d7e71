"""On a GPU that both are on, an engine gives way before a learner comes, and has the share that the learner leaves."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from short_nights import FIXTURE, SHORT, cycle_of, train_night

from appliance.config.configuration import ModelSettings, Settings
from appliance.inference.vllm.placement import VllmEnvironment, VllmSettings
from appliance.learning.rank_processes import OnPass
from appliance.learning.ranks import ALONE
from appliance.learning.training.rank import RankProcess
from appliance.ledger.sqlite import SqliteLedger
from appliance.planning import GIB, Hardware
from appliance.planning.hardware import read_gpus
from appliance.scheduling.engine_pool import EnginePool
from appliance.worker import tasks
from appliance.worker.setup.context import WorkContext

ONE_GPU = Hardware(64 * GIB, 16, read_gpus("NVIDIA GeForce RTX 4090, 24564, 24000\n"))
RECIPE = SHORT.model_copy(
    update={"training": SHORT.training.model_copy(update={"steps": 1, "tasks_per_step": 2, "watch_every": 1})}
)


class Cut(Exception):
    """Stands for the plug being pulled."""


class OnTheGpu:
    """The rank of a group of one, in this process; what it is asked for takes memory of the GPU."""

    on_pass: OnPass | None = None

    def __init__(self, takes: Callable[[str], None]) -> None:
        self._rank, self._takes = RankProcess(ALONE, torch.device("cpu")), takes

    def ask(self, what: str, **message: Any) -> dict[str, Any]:
        self._takes(what)
        return dict(json.loads(json.dumps(self._rank.answer(json.loads(json.dumps({"ask": what, **message}))))))

    def close(self) -> None:
        """There is nothing to end."""


@pytest.mark.parametrize("model", [FIXTURE, None], ids=["a model that is tried out", "a warm start that goes on"])
def test_an_engine_sleeps_whenever_a_learner_opens_or_learns(
    context: WorkContext, monkeypatch: pytest.MonkeyPatch, model: Path | None
) -> None:
    awake, taken = [False], list[str]()

    def takes(what: str) -> None:
        taken.append(what)
        if what in ("open", "restore", "step", "sft_steps"):
            assert not awake[0], what
        if taken.count("sft_steps") == 2 and taken.count("open") == 1:
            raise Cut

    push, sleep = EnginePool.push, EnginePool.sleep

    def pushed(self: EnginePool, *given: Any) -> Any:
        awake[0] = True
        return push(self, *given)

    def slept(self: EnginePool) -> None:
        awake[0] = False
        sleep(self)

    monkeypatch.setattr(EnginePool, "push", pushed)
    monkeypatch.setattr(EnginePool, "sleep", slept)
    vars(context)["ranks"] = OnTheGpu(takes)
    if model is None:
        with pytest.raises(Cut):
            train_night(context, "n", model=None, recipe=RECIPE)
        awake[0] = False  # its process has ended
    train_night(context, "n", model=model, recipe=RECIPE)
    assert taken.count("open") == (1 if model else 3)
    assert "step" in taken


def test_a_worker_that_trains_gives_vllm_what_the_learner_leaves(
    tmp_path: Path, ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = Settings(data=tmp_path, vllm=VllmSettings(sleep=2))
    settings = given.model_copy(update={"model": ModelSettings(engine="vllm", path=FIXTURE)})
    monkeypatch.setattr(tasks, "find_machine", lambda: ONE_GPU)

    def share(package: str, path: Path) -> float | None:
        monkeypatch.setattr(tasks, "find_environment", lambda: VllmEnvironment(tmp_path, package, ""))
        configured = settings.model_copy(update={"model": ModelSettings(engine="vllm", path=path)})
        return tasks.beside_learner(configured, tmp_path, ledger, cycle_of("n")).vllm.memory_share

    found = share("vllm", FIXTURE)
    assert found is not None
    assert 0.5 < found < 0.92
    assert share("vllm-cpu", FIXTURE) is None, "it is on no GPU"
    assert share("vllm", tmp_path / "nothing") is None, "whoever reads the folder refuses it"
