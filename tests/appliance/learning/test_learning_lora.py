"""An adapter is trained beside weights that stay, is kept without them, and becomes a plain model once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from learning_builders import VOCABULARY, judged, tiny_model, varied, with_model_logprobs
from transformers import AutoModelForCausalLM, Qwen2Config, Qwen2ForCausalLM, Qwen3MoeConfig, Qwen3MoeForCausalLM

from appliance.inference.adapters import adapter_files, adapter_parameters, base_digest, push_model, weights_digest
from appliance.inference.folder import open_model, read_model
from appliance.inference.http.headers import read_shapes
from appliance.inference.torch.engine import TorchEngine
from appliance.learning.checkpoints import STATE
from appliance.learning.errors import CheckpointError, LearningError
from appliance.learning.folders import read_verified, write_folder
from appliance.learning.merging import export_merged, merged_files, publish_merged, same_weights
from appliance.learning.ranks import Ranks
from appliance.learning.recipes.recipe import TrainingRecipe
from appliance.learning.signal.grouping import make_groups
from appliance.learning.state import Learner
from appliance.learning.trained_weights import add_adapter, load_adapter
from appliance.learning.training.trainer import Trainer
from appliance.planning import adapter_parameters as planned
from appliance.planning.model_shape import shape_of

LORA = TrainingRecipe(
    rollouts_per_task=4, keep=2, learning_rate=3e-2, warmup_steps=1, method="lora", lora_rank=4, micro_batch=3
)
PACKED = LORA.model_copy(update={"packing": True, "micro_batch_tokens": 40, "gradient_checkpointing": True})


def learn(trainer: Trainer, steps: int) -> list[dict[str, float]]:
    figures = []
    for step in range(trainer.step, trainer.step + steps):
        rollouts = [judged(f"t{task}", i, correct=i % 2 == 0, step=step) for task in range(3) for i in range(4)]
        rollouts = [with_model_logprobs(one, varied()) for one in rollouts]
        figures.append(trainer.train_step(step, rollouts, make_groups(rollouts, trainer.recipe, seed=9)))
    return figures


def trainer_of(recipe: TrainingRecipe = LORA, model: Any = None, **beside: Any) -> Trainer:
    return Trainer(varied() if model is None else model, recipe, seed=4, max_tokens=64, **beside)


def base_folder(folder: Path) -> Path:
    varied().save_pretrained(folder)
    (folder / "tokenizer.json").write_text("{}")
    (folder / "LICENSE").write_text("as is")
    return folder


def test_only_the_adapter_moves_and_it_is_on_every_linear_layer_but_the_head() -> None:
    trainer = trainer_of()
    before = base_digest(trainer.model)
    assert before == weights_digest(varied()), "the digest is that of the bare model"
    names = {name.split(".lora_")[0].split("layers.0.")[-1] for name in adapter_parameters(trainer.model)}
    layer = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj"}
    layer |= {"mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"}
    assert {name for name in names if "layers.1" not in name} == layer
    first = {name: one.detach().clone() for name, one in adapter_parameters(trainer.model).items()}
    figures = learn(trainer, 2)
    assert figures[0]["mismatch_kl"] == pytest.approx(0.0, abs=1e-8), "a new adapter changes nothing"
    assert all(not torch.equal(one, first[name]) for name, one in adapter_parameters(trainer.model).items())
    assert base_digest(trainer.model) == before
    assert all(one.dtype is torch.float32 for one in adapter_parameters(trainer.model).values())


def test_the_experts_of_a_mixture_stay_as_they_are_or_the_model_is_refused(tmp_path: Path) -> None:
    sizes = {"vocab_size": 300, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "eos_token_id": 0}
    sizes |= {"intermediate_size": 48, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
    config = Qwen3MoeConfig(**sizes, num_key_value_heads=2, head_dim=8)
    Qwen3MoeForCausalLM(config).save_pretrained(tmp_path)
    files = read_model(tmp_path)
    model = open_model(files)
    bare = base_digest(model)
    add_adapter(model, 4, 8.0, seed=0)
    assert {name.split(".")[5] for name in adapter_parameters(model)} == {"self_attn"}
    trained = sum(one.numel() for one in model.parameters() if one.requires_grad)
    shapes = read_shapes(tmp_path / "model.safetensors")
    assert shapes is not None
    assert planned(shape_of(config.to_dict(), shapes), 4) == trained
    state = json.dumps({"progress": {"base": bare}}).encode()
    assert merged_files({**adapter_files(model), STATE: state}, files, "it")[1] < 1e-5
    dense_too = Qwen3MoeForCausalLM(Qwen3MoeConfig(**sizes, num_key_value_heads=2, head_dim=8, mlp_only_layers=[0]))
    with pytest.raises(LearningError, match="its fused experts would get one") as caught:
        add_adapter(dense_too, 4, 8.0, seed=0)
    assert "full" in caught.value.hint


def test_packing_and_computing_activations_again_change_nothing_but_rounding() -> None:
    plain, packed = learn(trainer_of(), 2), learn(trainer_of(PACKED), 2)
    for mine, theirs in zip(plain, packed, strict=True):
        for name in ("loss", "gradient_norm", "entropy", "tokens", "ratio"):
            assert mine[name] == pytest.approx(theirs[name], rel=1e-3, abs=1e-6), name


@pytest.mark.parametrize(
    "recipe", [LORA, PACKED, *(PACKED.model_copy(update={"method": method}) for method in ("full", "qlora"))]
)
def test_a_run_that_was_interrupted_ends_in_the_same_bits(tmp_path: Path, recipe: TrainingRecipe) -> None:
    recipe = recipe.model_copy(update={"learning_rate": 1e-3})
    whole = trainer_of(recipe)
    learn(whole, 1)
    whole.save(tmp_path / "step", {"watch": 1})
    learn(whole, 2)
    again = trainer_of(recipe)
    assert again.restore(tmp_path / "step") == {"watch": 1}
    learn(again, 2)
    assert weights_digest(again.model) == weights_digest(whole.model)
    names = {path.name for path in (tmp_path / "step").iterdir()}
    assert ("adapter_model.safetensors" in names) is ("model.safetensors" not in names) is recipe.adapts


def test_an_adapter_for_another_base_is_refused_and_nothing_is_changed(tmp_path: Path) -> None:
    trained = trainer_of()
    learn(trained, 1)
    trained.save(tmp_path / "step")
    other = trainer_of(model=varied(seed=1))
    before = weights_digest(other.model)
    with pytest.raises(CheckpointError, match=r"an adapter for the base model [0-9a-f]{12}, not for") as caught:
        other.restore(tmp_path / "step")
    assert "own base weights" in caught.value.hint
    assert weights_digest(other.model) == before
    with pytest.raises(CheckpointError, match="an adapter for the base model"):
        export_merged(tmp_path / "step", read_model(base_of_seed(tmp_path / "other", 1)), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def base_of_seed(folder: Path, seed: int) -> Path:
    varied(seed).save_pretrained(folder)
    return folder


def test_frozen_weights_that_moved_are_not_saved_with_the_adapter(tmp_path: Path) -> None:
    trainer = trainer_of()
    with torch.no_grad():
        trainer.model.get_input_embeddings().weight[0, 0] += 1e-3
    with pytest.raises(CheckpointError, match="the frozen weights changed"):
        trainer.save(tmp_path / "step")
    assert not (tmp_path / "step").exists()


def test_the_engine_samples_from_base_and_adapter_and_other_programs_read_the_adapter(tmp_path: Path) -> None:
    base = base_folder(tmp_path / "base")
    trainer = trainer_of(companions=read_model(base))
    learn(trainer, 2)
    engine, conversation = TorchEngine(2, 32), list(range(6, 26))
    push_model(engine, trainer.model, "w1")
    ids = torch.tensor([conversation])
    with torch.no_grad():
        logprobs = trainer.model(input_ids=ids).logits.log_softmax(-1)[0, :-1].gather(1, ids[0, 1:, None]).squeeze(1)
        bare = varied()(input_ids=ids).logits.log_softmax(-1)[0, :-1].gather(1, ids[0, 1:, None]).squeeze(1)
    torch.testing.assert_close(torch.tensor(engine.score([conversation])[0]), logprobs, atol=1e-4, rtol=1e-4)
    assert (bare - logprobs).abs().max() > 0.01, "the adapter says nothing: the test has shown nothing"
    trainer.save(tmp_path / "step")
    from peft import PeftModel  # loads a compiler, which each test process would have to import

    theirs = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(base), tmp_path / "step")
    with torch.no_grad():
        found = theirs(input_ids=ids).logits.log_softmax(-1)[0, :-1].gather(1, ids[0, 1:, None]).squeeze(1)
    torch.testing.assert_close(found, logprobs, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_what_is_published_is_a_plain_model_that_says_the_same(tmp_path: Path, precision: str) -> None:
    base = read_model(base_folder(tmp_path / "base")) | {"LICENSE": b"as is"}
    recipe = LORA.model_copy(update={"precision": precision})
    dtype = torch.bfloat16 if precision == "bfloat16" else torch.float32
    trainer = trainer_of(recipe, open_model(base, dtype=dtype), companions=base)
    trainer.save(tmp_path / "step-0")
    assert publish_merged(tmp_path / "step-0", base, tmp_path / "models") is None, "nothing was learned"
    learn(trainer, 2)
    trainer.save(tmp_path / "step-2")
    digest = publish_merged(tmp_path / "step-2", base, tmp_path / "models")
    assert digest is not None
    files = read_verified(tmp_path / "models" / digest, expect=digest)
    assert files["LICENSE"] == b"as is"
    beside = trainer_of(model=open_model(base)).model
    load_adapter(beside, safetensors.torch.load((tmp_path / "step-2" / "adapter_model.safetensors").read_bytes()))
    ids = torch.arange(40)[None] * 3 % VOCABULARY
    with torch.no_grad():
        merged = open_model(files)(input_ids=ids).logits.log_softmax(-1)
        assert (merged - beside(input_ids=ids).logits.log_softmax(-1)).abs().max() < 1e-4
        assert (merged - varied()(input_ids=ids).logits.log_softmax(-1)).abs().max() > 0.01
    assert publish_merged(tmp_path / "step-2", base, tmp_path / "models") == digest


def test_weights_that_learned_nothing_are_those_of_the_model_also_where_that_is_in_bfloat16(tmp_path: Path) -> None:
    varied().to(torch.bfloat16).save_pretrained(base_folder(tmp_path / "base"))
    base = read_model(tmp_path / "base")
    trainer = trainer_of(LORA.model_copy(update={"method": "full"}), open_model(base), companions=base)
    for steps, same in ((0, True), (2, False)):
        learn(trainer, steps)
        trainer.save(tmp_path / f"step-{steps}")
        assert same_weights(tmp_path / f"step-{steps}", tmp_path / "base") is same


@pytest.mark.parametrize("method", ["full", "lora"])
def test_a_model_that_began_in_bfloat16_is_read_in_float32_as_it_was_trained(tmp_path: Path, method: str) -> None:
    from transformers import AutoModelForCausalLM

    varied().to(torch.bfloat16).save_pretrained(base_folder(tmp_path / "base"))
    base = read_model(tmp_path / "base")
    trainer = trainer_of(LORA.model_copy(update={"method": method}), open_model(base), companions=base)
    learn(trainer, 2)
    trainer.save(tmp_path / "made")
    if method == "lora":
        export_merged(tmp_path / "made", base, tmp_path / "out")
    read = AutoModelForCausalLM.from_pretrained(tmp_path / ("out" if method == "lora" else "made"))
    assert {one.dtype for one in read.parameters()} == {torch.float32}


def test_an_adapter_that_diverged_is_not_published(tmp_path: Path) -> None:
    trainer = trainer_of()
    with torch.no_grad():
        for parameter in adapter_parameters(trainer.model).values():
            parameter.fill_(float("nan"))
    trainer.save(tmp_path / "step")
    with pytest.raises(CheckpointError, match="changes log-probabilities"):
        publish_merged(tmp_path / "step", read_model(base_folder(tmp_path / "base")), tmp_path / "models")
    assert not (tmp_path / "models").exists()


def harm_config(files: dict[str, bytes]) -> None:
    files["adapter_config.json"] = b"{}"


def harm_tensors(files: dict[str, bytes]) -> None:
    files["adapter_model.safetensors"] = files["adapter_model.safetensors"][:50]


def harm_rank(files: dict[str, bytes]) -> None:
    files["adapter_config.json"] = json.dumps({"r": 3, "lora_alpha": 1}).encode()


def drop(files: dict[str, bytes]) -> None:
    del files["adapter_model.safetensors"]


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (harm_config, "invalid adapter configuration"),
        (harm_tensors, "is broken"),
        (harm_rank, "or another rank"),
        (drop, "has no adapter_model"),
    ],
)
def test_a_broken_adapter_is_an_error_with_a_hint(
    tmp_path: Path, harm: Callable[[dict[str, bytes]], None], message: str
) -> None:
    trainer = trainer_of()
    learn(trainer, 1)
    trainer.save(tmp_path / "step")
    files = read_verified(tmp_path / "step")
    harm(files)
    write_folder(tmp_path / "harmed", files)
    with pytest.raises(LearningError, match=message) as caught:
        export_merged(tmp_path / "harmed", read_model(base_folder(tmp_path / "base")), tmp_path / "out")
    assert caught.value.hint


def test_bf16_keeps_the_weights_that_are_trained_in_float32_and_learns_the_same() -> None:
    full = LORA.model_copy(update={"method": "full", "learning_rate": 1e-3})
    exact, rough = trainer_of(full), trainer_of(full.model_copy(update={"precision": "bfloat16"}))
    (mine,), (theirs,) = learn(exact, 1), learn(rough, 1)
    assert {one.dtype for one in rough.model.parameters()} == {torch.float32}
    assert {one.dtype for state in rough._optimizer.state.values() for one in state.values()} == {torch.float32}
    assert theirs["gradient_norm"] == pytest.approx(mine["gradient_norm"], rel=0.1)
    assert 0 < abs(theirs["entropy"] - mine["entropy"]) < 0.05 * mine["entropy"]


def short_of_memory(trainer: Trainer, rows: int) -> list[int]:
    """From now on the allocator refuses passes of more rows; the list fills with those that were asked for."""
    asked: list[int] = []

    def take(_module: Any, _given: Any, named: dict[str, Any]) -> None:
        asked.append(len(named["input_ids"]))
        if asked[-1] > rows:
            torch.empty(1 << 55)

    trainer.model.register_forward_pre_hook(take, with_kwargs=True)
    return asked


@pytest.mark.parametrize("recipe", [LORA, LORA.model_copy(update={"method": "full"})])
def test_a_pass_without_memory_is_halved_once_and_the_step_is_what_it_would_have_been(
    tmp_path: Path, recipe: TrainingRecipe
) -> None:
    recipe = recipe.model_copy(update={"micro_batch": 4, "learning_rate": 1e-3})
    plain, short = trainer_of(recipe), trainer_of(recipe)
    asked = short_of_memory(short, rows=2)
    (expected,), (found,) = learn(plain, 1), learn(short, 1)
    assert asked == [4, 2, 2, 2]
    for name in ("loss", "gradient_norm", "entropy", "tokens"):
        assert found[name] == pytest.approx(expected[name], rel=1e-4)
    short.save(tmp_path / "step")
    again = trainer_of(recipe)
    asked = short_of_memory(again, rows=2)
    again.restore(tmp_path / "step")
    learn(again, 1)
    assert asked == [2, 2, 2], "what goes on from there does not try the larger pass again"


@pytest.mark.parametrize("packing", [False, True])
def test_passes_that_would_hold_more_than_there_is_are_halved_to_less_than_that(packing: bool) -> None:
    short = trainer_of(LORA.model_copy(update={"micro_batch": 128, "packing": packing}))
    sizes: list[int] = []

    def take(_module: Any, given: Any, _made: Any) -> None:
        sizes.append(given[0].numel())
        if len(sizes) == 1:
            torch.empty(1 << 55)

    short.model.get_input_embeddings().register_forward_hook(take)  # type: ignore[operator]
    learn(short, 1)
    assert short.halved
    assert max(sizes[1:]) < 0.7 * sizes[0]


def test_when_half_a_pass_is_too_much_it_says_what_to_change() -> None:
    trainer = trainer_of(LORA.model_copy(update={"method": "full", "micro_batch": 4}))
    before = weights_digest(trainer.model)
    short_of_memory(trainer, rows=1)
    with pytest.raises(LearningError, match="too small for a pass of 2 rollouts, even after halving passes") as caught:
        learn(trainer, 1)
    assert weights_digest(trainer.model) == before
    for named in ("training.micro_batch", "gradient_checkpointing", "method to lora", "assay plan"):
        assert named in caught.value.hint


def test_an_update_without_memory_is_not_tried_again_on_weights_that_may_have_moved() -> None:
    trainer = trainer_of(LORA.model_copy(update={"method": "full", "micro_batch": 4}))
    asked = short_of_memory(trainer, rows=4)
    trainer._optimizer.register_step_pre_hook(lambda *_: torch.empty(1 << 55) and None)
    with pytest.raises(LearningError, match="too small for the optimizer's moments") as caught:
        learn(trainer, 1)
    assert asked == [4, 2], "both passes of the minibatch, and none anew"
    for named in ("training.method to lora", "adamw_8bit", "assay plan"):
        assert named in caught.value.hint
    trainer._ranks = Ranks(0, 2)
    assert "adamw_8bit" not in trainer._no_moments(MemoryError()).hint, "which several cannot have"


def test_moments_of_8_bits_are_kept_with_the_checkpoint_and_end_near_those_of_32(tmp_path: Path) -> None:
    exact = LORA.model_copy(update={"method": "full", "learning_rate": 1e-3})
    recipe = exact.model_copy(update={"optimizer": "adamw_8bit"})

    def wide() -> Any:
        torch.manual_seed(0)
        sizes = {"vocab_size": VOCABULARY, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 1}
        return Qwen2ForCausalLM(Qwen2Config(**sizes, num_attention_heads=4, num_key_value_heads=2, eos_token_id=5))

    whole = trainer_of(recipe, wide())
    learn(whole, 1)
    whole.save(tmp_path / "step")
    learn(whole, 2)
    kept = [one for state in whole.optimizer.state.values() for one in state.values()]
    assert torch.uint8 in {one.dtype for one in kept if isinstance(one, torch.Tensor)}
    again = trainer_of(recipe, wide())
    again.restore(tmp_path / "step")
    learn(again, 2)
    assert weights_digest(again.model) == weights_digest(whole.model)
    other = trainer_of(exact, wide())
    learn(other, 3)
    for mine, theirs in zip(whole.model.parameters(), other.model.parameters(), strict=True):
        assert (mine - theirs).abs().mean() < 3e-4


def test_moments_of_8_bits_are_refused_of_several_learners_before_anything_is_shared_out() -> None:
    recipe = LORA.model_copy(update={"optimizer": "adamw_8bit"})
    with pytest.raises(LearningError, match="with 2 learners: bitsandbytes") as caught:
        Trainer(varied(), recipe, 1, max_tokens=64, ranks=Ranks(0, 2))
    assert "model.learners to 1" in caught.value.hint


def test_a_recipe_with_an_adapter_is_another_recipe_and_the_defaults_are_not() -> None:
    assert TrainingRecipe(method="full", packing=False).digest() == TrainingRecipe().digest()
    assert TrainingRecipe(method="lora").digest() != TrainingRecipe().digest()


def test_a_checkpoint_of_full_training_is_not_taken_up_with_an_adapter(tmp_path: Path) -> None:
    full = LORA.model_copy(update={"method": "full"})
    Trainer(tiny_model(), full, seed=4, max_tokens=64).save(tmp_path / "step")
    learner: Learner = Trainer(tiny_model(), LORA, seed=4, max_tokens=64)
    with pytest.raises(CheckpointError, match="has recipe"):
        learner.restore(tmp_path / "step")
