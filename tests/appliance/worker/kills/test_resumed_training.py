"""A training that goes on samples with nothing but weights that it has just handed over and had proved."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from short_nights import FIXTURE, SHORT, cycle_of

from appliance.inference import adapters
from appliance.inference.folder import read_model
from appliance.learning.training.trainer import Trainer
from appliance.ledger.sqlite import SqliteLedger
from appliance.scheduling.engine_pool import EnginePool
from appliance.worker.setup.context import WorkContext
from appliance.worker.setup.cycle_setup import CycleSetup
from appliance.worker.setup.progress import CycleProgress
from appliance.worker.training import rl_loop
from appliance.worker.training.rl_loop import RlLoop
from curriculum.names import CALCULATORS
from curriculum.sealed import sealed_set

PUSHES = ("push", "push_in_flight")
OTHERS = ("submit", "step", "resume", "score", "sleep")


class Cut(Exception):
    """Stands for the plug being pulled."""


def train(context: WorkContext, bound: int = 0) -> None:
    smaller = {"max_staleness": bound, "steps": 2, "tasks_per_step": 2, "rollouts_per_task": 4, "watch_items": 2}
    training = SHORT.training.model_copy(update=smaller)
    recipe = SHORT.model_copy(update={"training": training, "tasksets": CALCULATORS})
    cycle = cycle_of("n", recipe=recipe)
    if (known := context.ledger.cycle("n")) is None:
        context.ledger.put_cycle(cycle)
    setup = CycleSetup("n", 0, recipe, CALCULATORS, sealed_set(4, 1, tasksets=CALCULATORS))
    RlLoop(setup, read_model(FIXTURE), context, CycleProgress(known or cycle, context.ledger, time.monotonic)).run()


@pytest.mark.parametrize("bound", [0, 1], ids=["in turns", "while the learner works"])
def test_the_first_that_a_resumed_training_does_with_an_engine_is_a_push_that_is_proved(
    context: WorkContext, ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch, bound: int
) -> None:
    commit = ledger.commit_step

    def cut(record: Any) -> None:
        commit(record)
        if record.step == 1:
            raise Cut

    with monkeypatch.context() as patched:
        patched.setattr(ledger, "commit_step", cut)
        with pytest.raises(Cut):
            train(context, bound)
    asked: list[str] = []

    def told(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def ask(*given: Any) -> Any:
            asked.append(name)
            return real(*given)

        return ask

    for name in (*PUSHES, *OTHERS):
        monkeypatch.setattr(EnginePool, name, told(name, getattr(EnginePool, name)))

    def proof(given: Any, model: Any, version: str) -> None:
        weights_proved(given, model, version)
        asked.append(f"proof of {version}")

    weights_proved = adapters.require_proof
    monkeypatch.setattr(adapters, "require_proof", proof)
    monkeypatch.setattr(rl_loop, "require_proof", proof)
    train(context, bound)
    assert asked[:2] == [PUSHES[bool(bound)], "proof of n@1"]
    assert "step" in asked


def test_a_pass_that_was_halved_is_told_once_with_the_key_to_lower(
    context: WorkContext, ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    update = Trainer._update

    def short_of_memory(self: Trainer, *given: Any) -> Any:
        if not self.halved:
            raise MemoryError
        return update(self, *given)

    monkeypatch.setattr(Trainer, "_update", short_of_memory)
    train(context)
    warnings = [event.text for _, event in ledger.events(limit=1000) if event.kind == "warning"]
    (said,) = [text for text in warnings if "memory" in text]
    assert "lower training.micro_batch so that" in said
