"""Frozen weights are hashed once, and again when anything of them may have changed."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from inference_models import tiny
from torch import distributed
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor

from appliance.inference import adapters
from appliance.inference.adapters import adapter_parameters, base_digest, frozen_digest
from appliance.learning.trained_weights import add_adapter

CHANGES: dict[str, Callable[[Any], object]] = {
    "in place": lambda model: model.model.norm.weight.mul_(2),
    "another tensor": lambda model: setattr(
        model.model.norm, "weight", torch.nn.Parameter(model.model.norm.weight + 1, False)
    ),
    "another's bytes": lambda model: model.model.norm.weight.set_(model.model.norm.weight + 1),
}


@pytest.mark.parametrize("change", CHANGES)
@torch.no_grad()
def test_frozen_weights_are_hashed_once_until_they_change(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = copy.deepcopy(tiny("qwen3"))
    add_adapter(model, 4, 8, 0)
    hashed: list[int] = []
    monkeypatch.setattr(adapters, "base_digest", lambda model: hashed.append(1) or base_digest(model))
    before = frozen_digest(model)
    for one in adapter_parameters(model).values():  # a step of the learner
        one.add_(1)
    assert (frozen_digest(model), len(hashed)) == (before, 1)
    CHANGES[change](model)
    assert frozen_digest(model) == base_digest(model) != before


def test_weights_that_are_trained_are_hashed_each_time() -> None:
    model = copy.deepcopy(tiny("qwen3")).requires_grad_()
    before = frozen_digest(model)
    model.model.norm.weight.data += 1  # which torch does not count
    assert frozen_digest(model) == base_digest(model) != before


@torch.no_grad()
def test_of_weights_that_several_share_a_change_of_a_part_counts_as_one_of_the_whole() -> None:
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    try:
        model = torch.nn.Linear(2, 2, bias=False)
        shared = DTensor.from_local(model.weight.detach(), init_device_mesh("cpu", (1,)))
        model.weight = torch.nn.Parameter(shared, requires_grad=False)
        for change in (model.weight.add_, model.weight.to_local().add_):
            before = frozen_digest(model)
            change(1)
            assert frozen_digest(model) == base_digest(model) != before
    finally:
        distributed.destroy_process_group()
