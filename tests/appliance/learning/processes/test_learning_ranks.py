"""Two processes train a model as one does, and no one of them outlives another. (Fully sharded: 1910.02054.)"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from learning_builders import tiny_model, varied
from test_learning_trainer import RECIPE, records
from torch import nn

from appliance.learning.errors import CheckpointError, LearningError
from appliance.learning.rank_processes import RankProcesses
from appliance.learning.ranks import Ranks
from appliance.learning.recipes.recipe import SelfDistillationRecipe, TrainingRecipe
from appliance.learning.training.ranked_trainer import RankedTrainer
from appliance.learning.training.trainer import Trainer
from appliance.learning.training.updates import open_for
from runtime.errors import InfrastructureError

SMALL = RECIPE.model_copy(update={"micro_batch": 2})
LORA = RECIPE.model_copy(
    update={"method": "lora", "lora_rank": 4, "packing": True, "micro_batch_tokens": 40, "precision": "bfloat16"}
)
QLORA = LORA.model_copy(update={"method": "qlora"})
RESTING = SMALL.model_copy(update={"offload": "both", "gradient_checkpointing": True})


def files_of(model: nn.Module, folder: Path) -> dict[str, bytes]:
    model.save_pretrained(folder)  # type: ignore[operator]
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def trained(recipe: TrainingRecipe, folder: Path) -> tuple[dict[str, bytes], nn.Module, nn.Module]:
    files = files_of(varied(layers=2), folder)
    return files, open_for(files, recipe), open_for(files, recipe)


def furthest(one: nn.Module, other: nn.Module) -> float:
    pairs = zip(one.parameters(), other.parameters(), strict=True)
    return max(float((a.detach().float() - b.detach().float()).abs().max()) for a, b in pairs)


def test_every_rank_takes_as_many_passes_and_each_pass_counts_once() -> None:
    passes = list("abcde")
    shares = [Ranks(number, 3).share(passes) for number in range(3)]
    assert {len(share) for share in shares} == {2}
    assert sorted(one for share in shares for one, counts in share if counts) == passes


def test_two_ranks_score_their_own_tokens_as_one_does(ranks: Callable[[int], RankProcesses], tmp_path: Path) -> None:
    recipe = SMALL.model_copy(update={"self_distillation": SelfDistillationRecipe(shown="solution")})
    files, shared, alone = trained(recipe, tmp_path / "model")
    one = Trainer(alone, recipe, 1, max_tokens=64, companions=files)
    two = RankedTrainer(ranks(2), shared, recipe, 1, max_tokens=64, companions=files)
    rollouts, groups = records(0, recipe)
    prompts = {each.rollout.id: (9, 8, *each.rollout.nodes[0].ids) for each in rollouts[:5]}
    told, expected = (learner.train_step(0, rollouts, groups, prompts) for learner in (two, one))
    assert told["reverse_kl"] == pytest.approx(expected["reverse_kl"], rel=1e-4)
    assert told["taught_fraction"] == expected["taught_fraction"] > 0
    assert furthest(shared, alone) < 5e-6


@pytest.mark.parametrize(
    ("recipe", "count"),
    [(SMALL, 3), (LORA, 3), (RESTING, 3), pytest.param(SMALL, 4, marks=pytest.mark.slow)],
    ids=["full-3", "lora-3", "resting-3", "full-4"],
)
def test_c9_three_ranks_whose_parts_are_uneven_and_four_go_on_from_the_checkpoint_of_two(
    recipe: TrainingRecipe, count: int, ranks: Callable[[int], RankProcesses], tmp_path: Path
) -> None:
    files, shared, alone = trained(recipe, tmp_path / "model")
    assert count != 3 or any(len(parameter) % count for parameter in shared.parameters())
    one = Trainer(alone, recipe, 1, max_tokens=64, companions=files)
    two = RankedTrainer(ranks(2), shared, recipe, 1, max_tokens=64, companions=files)
    for step in range(2):
        two.train_step(step, *records(step, recipe)), one.train_step(step, *records(step, recipe))
    two.save(tmp_path / "two", {"by": "two"})
    beside = open_for(files, recipe)
    more = RankedTrainer(ranks(count), beside, recipe, 1, max_tokens=64, companions=files)
    assert more.restore(tmp_path / "two") == {"by": "two"}
    told, expected = more.train_step(2, *records(2, recipe)), one.train_step(2, *records(2, recipe))
    assert told["loss"] == pytest.approx(expected["loss"], rel=1e-4, abs=1e-6)
    assert told["gradient_norm"] == pytest.approx(expected["gradient_norm"], rel=1e-4)
    assert furthest(beside, alone) < 5e-6
    more.save(tmp_path / "more", {"by": "more"})
    assert one.restore(tmp_path / "more") == {"by": "more"}
    assert furthest(beside, alone) == 0


def test_c9_two_ranks_train_as_one_process_does_and_end_together(
    ranks: Callable[[int], RankProcesses], tmp_path: Path
) -> None:
    for recipe in (SMALL, LORA, QLORA):
        learns_what_one_process_learns_and_each_goes_on_from_the_others_checkpoint(
            ranks(2), recipe, tmp_path / recipe.method
        )
    refuses_in_the_words_of_a_trainer_and_goes_on(ranks(2), tmp_path / "refusals")
    for recipe in (SMALL, LORA):
        ends_with_the_first_that_is_killed(ranks(2), recipe, tmp_path / f"{recipe.method}-killed")


def learns_what_one_process_learns_and_each_goes_on_from_the_others_checkpoint(
    processes: RankProcesses, recipe: TrainingRecipe, tmp_path: Path
) -> None:
    files, shared, alone = trained(recipe, tmp_path / "model")
    several = RankedTrainer(processes, shared, recipe, 1, max_tokens=64, companions=files)
    one = Trainer(alone, recipe, 1, max_tokens=64, companions=files)
    for step in range(2):
        told, expected = several.train_step(step, *records(step, recipe)), one.train_step(step, *records(step, recipe))
        told.pop("seconds"), expected.pop("seconds")
        assert told == pytest.approx(expected, rel=1e-4, abs=1e-6)
    assert expected["gradient_norm"] > 0
    assert furthest(shared, alone) < 5e-6
    several.save(tmp_path / "several", {"by": "two"})
    one.save(tmp_path / "one", {"by": "one"})
    last = records(2, recipe)
    one.train_step(2, *last)
    beside = open_for(files, recipe)
    onward = Trainer(beside, recipe, 1, max_tokens=64, companions=files)
    assert onward.restore(tmp_path / "several") == {"by": "two"}
    onward.train_step(2, *last)
    assert furthest(beside, alone) < 5e-6
    assert several.restore(tmp_path / "one") == {"by": "one"}
    several.train_step(2, *last)
    assert furthest(shared, alone) < 5e-6


def refuses_in_the_words_of_a_trainer_and_goes_on(processes: RankProcesses, tmp_path: Path) -> None:
    files, shared, _ = trained(SMALL, tmp_path / "model")
    several = RankedTrainer(processes, shared, SMALL, 1, max_tokens=64, companions=files)
    with pytest.raises(LearningError, match="step 4 does not follow"):
        several.train_step(4, *records(4))
    with pytest.raises(CheckpointError, match="nothing"):
        several.restore(tmp_path / "nothing")
    other = Trainer(tiny_model(), RECIPE, 2, max_tokens=64)
    other.save(tmp_path / "other")
    with pytest.raises(CheckpointError, match="has seed 2, not 1"):
        several.restore(tmp_path / "other")
    assert several.train_step(0, *records(0))["tokens"] > 0


def ends_with_the_first_that_is_killed(processes: RankProcesses, recipe: TrainingRecipe, tmp_path: Path) -> None:
    files, shared, _ = trained(recipe, tmp_path / "model")
    several = RankedTrainer(processes, shared, recipe, 1, max_tokens=64, companions=files)
    os.kill(processes.pids[1], signal.SIGKILL)
    with pytest.raises(InfrastructureError, match="a learner process ended during the request to step"):
        several.train_step(0, *records(0, recipe))
    assert not any(Path(f"/proc/{pid}").exists() for pid in processes.pids)
    assert not processes.folder.exists()
    with pytest.raises(InfrastructureError, match="ended before the request"):
        several.train_step(0, *records(0, recipe))
