"""Recommended settings follow size and memory, keep headroom, and know what the processor computes in."""

from __future__ import annotations

from dataclasses import replace

import pytest

from appliance.learning.recipes.recipe import EvaluationRecipe, Recipe, TrainingRecipe
from appliance.planning import GIB, Gpu, Hardware, Layout, Shape, Vllm, evaluated_items, plan, recommend
from appliance.planning.hardware import computes_bfloat16


def qwen(billions: float, layers: int, hidden: int, intermediate: int, values: int = 1024) -> Shape:
    one = ((hidden, hidden), (values, hidden), (values, hidden), (hidden, hidden))
    one += ((intermediate, hidden), (intermediate, hidden), (hidden, intermediate))
    return Shape(
        parameters=int(billions * 1e9),
        linear=one * layers,
        layers=layers,
        hidden=hidden,
        intermediate=intermediate,
        attention=hidden,
        key_value=values,
        vocabulary=151_936,
        tied=billions < 5,
        positions=40_960,
        file_bytes=int(billions * 2e9),
    )


SMALLEST = qwen(0.135, 30, 576, 1536, 192)
SMALL, MIDDLE, LARGE = qwen(0.6, 28, 1024, 3072), qwen(4.0, 36, 2560, 9728), qwen(8.2, 36, 4096, 12_288)
SLEEPING = Layout(vllm=Vllm(sleep=2))


def card(gib: int) -> Hardware:
    return Hardware(256 * GIB, 16, (Gpu("a card", gib * GIB, gib * GIB - GIB // 2, 300e12, 1500e9),))


@pytest.mark.parametrize(
    ("shape", "gib", "method", "least"),
    [
        (SMALL, 24, "full", 8192),
        (SMALL, 80, "full", 16_384),
        (MIDDLE, 24, "lora", 2048),
        (MIDDLE, 48, "lora", 8192),
        (LARGE, 32, "qlora", 4096),
        (LARGE, 48, "lora", 4096),
        (LARGE, 80, "lora", 8192),
    ],
)
def test_a_card_gets_the_method_of_its_size(shape: Shape, gib: int, method: str, least: int) -> None:
    found = recommend(shape, card(gib), TrainingRecipe(), SLEEPING)
    assert found is not None
    assert found.values["recipe.training.method"] == method
    assert found.values["recipe.agent.max_tokens"] >= least
    assert found.values["recipe.training.precision"] == "bfloat16"
    assert found.plan.fits
    assert 8 <= found.values["recipe.agent.concurrent"] <= 64


def test_a_model_with_a_short_context_gets_all_of_it() -> None:
    found = recommend(replace(SMALLEST, positions=128), Hardware(24 * GIB, 2), TrainingRecipe())
    assert found is not None
    assert found.values["recipe.agent.max_tokens"] == 128


def test_state_moves_to_main_memory_only_where_nothing_else_fits() -> None:
    chosen = []
    for tenth in range(88, 98):
        size = tenth * GIB // 10
        many = replace(card(1), gpus=(Gpu("a card", size, size - GIB // 2, 300e12, 1500e9),) * 9)
        found = recommend(LARGE, many, TrainingRecipe(), Layout(tensor_parallel=8, engine_gpus=8, vllm=Vllm()))
        chosen.append("none" if found is None else found.values["recipe.training.offload"])
    assert list(dict.fromkeys(chosen)) == ["none", "activations", "nothing"]


def test_what_does_not_fit_is_not_recommended() -> None:
    assert recommend(LARGE, card(8), TrainingRecipe(), SLEEPING) is None
    assert recommend(LARGE, Hardware(16 * GIB, 8), TrainingRecipe()) is None


def test_a_processor_gets_the_precision_that_it_computes_in_and_a_tenth_of_its_memory_is_left() -> None:
    plain, native = (Hardware(24 * GIB, 2, bfloat16=able) for able in (False, True))
    slow, fast = (recommend(SMALLEST, one, TrainingRecipe()) for one in (plain, native))
    assert slow is not None
    assert fast is not None
    precision = "recipe.training.precision"
    assert (slow.values[precision], fast.values[precision]) == ("float32", "bfloat16")
    assert [one.values.get("model.dtype", "auto") for one in (slow, fast)] == ["auto", "bfloat16"]
    assert slow.plan.needed <= 0.9 * 24 * GIB
    halved = TrainingRecipe(precision="bfloat16")

    def learning(machine: Hardware, recipe: TrainingRecipe) -> float:
        sizes = {"max_tokens": 512, "rows": 8}
        return (
            plan(SMALLEST, machine, recipe, **sizes).hours
            - plan(SMALLEST, machine, recipe.model_copy(update={"keep": 0}), **sizes).hours
        )

    assert learning(plain, halved) == pytest.approx(12 * learning(plain, TrainingRecipe()))
    assert learning(native, halved) < learning(native, TrainingRecipe())


def test_the_flags_of_a_processor_say_whether_it_multiplies_bfloat16() -> None:
    assert computes_bfloat16("flags\t\t: fpu amx_bf16 amx_tile\n")
    assert not computes_bfloat16("flags\t\t: fpu avx512f avx512_vnni\nbugs : avx512_bf16\n")
    assert not computes_bfloat16("")


def test_a_night_s_evaluation_counts_the_anchors_of_its_tasksets_and_of_others() -> None:
    training = TrainingRecipe(steps=10, watch_every=10, watch_items=4)
    asks = EvaluationRecipe(sealed_items=100, unsolvable_items=20)
    recipe = Recipe(tasksets=("gcd", "lcm"), training=training, evaluation=asks)
    plain = 4 * 100 + 20 + 3 * 4
    assert evaluated_items(recipe, {}, None) == plain
    assert evaluated_items(recipe, {"gcd": "a", "lcm": "a"}, "a") == plain
    assert evaluated_items(recipe, {"gcd": "b", "lcm": "a"}, "a") == plain + 50
    assert evaluated_items(recipe, {"gcd": "a", "mail": "b"}, "a") == plain + 4 * 50 + 150 // 3


def test_a_small_model_is_shown_its_tool_before_its_first_night_and_a_large_one_is_not() -> None:
    small = recommend(SMALLEST, Hardware(24 * GIB, 2), TrainingRecipe())
    large = recommend(replace(LARGE, parameters=4_000_000_000), card(80), TrainingRecipe(), SLEEPING)
    assert small is not None
    assert large is not None
    assert small.values["recipe.warm_start.own_model"] is True
    assert small.values["recipe.warm_start.learning_rate"] > small.values["recipe.training.learning_rate"]
    assert not [key for key in large.values if "warm_start" in key]
