"""A night whose attempts branch, and whose levels follow what was passed, trains on each token at most once, goes on
after a kill, and shows its trees."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from short_nights import SHORT, train_night

from appliance.cli.training.rollouts import show_detail
from appliance.daemon.views.ledger_views import Rollouts
from appliance.learning.batches import samples
from appliance.learning.checkpoints import STATE
from appliance.learning.recipes.recipe import BranchingRecipe, Recipe
from appliance.learning.training.trainer import Trainer
from appliance.ledger.sqlite import SqliteLedger
from appliance.settings.policy_files import load_policy
from appliance.worker.setup.context import WorkContext
from curriculum.difficulty import Difficulty
from runtime.settings import RuntimeSettings

NIGHT: Recipe = SHORT.model_copy(
    update={
        "training": SHORT.training.model_copy(
            update={
                "branching": BranchingRecipe(where="highest_entropy"),
                "objective": "grpo",
                "difficulty": "adaptive",
            }
        )
    }
)


class KilledError(Exception):
    """Stands for a kill between a step's record and its learning."""


def difficulty_of(data: Path) -> Difficulty:
    """What the last checkpoint knows of the levels."""
    last = sorted((data / "cycles" / "n" / "checkpoints").iterdir())[-1]
    return Difficulty.model_validate(json.loads((last / STATE).read_text())["progress"]["notes"]["difficulty"])


def goes_on(data: Path, runtime: RuntimeSettings) -> dict[str, bytes]:
    """Trains to the end, and returns the weights of the last step."""
    with (
        SqliteLedger(data / "ledger.sqlite3") as ledger,
        WorkContext(data, ledger, runtime, NIGHT.agent, load_policy(data)) as context,
    ):
        train_night(context, "n", recipe=NIGHT)
    last = sorted((data / "cycles" / "n" / "checkpoints").iterdir())[-1]
    return {path.name: path.read_bytes() for path in last.glob("*.safetensors")}


def test_a_night_with_branches_goes_on_after_a_kill_to_the_same_bits_and_shows_its_trees(
    runtime: RuntimeSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    learn = Trainer.train_step

    def killed(self: Trainer, step: int, *material: Any) -> dict[str, float]:
        if step == 1:
            raise KilledError
        return learn(self, step, *material)

    data = tmp_path / "one"
    data.mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "train_step", killed)
        with pytest.raises(KilledError):
            goes_on(data, runtime)
    other = tmp_path / "other"
    shutil.copytree(data, other, ignore=shutil.ignore_patterns("checkpoints", "run"))
    assert goes_on(data, runtime) == goes_on(other, runtime), "from a checkpoint, and from the records alone"
    known = [difficulty_of(folder) for folder in (data, other)]
    assert known[0] == known[1]
    assert known[0].step == NIGHT.training.steps
    assert sum(counts.passed + counts.failed for counts in known[0].counts.values()) > 0

    with SqliteLedger(data / "ledger.sqlite3") as ledger:
        branch = None
        for step in ledger.recorded_steps("n"):
            record = ledger.step("n", step)
            assert record is not None
            by_task: dict[str, list[str | None]] = {}
            for one in record.judged:
                by_task.setdefault(one.rollout.task, []).append(one.rollout.branch_of)
            assert all(found.count(None) == 4 and len(found) <= 8 for found in by_task.values())
            branches = [one.rollout for one in record.judged if one.rollout.branch_of]
            assert record.metrics["branches"] == len(branches) > 0
            assert record.metrics["branch_tokens_saved"] == sum(one.shared_tokens for one in branches)
            kept = {group.rollouts[place] for group in record.groups for place in group.kept}
            chosen = [one.rollout for one in record.judged if one.rollout.id in kept]
            trained = sum(one.trained_tokens for one in samples(record.judged, record.groups))
            assert trained == sum(one.sampled_tokens for one in chosen)
            branch = next((one for one in branches if one.id in kept), branch)
        assert branch is not None
        detail = Rollouts(ledger).rollout_detail(branch.id, data)
        assert [one.id for one in detail.tree] == [branch.branch_of, branch.id]
        assert detail.tree[0].shared_advantage is not None
        show_detail(detail)
        shown = capsys.readouterr().out
        assert f"+- {branch.id}: " in shown
        assert f"from turn {branch.branch_turn}, {branch.shared_tokens} tokens shared" in shown
