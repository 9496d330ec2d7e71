"""Checks, before a night begins, whether the configured model can carry it.

Invariants: nothing is changed and nothing heavy is loaded. Of weights only the headers are read; a tokenizer is tried
in a child process; `nvidia-smi` has a deadline. A folder is examined again only after one of its files changed. Faults
that show only when weights are loaded are found by the worker before training, and remembered here.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from appliance.config.configuration import ModelSettings
from appliance.inference.engine import ModelError
from appliance.inference.engines import ENGINES
from appliance.inference.gpu_numbers import VISIBLE
from appliance.inference.http.headers import read_shapes
from appliance.inference.memory import memory_limit
from appliance.inference.vllm.placement import VllmSettings, count_gpus, require_environment
from appliance.learning.checkpoints import WEIGHT_FILE
from appliance.learning.errors import LearningError
from appliance.learning.recipes.recipe import WITHOUT_ROUTES, TrainingRecipe
from appliance.placement.settings import PlacementSettings, require_engines, require_learners
from appliance.planning import ONE, Hardware, Layout, Shape, learner_parts, least
from appliance.planning.hardware import find_gpus, gpu_layout, shown
from appliance.planning.model_shape import layers_in, shape_of
from appliance.rendering.renderer import NO_TOKENIZER
from appliance.seedling import POSITIONS
from appliance.settings.config_layers import ConfigError

COMPLETE = (
    "copy the folder again, or set model.path to a complete Hugging Face folder (config.json, tokenizer.json, "
    "*.safetensors); pickled weights (.bin, .pt) are refused because they can run code"
)
PLAIN_WEIGHTS = "use the model in bfloat16, float16 or float32: quantized weights cannot be trained here"
MERGED = "merge it into its base, for example with `merge_and_unload` of peft, and save the whole model as safetensors"
GIB = 1 << 30
MOST_JSON = 64 << 20
"""Maximum bytes of a JSON file read here; an index of a thousand shards has a tenth."""
REPLAYED = ("mixtral", "olmoe", "qwen2_moe", "qwen3_moe")
"""Families of mixtures, as `model_type`, whose choices of experts are recorded and replayed."""
_INDEX = "model.safetensors.index.json"
_NUMBERED = re.compile(r"model-\d{5}-of-(\d{5})\.safetensors")
_EMBEDDING = re.compile(r"(^|\.)(embed_tokens|wte|embed_in|word_embeddings|tok_embeddings)\.weight$")
_HUB_NAME = re.compile(r"(https?://huggingface\.co/|hf://)?([A-Za-z0-9][\w.-]*/)?[A-Za-z0-9][\w.-]*([@:][\w.-]+)?/?")
_PROBE = (sys.executable, "-I", "-m", "appliance.rendering.probe")


class UnusableModelError(ModelError):
    """The model named on the command line is unusable."""

    exit_code = 2


@dataclass(frozen=True)
class ModelFacts:
    """Properties of a model, read from its folder."""

    parameters: int
    entries: int
    """Size of the tokenizer's vocabulary."""
    training_bytes: int
    """Minimum memory for training: weights, gradients and moments."""
    shape: Shape
    format: str
    """Conversation format, and the way it was determined."""
    omits: str
    """Text that the model's own chat template writes before a conversation, but this format does not."""
    routed: str = ""
    """Family of a mixture whose learner must choose its sampler's experts; empty otherwise."""


class ConfiguredModel:
    """The configured model, checked for use in a night; thread-safe. `memory` is this machine's, in bytes."""

    def __init__(
        self,
        settings: ModelSettings,
        memory: int | None = None,
        training: TrainingRecipe | None = None,
        vllm: VllmSettings | None = None,
        *,
        placement: PlacementSettings = PlacementSettings(),  # noqa: B008 - frozen
        clustered: bool = False,
    ) -> None:
        """Prepares checks of the configured model; examines nothing yet. `training` defaults to the recipe's defaults.
        `clustered`: this machine is in a cluster; parts placed there need no GPU, memory or environment here."""
        self._training = training or TrainingRecipe()
        self._settings = settings
        self._path = settings.path
        self._engine = settings.engine
        self._vllm = vllm or VllmSettings()
        self._device = settings.device
        self._learners = settings.learners
        self._placement, self._clustered = placement, clustered
        self._written = settings.written
        self._memory = memory_limit() if memory is None else memory
        self._lock = threading.Lock()
        self._seen: object = None
        self._found: ModelFacts | ModelError = ModelError("nothing was looked at")

    def require(self, tokens: int) -> ModelFacts | None:
        """Checks that nights with conversations of `tokens` tokens can use the configured model. Returns its
        properties, or None for the embedded model. Raises ConfigError."""
        if self._engine not in ENGINES:
            raise ConfigError(
                f"model.engine: unknown engine {self._engine!r}",
                hint=f"set model.engine to one of: {', '.join(sorted(ENGINES))}",
            )
        here = self._placement.engines == "here"
        require_optimizer(self._training, self._learners)
        self._require_places()
        all_elsewhere = not here and self._placement.learners == "cluster"
        if self._device == "cuda" and self._engine == "torch" and not all_elsewhere and not find_gpus():
            raise ConfigError(
                "model.device is cuda, but `nvidia-smi` finds no GPU here", hint="set model.device to auto or cpu"
            )
        if self._engine == "vllm":
            if self._device != "auto":
                raise ConfigError(
                    f"model.device is {self._device}, but the engine vllm uses the device of its environment",
                    hint="set model.device to auto, or model.engine to torch",
                )
            if self._vllm.sleep and self._training.max_staleness:
                raise ConfigError(
                    "vllm.sleep conflicts with recipe.training.max_staleness: rollouts run while the learner works",
                    hint="set vllm.sleep or recipe.training.max_staleness to 0",
                )
            if self._vllm.fp8 and self._training.mismatch.rule == "none":
                raise ConfigError(
                    "vllm.fp8 samples from other probabilities than the learner's, but recipe.training.mismatch.rule "
                    "is none",
                    hint='set recipe.training.mismatch.rule to "mask", or vllm.fp8 to false',
                )
            try:
                if here:
                    self._vllm.require(require_environment())
            except ModelError as error:
                raise ConfigError(f"model.engine is vllm: {error}", hint=error.hint) from error
        if self._path is None:
            if tokens > POSITIONS:
                raise ConfigError(
                    f"recipe.agent.max_tokens is {tokens}, but the embedded model supports {POSITIONS} tokens",
                    hint=f"set it to at most {POSITIONS}, or set model.path to a model with a longer context",
                )
            return None
        with self._lock:
            state = (_state(self._path), tokens)
            if state != self._seen:
                self._found = self._look(self._path, tokens)
                self._seen = state
            found = self._found
        if isinstance(found, ModelError):
            raise ConfigError(f"model.path is {self._path}: {found}", hint=found.hint)
        return found

    def _require_places(self) -> None:
        placed, clustered = self._placement, self._clustered
        try:
            if placed.engines == "cluster":
                require_engines(self._engine, placed, clustered=clustered, device=self._device, vllm=self._vllm)
            if placed.learners == "cluster":
                require_learners(self._learners, placed, clustered=clustered)
        except ModelError as error:
            raise ConfigError(str(error), hint=error.hint) from error

    def refuse(self, tokens: int, fault: str) -> None:
        """Remembers a fault of the model that a worker found, until a file of the model changes."""
        if self._path is not None:
            with self._lock:
                self._seen = (_state(self._path), tokens)
                self._found = ModelError(
                    fault.removeprefix(f"model.path is {self._path}: "), hint="change the folder, or model.path"
                )

    def _look(self, folder: Path, tokens: int) -> ModelFacts | ModelError:
        try:
            if _HUB_NAME.fullmatch(self._written) and not folder.is_dir():
                raise ModelError(
                    f"no such folder; {self._written!r} looks like a name on the Hugging Face hub",
                    hint="Assay downloads nothing: fetch the model with `hf download NAME --local-dir FOLDER`, and "
                    "set model.path to that folder",
                )
            facts = examine(folder, self._training, tokens)
            if facts.routed:
                self._require_routes(facts.routed)
            return facts if self._placement.learners == "cluster" else self._require_room(facts)
        except ModelError as error:
            return error
        except OSError as error:
            return _unreadable(error)

    def _require_routes(self, family: str) -> None:
        """Raises ModelError unless the learner can replay the engine's choices of experts in a mixture of `family`."""
        fault = ""
        if family not in REPLAYED:
            fault = f"choices of experts cannot be replayed in {family[:60]!r}"
        elif self._engine != "torch" or self._placement.engines != "here":
            elsewhere = " in the cluster" if self._engine == "torch" else ""
            fault = f"the engine {self._engine}{elsewhere} does not report its choices of experts"
        if fault:
            way = WITHOUT_ROUTES if family not in REPLAYED else f'use model.engine = "torch" here, or {WITHOUT_ROUTES}'
            raise ModelError(f"a mixture with all weights trained: {fault}, and the learner's would differ", hint=way)

    def _require_room(self, facts: ModelFacts) -> ModelFacts:
        """Returns the model's properties if this machine can train it as configured. Raises ModelError otherwise."""
        visible = os.environ.get(VISIBLE)
        found = () if self._device == "cpu" else find_gpus()
        gpus = shown(found, visible)
        if not found and self._device != "cpu" and count_gpus():
            return facts  # the driver's tool does not answer: nobody knows what there is
        try:
            layout = gpu_layout(self._settings, self._vllm, self._placement, len(gpus), visible)
        except ModelError:
            return facts  # more GPUs are asked for than there are: the worker says that
        require_room(facts, Hardware(self._memory, 1, gpus), self._training, layout)
        return facts


def fault_of(folder: Path) -> str:
    """Returns the reason why `folder` cannot be a model; empty if its files are present and complete. Loads no
    weights."""
    try:
        _read(folder)
    except ModelError as error:
        return str(error)
    except OSError as error:
        return str(_unreadable(error))
    return ""


def require_room(facts: ModelFacts, machine: Hardware, training: TrainingRecipe, layout: Layout = ONE) -> None:
    """Raises ModelError if the machine's memory is too small to train the model, even with short conversations."""
    found = least(facts.shape, machine, training, layout)
    place = next((name for name, (needed, there) in found.items() if needed > there), None)
    if place is None:
        return
    needed, there = (f"{size / GIB:.1f}" for size in found[place])
    on_gpu, vllm = bool(machine.gpus), layout.vllm
    shared = vllm is not None and not vllm.sleep and not layout.apart(len(machine.gpus))
    does = {
        "memory": f"{'reading' if on_gpu else 'training'} its {facts.parameters / 1e9:.2f} billion parameters takes",
        "gpu": f"training its {facts.parameters / 1e9:.2f} billion parameters"
        + (" beside vLLM takes" if shared else " takes"),
        "engine": "sampling from it takes",
    }[place]
    of = "memory" if place == "memory" else "a GPU"
    has = f"vLLM gets {there}" if place == "engine" and vllm else f"this machine has {there}"
    ways = []
    if training.method == "full" and not (on_gpu and place != "gpu"):
        ways.append("set recipe.training.method to lora")
    if training.method == "lora" and place == "gpu":
        ways.append("set recipe.training.method to qlora")
    if training.method == "full" and place == "gpu" and not training.offloads("moments"):
        ways.append("set recipe.training.offload to moments")
    if place == "gpu" and layout.learners < len(machine.gpus):
        ways.append(f"set model.learners higher, up to the {len(machine.gpus)} GPUs")
    if place == "gpu" and shared:
        ways.append("set vllm.sleep to 2, or vllm.memory_share lower")
    if place == "engine" and vllm:
        ways.append("set vllm.memory_share or vllm.tensor_parallel higher")
    ways.append(f"use a smaller model, or a {'machine' if place == 'memory' else 'GPU'} with more memory")
    raise ModelError(
        f"{does} at least {needed} GiB of {of}, but {has}", hint=f"{', or '.join(ways)}; `assay plan` shows what fits"
    )


def examine(folder: Path, training: TrainingRecipe, tokens: int = 1) -> ModelFacts:
    """Examines a model folder for conversations of `tokens` tokens, regardless of the machine; returns the model's
    properties. Raises ModelError and OSError."""
    config, shapes = _read(folder)
    require_positions(config, tokens)
    files = sum(entry.stat().st_size for entry in folder.iterdir() if WEIGHT_FILE.fullmatch(entry.name))
    shape = shape_of(config, shapes, files)
    if 0 < (layers := layers_in(shapes)) < shape.layers:
        raise ModelError(f"its weights have {layers} layers, but config.json has {shape.layers}", hint=COMPLETE)
    parts = learner_parts(shape, training, 1)
    needed = parts["weights"] + parts["gradients"] + parts["moments"]
    tried = try_text(folder)
    entries = int(tried["entries"])
    rows = next((shape[0] for name, shape in shapes.items() if shape and _EMBEDDING.search(name)), None)
    for count, what in ((config.get("vocab_size"), "config.json"), (rows, "the embedding")):
        if isinstance(count, int) and count < entries:
            raise ModelError(
                f"its tokenizer has {entries} entries, but {what} has {count}",
                hint="copy tokenizer.json and the weights from the same model",
            )
    routed = str(config.get("model_type")) if training.needs_routes(config, shapes) else ""
    text = str(tried["format"]), str(tried["omits"])
    return ModelFacts(shape.parameters, entries, needed, shape, *text, routed)


def require_weights(folder: Path) -> None:
    """Checks that the folder has every weight that transformers needs for its model, which loads transformers but no
    weights. Raises ModelError and OSError."""
    from appliance.inference.folder import require_fit

    require_fit(*_read(folder))


def shape_in(folder: Path) -> Shape:
    """Reads the shape of the model in a folder, for a memory plan. Raises UnusableModelError, which names the
    folder."""
    try:
        config, shapes = _read(folder)
        files = sum(entry.stat().st_size for entry in folder.iterdir() if WEIGHT_FILE.fullmatch(entry.name))
    except OSError as error:
        raise UnusableModelError(f"{folder}: {error.strerror}", hint="make the folder readable") from error
    except ModelError as error:
        raise UnusableModelError(f"{folder}: {error}", hint=error.hint) from error
    return shape_of(config, shapes, files)


def require_optimizer(training: TrainingRecipe, learners: int) -> None:
    """Raises ConfigError if this number of learners cannot train together as configured."""
    try:
        training.require_learners(learners)
    except LearningError as error:
        raise ConfigError(str(error), hint=error.hint) from error


def require_positions(config: Mapping[str, Any], tokens: int) -> None:
    """Raises ModelError if the model of this config.json supports fewer than `tokens` tokens."""
    positions = next((config[name] for name in ("max_position_embeddings", "n_positions") if config.get(name)), tokens)
    if isinstance(positions, int | float) and positions < tokens:
        raise ModelError(
            f"it supports {positions} tokens, but recipe.agent.max_tokens is {tokens}",
            hint=f"set recipe.agent.max_tokens to at most {positions}, or use a model with a longer context",
        )


def read_config(folder: Path) -> dict[str, Any]:
    """Reads config.json in a model folder. Raises ModelError and OSError."""
    path = folder / "config.json"
    return _table({path.name: path} if path.is_file() else {}, path.name)


def _read(folder: Path) -> tuple[dict[str, Any], dict[str, tuple[int, ...]]]:
    """Returns the config.json and the tensor shapes of a complete model folder. Raises ModelError and OSError."""
    if not folder.is_dir():
        raise ModelError("no such folder", hint=COMPLETE)
    files = {entry.name: entry for entry in folder.iterdir() if entry.is_file()}
    if "adapter_config.json" in files and "config.json" not in files:
        raise ModelError("it is an adapter (LoRA) without its model", hint=MERGED)
    config = _table(files, "config.json")
    if any(one.get("quantization_config") for one in (config, config.get("text_config")) if isinstance(one, dict)):
        raise ModelError("its weights are quantized (config.json has quantization_config)", hint=PLAIN_WEIGHTS)
    if "tokenizer.json" not in files:
        raise ModelError("it has no tokenizer.json", hint=NO_TOKENIZER)
    shards = sorted(name for name in files if WEIGHT_FILE.fullmatch(name) and name != _INDEX)
    if not shards:
        raise ModelError("it has no safetensors file of a model, such as model.safetensors", hint=COMPLETE)
    named = _table(files, _INDEX).get("weight_map") if _INDEX in files else None
    places = {str(tensor): str(file) for tensor, file in named.items()} if isinstance(named, dict) else {}
    if missing := sorted({*places.values()} - files.keys()):
        raise ModelError(f"it has no {missing[0]}, which {_INDEX} names", hint=COMPLETE)
    numbered = {name for name in shards if _NUMBERED.fullmatch(name)}
    if numbered and len(numbered) != (wanted := int(_NUMBERED.sub(r"\1", min(numbered)))):
        raise ModelError(f"it has {len(numbered)} of {wanted} safetensors files", hint=COMPLETE)
    if stray := sorted({*shards} - {*places.values()} if places else {*shards} - numbered if numbered else ()):
        why = f"which {_INDEX} does not name" if places else f"beside {min(numbered)}"
        raise ModelError(f"it has {stray[0]}, {why}", hint="remove the weights that do not belong to this model")
    found: dict[str, tuple[int, ...]] = {}
    for name in shards:
        shapes = read_shapes(files[name])
        if shapes is None:
            raise ModelError(f"{name} is shorter or longer than its header says", hint=COMPLETE)
        for tensor in shapes:
            if tensor in found or (places and places.get(tensor) != name):
                why = "which another file has too" if tensor in found else f"which {_INDEX} has elsewhere"
                raise ModelError(f"{name} has {ascii(tensor)[1:-1][:120]}, {why}", hint=COMPLETE)
        found.update(shapes)
    if lost := sorted(places.keys() - found.keys()):
        raise ModelError(f"{places[lost[0]]} has no {ascii(lost[0])[1:-1][:120]}, which {_INDEX} names", hint=COMPLETE)
    if not found:
        raise ModelError(f"{shards[0]} holds no weights", hint=COMPLETE)
    return config, found


def _table(files: Mapping[str, Path], name: str) -> dict[str, Any]:
    if name not in files:
        raise ModelError(f"it has no {name}", hint=COMPLETE)
    if (size := files[name].stat().st_size) > MOST_JSON:
        raise ModelError(f"its {name} is too large ({size} bytes, at most {MOST_JSON})", hint=COMPLETE)
    try:
        table = json.loads(files[name].read_bytes())
    except (ValueError, RecursionError) as error:
        raise ModelError(f"its {name} is not JSON", hint=COMPLETE) from error
    if not isinstance(table, dict):
        raise ModelError(f"its {name} is not a JSON object", hint=COMPLETE)
    return table


def try_text(folder: Path, **wanted: Any) -> dict[str, Any]:
    """Tries a model's tokenizer in a child process. Returns what `rendering.probe` prints: `entries` of its vocabulary,
    the name of its conversation `format`, and what is `wanted`. Raises ModelError."""
    command = [*_PROBE, str(folder), json.dumps(wanted)]
    tried = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if tried.returncode < 0:
        from appliance.rendering.probe import MEMORY, SECONDS  # it loads a tokenizer's library

        raise ModelError(
            f"its tokenizer or chat template is unreadable: it took more than {SECONDS} s or {MEMORY // GIB} GiB, "
            f"or it crashed (signal {-tried.returncode})",
            hint="copy the folder again, or ask the model's author to fix an endless chat template",
        )
    if tried.returncode != 0:
        last = (tried.stderr.strip().splitlines() or [f"status {tried.returncode}"])[-1]
        raise ModelError(f"its tokenizer cannot be read: {last[:200]}", hint="copy the folder again")
    answer = json.loads(tried.stdout)
    if "fault" in answer:
        raise ModelError(answer["fault"], hint=answer["hint"])
    found: dict[str, Any] = answer
    return found


def _state(folder: Path) -> object:
    """Returns a fingerprint of a model folder that changes with any of its files."""
    try:
        with os.scandir(folder) as entries:
            found = [(entry.name, entry.stat()) for entry in entries if entry.is_file()]
    except OSError as error:
        return error.errno
    return sorted((name, one.st_size, one.st_mtime_ns, one.st_ino) for name, one in found)


def _unreadable(error: OSError) -> ModelError:
    return ModelError(
        f"{error.filename or 'a file'}: {error.strerror}", hint="make the folder readable for the user that runs Assay"
    )
