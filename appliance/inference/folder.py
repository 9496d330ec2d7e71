"""Opens a model: safetensors only, without code from its folder or network access, and with a clear error.

Invariants: each file of a folder is read once, and what is loaded is what was read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError

from appliance.inference.engine import ModelError, ModelFiles
from appliance.system.loading import without_collecting
from common.errors import reading

COMPLETE = "point the configuration at a complete Hugging Face model folder (config.json, tokenizer.json, safetensors)"
INSTALLED = "only architectures of the installed transformers are loaded; code inside a model folder is never run"


def require_known(settings: Mapping[str, Any]) -> None:
    """Raises ModelError if a parsed config.json names no model that `open_model` supports. Opens nothing."""
    with without_collecting():
        from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES
        from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    kind = settings.get("model_type", "")
    if not isinstance(kind, str) or kind not in CONFIG_MAPPING_NAMES:
        named = ascii(kind)[:60]
        raise ModelError(f"config.json: unsupported model_type ({named})", hint=INSTALLED)
    if kind not in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        raise ModelError(
            f"config.json: model_type {kind} is not a causal language model",
            hint="use a model that continues text, such as one whose config.json names Qwen3ForCausalLM",
        )


def open_model(files: ModelFiles, name: str = "the model", *, dtype: torch.dtype = torch.float32) -> Any:
    """Loads a causal language model from its files with transformers, in number type `dtype`, in evaluation mode.
    Raises ModelError, with `name` in the message: no config.json, missing or damaged safetensors, an unknown
    architecture, or weights that do not fit the configuration."""
    return _opened(_settings(files, name), _weights(files, name), name, dtype=dtype)


def require_fit(config: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Checks that weights of these shapes, by tensor name, are all that the model of a parsed config.json needs. Loads
    none of them. Raises ModelError as `open_model`."""
    empty = {name: torch.empty(shape, device="meta") for name, shape in shapes.items()}
    _opened({"model_type": "", **config}, empty, "the folder", device_map="meta")


def _opened(settings: Mapping[str, Any], weights: Mapping[str, torch.Tensor], name: str, **options: Any) -> Any:
    library = _library()
    try:
        config = library.AutoConfig.for_model(**settings)
    except Exception as error:  # any error of a model's class given unexpected settings
        raise ModelError(
            f"config.json of {name} is not a supported model: {_first_line(error)}", hint=INSTALLED
        ) from error
    try:
        with quietly():
            model, report = library.MODEL_FOR_CAUSAL_LM_MAPPING[type(config)].from_pretrained(
                None,
                config=config,
                state_dict=weights,
                output_loading_info=True,
                ignore_mismatched_sizes=True,
                **options,
            )
    except (MemoryError, ModelError):
        raise
    except Exception as error:
        raise ModelError(f"{name} cannot be loaded: {_first_line(error)}", hint=COMPLETE) from error
    wrong = sorted({*report["missing_keys"], *(key for key, *_ in report["mismatched_keys"])})
    if wrong:
        shown = ", ".join(wrong[:3]) + (f" and {len(wrong) - 3} more" if len(wrong) > 3 else "")
        raise ModelError(
            f"{name}: weights are missing or do not fit config.json: {shown}",
            hint="config.json and the weights come from two different models, or a part was not copied",
        )
    return model.eval()


@cache
def _library() -> Any:
    with without_collecting():
        import transformers
        import transformers.modeling_utils  # the slowest part of the import
    return transformers


SUFFIXES = (".json", ".jinja", ".safetensors")


def read_model(folder: Path) -> ModelFiles:
    """Reads the model files in a folder into memory. Raises ModelError."""
    if not folder.is_dir():
        raise ModelError(f"no such model folder: {folder}", hint=COMPLETE)
    wanted = [path for path in folder.iterdir() if path.suffix in SUFFIXES and path.is_file()]
    with reading(folder, ModelError, COMPLETE):
        return {path.name: path.read_bytes() for path in wanted}


@contextmanager
def quietly() -> Iterator[None]:
    """Context that silences transformers on stderr; problems are returned as values or ModelError."""
    from transformers.utils import logging

    bars, level = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity(logging.CRITICAL)
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def _settings(files: ModelFiles, name: str) -> dict[str, Any]:
    if "config.json" not in files:
        raise ModelError(f"{name} has no config.json", hint=COMPLETE)
    try:
        settings = json.loads(files["config.json"])
    except (ValueError, RecursionError) as error:
        raise ModelError(f"config.json of {name} cannot be read: {_first_line(error)}", hint=COMPLETE) from error
    if not isinstance(settings, dict):
        raise ModelError(f"config.json of {name} is not a JSON object", hint=COMPLETE)
    return {"model_type": "", **settings}


def _weights(files: ModelFiles, name: str) -> Mapping[str, torch.Tensor]:
    """Reads the weights from a model's files, copied once, so that training cannot change the files. Raises ModelError
    for missing or broken safetensors files."""
    shards = sorted(file for file in files if file.endswith(".safetensors") and file != "training.safetensors")
    if not shards:
        raise ModelError(
            f"{name} has no safetensors file",
            hint="convert the weights to safetensors; pickled weights (.bin, .pt) can run code and are refused",
        )
    found: dict[str, torch.Tensor] = {}
    for shard in shards:
        try:
            tensors = safetensors.torch.load(files[shard])
        except (SafetensorError, ValueError, KeyError) as error:
            raise ModelError(
                f"{shard} of {name} is broken: {_first_line(error)}",
                hint="copy the folder again; the file is truncated or changed",
            ) from error
        if twice := sorted(found.keys() & tensors):
            raise ModelError(
                f"{shard} of {name} has {twice[0]}, which another file has too",
                hint="remove the weights that do not belong to this model",
            )
        found |= tensors
    return found


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
