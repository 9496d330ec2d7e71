"""Is one of the processes that train a model together.

    python -I -m appliance.learning.rank SOCKET NUMBER RANKS

It does what it is told over the Unix socket, as `rank_processes` says it, until that is closed: then it ends at once.
It reads a model's files only where their digest is the one that it was told.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from multiprocessing.connection import Client, Connection
from pathlib import Path
from typing import Any

import torch

from appliance.inference.folder import open_model
from appliance.learning.folders import read_verified, write_folder
from appliance.learning.ranks import Ranks
from appliance.learning.recipe import TrainingRecipe
from appliance.learning.state import gathered
from appliance.learning.trainer import Trainer
from appliance.records.training import Group, Judged
from runtime.errors import HintedError

Answer = dict[str, Any]


class RankProcess:
    """Answers one message after another. Every rank does the same; what is written, the first one writes."""

    def __init__(self, ranks: Ranks, device: torch.device) -> None:
        self._ranks, self._device = ranks, device
        self._trainer: Trainer | None = None

    def answer(self, message: Mapping[str, Any]) -> Answer:
        """Does what is asked for. Raises what that raises, and KeyError for what nobody knows."""
        does: dict[str, Callable[..., Answer]] = {
            "open": self._open,
            "step": self._step,
            "save": self._save,
            "restore": self._restore,
            "take_moments": self._take_moments,
            "weights": self._weights,
        }
        given = dict(message)
        return does[given.pop("ask")](**given)

    def _open(
        self, folder: str, digest: str, recipe: dict[str, Any], seed: int, max_tokens: int, first_step: int
    ) -> Answer:
        files = read_verified(Path(folder), expect=digest)
        training = TrainingRecipe.model_validate(recipe)
        frozen_half = training.method == "lora" and training.precision == "bfloat16"
        model = open_model(files, dtype=torch.bfloat16 if frozen_half else torch.float32).to(self._device)
        self._trainer = Trainer(
            model, training, seed, max_tokens=max_tokens, companions=files, first_step=first_step, ranks=self._ranks
        )
        return {}

    @property
    def trainer(self) -> Trainer:
        if self._trainer is None:
            raise ValueError("no model has been opened")
        return self._trainer

    def _step(self, step: int, judged: list[Any], groups: list[Any]) -> Answer:
        rollouts = [Judged.model_validate(one) for one in judged]
        return {"figures": self.trainer.train_step(step, rollouts, [Group.model_validate(one) for one in groups])}

    def _save(self, folder: str, notes: dict[str, Any]) -> Answer:
        return {"digest": self.trainer.save(Path(folder), notes)}

    def _restore(self, folder: str) -> Answer:
        return {"notes": self.trainer.restore(Path(folder)), "step": self.trainer.step}

    def _take_moments(self, folder: str) -> Answer:
        self.trainer.take_moments(Path(folder))
        return {}

    def _weights(self, folder: str) -> Answer:
        files = self.trainer.trained.files()
        if self._ranks.number:
            gathered(files)
            return {}
        return {"digest": write_folder(Path(folder), files), "base": self.trainer.trained.base}


def serve(connection: Connection, process: RankProcess) -> None:
    """Answers until nobody asks any more. After an error of its own it goes on; the others may not be able to."""
    while True:
        try:
            message = json.loads(connection.recv_bytes())
        except EOFError:
            return
        try:
            answer = process.answer(message)
        except Exception as error:  # noqa: BLE001 - whatever it is, the one who asked is told, and ends this process
            hint = error.hint if isinstance(error, HintedError) else ""
            answer = {"error": str(error), "kind": type(error).__name__, "hint": hint}
        connection.send_bytes(json.dumps(answer).encode())


def main() -> None:
    from torch import distributed

    address, number, ranks = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    device = torch.device("cpu")
    if torch.cuda.is_available():
        device = torch.device("cuda", number)
        torch.cuda.set_device(device)
    connection = Client(address, "AF_UNIX")
    connection.send_bytes(json.dumps({"rank": number, "pid": os.getpid()}).encode())
    # The folder that the socket is in is the caller's alone, and so is who can meet here.
    store = distributed.FileStore(str(Path(address).with_name("store")), ranks)  # type: ignore[attr-defined]
    backend = "nccl" if device.type == "cuda" else "gloo"
    distributed.init_process_group(backend, store=store, rank=number, world_size=ranks)
    serve(connection, RankProcess(Ranks(number, ranks), device))
    os._exit(0)  # a collective that somebody left would be waited for


if __name__ == "__main__":
    main()
