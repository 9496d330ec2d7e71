"""The process that holds torch engines keeps rows for those who may go on with them, while nobody needs the memory."""

from __future__ import annotations

from pathlib import Path

import pytest
from inference_models import VOCABULARY
from test_long_contexts import long_model

from appliance.inference.device import Placement
from appliance.inference.memory import WINDOW
from appliance.inference.torch.core import TorchCore

SLOTS, EACH = 1100, 256
"""Tokens of a conversation, which is long enough for blocks, and bytes of one."""


def test_a_conversation_that_waits_gives_way_when_another_needs_its_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Placement, "kv_memory", lambda self: EACH * (SLOTS + 4 * WINDOW))
    long_model().save_pretrained(tmp_path)
    core = TorchCore(str(tmp_path), rows=4, slots=SLOTS, dtype="float32", device="cpu")
    core.load({"path": str(tmp_path / "model.safetensors")}, {}, "a")
    for number in range(3):
        prompt = [(at * 7 + number) % VOCABULARY for at in range(700)]
        core.submit(number, prompt, [*range(VOCABULARY)], 10, 1.0, number, "", "")
        for _ in range(20):
            core.step()
        assert not core.working
        assert [report["ended"] for report in core.reports()] == ["stop"]
