"""Saves checkpoints one after another and says so, until it is killed. Run by the checkpoint tests."""

from __future__ import annotations

import sys
from pathlib import Path

from appliance.learning.checkpoints import newest_valid, save, step_folder
from appliance.learning.folders import sweep


def main(parent: Path) -> None:
    sweep(parent)
    step = newest_valid(parent).step
    while True:
        step += 1
        content = bytes([step % 256]) * 200_000
        save(
            step_folder(parent, step),
            {"model.safetensors": content, "training.safetensors": content, "state.json": b"{}"},
        )
        print(step, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
