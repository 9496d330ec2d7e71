"""The warm start teaches what the policy model has to write itself, and goes on after a restart as if nothing was."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from learning_builders import VOCABULARY, tiny_model, varied
from test_learning_lora import short_of_memory
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from appliance import planning
from appliance.inference.adapters import adapter_parameters, base_digest
from appliance.learning.checkpoints import STATE
from appliance.learning.errors import CheckpointError, LearningError, NotFiniteError
from appliance.learning.folders import read_verified, write_folder
from appliance.learning.muon import MOMENT, orthogonalised
from appliance.learning.recipes.recipe import TrainingRecipe, WarmStartRecipe
from appliance.learning.scoring import score
from appliance.learning.training.sft import CHUNK_BATCHES, FULL, NEW, Encoded, SftTrainer, encode
from appliance.learning.training.updates import halving
from appliance.rendering.markers import SEEDLING, MarkerRenderer
from appliance.rendering.renderer import Renderer

RECIPE = WarmStartRecipe(steps=40, batch=4, warmup_steps=3, learning_rate=1e-2)
LEAST = TrainingRecipe(packing=True, micro_batch_tokens=24, gradient_checkpointing=True)
LORA = LEAST.model_copy(update={"method": "lora", "lora_rank": 4})


def renderer() -> Renderer:
    markers = [SEEDLING.pad, SEEDLING.user, SEEDLING.assistant, SEEDLING.tool, SEEDLING.result, SEEDLING.end]
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({token: i for i, token in enumerate(markers + letters)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(markers)
    return MarkerRenderer(tokenizer, SEEDLING)


def demonstrations(count: int) -> list[Encoded]:
    """Conversations with one rule in them: the answer repeats the last token of the prompt."""
    made = []
    for number in range(count):
        rng = Random(number)
        prompt = tuple(rng.randrange(6, VOCABULARY) for _ in range(rng.randint(2, 9)))
        made.append(Encoded((*prompt, prompt[-1], 5), (*[False] * len(prompt), True, True)))
    return made


def warm_start(seed: int = 3, recipe: WarmStartRecipe = RECIPE) -> SftTrainer:
    return SftTrainer(tiny_model(), demonstrations(100), recipe, seed, max_tokens=20)


def test_only_calls_and_the_answer_are_trained_on() -> None:
    speaks = renderer()
    made = encode(
        speaks,
        speaks.question("gcd of 12 and 18?"),
        [("print(gcd(12,18))", "NameError"), ("print(6)", "6")],
        "\\boxed{6}",
    )
    own = tuple(token for token, on in zip(made.ids, made.mask, strict=True) if on)
    assert own == (*speaks.call("print(gcd(12,18))"), *speaks.call("print(6)"), *speaks.answer("\\boxed{6}"))
    expected = "<|user|>gcd of 12 and 18?<|end|><|assistant|><|tool|>print(gcd(12,18))<|end|><|result|>NameError<|end|>"
    assert speaks.text(made.ids).startswith(expected)


def test_a_marker_in_a_tool_result_stays_text() -> None:
    speaks = renderer()
    made = encode(speaks, speaks.question("q"), [("print('<|end|>')", "<|end|>")], "6")
    assert made.ids.count(speaks.stop) == 4


def test_it_learns_what_is_shown() -> None:
    start = warm_start()
    first = start.run_steps(5)["loss"]
    last = start.run_steps(35)
    assert last["steps"] == 35
    assert last["loss"] < 0.7 * first
    assert start.done
    assert start.run_steps(10)["steps"] == 0


def test_every_pass_of_a_slow_step_can_be_reported() -> None:
    way = LEAST.model_copy(update={"micro_batch_tokens": 16})
    slow = SftTrainer(tiny_model(), demonstrations(100), RECIPE, 3, max_tokens=20, way=way)
    passes: list[tuple[int, int]] = []
    slow.on_pass = lambda done, count: passes.append((done, count))
    slow.run_steps(2)
    one, other = passes[0][1], passes[-1][1]
    assert passes == [(at, one) for at in range(1, one + 1)] + [(at, other) for at in range(1, other + 1)]
    assert one > 1


def test_masked_tokens_do_not_move_the_weights() -> None:
    """A wrong token after the trained ones changes nothing; it is seen by none of them and trained on by none."""
    results = []
    for trailing in (7, 20):
        data = [Encoded((*one.ids, trailing), (*one.mask, False)) for one in demonstrations(8)]
        start = SftTrainer(tiny_model(), data, RECIPE, 0, max_tokens=20)
        start.run_steps(3)
        results.append([parameter.clone() for parameter in start.model.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))


@pytest.mark.parametrize("cut", [1, CHUNK_BATCHES + 3])
def test_a_restart_goes_on_bit_by_bit(tmp_path: Path, cut: int) -> None:
    whole = warm_start()
    whole.run_steps(cut)
    whole.save(tmp_path / "step", {"validation": 0.25})
    again = warm_start()
    assert again.restore(tmp_path / "step") == {"validation": 0.25}
    assert again.step == cut
    whole.run_steps(40)
    for _ in range(40):
        again.run_steps(1)
    for a, b in zip(whole.model.parameters(), again.model.parameters(), strict=True):
        assert torch.equal(a, b)


def test_another_seed_sees_other_batches() -> None:
    assert warm_start(1).run_steps(2)["loss"] != warm_start(2).run_steps(2)["loss"]


def test_a_demonstration_that_is_too_long_is_left_out_and_counted() -> None:
    start = SftTrainer(tiny_model(), demonstrations(100), RECIPE, 0, max_tokens=8)
    assert start.dropped == sum(len(one.ids) > 8 for one in demonstrations(100)) > 0


def test_nothing_to_learn_from_is_an_error_with_a_hint() -> None:
    with pytest.raises(LearningError, match="none of 9 demonstrations") as caught:
        SftTrainer(tiny_model(), demonstrations(9), RECIPE, 0, max_tokens=2)
    assert caught.value.hint


def test_fewer_demonstrations_than_a_batch_suffice() -> None:
    start = SftTrainer(tiny_model(), demonstrations(3), RECIPE, 0, max_tokens=20)
    assert start.run_steps(2)["steps"] == 2


def test_a_loss_that_is_not_finite_stops_before_it_reaches_the_weights() -> None:
    start = warm_start()
    with torch.no_grad():
        start.model.model.norm.weight[0] = float("nan")
    with pytest.raises(NotFiniteError, match="loss of warm-start step 0"):
        start.run_steps(1)


def test_a_gradient_that_is_not_finite_stops_before_it_reaches_the_weights() -> None:
    start = warm_start()
    before = {name: tensor.clone() for name, tensor in start.model.state_dict().items()}
    start.model.model.norm.weight.register_hook(lambda gradient: gradient * float("inf"))
    with pytest.raises(NotFiniteError, match="gradient of warm-start step 0"):
        start.run_steps(1)
    assert all(torch.equal(tensor, before[name]) for name, tensor in start.model.state_dict().items())


def test_a_warm_start_of_another_seed_is_not_taken_up(tmp_path: Path) -> None:
    start = warm_start()
    start.save(tmp_path / "step")
    with pytest.raises(CheckpointError, match="has seed 3, not 4"):
        warm_start(4).restore(tmp_path / "step")


def test_the_learning_rate_rises_and_then_falls_to_a_tenth() -> None:
    start = warm_start()
    rates = []
    while not start.done:
        start.run_steps(1)
        rates.append(start._optimizer.param_groups[0]["lr"])
    assert rates[0] < rates[2] == max(rates)
    assert rates[-1] == pytest.approx(RECIPE.learning_rate * (1 - 0.9 * 39 / 40))


def test_the_first_loss_is_the_mean_over_trained_tokens() -> None:
    model, data = tiny_model(), demonstrations(4)
    expected = total = 0.0
    for one in data:
        mask = torch.tensor([one.mask])
        expected -= score(model, torch.tensor([one.ids]), mask).logprobs.sum().item()
        total += sum(one.mask)
    start = SftTrainer(model, data, RECIPE, 0, max_tokens=20)
    assert start.run_steps(1)["loss"] == pytest.approx(expected / total, rel=1e-5)


def test_a_large_batch_is_learned_in_passes_and_comes_to_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    once, parts = warm_start(), warm_start()
    sizes: list[int] = []
    parts.model.get_input_embeddings().register_forward_hook(lambda _, given, __: sizes.append(given[0].numel()))  # type: ignore[operator]
    whole = once.run_steps(3)
    monkeypatch.setattr("appliance.learning.training.sft.SFT_PASS_TOKENS", 24)
    found = parts.run_steps(3)
    assert max(sizes) <= 24
    assert len(sizes) > 3
    assert found["loss"] == pytest.approx(whole["loss"], rel=1e-5)
    for mine, theirs in zip(parts.model.parameters(), once.model.parameters(), strict=True):
        assert torch.allclose(mine, theirs, atol=1e-3)


@pytest.mark.parametrize("way", [LEAST, TrainingRecipe(micro_batch=2)], ids=["packed", "padded"])
def test_smaller_passes_come_to_the_same_and_hold_no_more_than_is_planned(way: TrainingRecipe) -> None:
    once, parts = warm_start(), SftTrainer(tiny_model(), demonstrations(100), RECIPE, 3, max_tokens=20, way=way)
    sizes: list[int] = []
    parts.model.get_input_embeddings().register_forward_hook(lambda _, given, __: sizes.append(given[0].numel()))  # type: ignore[operator]
    whole, found = once.run_steps(3), parts.run_steps(3)
    assert len(sizes) > 3
    assert max(sizes) <= planning.pass_tokens(planning.sft_way(RECIPE, way, 20), 20)
    again = any(getattr(one, "gradient_checkpointing", False) for one in parts.model.modules())
    assert again is way.gradient_checkpointing
    assert found["loss"] == pytest.approx(whole["loss"], rel=1e-5)
    for mine, theirs in zip(parts.model.parameters(), once.model.parameters(), strict=True):
        assert torch.allclose(mine, theirs, atol=1e-3)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_an_adapter_learns_what_is_shown_and_goes_on_after_a_restart_bit_by_bit(tmp_path: Path, precision: str) -> None:
    way = LORA.model_copy(update={"precision": precision})
    recipe = RECIPE.model_copy(update={"steps": 15, "learning_rate": 3e-2})

    def adapted() -> SftTrainer:
        model = varied().to(torch.bfloat16 if precision == "bfloat16" else torch.float32)
        return SftTrainer(model, demonstrations(100), recipe, 3, max_tokens=20, way=way)

    whole, again = adapted(), adapted()
    base = base_digest(whole.model)
    first = whole.run_steps(5)["loss"]
    whole.save(tmp_path / "five")
    assert (tmp_path / "five" / "adapter_model.safetensors").is_file()
    assert again.restore(tmp_path / "five") == {}
    assert whole.run_steps(10)["loss"] < 0.9 * first
    again.run_steps(10)
    assert base_digest(whole.model) == base
    mine, theirs = (adapter_parameters(one.model) for one in (whole, again))
    assert all(torch.equal(one, theirs[name]) for name, one in mine.items())
    with pytest.raises(CheckpointError, match="an adapter for the base model"):
        SftTrainer(tiny_model(), demonstrations(9), recipe, 3, max_tokens=20, way=LORA).restore(tmp_path / "five")


@pytest.mark.parametrize("shape", [(3, 8, 24), (2, 16, 16)], ids=["wide", "square"])
def test_an_orthogonalised_matrix_keeps_its_singular_vectors_and_no_direction_dominates(shape: tuple[int, ...]) -> None:
    matrices = torch.randn(shape, generator=torch.Generator().manual_seed(3))
    left, _, right = torch.linalg.svd(matrices, full_matrices=False)
    inside = left.mT @ orthogonalised(matrices) @ right.mT
    values = inside.diagonal(dim1=1, dim2=2)
    assert values.min() > 0.3
    assert values.max() < 1.4
    assert (inside - torch.diag_embed(values)).abs().max() < 1e-3


def test_a_new_model_learns_in_fewer_steps_and_goes_on_after_a_restart_bit_by_bit(tmp_path: Path) -> None:
    def new(way: TrainingRecipe = NEW) -> SftTrainer:
        return SftTrainer(tiny_model(), demonstrations(100), RECIPE, 3, max_tokens=20, way=way)

    usual, whole, again = new(FULL), new(), new()
    whole.run_steps(20)
    whole.save(tmp_path / "half")
    again.restore(tmp_path / "half")
    losses = [learner.run_steps(20)["loss"] for learner in (whole, again)]
    assert losses[0] == losses[1] < usual.run_steps(40)["loss"]
    for mine, theirs in zip(whole.model.parameters(), again.model.parameters(), strict=True):
        assert torch.equal(mine, theirs)
    turned = [name for name, weight in whole.model.named_parameters() if MOMENT in whole.optimizer.state[weight]]
    assert turned
    assert all("proj" in name for name in turned), "embeddings and norms move as in AdamW"
    with pytest.raises(CheckpointError, match="of another optimizer"):
        usual.take_moments(tmp_path / "half")


def test_a_pass_without_memory_is_halved_once_and_the_step_is_what_it_would_have_been(tmp_path: Path) -> None:
    plain, short, again = warm_start(), warm_start(), warm_start()
    asked = short_of_memory(short, rows=2)
    expected, found = plain.run_steps(1), short.run_steps(1)
    assert asked == [4, 2, 2]
    assert found["loss"] == pytest.approx(expected["loss"], rel=1e-5)
    short.save(tmp_path / "step")
    again.restore(tmp_path / "step")
    asked = short_of_memory(again, rows=3)
    again.run_steps(1)
    assert asked == [3, 1], "what goes on from there does not try the larger pass again; these are shorter"


def of_growing_length(packing: bool) -> SftTrainer:
    """Its longest batch has some five times the tokens of its shortest; no conversation is longer than half a pass of
    the first."""
    shown = [Encoded(tuple(range(n)), (False, *[True] * (n - 1))) for n in range(4, 36)]
    way = TrainingRecipe(packing=packing)
    return SftTrainer(tiny_model(), shown, WarmStartRecipe(steps=8, batch=4), 1, max_tokens=40, way=way)


@pytest.mark.parametrize("packing", [False, True])
def test_what_did_not_fit_is_not_tried_again_where_a_batch_is_larger_or_after_a_restart(
    tmp_path: Path, packing: bool
) -> None:
    start, passes = of_growing_length(packing), list[int]()

    def take(_module: Any, given: Any, _made: Any) -> None:
        passes.append(given[0].numel())
        if len(passes) == 1:
            torch.empty(1 << 55)

    start.model.get_input_embeddings().register_forward_hook(take)  # type: ignore[operator]
    most = start.run_steps(1)["pass_tokens"]
    assert 0.5 * passes[0] <= most < 0.6 * passes[0]
    start.save(tmp_path / "step")
    again = of_growing_length(packing)
    again.restore(tmp_path / "step")
    again.model.get_input_embeddings().register_forward_hook(take)  # type: ignore[operator]
    assert start.run_steps(7)["loss"] == again.run_steps(7)["loss"]
    assert max(passes[1:]) <= most
    assert max(sum(len(one.ids) for one in start._batch(step)) for step in range(8)) > 3 * most
    warned = halving({"pass_tokens": most}, TrainingRecipe(packing=packing))
    assert f"at most {most:.0f} tokens" in warned
    assert f"lower training.{'micro_batch_tokens' if packing else 'micro_batch'} so that" in warned


def test_a_checkpoint_that_knows_no_size_goes_on_with_half_of_each_batch(tmp_path: Path) -> None:
    start, again = warm_start(), warm_start()
    start._halved = True
    start.save(tmp_path / "now")
    files = dict(read_verified(tmp_path / "now"))
    state = json.loads(files[STATE])
    del state["progress"]["pass_tokens"]
    write_folder(tmp_path / "before", {**files, STATE: json.dumps(state).encode()})
    again.restore(tmp_path / "before")
    asked = short_of_memory(again, rows=2)
    assert "pass_tokens" not in again.run_steps(3)
    assert asked == [2] * 6


def test_when_half_a_pass_is_too_much_it_says_what_to_change() -> None:
    start = warm_start()
    before = {name: tensor.clone() for name, tensor in start.model.state_dict().items()}
    short_of_memory(start, rows=1)
    with pytest.raises(
        LearningError, match="too small for a pass of 2 demonstrations, even after halving passes"
    ) as caught:
        start.run_steps(1)
    assert all(torch.equal(tensor, before[name]) for name, tensor in start.model.state_dict().items())
    for named in ("training.micro_batch", "gradient_checkpointing", "method to lora", "assay plan"):
        assert named in caught.value.hint
