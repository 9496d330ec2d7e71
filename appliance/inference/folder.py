"""Opens a model folder: safetensors only, no code from it, no network, and a plain message when it is unusable."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from appliance.inference.engine import ModelError

COMPLETE = "point the configuration at a complete Hugging Face model folder (config.json, tokenizer.json, safetensors)"


def open_model(folder: Path) -> Any:
    """Loads the folder's causal language model with transformers, in float32, in evaluation mode.

    Raises ModelError: no folder, no config.json, no or broken safetensors, an unknown architecture, weights that do
    not fit the configuration.
    """
    from transformers import AutoConfig, AutoModelForCausalLM

    check_files(folder)
    try:
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except (ValueError, KeyError, OSError, TypeError, AttributeError) as error:
        raise ModelError(
            f"{folder / 'config.json'} describes no model known here: {_first_line(error)}",
            hint="only architectures of the installed transformers are loaded; code inside a model folder is never run",
        ) from error
    try:
        with quietly():
            model, report = AutoModelForCausalLM.from_pretrained(
                folder,
                config=config,
                local_files_only=True,
                trust_remote_code=False,
                use_safetensors=True,
                dtype=torch.float32,
                output_loading_info=True,
                ignore_mismatched_sizes=True,
            )
    except (ValueError, KeyError, OSError, TypeError, AttributeError, RuntimeError, SafetensorError) as error:
        raise ModelError(f"{folder} cannot be loaded: {_first_line(error)}", hint=COMPLETE) from error
    wrong = sorted({*report["missing_keys"], *(key for key, *_ in report["mismatched_keys"])})
    if wrong:
        raise ModelError(
            f"{folder}: {len(wrong)} weights are missing or do not fit config.json, such as {wrong[0]}",
            hint="config.json and the weights come from two different models, or a part was not copied",
        )
    return model.eval()


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


def check_files(folder: Path) -> None:
    """Checks that the files are there and whole, before anything interprets them. Raises ModelError."""
    if not folder.is_dir():
        raise ModelError(f"there is no model folder {folder}", hint=COMPLETE)
    try:
        config = json.loads((folder / "config.json").read_text())
    except FileNotFoundError:
        raise ModelError(f"{folder} has no config.json", hint=COMPLETE) from None
    except (OSError, ValueError) as error:
        raise ModelError(f"{folder / 'config.json'} cannot be read: {_first_line(error)}", hint=COMPLETE) from error
    if not isinstance(config, dict):
        raise ModelError(f"{folder / 'config.json'} holds no table", hint=COMPLETE)
    shards = sorted(folder.glob("*.safetensors"))
    if not shards:
        raise ModelError(
            f"{folder} has no safetensors file",
            hint="convert the weights to safetensors; pickled weights (.bin, .pt) are refused, for they can run code",
        )
    for shard in shards:
        try:
            with safe_open(shard, framework="pt") as tensors:
                tensors.keys()
        except (SafetensorError, OSError) as error:
            raise ModelError(
                f"{shard} is broken: {_first_line(error)}",
                hint="copy the folder again; the file was cut short or changed",
            ) from error


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
