"""One learner in a process of its own, as on a GPU, learns to the bit what the same learner learns in this process."""

from __future__ import annotations

import json
import resource
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from learning_builders import tiny_model, varied
from test_learning_ranks import LORA, QLORA, SMALL, files_of, furthest, trained
from test_learning_sft import LORA as ADAPTED
from test_learning_sft import RECIPE as SHOWN
from test_learning_sft import demonstrations
from test_learning_trainer import records, same_bits, weights

from appliance.inference import adapters
from appliance.inference.adapters import base_digest, push_model
from appliance.inference.engines import make_engine
from appliance.inference.folder import open_model
from appliance.inference.vllm.transfers.folders import private_folder
from appliance.learning import rank_processes, trained_weights
from appliance.learning.errors import CheckpointError, LearningError
from appliance.learning.rank_processes import OnPass, RankProcesses
from appliance.learning.ranks import ALONE
from appliance.learning.recipes.recipe import SelfDistillationRecipe, TrainingRecipe
from appliance.learning.training import ranked_trainer
from appliance.learning.training.distillation import every_rollout
from appliance.learning.training.rank import RankProcess
from appliance.learning.training.ranked_trainer import RankedSft, RankedTrainer
from appliance.learning.training.sft import FULL, NEW, SftTrainer
from appliance.learning.training.trainer import Trainer
from runtime.errors import InfrastructureError

ROOM = 48 << 20
"""Bytes of addresses that a process without memory may still take."""


@pytest.fixture
def process(ranks: Callable[[int], RankProcesses]) -> RankProcesses:
    return ranks(1)


def test_one_that_cannot_begin_says_why_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rank_processes.sys, "executable", "/bin/false")
    with pytest.raises(InfrastructureError, match="a learner process ended during startup"):
        RankProcesses(("cpu",))


@pytest.mark.parametrize("recipe", [SMALL, LORA, QLORA], ids=["full", "lora", "qlora"])
def test_its_losses_and_weights_are_those_of_the_same_learner_in_this_process(
    process: RankProcesses, recipe: TrainingRecipe, tmp_path: Path
) -> None:
    files, theirs, ours = trained(recipe, tmp_path / "model")
    there = RankedTrainer(process, theirs, recipe, 1, max_tokens=64, companions=files)
    here = Trainer(ours, recipe, 1, max_tokens=64, companions=files)
    passes = list[tuple[int, int]]()
    there.on_pass = lambda done, count: passes.append((done, count))
    for step in range(2):
        told, expected = there.train_step(step, *records(step, recipe)), here.train_step(step, *records(step, recipe))
        told.pop("seconds"), expected.pop("seconds")
        assert told == expected
    assert expected["gradient_norm"] > 0
    assert same_bits(weights(theirs), weights(ours))
    assert passes, "it reports its passes"
    assert {done <= count for done, count in passes} == {True}
    there.require_finite([1, 2, 3])
    there.save(tmp_path / "there", {"by": "it"})
    here.save(tmp_path / "here", {"by": "us"})
    assert there.restore(tmp_path / "here") == {"by": "us"}
    assert here.restore(tmp_path / "there") == {"by": "it"}
    assert there.train_step(2, *records(2, recipe))["loss"] == here.train_step(2, *records(2, recipe))["loss"]
    assert same_bits(weights(theirs), weights(ours))
    if recipe is SMALL:
        push_model(make_engine("torch", rows=2, slots=64), theirs, "it")


def test_a_teacher_is_asked_here_and_teaches_there(process: RankProcesses, tmp_path: Path) -> None:
    files, theirs, ours = trained(SMALL, tmp_path / "model")
    teacher, asked = make_engine("torch", rows=4, slots=64), 0
    push_model(teacher, varied(seed=7), "teacher")

    def score(ids: Sequence[Sequence[int]], temperature: float) -> Sequence[Sequence[float]]:
        nonlocal asked
        asked += 1
        return teacher.score(ids, temperature)

    there = RankedTrainer(process, theirs, SMALL, 1, max_tokens=64, companions=files, teacher=score)
    here = Trainer(ours, SMALL, 1, max_tokens=64, companions=files, teacher=teacher.score)
    rollouts, _ = records(0)
    groups = every_rollout(rollouts, SMALL)
    told, expected = there.train_step(0, rollouts, groups), here.train_step(0, rollouts, groups)
    assert told["reverse_kl"] == expected["reverse_kl"] != 0
    assert same_bits(weights(theirs), weights(ours))
    there.train_step(1, (), ())
    assert asked == 1, "a step without rollouts asks no teacher"


def test_a_model_that_scores_itself_learns_the_same_there(process: RankProcesses, tmp_path: Path) -> None:
    recipe = SMALL.model_copy(update={"self_distillation": SelfDistillationRecipe(shown="solution")})
    files, theirs, ours = trained(recipe, tmp_path / "model")
    there = RankedTrainer(process, theirs, recipe, 1, max_tokens=64, companions=files)
    here = Trainer(ours, recipe, 1, max_tokens=64, companions=files)
    rollouts, groups = records(0, recipe)
    prompts = {one.rollout.id: (9, 8, *one.rollout.nodes[0].ids) for one in rollouts}
    told, expected = (one.train_step(0, rollouts, groups, prompts) for one in (there, here))
    assert told["reverse_kl"] == expected["reverse_kl"] != 0
    assert same_bits(weights(theirs), weights(ours))


@pytest.mark.parametrize("way", [FULL, ADAPTED], ids=["full", "lora"])
def test_what_it_learns_from_demonstrations_is_the_same_and_each_goes_on_from_the_others_checkpoint(
    process: RankProcesses, way: TrainingRecipe, tmp_path: Path
) -> None:
    files = files_of(tiny_model(), tmp_path / "model")
    theirs, ours = open_model(files), open_model(files)
    shown = demonstrations(100)
    settings: dict[str, Any] = {"max_tokens": 20, "companions": files, "way": way}
    there = RankedSft(process, theirs, shown, SHOWN, 3, **settings)
    here = SftTrainer(ours, shown, SHOWN, 3, **settings)
    for learner in (there, here):
        learner.run_steps(5)
    assert same_bits(weights(theirs), weights(ours))
    there.save(tmp_path / "five")
    here.save(tmp_path / "five-here")
    there.run_steps(30), here.run_steps(30)
    assert there.restore(tmp_path / "five-here") == {}
    assert (there.step, there.done) == (5, False)
    assert there.run_steps(100)["steps"] == 35
    here.restore(tmp_path / "five")
    here.run_steps(100)
    assert there.done
    assert same_bits(weights(theirs), weights(ours))
    with pytest.raises(LearningError, match="none of 3 demonstrations fits into 2 tokens"):
        RankedSft(process, theirs, demonstrations(3), SHOWN, 3, max_tokens=2, companions=files)


class HereInstead:
    """The rank of a group of one, in this process, where what it does can be counted."""

    on_pass: OnPass | None = None

    def __init__(self) -> None:
        self.rank = RankProcess(ALONE, torch.device("cpu"))

    def ask(self, what: str, **message: Any) -> dict[str, Any]:
        answer = self.rank.answer(json.loads(json.dumps({"ask": what, **message})))
        return dict(json.loads(json.dumps(answer)))

    def close(self) -> None:
        """There is nothing to end."""


def test_frozen_weights_are_hashed_at_each_checkpoint_on_both_sides_and_not_with_each_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, model, _ = trained(LORA, tmp_path / "model")
    group = HereInstead()
    there = RankedTrainer(group, model, LORA, 1, max_tokens=64, companions=files)
    hashed: list[torch.nn.Module] = []

    def counted(model: torch.nn.Module) -> str:
        hashed.append(model)
        return base_digest(model)

    for module in (adapters, trained_weights):
        monkeypatch.setattr(module, "base_digest", counted)
    for step in range(2):
        there.train_step(step, *records(step, LORA))
    assert hashed == []
    there.save(tmp_path / "kept")
    there.restore(tmp_path / "kept")
    ours, theirs = model, group.rank.learner.model
    assert (hashed.count(ours), hashed.count(theirs)) == (2, 2)
    for each in (ours, theirs):
        layer = next(one for name, one in each.named_parameters() if "norm" in name)
        layer.data += 1  # which torch does not count
        with pytest.raises(CheckpointError, match="the frozen weights changed"):
            there.save(tmp_path / "another")
        layer.data -= 1
    assert not (tmp_path / "another").exists()


def test_what_is_handed_over_lies_where_its_size_has_room_and_goes_once_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes, places = [], []

    def without_shared_memory(size: int) -> Path:
        sizes.append(size)
        places.append(private_folder(size, tmp_path / "nothing"))
        return places[-1]

    monkeypatch.setattr(ranked_trainer, "private_folder", without_shared_memory)
    files, model, _ = trained(SMALL, tmp_path / "model")
    there = RankedTrainer(HereInstead(), model, SMALL, 1, max_tokens=64, companions=files)
    there.train_step(0, *records(0))
    assert sizes == [sum(map(len, files.values())), sum(one.nbytes for one in model.parameters())]
    assert not any(place.exists() for place in places)


@pytest.mark.parametrize("way", [FULL, NEW, ADAPTED], ids=["full", "new", "lora"])
def test_several_learn_from_demonstrations_what_one_learns(
    ranks: Callable[[int], RankProcesses], way: TrainingRecipe, tmp_path: Path
) -> None:
    """Three, of which one has a row less than the others."""
    files = files_of(varied(layers=2), tmp_path / "model")
    theirs, ours = open_model(files), open_model(files)
    recipe = SHOWN.model_copy(update={"batch": 5})
    settings: dict[str, Any] = {"max_tokens": 20, "companions": files, "way": way}
    there = RankedSft(ranks(3), theirs, demonstrations(40), recipe, 3, **settings)
    here = SftTrainer(ours, demonstrations(40), recipe, 3, **settings)
    assert there.run_steps(3)["loss"] == pytest.approx(here.run_steps(3)["loss"], rel=1e-5)
    assert furthest(theirs, ours) < 1e-5
    there.save(tmp_path / "three")
    here.restore(tmp_path / "three")
    assert here.step == 3


def test_a_model_without_room_is_refused_with_what_to_change_and_nothing_else_ends(
    process: RankProcesses, tmp_path: Path
) -> None:
    without_memory(process.pids[0])
    large = files_of(large_model(), tmp_path / "large")
    try:
        with pytest.raises(LearningError, match="ran out of memory during open") as caught:
            RankedTrainer(process, open_model(large), SMALL, 1, max_tokens=64, companions=large)
    finally:
        limited(process.pids[0], resource.RLIM_INFINITY)
    for named in ("training.method to lora", "model.device to cpu", "assay plan"):
        assert named in caught.value.hint
    small = files_of(tiny_model(), tmp_path / "small")
    learner = RankedTrainer(process, open_model(small), SMALL, 1, max_tokens=64, companions=small)
    assert learner.train_step(0, *records(0))["tokens"] > 0


def test_one_of_several_without_memory_ends_the_step_for_all_with_what_to_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who had the memory waits inside of the pass, where nothing can be agreed on: nothing is halved."""
    monkeypatch.setattr(rank_processes, "LEFT_SECONDS", 2.0)
    files = files_of(large_model(), tmp_path / "model")
    with RankProcesses(("cpu", "cpu"), threads=2) as processes:
        learner = RankedTrainer(processes, open_model(files), SMALL, 1, max_tokens=64, companions=files)
        without_memory(processes.pids[1])
        with pytest.raises(
            LearningError, match=r"too small for a pass of 2 rollouts.*several learners cannot halve"
        ) as caught:
            learner.train_step(0, *records(0))
        assert "training.micro_batch lower" in caught.value.hint
        assert not any(Path(f"/proc/{pid}").exists() for pid in processes.pids)


def large_model() -> torch.nn.Module:
    """A model of which no part fits into `ROOM`."""
    from transformers import Qwen2Config, Qwen2ForCausalLM

    config = Qwen2Config(
        vocab_size=40,
        hidden_size=1024,
        intermediate_size=16_384,
        num_hidden_layers=1,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=5,
        pad_token_id=0,
    )
    torch.manual_seed(0)
    return Qwen2ForCausalLM(config).eval()


def limited(pid: int, most: int) -> None:
    resource.prlimit(pid, resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))


def without_memory(pid: int) -> None:
    """Leaves a process little more than it has."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[0])
    limited(pid, pages * resource.getpagesize() + ROOM)
