"""State that rests in main memory changes no bit of a training."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from learning_builders import tiny_model, varied
from test_learning_trainer import RECIPE, records, same_bits, weights
from transformers import GPT2Config, GPT2LMHeadModel

from appliance.learning.errors import LearningError
from appliance.learning.offloading import HostedMoments, HostInputs, offload_inputs
from appliance.learning.recipes.recipe import TrainingRecipe
from appliance.learning.training.trainer import Trainer

AGAIN = {"gradient_checkpointing": True}


def way(**changed: Any) -> TrainingRecipe:
    return TrainingRecipe.model_validate({**RECIPE.model_dump(), **changed})


def learner(recipe: TrainingRecipe) -> Trainer:
    return Trainer(varied(layers=2), recipe, 4, max_tokens=64)


def moments(trainer: Trainer) -> list[torch.Tensor]:
    """The moments in the order of parameters and names: a resumed optimizer has them in another."""
    states = [trainer.optimizer.state.get(one, {}) for one in trainer.model.parameters()]
    found = [value for state in states for _, value in sorted(state.items())]
    return [value for value in found if isinstance(value, torch.Tensor) and value.ndim]


@pytest.mark.parametrize(
    "changed", [{}, {"optimizer": "adamw_8bit"}, {"method": "lora"}], ids=["adamw", "8bit", "lora"]
)
def test_moments_come_one_parameter_at_a_time_and_a_resumed_training_takes_the_same_steps(
    changed: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, moved = learner(way(**changed)), learner(way(**changed, offload="moments"))
    assert isinstance(moved.optimizer, HostedMoments)
    counts: Counter[int] = Counter()
    step_one = HostedMoments._step_one

    def watched(self: HostedMoments, parameter: torch.nn.Parameter) -> None:
        counts[sum(len(group["params"]) for group in self.param_groups)] += 1
        step_one(self, parameter)

    monkeypatch.setattr(HostedMoments, "_step_one", watched)
    losses = []
    for step in range(4):
        if step == 2:
            moved.save(tmp_path / "step")
            places = [one.data_ptr() for one in moments(moved)]
        losses.append((plain.train_step(step, *records(step)), moved.train_step(step, *records(step))))
    assert places == [one.data_ptr() for one in moments(moved)], "moments return to where they rest"
    trained = sum(parameter.requires_grad for parameter in moved.model.parameters())
    assert counts == {1: 4 * RECIPE.minibatches * trained}
    assert same_bits(weights(plain.model), weights(moved.model))
    again = learner(way(**changed, offload="moments"))
    again.restore(tmp_path / "step")
    for step in (2, 3):
        found = again.train_step(step, *records(step))
        for one in losses[step]:
            assert {**found, "seconds": 0.0} == {**one, "seconds": 0.0}
    assert same_bits(weights(again.model), weights(plain.model))
    assert same_bits(moments(again), moments(plain))


@pytest.mark.parametrize("changed", [{}, {"method": "lora", "precision": "bfloat16"}], ids=["full", "lora"])
def test_only_inputs_of_layers_move_and_come_back_bit_by_bit(
    changed: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    left: list[tuple[int, ...]] = []

    def moves(_: HostInputs, tensor: torch.Tensor) -> bool:
        left.append(tuple(tensor.shape))
        return True

    monkeypatch.setattr(HostInputs, "moves", moves)
    plain, moved = (learner(way(**AGAIN, **changed, offload=offload)) for offload in ("nothing", "activations"))
    passes: list[int] = []
    moved.on_pass = lambda done, _: passes.append(done)
    for step in range(2):
        found, expected = moved.train_step(step, *records(step)), plain.train_step(step, *records(step))
        assert {**found, "seconds": 0.0} == {**expected, "seconds": 0.0}
    assert same_bits(weights(plain.model), weights(moved.model))
    assert len(left) == 2 * len(passes) > 0, "one input of each of two layers"
    assert {shape[-1] for shape in left} == {32}


def test_on_a_processor_nothing_moves() -> None:
    tensor = torch.ones(2)
    assert HostInputs()._pack(tensor) is tensor


def test_what_cannot_move_is_refused_with_what_to_do() -> None:
    with pytest.raises(ValueError, match="set gradient_checkpointing to true"):
        way(offload="activations")
    with pytest.raises(ValueError, match="set optimizer to adamw"):
        way(**AGAIN, offload="both", optimizer="muon")
    with pytest.raises(LearningError, match="inputs of its layers") as caught:
        offload_inputs(torch.nn.Linear(2, 2))
    assert "training.offload" in caught.value.hint
    offload_inputs(checkpointed(GPT2LMHeadModel(GPT2Config(n_layer=1, n_embd=8, n_head=2, vocab_size=20))))
    offload_inputs(checkpointed(tiny_model()))


def checkpointed(model: Any) -> torch.nn.Module:
    model.gradient_checkpointing_enable({"use_reentrant": False})
    found: torch.nn.Module = model
    return found
