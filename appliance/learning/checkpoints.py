"""Checkpoints on disk: listing, verification, pruning and publishing.

  <cycle>/checkpoints/step-000010/    the model's files, training.safetensors, state.json, manifest.json
  <data>/models/<digest>/             a published model: the model's files and their manifest

A checkpoint of full training is also a complete model folder, which an engine loads in place; one of an adapter has
`adapter_model.safetensors` instead of weights and is merged when published (`merging`). Nothing is ever pickled:
tensors are safetensors, the rest is JSON. Folders are atomic (`folders`). No tensor library is imported here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from appliance.learning.errors import CheckpointError
from appliance.learning.folders import MANIFEST, Content, remove_folder, verify, write_by_digest, write_folder

TRAINING = "training.safetensors"
"""Optimizer moments and random state; not part of a model."""
STATE = "state.json"
WEIGHTS = "model.safetensors"
LICENSES = ("LICENSE", "LICENSE.txt", "LICENSE.md")
"""File names of a model's licence text, which is copied with the model."""

_COMPANIONS = (
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "tokenizer.model",
    "vocab.json",
    "merges.txt",
    "chat_template.jinja",
    "rendering.json",
    "dialect.json",
    *LICENSES,
    "NOTICE",
)
"""Files copied with a model's weights. Code and pickles are excluded."""

_REQUIRED = ("config.json", "tokenizer.json")
WEIGHT_FILE = re.compile(r"model(-\d{5}-of-\d{5})?\.safetensors|model\.safetensors\.index\.json")
_STEP = re.compile(r"step-(\d{6,})")


@dataclass(frozen=True)
class Newest:
    folder: Path | None
    """Newest valid checkpoint, or None."""
    step: int
    """Step of the newest valid checkpoint; -1 without one."""
    broken: Mapping[Path, str]
    """Skipped newer checkpoints, newest first, with their problem, to report to the user."""


def step_folder(parent: Path, step: int) -> Path:
    return parent / f"step-{step:06d}"


def save(folder: Path, files: Mapping[str, Content], companions: Mapping[str, bytes] | None = None) -> str:
    """Writes a checkpoint folder of `files`, with the non-weight files of `companions` (`without_weights`), and returns
    its digest. Raises CheckpointError if the disk is full or the folder not writable; older checkpoints are untouched.
    """
    return write_folder(folder, {**without_weights(companions or {}), **files})


def without_weights(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Selects a model's non-weight files that are copied to other models: configuration, tokenizer, licence."""
    return {name: files[name] for name in _COMPANIONS if name in files}


def in_float32(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Returns a model's files with config.json set to float32, so that readers do not round float32 weights."""
    config = json.loads(files.get("config.json", b"{}"))
    inner = config.get("text_config")
    says = [(one, key) for one in (config, inner) if isinstance(one, dict) for key in ("dtype", "torch_dtype")]
    others = [(one, key) for one, key in says if one.get(key) not in (None, "float32")]
    for one, key in others:
        one[key] = "float32"
    return {**files, "config.json": (json.dumps(config, indent=2) + "\n").encode()} if others else dict(files)


def newest_valid(parent: Path) -> Newest:
    """Returns the newest checkpoint below `parent` whose every byte matches its manifest, and damaged newer ones."""
    broken: dict[Path, str] = {}
    for step, folder in reversed(_steps(parent)):
        try:
            verify(folder)
        except CheckpointError as error:
            broken[folder] = str(error)
        else:
            return Newest(folder, step, broken)
    return Newest(None, -1, broken)


def prune(parent: Path, keep: int, spare: Collection[Path] = ()) -> list[Path]:
    """Removes checkpoints older than the newest `keep` valid ones, except `spare`; returns the removed folders. Damaged
    ones do not count. Raises ValueError if `keep` is below 1."""
    if keep < 1:
        raise ValueError("keep must be at least 1")
    whole = 0
    gone: list[Path] = []
    for _, folder in reversed(_steps(parent)):
        if whole < keep:
            whole += _is_whole(folder)
        elif folder not in spare:
            remove_folder(folder)
            gone.append(folder)
    return gone


def is_model_file(name: str) -> bool:
    """True if a file of this name belongs to a model: weights, configuration, tokenizer or licence."""
    return name in _COMPANIONS or WEIGHT_FILE.fullmatch(name) is not None


def model_files(source: Path) -> dict[str, Path]:
    """Returns the files of a model folder that go into service, by name. Follows links (downloaded files are often
    links into a cache). Raises CheckpointError for an incomplete folder."""
    if not source.is_dir():
        raise CheckpointError(f"{source} is not a model folder", hint="name a folder with config.json and safetensors")
    names = {entry.name for entry in source.iterdir() if entry.is_file()}
    taken = {name: source / name for name in sorted(names) if is_model_file(name)}
    missing = [name for name in _REQUIRED if name not in taken]
    if not any(name.endswith(".safetensors") for name in taken):
        missing.append(WEIGHTS)
    if missing:
        raise CheckpointError(
            f"{source} lacks {', '.join(missing)}",
            hint="a model folder holds config.json, tokenizer.json and its weights as safetensors",
        )
    return taken


def publish(source: Path, models: Path) -> str:
    """Publishes a model to `models/<digest>/` and returns the digest of its manifest. Publishing equal weights again
    changes nothing. Verifies a source that has a manifest. Raises CheckpointError for a damaged or incomplete source,
    or a full disk."""
    if (source / MANIFEST).exists():
        verify(source)
    return write_by_digest(models, model_files(source))


def _steps(parent: Path) -> list[tuple[int, Path]]:
    """Lists the checkpoint folders in `parent` as (step, folder), by ascending step."""
    if not parent.is_dir():
        return []
    named = ((_STEP.fullmatch(entry.name), entry) for entry in parent.iterdir())
    return sorted((int(match[1]), entry) for match, entry in named if match)


def _is_whole(folder: Path) -> bool:
    try:
        verify(folder)
    except CheckpointError:
        return False
    return True
