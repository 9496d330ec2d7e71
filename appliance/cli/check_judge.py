"""The model that grades the soft items of checklists for `assay check checklist --judge FOLDER`."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from appliance.agent.dialect import Codec
from appliance.errors import AssayError, ExitCode
from appliance.inference.engine import ModelError
from appliance.inference.folder import open_model
from appliance.inference.judge import EngineJudge
from appliance.inference.torch_engine import TorchEngine

if TYPE_CHECKING:
    from verifiers.checklists.judge import Judge

HINT = "--judge names a complete model folder: config.json, tokenizer.json, tokenizer_config.json, safetensors"
ROWS = 4
LEAST_TOKENS = 512
"""What is said to a judge has about 250 words, without the text and the question."""
MOST_TOKENS = 16_384
"""Of a prompt; a model that reads fewer gets no longer ones, and then grades nothing."""


def judge_of(folder: Path) -> Judge:
    """Raises AssayError for a folder that holds no causal language model, or one that cannot be decoded here."""
    try:
        model = open_model(folder)
    except ModelError as error:
        raise AssayError(str(error), HINT, ExitCode.USAGE) from error
    try:
        codec = Codec.load(folder)
    except Exception as error:  # the tokenizer's library raises nothing narrower
        raise AssayError(f"{folder} has no tokenizer that can be read: {error}", HINT, ExitCode.USAGE) from error
    tokens = min(MOST_TOKENS, int(getattr(model.config, "max_position_embeddings", MOST_TOKENS)))
    if tokens < LEAST_TOKENS:
        raise AssayError(
            f"{folder} reads {tokens} tokens: no question to a judge is that short",
            f"name a model that reads {LEAST_TOKENS} or more",
            ExitCode.USAGE,
        )
    engine = TorchEngine(rows=ROWS, slots=tokens)
    engine.load_state(model, digest_of(folder))
    return EngineJudge(engine, codec, most_tokens=tokens)


def digest_of(folder: Path) -> str:
    """SHA-256 of what a model's answers follow from: its files by name, in order."""
    found = hashlib.sha256()
    for path in sorted([*folder.glob("*.safetensors"), *folder.glob("*.json")]):
        with path.open("rb") as stream:
            found.update(path.name.encode() + b"\0" + hashlib.file_digest(stream, "sha256").digest())
    return found.hexdigest()
