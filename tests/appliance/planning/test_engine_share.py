"""What vLLM is given of a GPU that a learner is on, too, is what that leaves: in a step, or while vLLM is awake."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from test_planning import FOUR, LAPTOP, WHOLE, WORKSTATION, llama
from test_planning import LORA as ADAPTER

from appliance import planning
from appliance.cli.machine import recommended as recommendation
from appliance.cli.machine.plan import _advice, _report
from appliance.cli.machine.recommended import recommended
from appliance.config.configuration import ModelSettings, Settings
from appliance.inference.engine import ModelError
from appliance.inference.vllm.placement import VllmSettings
from appliance.learning.recipes.recipe import Recipe
from appliance.learning.recipes.stages import Stage
from appliance.placement.settings import PlacementSettings
from appliance.planning import GIB, GPU_USABLE, Hardware, Shape, plan, sft_way
from appliance.planning.engine_share import Way, engine_share, ways_of
from appliance.planning.model_shape import EMBEDDED

SMALL = llama(0.6, layers=28, hidden=1024, intermediate=3072)
ASLEEP = VllmSettings(sleep=2)
[GPU] = WORKSTATION.gpus


def settings(vllm: VllmSettings = VllmSettings(), **model: object) -> Settings:  # noqa: B008 - frozen
    chosen = ModelSettings.model_validate({"engine": "vllm", **model})
    return Settings(data=Path("unused"), vllm=vllm).model_copy(update={"model": chosen})


def share_of(configured: Settings, shape: Shape, ways: Sequence[Way]) -> float:
    share = engine_share(configured, shape, WORKSTATION, ways)
    assert share is not None
    return share


@pytest.mark.parametrize("way", [Way(WHOLE, 2048), Way(ADAPTER, 2048)], ids=["full", "lora"])
def test_it_is_what_the_learner_leaves_in_a_step_and_more_where_vllm_sleeps_then(way: Way) -> None:
    awake, asleep = (share_of(settings(one), SMALL, [way]) for one in (VllmSettings(), ASLEEP))
    assert 0 < awake < asleep < 0.92, "which vLLM takes by itself"
    parts = plan(SMALL, WORKSTATION, way.recipe, max_tokens=2048, rows=1).parts
    step = sum(size for name, size in parts.items() if name != "engine")
    assert step + awake * GPU.total < GPU.free * GPU_USABLE
    kept = parts["process"] + parts["moments"] + SMALL.parameters * (4 if way.recipe is WHOLE else 2)
    assert kept + asleep * GPU.total < GPU.free * GPU_USABLE


def test_nothing_is_said_where_somebody_said_it_or_no_learner_is_on_the_same_gpu() -> None:
    way = [Way(WHOLE, 2048)]
    assert engine_share(settings(VllmSettings(memory_share=0.3)), SMALL, WORKSTATION, way) is None
    assert engine_share(settings(engine="torch"), SMALL, WORKSTATION, way) is None
    assert engine_share(settings(), SMALL, LAPTOP, way) is None
    assert engine_share(settings(device="cpu"), SMALL, WORKSTATION, way) is None
    assert engine_share(settings(), SMALL, FOUR, way) is None
    away = settings().model_copy(update={"placement": PlacementSettings(learners="cluster")})
    assert engine_share(away, SMALL, WORKSTATION, way) is None
    assert engine_share(settings(learners=4), SMALL, FOUR, way) is not None, "the fourth learner is on the engine's GPU"


def test_it_is_enough_for_each_stage_and_several_engines_have_a_part_each() -> None:
    recipe = Recipe(training=ADAPTER)
    stages = [
        Stage(name="shown", kind="sft", recipe=recipe),
        Stage(name="scored", kind="distil", recipe=recipe, scored_by="a" * 64),
    ]
    shown, scored = ways_of(recipe, stages)
    tokens = recipe.agent.max_tokens
    taught = Way(sft_way(recipe.warm_start, ADAPTER, tokens), tokens)
    assert (shown, scored) == (taught, Way(ADAPTER, tokens, scored=True))
    each = [share_of(settings(ASLEEP), SMALL, [one]) for one in (shown, scored)]
    assert share_of(settings(ASLEEP), SMALL, [shown, scored]) == min(each)
    assert share_of(settings(engines=2), SMALL, ways_of(recipe)) < share_of(settings(), SMALL, ways_of(recipe)) / 2


def test_too_little_for_vllm_is_refused_with_what_to_change() -> None:
    large = llama(1.2, layers=28, hidden=1536, intermediate=4608)
    with pytest.raises(ModelError, match=r"leaves .* of 24\.0 GiB, but vLLM needs at least") as met:
        engine_share(settings(), large, WORKSTATION, [Way(WHOLE, 2048)])
    assert met.value.hint.startswith("set vllm.sleep to 2, reduce the learner's memory")
    with pytest.raises(ModelError, match=r"leaves 0\.0 of 24\.0 GiB"):
        engine_share(settings(ASLEEP), llama(8.0), WORKSTATION, [Way(WHOLE, 2048)])


def test_less_than_a_hundredth_of_a_gpu_is_no_share() -> None:
    """With none, vLLM takes what it takes by itself."""
    for free, refused in ((2.75, True), (3.25, False)):
        machine = replace(WORKSTATION, gpus=(replace(GPU, total=80 * GIB, free=int(free * GIB)),))
        with pytest.raises(ModelError, match=r"needs at least 0\.8") if refused else nullcontext():
            assert engine_share(settings(), EMBEDDED, machine, [Way(Recipe().training, 120)]) == 0.01


def test_a_plan_says_what_engines_need_and_what_vllm_is_given() -> None:
    def said(vllm: VllmSettings, shape: Shape = SMALL, machine: Hardware = WORKSTATION, **model: object) -> str:
        configured = settings(vllm, **model)
        recipe = configured.recipe.model_copy(update={"training": ADAPTER})
        return _report(configured.model_copy(update={"recipe": recipe}), shape, machine).share

    share = share_of(settings(ASLEEP), SMALL, ways_of(Recipe(training=ADAPTER)))
    assert said(ASLEEP).endswith(f"% of a GPU, vLLM gets {100 * share:.0f} %")
    assert said(VllmSettings(memory_share=0.3)).endswith("vLLM gets 30 %")
    assert said(VllmSettings(), machine=FOUR).endswith("vLLM gets 92 %")
    assert said(VllmSettings(), engine="torch", machine=LAPTOP).endswith("% of the memory")
    assert "but vLLM needs at least" in said(VllmSettings(), llama(8.0))


def test_each_way_of_training_is_planned_with_what_it_leaves_itself() -> None:
    report = _report(settings(), SMALL, WORKSTATION)
    assert (report.configured.fits, "but vLLM needs at least" in report.share) == (False, True)
    for row, way in zip(report.rows, planning.ways(Recipe().training, WORKSTATION), strict=True):
        taken = way.model_copy(update={"micro_batch_tokens": row.micro_batch_tokens})
        share = share_of(settings(), SMALL, [Way(taken, Recipe().agent.max_tokens)])
        assert (row.fits, row.engine_share) == (True, pytest.approx(share))
    assert _advice(report).startswith("this fits")


def test_memory_beside_a_gpu_that_is_too_little_is_not_laid_to_vllm() -> None:
    report = _report(settings(), llama(8.0), replace(WORKSTATION, memory=16 * GIB))
    assert _advice(report).endswith("a machine with more main memory")


def test_weights_in_fp8_are_recommended_only_where_nothing_else_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recommendation, "_has_vllm", lambda: True)
    for able in (False, True):
        monkeypatch.setattr(recommendation, "_has_fp8", lambda able=able: able)
        found = recommended(settings(engine="torch"), llama(8.0), WORKSTATION)
        assert (found is not None) is able
        small = recommended(settings(engine="torch"), SMALL, WORKSTATION)
        assert small is not None
        assert "vllm.fp8" not in small.values
    assert found is not None
    assert (found.values["vllm.fp8"], found.values["recipe.training.mismatch.rule"]) == (True, "mask")
    assert found.values["model.engine"] == "vllm"
    assert found.plan.fits
