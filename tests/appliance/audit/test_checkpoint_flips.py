"""A published model is its manifest's digest: no byte of it, and none of its manifest, can be another one."""

from __future__ import annotations

import random

import pytest

from appliance.learning.errors import CheckpointError
from appliance.learning.folders import verify, write_by_digest


def test_every_changed_byte_of_a_small_checkpoint_is_seen(tmp_path) -> None:
    digest = write_by_digest(tmp_path, {"model.safetensors": b"weights" * 5, "config.json": b"{}"})
    folder = tmp_path / digest
    for file in sorted(folder.iterdir()):
        sound = file.read_bytes()
        for place in range(len(sound)):
            changed = bytearray(sound)
            changed[place] ^= 1 << random.Random(place).randrange(8)
            file.write_bytes(changed)
            with pytest.raises(CheckpointError):
                verify(folder)
        file.write_bytes(sound)
    assert verify(folder) == digest
