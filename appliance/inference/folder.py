"""Opens a model: safetensors only, no code from it, no network, and a plain message when it is unusable.

What always holds: each file of a folder is read once, and what is loaded is what was read.
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

COMPLETE = "point the configuration at a complete Hugging Face model folder (config.json, tokenizer.json, safetensors)"
INSTALLED = "only architectures of the installed transformers are loaded; code inside a model folder is never run"


def require_known(settings: Mapping[str, Any]) -> None:
    """Raises ModelError where the table of a config.json names no model that `open_model` knows. Nothing is opened."""
    with without_collecting():
        from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES
        from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    kind = settings.get("model_type", "")
    if not isinstance(kind, str) or kind not in CONFIG_MAPPING_NAMES:
        named = ascii(kind)[:60]
        raise ModelError(f"config.json describes no model known here: its model_type is {named}", hint=INSTALLED)
    if kind not in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        raise ModelError(
            f"config.json describes a model of the kind {kind}, which is no causal language model",
            hint="take one that goes on with a text, such as those whose config.json names Qwen3ForCausalLM",
        )


def open_model(files: ModelFiles, name: str = "the model", *, dtype: torch.dtype = torch.float32) -> Any:
    """Loads the causal language model that these files are with transformers, in that type, in evaluation mode.

    Raises ModelError, which speaks of it as `name`: no config.json, no or broken safetensors, an unknown architecture,
    weights that do not fit the configuration.
    """
    library, settings = _library(), _settings(files, name)
    try:
        config = library.AutoConfig.for_model(**settings)
    except Exception as error:  # whatever a model's class makes of settings that it does not expect
        raise ModelError(
            f"config.json of {name} describes no model known here: {_first_line(error)}", hint=INSTALLED
        ) from error
    try:
        with quietly():
            model, report = library.MODEL_FOR_CAUSAL_LM_MAPPING[type(config)].from_pretrained(
                None,
                config=config,
                state_dict=_weights(files, name),
                dtype=dtype,
                output_loading_info=True,
                ignore_mismatched_sizes=True,
            )
    except (MemoryError, ModelError):
        raise
    except Exception as error:
        raise ModelError(f"{name} cannot be loaded: {_first_line(error)}", hint=COMPLETE) from error
    wrong = sorted({*report["missing_keys"], *(key for key, *_ in report["mismatched_keys"])})
    if wrong:
        raise ModelError(
            f"{name}: {len(wrong)} weights are missing or do not fit config.json, such as {wrong[0]}",
            hint="config.json and the weights come from two different models, or a part was not copied",
        )
    return model.eval()


@cache
def _library() -> Any:
    with without_collecting():
        import transformers
        import transformers.modeling_utils  # with what takes most of its time
    return transformers


SUFFIXES = (".json", ".jinja", ".safetensors")


def read_model(folder: Path) -> ModelFiles:
    """Reads what a folder has of a model into memory. Raises ModelError."""
    if not folder.is_dir():
        raise ModelError(f"there is no model folder {folder}", hint=COMPLETE)
    wanted = [path for path in folder.iterdir() if path.suffix in SUFFIXES and path.is_file()]
    try:
        return {path.name: path.read_bytes() for path in wanted}
    except OSError as error:
        raise ModelError(f"{folder} cannot be read: {error.strerror}", hint=COMPLETE) from error


@contextmanager
def quietly() -> Iterator[None]:
    """Keeps transformers from drawing on stderr; what matters of it comes back as a value or a ModelError."""
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
        raise ModelError(f"config.json of {name} holds no table", hint=COMPLETE)
    return {"model_type": "", **settings}


def _weights(files: ModelFiles, name: str) -> Mapping[str, torch.Tensor]:
    """Copies them out of the files, once: what is trained later is not the files."""
    shards = sorted(file for file in files if file.endswith(".safetensors") and file != "training.safetensors")
    if not shards:
        raise ModelError(
            f"{name} has no safetensors file",
            hint="convert the weights to safetensors; pickled weights (.bin, .pt) are refused, for they can run code",
        )
    found: dict[str, torch.Tensor] = {}
    for shard in shards:
        try:
            found |= safetensors.torch.load(files[shard])
        except (SafetensorError, ValueError, KeyError) as error:
            raise ModelError(
                f"{shard} of {name} is broken: {_first_line(error)}",
                hint="copy the folder again; the file was cut short or changed",
            ) from error
    return found


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
