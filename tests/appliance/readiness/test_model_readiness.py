"""What no night can begin from is said before one begins, by reading headers and names."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import broken_models
import pytest
from broken_models import HARMS, both, chatml, edit, headed, renamed, sound, written

from appliance.config.configuration import ModelSettings, Settings
from appliance.inference.engine import ModelError
from appliance.inference.memory import memory_limit
from appliance.inference.vllm.placement import VllmSettings
from appliance.learning.recipes.recipe import TrainingRecipe
from appliance.placement.settings import PlacementSettings
from appliance.planning import Gpu, Hardware, Layout, Vllm
from appliance.readiness import model as model_readiness
from appliance.readiness.model import GIB, ConfiguredModel, require_room
from appliance.rendering.formats import write_markers
from appliance.rendering.markers import SEEDLING
from appliance.settings.config_layers import ConfigError

TOKENS = 120
MEMORY = 64 * GIB
NOBODY = 65534


def configured(path: object, memory: int = MEMORY) -> ConfiguredModel:
    return ConfiguredModel(ModelSettings.model_validate({"path": path}), memory)


def refused(path: object, tokens: int = TOKENS, memory: int = MEMORY) -> ConfigError:
    with pytest.raises(ConfigError) as met:
        configured(path, memory).require(tokens)
    assert met.value.hint
    assert met.value.exit_code == 2
    return met.value


@pytest.mark.parametrize("name", HARMS)
def test_a_folder_that_no_night_can_begin_from_is_refused_with_the_reason(tmp_path: Path, name: str) -> None:
    harm, message = HARMS[name]
    folder = sound(tmp_path / "model")
    harm(folder)
    assert str(refused(folder)).startswith(f"model.path is {folder}: ")
    assert message in str(refused(folder))


GOOD = {
    "the seedling": lambda folder: None,
    "one that says its format": lambda folder: write_markers(folder, SEEDLING),
    "ChatML without a template": chatml,
    "ChatML with its template": both(chatml, edit("tokenizer_config.json", chat_template=broken_models.CHATML)),
    "a template of another kind beside a format": both(
        edit("tokenizer_config.json", chat_template=broken_models.LLAMA), lambda folder: write_markers(folder, SEEDLING)
    ),
    "weights in one numbered shard": renamed("model.safetensors", "model-00001-of-00001.safetensors"),
    "an adapter beside the weights": headed("adapter_model.safetensors", a=(2, 2)),
    "pickled weights beside": written("pytorch_model.bin", b"x"),
    "an embedding that is padded": headed("model.safetensors", model__embed_tokens__weight=(640, 128)),
    "positions by GPT-2's name": both(edit("config.json", max_position_embeddings=None, n_positions=128)),
    "as many positions as a conversation has": edit("config.json", max_position_embeddings=TOKENS),
    "no word of positions": edit("config.json", max_position_embeddings=None),
}


@pytest.mark.parametrize("name", GOOD)
def test_a_folder_that_a_night_can_begin_from_is_not_refused(tmp_path: Path, name: str) -> None:
    folder = sound(tmp_path / "model")
    GOOD[name](folder)
    found = configured(folder).require(TOKENS)
    assert found is not None
    assert found.entries == 512


def test_a_folder_of_links_into_a_cache_is_read_through_them(tmp_path: Path) -> None:
    cache = sound(tmp_path / "cache")
    folder = tmp_path / "model"
    folder.mkdir()
    for file in cache.iterdir():
        (folder / file.name).symlink_to(file)
    assert configured(folder).require(TOKENS) is not None


def test_what_training_takes_follows_from_the_headers(tmp_path: Path) -> None:
    folder = sound(tmp_path / "model")
    found = configured(folder).require(TOKENS)
    assert found is not None
    assert (found.parameters, found.training_bytes) == (657_024, 657_024 * 16)
    assert "training its 0.00 billion parameters" in str(refused(folder, memory=found.training_bytes - 1))
    assert configured(folder, found.training_bytes).require(TOKENS) == found


def test_a_head_that_is_the_embedding_again_is_counted_once(tmp_path: Path) -> None:
    folder = sound(tmp_path / "model")
    headed("model.safetensors", model__embed_tokens__weight=(512, 8), lm_head__weight=(512, 8))(folder)
    found = configured(folder).require(TOKENS)
    assert found is not None
    assert found.parameters == 512 * 8


def test_the_memory_is_at_most_the_machine_s() -> None:
    assert GIB // 4 < memory_limit() <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def test_a_chat_template_that_never_ends_is_said_to_take_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = sound(tmp_path / "model")
    monkeypatch.setattr(model_readiness, "_PROBE", ("sh", "-c", "ulimit -t 1; while :; do :; done"))
    said = refused(folder)
    assert "took more than 120 s or 4 GiB" in str(said)
    assert "chat template" in said.hint


# names of the hub
@pytest.mark.parametrize(
    "name",
    [
        "Qwen/Qwen2.5-0.5B-Instruct",
        "meta-llama/Llama-3.2-1B",
        "gpt2",
        "https://huggingface.co/Qwen/Qwen2.5-0.5B",
        "hf://Qwen/Qwen2.5-0.5B",
        "Qwen/Qwen2.5-0.5B@main",
        "Qwen/Qwen2.5-0.5B/",
    ],
)
def test_a_path_that_looks_like_a_name_on_the_hub_is_said_to_be_one(name: str) -> None:
    assert f"{name!r} looks like a name on the Hugging Face hub" in str(refused(name))
    assert "hf download" in refused(name).hint


@pytest.mark.parametrize("path", ["/models/qwen", "./qwen", "../models/qwen", "~/qwen", "a/b/c", "models/my model"])
def test_a_path_that_is_none_is_only_not_there(path: str) -> None:
    assert "no such folder" in str(refused(path))
    assert "hub" not in str(refused(path))


def test_a_folder_that_is_there_is_no_name_on_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    sound(tmp_path / "qwen" / "qwen2")
    assert configured("qwen/qwen2").require(TOKENS) is not None
    (tmp_path / "qwen" / "qwen2" / "config.json").unlink()
    assert "hub" not in str(refused("qwen/qwen2"))


def test_how_a_path_was_written_is_known_behind_every_layer(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[model]\npath = "a/b"\n')
    environ = {"HOME": str(tmp_path)}
    assert Settings.load({}, environ, tmp_path, tmp_path / "none").model.written == "a/b"
    settings = Settings.load({}, {**environ, "ASSAY_MODEL__PATH": "c/d"}, tmp_path, tmp_path / "none")
    assert settings.model_copy(update={"threads": 1}).model.written == "c/d"
    assert Settings(data=tmp_path).model.written == ""


# the embedded model, and other engines
def test_the_embedded_model_is_refused_for_conversations_that_it_cannot_read() -> None:
    assert configured(None).require(256) is None
    assert "recipe.agent.max_tokens is 257" in str(refused(None, tokens=257))


def test_an_engine_that_nobody_has_is_named() -> None:
    with pytest.raises(ConfigError, match="unknown engine 'vllm2'") as met:
        ConfiguredModel(ModelSettings(engine="vllm2"), MEMORY).require(TOKENS)
    assert "torch" in met.value.hint


def test_a_device_that_is_not_there_or_not_the_engines_to_choose_is_refused_before_a_night(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("appliance.readiness.model.find_gpus", lambda: ())
    with pytest.raises(ConfigError, match="finds no GPU here"):
        ConfiguredModel(ModelSettings(device="cuda"), MEMORY).require(TOKENS)
    with pytest.raises(ConfigError, match="uses the device of its environment"):
        ConfiguredModel(ModelSettings(engine="vllm", device="cpu"), MEMORY).require(TOKENS)
    assert ConfiguredModel(ModelSettings(device="cpu"), MEMORY).require(TOKENS) is None


def test_moments_of_8_bits_are_refused_of_several_learners_before_a_night() -> None:
    training = TrainingRecipe(optimizer="adamw_8bit")
    with pytest.raises(ConfigError, match="with 2 learners"):
        ConfiguredModel(ModelSettings(learners=2), MEMORY, training).require(TOKENS)
    assert ConfiguredModel(ModelSettings(), MEMORY, training).require(TOKENS) is None


def test_an_engine_that_is_to_sleep_while_it_samples_is_refused_before_a_night() -> None:
    training = TrainingRecipe(max_staleness=1)
    with pytest.raises(ConfigError, match="rollouts run while the learner works"):
        ConfiguredModel(ModelSettings(engine="vllm"), MEMORY, training, vllm=VllmSettings(sleep=1)).require(TOKENS)


def test_an_engine_in_fp8_needs_a_rule_for_the_tokens_that_it_weighs_otherwise() -> None:
    with pytest.raises(ConfigError, match="rule is none") as caught:
        ConfiguredModel(ModelSettings(engine="vllm"), MEMORY, vllm=VllmSettings(fp8=True)).require(TOKENS)
    assert 'mismatch.rule to "mask"' in caught.value.hint


def test_a_gpu_that_is_too_small_is_said_before_a_night_and_not_where_its_tool_does_not_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = ModelSettings(path=Path(__file__).parents[2] / "fixtures" / "seedling")
    gpu, lora = Gpu("one", 8 << 20, 8 << 20, 1e12, 1e12), TrainingRecipe(method="lora", lora_rank=1)
    monkeypatch.setattr(model_readiness, "count_gpus", lambda: 1)
    monkeypatch.setattr(model_readiness, "find_gpus", lambda: (gpu,))
    with pytest.raises(ConfigError, match="GiB of a GPU, but this machine has") as met:
        ConfiguredModel(settings, MEMORY).require(TOKENS)
    assert "method to lora, or set recipe.training.offload to moments, or use a smaller model" in met.value.hint
    found = ConfiguredModel(settings, MEMORY, lora).require(TOKENS)
    assert found is not None
    vllm = Layout(vllm=Vllm(0.92))
    with pytest.raises(ModelError, match="beside vLLM takes at least") as beside:
        require_room(found, Hardware(MEMORY, 1, (gpu,)), lora, vllm)
    assert "set recipe.training.method to qlora, or set vllm.sleep to 2" in beside.value.hint
    with pytest.raises(ConfigError, match="of memory, but this machine has"):
        ConfiguredModel(settings.model_copy(update={"device": "cpu"}), 1 << 20).require(TOKENS)
    monkeypatch.setattr(model_readiness, "find_gpus", lambda: ())
    assert ConfiguredModel(settings, 1 << 20).require(TOKENS) is not None


# looking again
def test_a_folder_is_looked_at_again_only_when_a_file_of_it_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, looks = sound(tmp_path / "model"), []
    examine = model_readiness.examine
    monkeypatch.setattr(model_readiness, "examine", lambda *given: looks.append(given) or examine(*given))
    model = configured(folder)
    for _ in range(3):
        model.require(TOKENS)
    assert len(looks) == 1
    edit("config.json", max_position_embeddings=200)(folder)
    model.require(TOKENS)
    with pytest.raises(ConfigError):
        model.require(201)
    assert len(looks) == 3
    shutil.rmtree(folder)
    with pytest.raises(ConfigError, match="no such folder"):
        model.require(TOKENS)
    sound(folder)
    assert model.require(TOKENS) is not None


def test_what_a_worker_found_wrong_counts_until_a_file_changes(tmp_path: Path) -> None:
    folder = sound(tmp_path / "model")
    model = configured(folder)
    model.refuse(TOKENS, f"model.path is {folder}: 3 weights are missing; the rest is a hint")
    with pytest.raises(ConfigError, match=r"^model.path is \S+: 3 weights are missing; the rest is a hint$"):
        model.require(TOKENS)
    assert configured(folder).require(TOKENS) is not None, "another daemon tries it anew"
    edit("config.json", use_cache=False)(folder)
    assert model.require(TOKENS) is not None


def test_a_folder_that_may_not_be_read_is_refused_with_that() -> None:
    user = os.geteuid()
    with tempfile.TemporaryDirectory() as place:  # where everybody may walk, as not in pytest's own
        Path(place).chmod(0o755)
        folder = sound(Path(place) / "model")
        refused(Path(place) / "none")  # what is imported only now may lie where root alone can read
        folder.chmod(0)
        try:
            if user == 0:  # root reads everything
                os.seteuid(NOBODY)
            assert "make the folder readable" in refused(folder).hint
        finally:
            os.seteuid(user)
            folder.chmod(0o700)


def test_a_name_that_no_folder_can_have_is_refused(tmp_path: Path) -> None:
    assert "File name too long" in str(refused(tmp_path / ("x" * 300)))


IN_CLUSTER = {"placement": PlacementSettings(engines="cluster", learners="cluster"), "clustered": True}


def test_what_is_placed_in_a_cluster_needs_nothing_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_readiness, "find_gpus", lambda: ())
    monkeypatch.setattr(model_readiness, "require_environment", lambda: pytest.fail("its hosts have it"))
    gpus = {**IN_CLUSTER, "placement": PlacementSettings(engines="cluster", learners="cluster", engine_gpus=1)}
    assert ConfiguredModel(ModelSettings(device="cuda"), MEMORY, **gpus).require(TOKENS) is None
    assert ConfiguredModel(ModelSettings(engine="vllm"), MEMORY, **IN_CLUSTER).require(TOKENS) is None
    small = ModelSettings(path=Path(__file__).parents[2] / "fixtures" / "seedling")
    with pytest.raises(ConfigError, match="this machine has"):
        ConfiguredModel(small, 1 << 10).require(TOKENS)
    assert ConfiguredModel(small, 1 << 10, **IN_CLUSTER).require(TOKENS) is not None


@pytest.mark.parametrize(
    ("model", "placement", "clustered", "message"),
    [
        (ModelSettings(), PlacementSettings(engines="cluster"), False, "placement.engines is cluster"),
        (ModelSettings(), PlacementSettings(learners="cluster"), False, "placement.learners is cluster"),
        (ModelSettings(device="cuda"), PlacementSettings(engines="cluster"), True, "engines in the cluster get no GPU"),
        (ModelSettings(learners=2), PlacementSettings(learners="cluster", learner_gpus=1), True, "learner_gpus is 1"),
    ],
)
def test_what_the_cluster_cannot_be_asked_for_is_said_before_a_night_begins(
    model: ModelSettings, placement: PlacementSettings, clustered: bool, message: str
) -> None:
    with pytest.raises(ConfigError, match=message) as refused:
        ConfiguredModel(model, MEMORY, placement=placement, clustered=clustered).require(TOKENS)
    assert refused.value.hint


@pytest.mark.parametrize(
    ("family", "engines", "training", "message"),
    [
        ("qwen3_moe", "here", {}, ""),
        ("qwen3_moe", "cluster", {}, "the engine torch in the cluster does not report its choices of experts"),
        ("granitemoe", "here", {}, "choices of experts cannot be replayed in 'granitemoe'"),
        ("granitemoe", "cluster", {"method": "lora"}, ""),
        ("granitemoe", "cluster", {"mismatch": {"rule": "mask"}}, ""),
    ],
)
def test_all_weights_of_a_mixture_are_trained_only_on_the_experts_that_its_sampler_chose(
    tmp_path: Path, family: str, engines: str, training: dict[str, object], message: str
) -> None:
    folder = sound(tmp_path / "model")
    edit("config.json", model_type=family, num_experts=8)(folder)
    placement = PlacementSettings.model_validate({"engines": engines})
    recipe, settings = TrainingRecipe.model_validate(training), ModelSettings(path=folder)
    asked = ConfiguredModel(settings, MEMORY, recipe, placement=placement, clustered=engines == "cluster")
    if not message:
        assert asked.require(TOKENS) is not None
        return
    with pytest.raises(ConfigError, match=message) as met:
        asked.require(TOKENS)
    assert 'recipe.training.mismatch.rule to "mask"' in str(met.value.hint)
