"""The model that grades the soft items of checklists for `assay check checklist --judge FOLDER`."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from appliance.agent.dialect import Codec
from appliance.inference.engine import ModelError
from appliance.inference.folder import COMPLETE, open_model
from appliance.inference.judge import EngineJudge
from appliance.inference.torch_engine import TorchEngine

if TYPE_CHECKING:
    from verifiers.checklists.judge import Judge

ROWS = 4
MOST_TOKENS = 16_384
"""Of a prompt; a model that reads fewer gets no longer ones, and then grades nothing."""


def judge_of(folder: Path) -> Judge:
    """Raises ModelError for a folder that holds no causal language model, or one that cannot be decoded here."""
    model = open_model(folder)
    try:
        codec = Codec.load(folder)
    except Exception as error:  # the tokenizer's library raises nothing narrower
        raise ModelError(f"{folder} has no tokenizer that can be read: {error}", hint=COMPLETE) from error
    tokens = min(MOST_TOKENS, int(getattr(model.config, "max_position_embeddings", MOST_TOKENS)))
    engine = TorchEngine(rows=ROWS, slots=tokens)
    engine.load_state(model, digest_of(folder))
    return EngineJudge(engine, codec)


def digest_of(folder: Path) -> str:
    """SHA-256 of what a model's answers follow from: its files by name, in order."""
    found = hashlib.sha256()
    for path in sorted([*folder.glob("*.safetensors"), *folder.glob("*.json")]):
        with path.open("rb") as stream:
            found.update(path.name.encode() + b"\0" + hashlib.file_digest(stream, "sha256").digest())
    return found.hexdigest()
