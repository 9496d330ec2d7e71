"""The warm start teaches what the policy model has to write itself, and goes on after a restart as if nothing was."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
import torch
from learning_builders import VOCABULARY, tiny_model
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from appliance.learning.errors import CheckpointError, LearningError, NotFiniteError
from appliance.learning.recipe import WarmStartRecipe
from appliance.learning.scoring import score
from appliance.learning.sft import CHUNK_BATCHES, Encoded, SftTrainer, encode
from appliance.rendering.markers import SEEDLING, MarkerRenderer
from appliance.rendering.renderer import Renderer

RECIPE = WarmStartRecipe(steps=40, batch=4, warmup_steps=3, learning_rate=1e-2)


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
    monkeypatch.setattr("appliance.learning.sft.SFT_PASS_TOKENS", 24)
    found = parts.run_steps(3)
    assert max(sizes) <= 24
    assert len(sizes) > 3
    assert found["loss"] == pytest.approx(whole["loss"], rel=1e-5)
    for mine, theirs in zip(parts.model.parameters(), once.model.parameters(), strict=True):
        assert torch.allclose(mine, theirs, atol=1e-3)
