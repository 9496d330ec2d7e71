"""What was hashed is what answers: a file that is exchanged on disk, whenever, never gets into the engine."""

from __future__ import annotations

from pathlib import Path

import pytest
import safetensors.torch
from checkpoint_records import checkpoint_record
from short_nights import FIXTURE

from appliance.inference.adapters import weights_digest
from appliance.inference.folder import open_model, read_model
from appliance.learning.checkpoints import publish
from appliance.learning.errors import CheckpointError
from appliance.learning.folders import read_verified
from appliance.records.cycles import Checkpoint
from appliance.worker.setup import context as loading
from appliance.worker.setup.context import WorkContext


@pytest.fixture
def model(tmp_path: Path) -> Checkpoint:
    return checkpoint_record(publish(FIXTURE, tmp_path / "models"), stage="imported")


def zeros_into(folder: Path) -> None:
    tensors = safetensors.torch.load((folder / "model.safetensors").read_bytes())
    safetensors.torch.save_file({name: 0 * tensor for name, tensor in tensors.items()}, folder / "model.safetensors")
    (folder / "tokenizer.json").write_text("{}")


def test_what_is_exchanged_after_it_was_read_has_no_effect(
    context: WorkContext, model: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    proofs = []

    def read_and_exchange(folder: Path, *, expect: str | None = None) -> dict[str, bytes]:
        files = read_verified(folder, expect=expect)
        zeros_into(folder)
        return files

    push = context.engine.push
    monkeypatch.setattr(context.engine, "push", lambda files, version: proofs.append(push(files, version)))
    monkeypatch.setattr(loading, "read_verified", read_and_exchange)
    agent = context.agent_of(model)
    assert [proof.digest for proof in proofs] == [weights_digest(open_model(read_model(FIXTURE)))]
    assert agent.renderer.question("1?")
    assert context.agent_of(model).renderer is agent.renderer, "and nothing is read a second time"


def test_what_is_exchanged_before_it_is_read_is_refused(
    context: WorkContext, model: Checkpoint, tmp_path: Path
) -> None:
    zeros_into(tmp_path / model.folder)
    with pytest.raises(CheckpointError, match=r"was changed|bytes, not"):
        context.agent_of(model)
    assert context.engine.version == ""


def test_weights_of_a_training_that_goes_on_do_not_stand_for_those_that_were_recorded(
    context: WorkContext, model: Checkpoint
) -> None:
    context.load(model)
    context.engine.push(read_model(FIXTURE), "n@1")
    context.load(model)
    assert context.engine.version == model.manifest
