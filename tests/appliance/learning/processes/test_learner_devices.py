"""Which device each learner computes on follows from what was asked for and what is there."""

from __future__ import annotations

from typing import Any

import pytest
from tables import table

from appliance.inference.engine import ModelError
from appliance.inference.vllm.placement import VllmSettings
from appliance.learning.learner_devices import learner_devices, sampled_on, usable_gpus


@table(
    ("asked", "learners", "gpus", "taken", "expected"),
    [
        ("auto", 1, 0, (), ("cpu",)),
        ("auto", 3, 0, (), ("cpu",) * 3),
        ("cpu", 2, 8, (), ("cpu",) * 2),
        ("auto", 1, 1, (0,), ("cuda:0",)),  # learner and engine share the only one
        ("cuda", 1, 1, (), ("cuda:0",)),
        ("auto", 1, 2, (0,), ("cuda:1",)),  # the torch engine has the first to itself
        ("auto", 2, 4, (2, 3), ("cuda:0", "cuda:1")),
        ("auto", 2, 4, (0, 1), ("cuda:2", "cuda:3")),
        ("auto", 2, 3, (1,), ("cuda:0", "cuda:2")),
        ("auto", 2, 2, (0,), ("cuda:0", "cuda:1")),  # too few are left
    ],
)
def test_a_gpu_is_taken_where_there_is_one(
    asked: str, learners: int, gpus: int, taken: tuple[int, ...], expected: tuple[str, ...]
) -> None:
    assert learner_devices(asked, learners, gpus, taken) == expected


@pytest.mark.parametrize(
    ("asked", "learners", "gpus", "message", "key"),
    [
        ("cuda", 1, 0, "model.device is cuda, but torch finds no GPU here", "model.device"),
        ("auto", 2, 1, "2 learners need a GPU each, but there is 1", "model.learners to 1 at most"),
        ("cuda", 4, 2, "4 learners need a GPU each, but there are 2", "model.learners to 2 at most"),
    ],
)
def test_no_learner_is_left_on_the_processor_silently(
    asked: str, learners: int, gpus: int, message: str, key: str
) -> None:
    with pytest.raises(ModelError, match=message) as caught:
        learner_devices(asked, learners, gpus)
    assert key in caught.value.hint


@pytest.mark.parametrize(
    ("engine", "vllm", "visible", "expected"),
    [
        ("torch", {}, None, (0,)),
        ("torch", {"gpus": (3,)}, "1,2", (0,)),  # which changes nothing
        ("vllm", {}, None, (0,)),
        ("vllm", {"tensor_parallel": 2}, "GPU-3f0a,GPU-77e1", (0, 1)),
        ("vllm", {"tensor_parallel": 2, "gpus": (2, 3)}, None, (2, 3)),
        ("vllm", {"gpus": (2,)}, "2,3", (0,)),  # torch counts within what is visible, in that order
        ("vllm", {"gpus": (0, 2)}, "3, 2,0", (2, 1)),
    ],
)
def test_an_engine_keeps_the_gpus_that_it_samples_on(
    engine: str, vllm: dict[str, Any], visible: str | None, expected: tuple[int, ...]
) -> None:
    assert sampled_on(engine, VllmSettings.model_validate(vllm), visible, here=True) == expected


def test_engines_in_the_cluster_keep_the_first_gpus_which_may_be_those_of_this_host() -> None:
    assert sampled_on("torch", VllmSettings(), None, here=False) == ()
    taken = sampled_on("vllm", VllmSettings(), None, here=False, placed=2)
    assert learner_devices("auto", 1, 3, taken) == ("cuda:2",)


@pytest.mark.parametrize("visible", ["0,1", "", "GPU-3f0a,GPU-77e1"])
def test_a_gpu_for_vllm_that_is_not_visible_by_its_number_is_refused(visible: str) -> None:
    with pytest.raises(ModelError, match=r"vllm\.gpus names GPU 2, but CUDA_VISIBLE_DEVICES is") as refused:
        sampled_on("vllm", VllmSettings(gpus=(2,)), visible, here=True)
    assert "the numbers that `nvidia-smi` lists" in refused.value.hint


def test_who_asks_for_the_processor_looks_for_no_gpu() -> None:
    assert usable_gpus("cpu") == 0
