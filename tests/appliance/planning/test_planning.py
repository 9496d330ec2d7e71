"""What a plan says follows from the shape of the model and the machine, and is what a night is refused by."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.cli.machine.plan import _advice, _assumed, _report
from appliance.cli.machine.recommended import layout_of, machine_of
from appliance.config.configuration import ModelSettings, Settings
from appliance.inference.engine import ModelError
from appliance.inference.vllm.placement import VllmSettings
from appliance.learning.recipes.recipe import TrainingRecipe
from appliance.placement.settings import PlacementSettings
from appliance.planning import (
    GIB,
    ONE,
    Gpu,
    Hardware,
    Layout,
    Plan,
    Shape,
    Vllm,
    adapter_parameters,
    engine_bytes,
    fewest_learners,
    largest_context,
    largest_group,
    largest_pass,
    least,
    plan,
    ways,
    with_pass,
)
from appliance.planning.hardware import MIB, gpu_layout, read_gpus
from appliance.planning.model_shape import EMBEDDED, shape_of
from appliance.settings.config_layers import ConfigError

WORKSTATION = Hardware(
    memory=128 * GIB, cores=16, gpus=(Gpu("NVIDIA GeForce RTX 4090", 24 * GIB, 23 * GIB, 165e12, 1e12),)
)
LAPTOP = Hardware(memory=16 * GIB, cores=8)
LORA = TrainingRecipe(method="lora", packing=True, precision="bfloat16", gradient_checkpointing=True)
SAMPLING = LORA.model_copy(update={"max_staleness": 1})
"""Conversations go on in each step, and take memory in it."""


def llama(billions: float, layers: int = 32, hidden: int = 4096, intermediate: int = 14336) -> Shape:
    one = ((hidden, hidden), (hidden // 4, hidden), (hidden // 4, hidden), (hidden, hidden))
    one += ((intermediate, hidden), (intermediate, hidden), (hidden, intermediate))
    return Shape(
        parameters=int(billions * 1e9),
        linear=one * layers,
        layers=layers,
        hidden=hidden,
        intermediate=intermediate,
        attention=hidden,
        key_value=hidden // 4,
        vocabulary=128_256,
        tied=False,
        positions=131_072,
        file_bytes=int(billions * 2e9),
    )


def test_an_eight_billion_model_does_not_fit_a_desktop_card_whole_and_a_small_one_does_with_an_adapter() -> None:
    big, small = llama(8.0), llama(1.2, layers=16, hidden=2048, intermediate=8192)
    full = plan(big, WORKSTATION, TrainingRecipe(precision="bfloat16"), max_tokens=2048, rows=8)
    assert not full.fits
    assert full.parts["moments"] == 8 * big.parameters
    assert full.needed > 18 * big.parameters
    assert plan(small, WORKSTATION, LORA, max_tokens=2048, rows=8).fits
    assert not plan(small, LAPTOP, TrainingRecipe(), max_tokens=2048, rows=8).fits


def test_the_adapter_is_counted_layer_by_layer() -> None:
    assert adapter_parameters(EMBEDDED, 4) == 4 * sum(a + b for a, b in EMBEDDED.linear)
    found = plan(EMBEDDED, LAPTOP, LORA.model_copy(update={"lora_rank": 4}), max_tokens=120, rows=8)
    assert found.parts["moments"] == 8 * adapter_parameters(EMBEDDED, 4)
    eight_bit = TrainingRecipe(method="lora", lora_rank=4, optimizer="adamw_8bit")
    trained = adapter_parameters(EMBEDDED, 4)
    found = plan(EMBEDDED, LAPTOP, eight_bit, max_tokens=120, rows=8)
    assert found.parts["moments"] == 2 * trained + 2 * trained * 4 // 256, "and a scale for each block"


def test_weights_in_4_bits_take_half_a_byte_and_their_scales_and_are_whole_in_each_learner() -> None:
    shape, four = llama(8.0), LORA.model_copy(update={"method": "qlora"})
    linear, trained = sum(a * b for a, b in shape.linear), adapter_parameters(shape, four.lora_rank)
    parts = plan(shape, WORKSTATION, four, max_tokens=2048, rows=8).parts
    held = parts["weights"] + parts["gradients"] + parts["moments"]
    assert held == pytest.approx(0.516 * linear + 2 * (shape.parameters - linear) + 16 * trained, rel=1e-3)
    two = replace(WORKSTATION, gpus=WORKSTATION.gpus * 2)
    half = plan(shape, two, four, max_tokens=2048, rows=8, layout=Layout(learners=2)).parts
    assert half["weights"] == pytest.approx((parts["weights"] + 0.516 * linear) / 2, rel=1e-3)
    beside = plan(shape, WORKSTATION, four, max_tokens=2048, rows=8).beside
    assert beside["loading"] > 4 * shape.parameters, "the files are read in float32 before they are packed"


def test_a_second_gpu_takes_the_engine() -> None:
    two = replace(WORKSTATION, gpus=WORKSTATION.gpus * 2)
    one = plan(llama(1.0), WORKSTATION, LORA, max_tokens=2048, rows=8)
    assert one.parts["engine"] > 0 == plan(llama(1.0), two, LORA, max_tokens=2048, rows=8).parts["engine"]


def test_an_engine_that_does_not_fit_its_own_gpu_does_not_fit() -> None:
    two = replace(WORKSTATION, gpus=WORKSTATION.gpus * 2)
    shape = llama(1.0)
    most = largest_group(shape, two, LORA, 2048)
    assert 0 < most < 4096
    found = plan(shape, two, LORA, max_tokens=2048, rows=2 * most)
    assert (found.fits, found.largest) == (False, "sampling")
    assert found.engine_share > 1 > plan(shape, two, LORA, max_tokens=2048, rows=most).engine_share > 0


def test_what_is_read_and_merged_beside_a_gpu_takes_the_machines_memory_and_not_the_gpus() -> None:
    eight = llama(8.0)
    server = Hardware(memory=128 * GIB, cores=16, gpus=(Gpu("NVIDIA H100", 80 * GIB, 79 * GIB, 989e12, 3350e9),))
    found = plan(eight, server, LORA, max_tokens=2048, rows=8)
    assert found.fits, "weights of 15 GiB, twice, with an adapter and activations"
    assert found.phases["training"] == int(sum(found.parts.values()) * 1.05) == found.needed
    worker = found.parts["weights"] + eight.file_bytes
    assert found.beside["publishing"] > worker + eight.file_bytes + 4 * eight.parameters
    small = plan(eight, replace(server, memory=64 * GIB), LORA, max_tokens=2048, rows=8)
    assert (small.fits, small.needed <= small.available) == (False, True)
    assert small.tightest == ("loading (beside)", small.beside["loading"], 64 * GIB)
    assert plan(eight, LAPTOP, LORA, max_tokens=2048, rows=8).beside == {}


@given(
    billions=st.floats(0.05, 70),
    tokens=st.sampled_from([256, 1024, 8192]),
    memory=st.integers(1, 512),
    method=st.sampled_from(["full", "lora", "qlora"]),
    again=st.booleans(),
)
def test_more_of_anything_never_takes_less_and_what_is_said_to_fit_does(
    billions: float, tokens: int, memory: int, method: str, again: bool
) -> None:
    shape, machine = llama(billions), Hardware(memory=memory * GIB, cores=4)
    recipe = TrainingRecipe.model_validate({"method": method, "packing": True, "gradient_checkpointing": again})
    least = with_pass(recipe, tokens)
    found = plan(shape, machine, least, max_tokens=tokens, rows=4)
    assert found.needed <= plan(shape, machine, least, max_tokens=2 * tokens, rows=4).needed
    assert found.needed <= plan(shape, machine, least, max_tokens=tokens, rows=8).needed
    assert found.needed <= plan(llama(billions * 2), machine, least, max_tokens=tokens, rows=4).needed
    assert found.hours <= plan(shape, machine, least, max_tokens=2 * tokens, rows=4).hours
    for size, way in (
        (largest_context(shape, machine, least, 4), lambda n: plan(shape, machine, least, max_tokens=n, rows=4)),
        (
            largest_group(shape, machine, least, tokens),
            lambda n: plan(shape, machine, least, max_tokens=tokens, rows=n),
        ),
        (
            largest_pass(shape, machine, least, tokens, 4),
            lambda n: plan(shape, machine, with_pass(recipe, n), max_tokens=tokens, rows=4),
        ),
    ):
        assert size == 0 or way(size).fits
        assert size > 0 or not way(256).fits or tokens > 256


def test_a_model_that_scores_takes_an_engine_beside_the_others() -> None:
    two = replace(WORKSTATION, gpus=WORKSTATION.gpus * 2)
    for machine, phase in ((LAPTOP, "training"), (WORKSTATION, "training"), (two, "sampling")):
        engine = engine_bytes(llama(8.0), 2048, 8, gpu=bool(machine.gpus))
        alone, scored = (
            plan(llama(1.0), machine, LORA, max_tokens=2048, rows=8, teacher=one) for one in (None, llama(8.0))
        )
        assert scored.phases[phase] - alone.phases[phase] == pytest.approx(1.05 * engine, abs=2)


def test_an_engine_in_bfloat16_takes_half_of_what_is_not_its_head_on_a_processor_too() -> None:
    shape, sizes = replace(llama(1.2), tied=True), {"max_tokens": 512, "rows": 4}
    half, whole = (
        plan(shape, LAPTOP, TrainingRecipe(), layout=Layout(dtype=dtype), **sizes) for dtype in ("bfloat16", "auto")
    )
    head = 4 * shape.vocabulary * shape.hidden
    assert half.parts["engine"] - head == (whole.parts["engine"] - head) / 2
    cached = (4096 + 2048) * shape.layers * 2 * shape.key_value
    logits = 2 * 4 * (1 << 24)
    reading = max(2048 * 3 * (shape.intermediate + shape.hidden) * 4, logits)
    conversations = 4 * 1024 * shape.layers * 2 * shape.key_value
    more = whole.phases["sampling"] - 1.05 * (whole.parts["process"] + whole.parts["weights"] + whole.parts["moments"])
    assert more == pytest.approx(1.05 * (whole.parts["engine"] + 4 * (cached + conversations) + reading), abs=2)
    settings = Settings.model_validate({"data": "unused", "model": {"dtype": "bfloat16"}})
    assert layout_of(settings, LAPTOP).dtype == "bfloat16"


def test_moments_in_main_memory_leave_the_gpu_weights_and_gradients() -> None:
    shape, sizes = llama(2.0, layers=24, hidden=2048, intermediate=8192), {"max_tokens": 2048, "rows": 8}
    moved = WHOLE.model_copy(update={"offload": "moments"})
    one, rests = (plan(shape, FOUR, recipe, **sizes) for recipe in (WHOLE, moved))
    assert (one.parts["moments"], rests.parts["moments"]) == (8 * shape.parameters, 0)
    assert rests.parts["gradients"] == rests.parts["weights"] == 4 * shape.parameters
    assert rests.parts["update"] < one.parts["update"]
    more = rests.beside["pushing"] - one.beside["pushing"]
    assert more == pytest.approx(1.05 * 8 * shape.parameters, abs=2)
    assert rests.hours > one.hours
    several = plan(shape, FOUR, moved, layout=Layout(learners=2), **sizes)
    assert (several.parts["weights"], several.parts["gradients"]) == (0, 0), "of several, all shards rest there"
    assert several.parts["gathered"] > 0
    assert several.beside["pushing"] > rests.beside["pushing"]
    there = [plan(shape, LAPTOP, recipe, **sizes) for recipe in (WHOLE, moved)]
    assert there[0].phases == there[1].phases, "on a processor nothing moves"
    needed, _ = least(shape, WORKSTATION, moved)["gpu"]
    assert needed == least(shape, WORKSTATION, WHOLE)["gpu"][0] - 8 * shape.parameters


def test_inputs_of_layers_in_main_memory_leave_a_few_on_the_gpu() -> None:
    shape, sizes = llama(8.0), {"max_tokens": 16_384, "rows": 1}
    recipe = LORA.model_copy(update={"micro_batch_tokens": 16_384})
    moved = recipe.model_copy(update={"offload": "activations"})
    one, rests = (plan(shape, FOUR, way, **sizes) for way in (recipe, moved))
    each = 16_384 * shape.hidden * 2
    assert one.parts["activations"] - rests.parts["activations"] == (shape.layers - 7) * each
    assert rests.beside["pushing"] - one.beside["pushing"] == pytest.approx(1.05 * shape.layers * each, abs=2)


def test_ways_that_move_state_are_compared_only_where_there_is_a_gpu() -> None:
    found = [(way.method, way.offload) for way in ways(TrainingRecipe(), WORKSTATION) if way.offload != "nothing"]
    assert found == [("full", "activations"), ("full", "both"), ("lora", "activations"), ("qlora", "activations")]
    assert all(way.offload == "nothing" for way in ways(TrainingRecipe(), LAPTOP))
    settings = Settings.model_validate({"data": "unused", "recipe": {"agent": {"max_tokens": 2048, "concurrent": 8}}})
    rows = {(row.method, row.offload): row for row in _report(settings, llama(2.0), WORKSTATION).rows}
    assert rows["full", "both"].needed < rows["full", "activations"].needed
    assert rows["full", "both"].host > rows["full", "activations"].host > 0


def test_weights_of_vllm_in_fp8_take_a_byte() -> None:
    shape, sizes = llama(8.0), {"max_tokens": 2048, "rows": 8}
    plain, small = (Layout(vllm=Vllm(fp8=fp8)) for fp8 in (False, True))
    linear = sum(a * b for a, b in shape.linear)
    one, other = (engine_bytes(shape, 2048, 8, gpu=True, layout=layout) for layout in (plain, small))
    assert one - other == linear
    found = plan(shape, FOUR, LORA, layout=small, **sizes)
    assert found.limits["sampling in vllm.memory_share"][0] == other
    assert layout_of(Settings.model_validate({"data": "unused", "model": {"engine": "vllm"}}), LAPTOP).vllm == Vllm()


def test_the_most_that_fits_lies_between_powers_of_two_as_well() -> None:
    shape, least = llama(1.0, layers=16, hidden=2048, intermediate=8192), with_pass(SAMPLING, 3000)
    for rows in (1, 23):
        machine = Hardware(memory=plan(shape, LAPTOP, least, max_tokens=3000, rows=rows).needed, cores=8)
        assert largest_group(shape, machine, least, 3000) == rows
        assert largest_pass(shape, machine, least, 3000, rows) >= 3000


def test_checkpointing_and_an_adapter_take_less() -> None:
    def needed(**changed: object) -> int:
        recipe = TrainingRecipe.model_validate({"packing": True, **changed})
        return plan(llama(1.0), LAPTOP, recipe, max_tokens=2048, rows=4).needed

    assert needed(method="lora", gradient_checkpointing=True) < needed(method="lora") < needed()
    assert "qlora" in {way.method for way in ways(TrainingRecipe(), LAPTOP)}
    assert needed(gradient_checkpointing=True) < needed()


def test_what_a_pass_keeps_in_bfloat16_are_copies_of_the_trained_weights_unless_it_computes_them_again() -> None:
    shape = llama(1.0, layers=16, hidden=2048, intermediate=8192)

    def parts(**changed: object) -> dict[str, int]:
        recipe = TrainingRecipe.model_validate({"packing": True, "micro_batch_tokens": 2048, **changed})
        return dict(plan(shape, LAPTOP, recipe, max_tokens=2048, rows=4).parts)

    inside = shape.parameters - 2 * shape.vocabulary * shape.hidden
    half, again = {"precision": "bfloat16"}, {"gradient_checkpointing": True}
    assert parts(**half)["weights"] - parts()["weights"] == 2 * inside
    assert parts(**half, **again)["weights"] == parts()["weights"]
    inputs = 16 * 2048 * 2048 * 4
    assert parts(**half, **again)["activations"] >= inputs + 2 * inside, "at the end of the forward pass"
    assert parts(**half)["activations"] < parts()["activations"]


def test_the_optimizers_step_counts_where_it_takes_more_than_the_pass_before_it() -> None:
    shape = llama(1.0, layers=16, hidden=2048, intermediate=8192)
    short = TrainingRecipe(packing=True, gradient_checkpointing=True, micro_batch_tokens=64)
    on_gpu, on_cpu = (plan(shape, one, short, max_tokens=64, rows=1).parts for one in (WORKSTATION, LAPTOP))
    beside = on_gpu["activations"] + on_gpu["head"]
    assert on_gpu["update"] + beside == 4 * shape.parameters, "torch has a temporary number per weight there"
    assert on_cpu["update"] + beside == 2 * 4 * shape.vocabulary * shape.hidden, "two for one tensor at a time"
    assert plan(shape, WORKSTATION, LORA, max_tokens=2048, rows=1).parts["update"] == 0
    muon = short.model_copy(update={"optimizer": "muon"})
    found, hidden = plan(shape, LAPTOP, muon, max_tokens=64, rows=1).parts, sum(a * b for a, b in shape.linear)
    assert found["moments"] == 8 * shape.parameters - 4 * hidden
    assert found["update"] + beside == 3 * 4 * 48 * 8192 * 2048, "gate, up and down have one shape"


def test_the_drivers_tool_is_read_and_nonsense_is_passed_over() -> None:
    table = "NVIDIA H200, 143771, 143000\nNVIDIA Thing 9000, Ti, 1000, 900\nfailed\nx, [N/A], 3\n\n"
    first, second = read_gpus(table)
    assert (first.total, first.free, first.flops) == (143771 * MIB, 143000 * MIB, 989e12)
    assert second.name == "NVIDIA Thing 9000, Ti"
    assert second.flops < first.flops


@pytest.mark.parametrize(
    "config",
    [
        {"hidden_size": 128, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2},
        {
            "text_config": {
                "hidden_size": 128,
                "num_hidden_layers": 3,
                "num_attention_heads": 4,
                "num_key_value_heads": 2,
            }
        },
        {"n_embd": 128, "n_layer": 3, "n_head": 4, "num_key_value_heads": 2},
    ],
)
def test_a_shape_is_read_off_whatever_the_family_calls_it(config: dict[str, object]) -> None:
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (512, 128), "model.norm.weight": (128,)}
    for layer in range(3):
        at = f"model.layers.{layer}."
        for name, size in zip(("q", "k", "v", "o", "gate", "up", "down"), EMBEDDED.linear, strict=False):
            shapes[f"{at}{name}_proj.weight"] = size
    found = shape_of({**config, "tie_word_embeddings": True, "intermediate_size": 384}, shapes)
    assert sorted(found.linear) == sorted(EMBEDDED.linear)
    assert (found.layers, found.hidden, found.attention, found.key_value) == (3, 128, 128, 64)
    assert (found.vocabulary, found.tied) == (512, True)


def test_what_config_json_does_not_say_of_head_and_layers_is_in_the_tensors() -> None:
    shapes: dict[str, tuple[int, ...]] = {"transformer.wpe.weight": (64, 8), "transformer.wte.weight": (500, 8)}
    for layer in range(2):
        shapes[f"transformer.h.{layer}.attn.c_attn.weight"] = (8, 24)
    found = shape_of({"n_embd": 8, "n_head": 2}, shapes)
    assert (found.vocabulary, found.layers, found.tied) == (500, 2, True)
    assert found.parameters == 64 * 8 + 500 * 8 + 2 * 8 * 24
    apart = shape_of({"n_embd": 8, "n_head": 2}, {**shapes, "lm_head.weight": (500, 8)})
    assert (apart.tied, apart.parameters) == (False, found.parameters + 500 * 8)
    stored_twice = shape_of({"n_embd": 8, "tie_word_embeddings": True}, {**shapes, "lm_head.weight": (500, 8)})
    assert (stored_twice.tied, stored_twice.parameters) == (True, found.parameters)


def test_the_advice_is_a_way_that_fits_where_one_conversation_is_the_largest_pass() -> None:
    settings = Settings(data=Path("unused"))
    tokens, rows = settings.recipe.agent.max_tokens, settings.recipe.agent.concurrent
    assert tokens & (tokens - 1), "between two powers of two"
    training = settings.recipe.training.model_copy(update={"max_staleness": 1})
    settings = settings.model_copy(update={"recipe": settings.recipe.model_copy(update={"training": training})})
    least = with_pass(next(ways(training, Hardware(memory=0, cores=1))), tokens)
    taken = plan(EMBEDDED, LAPTOP, least, max_tokens=tokens, rows=rows).needed
    machine = Hardware(memory=taken, cores=2)
    assert largest_pass(EMBEDDED, machine, least, tokens, rows) == tokens
    report = _report(settings, EMBEDDED, machine)
    assert report.rows[0].fits
    assert f"micro_batch_tokens = {tokens}," in _advice(report)


def test_a_gpu_that_the_learner_is_kept_off_is_not_planned_with(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho NVIDIA H200, 143771, 143000\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    settings = Settings(data=tmp_path)
    assert [one.name for one in machine_of(settings).gpus] == ["NVIDIA H200"]
    kept_off = settings.model_copy(update={"model": ModelSettings(device="cpu")})
    assert machine_of(kept_off).gpus == ()
    tool.write_text("#!/bin/sh\nfor one in A B C; do echo $one, 1000, 900; done\n")
    for visible, names in (("2,0", ["C", "A"]), ("1,7,0", ["B"]), ("", []), ("GPU-3f0a,GPU-77e1", ["A", "B"])):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        assert [one.name for one in machine_of(settings).gpus] == names


def test_a_processor_holds_old_and_new_weights_of_the_engine_while_they_are_exchanged_and_once_in_a_step() -> None:
    small = llama(1.2, layers=16, hidden=2048, intermediate=8192)
    recipe = TrainingRecipe(method="lora")
    there = plan(small, LAPTOP, recipe, max_tokens=512, rows=1)
    copy = small.parameters * 4
    assert there.phases["training"] == int(sum(there.parts.values()) * 1.05)
    assert there.parts["engine"] == copy, "it keeps no conversations in a step"
    held = sum(there.parts[name] for name in ("process", "weights", "moments"))
    assert there.phases["pushing"] == int((held + 2 * copy) * 1.05)
    assert there.phases["sampling"] == int((held + engine_bytes(small, 512, 1, gpu=False)) * 1.05)
    stale = recipe.model_copy(update={"max_staleness": 1})
    assert plan(small, LAPTOP, stale, max_tokens=512, rows=1).parts["engine"] > copy, "sampling goes on in the step"
    assert "pushing" not in plan(small, WORKSTATION, LORA, max_tokens=512, rows=1).phases


def test_the_engines_head_is_float32_on_a_gpu_too() -> None:
    tied, apart = replace(llama(1.2), tied=True), llama(1.2)
    head = tied.vocabulary * tied.hidden
    one, other = (plan(shape, WORKSTATION, LORA, max_tokens=16, rows=1).parts["engine"] for shape in (tied, apart))
    assert one - other == 2 * head


FOUR = Hardware(memory=1024 * GIB, cores=64, gpus=(Gpu("NVIDIA H100", 80 * GIB, 79 * GIB, 989e12, 3350e9),) * 4)
WHOLE = TrainingRecipe(packing=True, precision="bfloat16", gradient_checkpointing=True, micro_batch_tokens=2048)


def test_the_hours_of_a_night_count_what_is_sampled_to_make_up_for_groups_without_signal() -> None:
    none, one, two = (
        plan(llama(1.0), LAPTOP, TrainingRecipe(refills=refills), max_tokens=128, rows=8).hours for refills in (0, 1, 2)
    )
    assert one - none == pytest.approx(two - one)
    assert one - none > none / 3, "sampling is a good part of a night"


def test_what_a_model_does_not_read_does_not_fit() -> None:
    found = plan(EMBEDDED, LAPTOP, TrainingRecipe(), max_tokens=EMBEDDED.positions + 1, rows=1)
    assert (found.fits, found.needed < found.available) == (False, True)
    settings = Settings.model_validate({"data": "unused", "recipe": {"agent": {"max_tokens": EMBEDDED.positions + 1}}})
    report = _report(settings, EMBEDDED, LAPTOP)
    assert not any(row.fits for row in report.rows)
    assert f"recipe.agent.max_tokens to at most {EMBEDDED.positions}" in _advice(report)


def test_several_learners_hold_a_part_each_and_whole_blocks_while_they_are_computed() -> None:
    eight, sizes = llama(8.0), {"max_tokens": 2048, "rows": 8}
    one = plan(eight, FOUR, WHOLE, **sizes)
    three = plan(eight, FOUR, WHOLE, layout=Layout(learners=3), **sizes)
    assert (one.fits, three.fits, three.parts["engine"]) == (False, True, 0)
    for name in ("gradients", "moments"):
        assert three.parts[name] == -(-one.parts[name] // 3)
    assert three.parts["weights"] == -(-one.parts["weights"] // 3)
    assert three.parts["gathered"] > 2 * 4 * eight.vocabulary * eight.hidden
    assert three.parts["activations"] == one.parts["activations"]
    assert three.phases["loading"] > 4 * eight.parameters, "each has the whole weights before they are split"
    more = three.beside["loading"] - one.beside["loading"]
    assert more > 2 * (4 * eight.parameters + eight.file_bytes), "each reads the model beside its GPU"
    assert fewest_learners(eight, FOUR, WHOLE, 2048, 8) == 3
    assert fewest_learners(llama(70.0, layers=80, hidden=8192, intermediate=28672), FOUR, WHOLE, 2048, 8) == 0
    shared = plan(eight, FOUR, WHOLE, layout=Layout(learners=4), **sizes)
    assert shared.parts["engine"] > 0, "the fourth learner is on the engine's GPU"


def test_an_engine_that_several_gpus_hold_takes_a_part_of_each_and_several_engines_are_all_there() -> None:
    sizes = {"max_tokens": 2048, "rows": 8}
    one, split, twice = (
        plan(llama(8.0), FOUR, LORA, layout=layout, **sizes)
        for layout in (Layout(), Layout(tensor_parallel=2, engine_gpus=2), Layout(engines=2))
    )
    assert split.engine_share == pytest.approx(one.engine_share / 2)
    assert twice.engine_share == pytest.approx(one.engine_share * 2)
    assert split.phases["sampling"] < one.phases["sampling"] < twice.phases["sampling"]
    each = plan(llama(8.0), FOUR, LORA, layout=Layout(engines=2, engine_gpus=2), **sizes)
    assert (each.engine_share, each.phases) == (one.engine_share, one.phases)
    assert each.hours < twice.hours == one.hours, "they work at once"


def test_an_engine_that_sleeps_is_beside_weights_and_moments_and_not_beside_what_a_pass_keeps() -> None:
    two = llama(2.0, layers=24, hidden=2048, intermediate=8192)
    full = TrainingRecipe(precision="bfloat16", packing=True, gradient_checkpointing=True)
    for free in range(60, 80):
        server = replace(FOUR, gpus=(replace(FOUR.gpus[0], free=free * GIB),))
        layout = Layout(vllm=Vllm(sleep=2))
        one = plan(two, server, full, max_tokens=2048, rows=8, layout=layout)
        assert one.layout.vllm is not None
        assert one.phases["sampling"] <= one.available, "it is given what is left there, and no more"


def test_on_a_processor_each_engine_is_there_as_often_as_it_is_configured() -> None:
    def taken(engine: str, engines: int, *, where: Literal["here", "cluster"] = "here") -> int:
        model, placement = ModelSettings(engine=engine, engines=engines), PlacementSettings(engines=where)
        layout = gpu_layout(model, VllmSettings(), placement, 0, None)
        return plan(llama(0.6), LAPTOP, WHOLE, max_tokens=2048, rows=8, layout=layout).parts["engine"]

    for engine in ("torch", "vllm"):
        assert taken(engine, 3) == 3 * taken(engine, 1)
    assert taken("torch", 3, where="cluster") == taken("torch", 1), "they are on other hosts"


def test_what_is_configured_of_learners_and_engines_is_planned_with_and_what_would_fit_is_said() -> None:
    def settings(vllm: VllmSettings, **model: object) -> Settings:
        made = Settings(data=Path("unused"), vllm=vllm)
        recipe = made.recipe.model_copy(update={"training": WHOLE})
        chosen = ModelSettings.model_validate({"engine": "vllm", **model})
        return made.model_copy(update={"model": chosen, "recipe": recipe})

    one, two = VllmSettings(gpus=(3,)), VllmSettings(gpus=(2, 3), tensor_parallel=2)
    assert layout_of(settings(two, learners=2), FOUR) == Layout(2, 1, 2, 2, Vllm())
    told = VllmSettings(memory_share=0.4, sleep=1, transfer="ipc")
    assert layout_of(settings(told), WORKSTATION).vllm == Vllm(0.4, 1, files=False)
    assert layout_of(settings(two, learners=2), LAPTOP) == Layout(vllm=Vllm())
    assert layout_of(settings(two, engine="torch"), LAPTOP) == Layout()
    with pytest.raises(ModelError, match="8 learners need a GPU each, but there are 4"):
        layout_of(settings(one, learners=8), FOUR)
    for asked, said in (
        (VllmSettings(gpus=(0, 4)), "names GPU 4, but CUDA shows 4 here"),
        (VllmSettings(tensor_parallel=8), "is 8, but vLLM has 4"),
    ):
        with pytest.raises(ModelError, match=said):
            layout_of(settings(asked), FOUR)
    report = _report(settings(one), llama(8.0), FOUR)
    assert (report.configured.fits, report.fewest_learners) == (False, 3)
    row = report.rows[1]
    assert (row.method, row.fits, row.fewest_learners) == ("full", False, 3)
    assert "2 learners, a GPU each; 1 engine, held by 2 GPUs, separate from" in _assumed(Layout(2, 1, 2, 2), 4)
    apart = layout_of(settings(VllmSettings(gpus=(1, 2, 3)), engines=3), FOUR)
    assert (apart, apart.together) == (Layout(1, 3, 1, 3, Vllm()), 1)
    assert "3 engines, held by 1 GPU each (vLLM, 92 % of each), separate from learners" in _assumed(
        replace(apart, vllm=Vllm(0.92)), 4
    )
    assert "2 engines on the same, held by 1 GPU" in _assumed(layout_of(settings(one, engines=2), FOUR), 4)
    found = _report(settings(one, learners=3), llama(8.0), FOUR)
    assert found.configured.fits
    eight_bit = WHOLE.model_copy(update={"optimizer": "adamw_8bit"})
    assert fewest_learners(llama(8.0), FOUR, eight_bit, 2048, 8) == 0, "for one learner only, which it is too large for"
    several = settings(one, learners=3)
    recipe = several.recipe.model_copy(update={"training": eight_bit})
    with pytest.raises(ConfigError, match="adamw_8bit with 3 learners"):
        layout_of(several.model_copy(update={"recipe": recipe}), FOUR)


def test_what_is_pushed_while_rollouts_go_on_is_a_copy_of_the_model_with_its_frozen_weights() -> None:
    small, later = llama(1.2, layers=16, hidden=2048, intermediate=8192), {"max_staleness": 1}
    for recipe, machine, each in ((TrainingRecipe(method="lora"), LAPTOP, 4), (LORA, WORKSTATION, 2)):
        one, other = (
            plan(small, machine, recipe.model_copy(update=changed), max_tokens=512, rows=1) for changed in ({}, later)
        )
        there, then = (found.beside or found.phases for found in (one, other))
        assert then["pushing"] - there["pushing"] > each * small.parameters
        changed = {name for name in there if there[name] != then[name]}
        assert changed == ({"pushing"} if machine.gpus else there.keys() - {"loading", "sampling"})


def test_vllm_takes_its_share_of_a_gpu_whatever_it_needs_and_gives_it_back_while_it_sleeps() -> None:
    small, sizes = llama(1.2, layers=16, hidden=2048, intermediate=8192), {"max_tokens": 2048, "rows": 8}

    def found(vllm: Vllm, machine: Hardware = WORKSTATION) -> Plan:
        return plan(small, machine, LORA, layout=Layout(vllm=vllm), **sizes)

    total = WORKSTATION.gpus[0].total
    assert not found(Vllm(0.92)).fits
    assert found(Vllm(0.92)).parts["engine"] == int(0.92 * total)
    assert found(Vllm(0.4)).fits
    asleep = found(Vllm(0.8, sleep=2))
    assert (asleep.fits, found(Vllm(0.8)).fits) == (True, False)
    assert asleep.phases["sampling"] > int(0.95 * 0.8 * total) + 2 * small.parameters
    assert found(Vllm(0.1)).tightest[0] == "sampling in vllm.memory_share"
    two = replace(WORKSTATION, gpus=WORKSTATION.gpus * 2)
    assert found(Vllm(), two).fits
    assert plan(small, two, LORA, layout=Layout(engines=2, vllm=Vllm()), **sizes).tightest[0] == "vllm.memory_share"


def test_each_engine_of_vllm_has_the_weights_wait_for_it_in_memory() -> None:
    shape, sizes, vllm = llama(1.0), {"max_tokens": 512, "rows": 1}, Vllm(0.3)
    weights, engine = 4 * shape.parameters, int(0.3 * FOUR.gpus[0].total)
    alone = plan(shape, LAPTOP, TrainingRecipe(), layout=Layout(vllm=vllm), **sizes)
    assert (alone.parts["offered"], alone.handed) == (weights, 2 * weights)
    one, three, ipc = (
        plan(shape, FOUR, WHOLE, layout=Layout(engines=engines, vllm=how), **sizes)
        for engines, how in ((1, vllm), (3, vllm), (1, replace(vllm, files=False)))
    )
    assert (one.handed, three.handed, ipc.handed) == (2 * weights, 4 * weights, weights)
    assert three.beside["pushing"] - one.beside["pushing"] > 2 * weights
    assert three.engine_share * FOUR.gpus[0].total == pytest.approx(3 * engine)
    small = plan(shape, replace(FOUR, shared=64 << 20), WHOLE, **sizes)
    assert (small.fits, small.tightest) == (False, ("weights in /dev/shm", weights, 64 << 20))
    assert plan(shape, replace(FOUR, shared=2 * weights), WHOLE, **sizes).fits


def test_what_surely_does_not_fit_is_looked_for_where_it_is() -> None:
    def lacks(shape: Shape, machine: Hardware, recipe: TrainingRecipe, layout: Layout = ONE) -> list[str]:
        return [place for place, (needed, there) in least(shape, machine, recipe, layout).items() if needed > there]

    two, eight = llama(2.0), llama(8.0)
    assert lacks(two, replace(WORKSTATION, memory=24 * GIB), TrainingRecipe()) == ["gpu"]
    assert lacks(two, replace(WORKSTATION, memory=24 * GIB), LORA) == []
    assert lacks(two, Hardware(memory=24 * GIB, cores=4), TrainingRecipe()) == ["memory"]
    assert lacks(eight, replace(FOUR, memory=120 * GIB), WHOLE) == ["gpu"]
    assert lacks(eight, FOUR, WHOLE, Layout(learners=3)) == []
    assert lacks(eight, WORKSTATION, LORA, Layout(vllm=Vllm(0.5))) == ["gpu", "engine"]
    assert lacks(eight, replace(FOUR, memory=48 * GIB), LORA) == ["memory"]
    server, huge = replace(FOUR, memory=2048 * GIB), llama(70.0, layers=80, hidden=8192, intermediate=28672)
    assert lacks(huge, server, LORA, Layout(learners=4)) == ["engine"]
    assert lacks(huge, server, LORA, Layout(learners=4, engine_gpus=0)) == [], "engines are on other hosts"
