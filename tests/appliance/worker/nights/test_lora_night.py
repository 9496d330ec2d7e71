"""A night that trains an adapter, in two processes or beside weights in 4 bits, ends with a plain model, which is
evaluated, decided on and in the way of nobody."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from short_nights import FIXTURE, SHORT, cycle_of, run_night

from appliance.inference.adapters import base_digest
from appliance.inference.folder import open_model, read_model
from appliance.learning.checkpoints import newest_valid
from appliance.learning.folders import read_verified, verify
from appliance.learning.recipes.recipe import Recipe
from appliance.ledger.sqlite import SqliteLedger
from appliance.records.cycles import CycleState
from appliance.settings.policy_files import load_policy
from appliance.worker.cycle import CycleRun
from appliance.worker.setup.context import WorkContext
from appliance.worker.setup.progress import CycleProgress
from runtime.settings import RuntimeSettings

LORA = SHORT.training.model_copy(
    update={
        "steps": 3,
        "method": "lora",
        "lora_rank": 4,
        "packing": True,
        "micro_batch_tokens": 512,
        "gradient_checkpointing": True,
    }
)


@pytest.mark.parametrize(("method", "learners"), [("lora", 2), ("qlora", 1)])
def test_a_night_with_an_adapter_publishes_a_plain_model(
    runtime: RuntimeSettings, tmp_path: Path, method: str, learners: int
) -> None:
    night: Recipe = SHORT.model_copy(update={"training": LORA.model_copy(update={"method": method})})
    with (
        SqliteLedger(tmp_path / "ledger.sqlite3") as ledger,
        WorkContext(tmp_path, ledger, runtime, night.agent, load_policy(tmp_path), learners=learners) as context,
    ):
        ledger.put_cycle(cycle_of("n", recipe=night))
        known = ledger.cycle("n")
        assert known is not None
        CycleRun(known, context, CycleProgress(known, ledger, time.monotonic), FIXTURE).train()
        kept = newest_valid(tmp_path / "cycles" / "n" / "checkpoints").folder
        assert kept is not None
        names = {path.name for path in kept.iterdir()}
        assert "adapter_model.safetensors" in names
        assert "model.safetensors" not in names
        decision = run_night(context, "n", recipe=night)
        cycle = ledger.cycle("n")
        assert cycle is not None
        assert cycle.state is CycleState.DONE
        assert decision.candidate != decision.champion, "nothing was learned: the night has shown nothing"
        candidate, champion = (ledger.checkpoint(one or "") for one in (decision.candidate, decision.champion))
        assert candidate is not None
        assert champion is not None
        assert candidate.parent == champion.manifest
        assert verify(tmp_path / candidate.folder) == candidate.manifest
        published = read_verified(tmp_path / candidate.folder)
        assert "model.safetensors" in published
        assert not [name for name in published if name.startswith("adapter")]
        beside = open_model(read_model(FIXTURE))
        moved = {
            name for name, one in open_model(published).named_parameters() if not one.equal(beside.get_parameter(name))
        }
        assert moved
        assert all("_proj" in name and name.endswith("weight") for name in moved), "only what has an adapter moves"
        assert base_digest(beside) == base_digest(open_model(read_model(tmp_path / champion.folder)))
