"""The judge model for soft items of checklists: `assay check checklist --judge FOLDER`."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from appliance.errors import UsageError
from appliance.inference.engine import ModelError, ModelFiles
from appliance.inference.engines import make_engine
from appliance.inference.folder import open_model, read_model
from appliance.inference.judge import EngineJudge
from appliance.rendering.formats import load_renderer

if TYPE_CHECKING:
    from verifiers.contract.protocols import Judge

HINT = "--judge names a complete model folder: config.json, tokenizer.json, tokenizer_config.json, safetensors"
ROWS = 4
LEAST_TOKENS = 512
"""Minimum context of a judge; its instructions have about 250 words, plus text and question."""
MOST_TOKENS = 16_384
"""Maximum tokens of a prompt; a judge does not grade longer ones."""


def judge_of(folder: Path) -> tuple[Judge, str]:
    """Loads a judge model and returns it with its digest. Raises AssayError for a folder without a usable causal
    language model."""
    try:
        files = read_model(folder)
        model = open_model(files, str(folder))
    except ModelError as error:
        raise UsageError(str(error), HINT) from error
    try:
        renderer = load_renderer(files)
    except Exception as error:  # the tokenizer's library raises nothing narrower
        raise UsageError(f"{folder} has no readable tokenizer: {error}", HINT) from error
    tokens = min(MOST_TOKENS, int(getattr(model.config, "max_position_embeddings", MOST_TOKENS)))
    if tokens < LEAST_TOKENS:
        raise UsageError(
            f"{folder} supports only {tokens} tokens, too few for a judge",
            f"name a model with a context of at least {LEAST_TOKENS} tokens",
        )
    engine = make_engine("torch", rows=ROWS, slots=tokens, device="cpu", dtype="float32")
    engine.push(model, digest_of(files))
    return EngineJudge(engine, renderer, most_tokens=tokens), engine.version


def digest_of(files: ModelFiles) -> str:
    """Returns the SHA-256 of all files of a model, by name, in order."""
    found = hashlib.sha256()
    for name in sorted(files):
        found.update(name.encode() + b"\0" + hashlib.sha256(files[name]).digest())
    return found.hexdigest()
