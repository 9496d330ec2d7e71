"""A night from a chat-format model: Qwen3's architecture, marks and calls, made here with random weights."""

from __future__ import annotations

from pathlib import Path

from chat_models import qwen3_folder
from short_nights import SHORT, run_night

from appliance.agent.budget import AgentBudget
from appliance.config.configuration import ModelSettings
from appliance.learning.batches import sample_each
from appliance.learning.folders import read_verified
from appliance.ledger.sqlite import SqliteLedger
from appliance.readiness.model import ConfiguredModel
from appliance.records.cycles import CycleState
from appliance.records.rollouts import Role
from appliance.records.training import RolloutFilter
from appliance.rendering.chat import ChatRenderer
from appliance.rendering.formats import load_renderer
from appliance.settings.policy_files import load_policy
from appliance.worker.setup.context import WorkContext
from runtime.settings import RuntimeSettings

BUDGET = AgentBudget(concurrent=48, max_tokens=304)
RECIPE = SHORT.model_copy(
    update={
        "agent": BUDGET,
        "training": SHORT.training.model_copy(update={"steps": 1, "tasks_per_step": 2, "watch_every": 1}),
        "evaluation": SHORT.evaluation.model_copy(update={"sealed_items": 4, "unsolvable_items": 2}),
    }
)
FOUND = "qwen3 (found: identical to the model's chat template)"


def test_a_night_runs_from_a_chat_model_whose_format_is_found(
    tmp_path: Path, ledger: SqliteLedger, runtime: RuntimeSettings
) -> None:
    folder = qwen3_folder(tmp_path / "model")
    found = ConfiguredModel(ModelSettings(path=folder)).require(BUDGET.max_tokens)
    assert found is not None
    assert found.format == FOUND
    with WorkContext(tmp_path, ledger, runtime, BUDGET, load_policy(tmp_path)) as context:
        decision = run_night(context, "n", model=folder, recipe=RECIPE)
    cycle = ledger.cycle("n")
    assert cycle is not None
    assert cycle.state is CycleState.DONE

    candidate = ledger.checkpoint(decision.candidate)
    assert candidate is not None
    renderer = load_renderer(read_verified(tmp_path / candidate.folder, expect=candidate.manifest))
    assert isinstance(renderer, ChatRenderer)
    assert renderer.name == FOUND, "a checkpoint keeps what its format is found by"
    tried = [judged.rollout for judged in ledger.rollouts(RolloutFilter(cycle="n", purpose="train"), limit=50)]
    assert len(tried) == 2 * 8
    for rollout in tried:
        asked = renderer.text(rollout.nodes[0].ids)
        assert asked.startswith("<|im_start|>system\n# Tools")
        assert asked.endswith("<|im_end|>\n<|im_start|>assistant\n")
        (sample,) = sample_each(rollout, 1.0)
        assert sample.trained_tokens == sum(len(one.ids) for one in rollout.nodes if one.role is Role.ASSISTANT) > 0
        assert len(sample.ids) <= BUDGET.max_tokens
