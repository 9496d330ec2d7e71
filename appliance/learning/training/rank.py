"""Is one of the processes that train a model together, or the only one.

    python -I -m appliance.learning.training.rank SOCKET NUMBER RANKS DEVICE PARENT

It does what it is told over the Unix socket, as `rank_processes` says it, until that is closed; with the process PARENT
it ends at once, whatever it does. It reads a model's files only where their digest is the one that it was told. Of a
GPU it keeps what it needs to go on, and gives the rest back after each answer: who samples may be on the same one.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Callable, Mapping
from datetime import timedelta
from multiprocessing.connection import Client, Connection
from pathlib import Path
from typing import Any, Literal

import torch

from appliance.learning.errors import LearningError
from appliance.learning.folders import read_verified, write_folder
from appliance.learning.ranks import Ranks
from appliance.learning.recipes.recipe import TrainingRecipe, WarmStartRecipe
from appliance.learning.state import gathered
from appliance.learning.training.prepare import open_for
from appliance.learning.training.sft import Encoded, SftTrainer
from appliance.learning.training.trainer import Trainer
from appliance.learning.training.updates import is_out_of_memory
from appliance.records.training import Group, Judged
from appliance.system.ending import end_with
from runtime.errors import HintedError

Answer = dict[str, Any]
COLLECTIVE_SECONDS = 1800.0
"""That one waits for the others inside of a collective, between two of which there is less than a pass. Who waits on a
GPU is busy, so that only this ends it; ranks of which none does anything are given up by `rank_processes`."""
ROOM = (
    "set recipe.training.method to lora, lower recipe.agent.max_tokens, or set model.device to cpu; where vLLM is on "
    "the same GPU, set vllm.sleep to 2 or vllm.memory_share lower; `assay plan` says what fits"
)


class RankProcess:
    """Answers one message after another. Every rank does the same; what is written, the first one writes."""

    def __init__(self, ranks: Ranks, device: torch.device) -> None:
        self._ranks, self._device = ranks, device
        self._learner: Trainer | SftTrainer | None = None
        self._told: list[list[float]] = []
        """What a teacher thinks of the samples of the step that is asked for."""

    def answer(self, message: Mapping[str, Any]) -> Answer:
        """Does what is asked for. Raises what that raises, and KeyError for what nobody knows."""
        does: dict[str, Callable[..., Answer]] = {
            "open": self._open,
            "step": self._step,
            "sft_steps": self._sft_steps,
            "save": self._save,
            "restore": self._restore,
            "take_moments": self._take_moments,
            "weights": self._weights,
        }
        given = dict(message)
        try:
            return does[given.pop("ask")](**given)
        finally:
            self._give_back()

    def _open(
        self, kind: Literal["training", "warm_start"], folder: str, digest: str, recipe: dict[str, Any], **settings: Any
    ) -> Answer:
        self._learner = None  # what was trained before leaves its memory first
        self._give_back()
        files = read_verified(Path(folder), expect=digest)
        settings |= {"companions": files, "ranks": self._ranks}
        training = TrainingRecipe.model_validate(settings.pop("way") if kind == "warm_start" else recipe)
        model = open_for(files, training).to(self._device)
        if kind == "warm_start":
            shown = [Encoded(tuple(ids), tuple(mask)) for ids, mask in settings.pop("demonstrations")]
            warm = WarmStartRecipe.model_validate(recipe)
            self._learner = SftTrainer(model, shown, warm, way=training, **settings)
            return {}
        teacher = (lambda *_asked: self._told) if settings.pop("taught") else None
        self._learner = Trainer(model, training, teacher=teacher, **settings)
        return {}

    @property
    def learner(self) -> Trainer | SftTrainer:
        if self._learner is None:
            raise ValueError("no model has been opened")
        return self._learner

    def _step(self, step: int, judged: list[Any], groups: list[Any], told: list[list[float]]) -> Answer:
        assert isinstance(self.learner, Trainer), "what was opened learns from demonstrations"
        rollouts, self._told = [Judged.model_validate(one) for one in judged], told
        return {"figures": self.learner.train_step(step, rollouts, [Group.model_validate(one) for one in groups])}

    def _sft_steps(self, count: int) -> Answer:
        assert isinstance(self.learner, SftTrainer), "what was opened learns from rollouts"
        return {"figures": self.learner.run_steps(count), "step": self.learner.step}

    def _save(self, folder: str, notes: dict[str, Any]) -> Answer:
        return {"digest": self.learner.save(Path(folder), notes)}

    def _restore(self, folder: str) -> Answer:
        return {"notes": self.learner.restore(Path(folder)), "step": self.learner.step}

    def _take_moments(self, folder: str) -> Answer:
        self.learner.take_moments(Path(folder))
        return {}

    def _weights(self, folder: str) -> Answer:
        files = self.learner.trained.files(hashed=False)  # which each checkpoint is
        if self._ranks.number:
            gathered(files)
            return {}
        return {"digest": write_folder(Path(folder), files), "base": self.learner.trained.base}

    def _give_back(self) -> None:
        """Leaves a GPU to who samples: gradients, and what the allocator keeps for later."""
        if self._device.type != "cuda":
            return
        if self._learner is not None:
            self._learner.model.zero_grad(set_to_none=True)
        gc.collect()
        torch.cuda.empty_cache()


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
            answer = _refusal(error, message["ask"])
        connection.send_bytes(json.dumps(answer).encode())


def _refusal(error: Exception, asked: str) -> Answer:
    if is_out_of_memory(error):
        reason = (str(error).strip().splitlines() or ["no reason given"])[0][:200]
        text = f"the learner's memory ran out when it was asked to {asked}: {reason}"
        return {"error": text, "kind": LearningError.__name__, "hint": ROOM}
    hint = error.hint if isinstance(error, HintedError) else ""
    return {"error": str(error), "kind": type(error).__name__, "hint": hint}


def main() -> None:
    address, number, ranks, device = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), torch.device(sys.argv[4])
    end_with(int(sys.argv[5]))
    if device.type == "cuda":
        torch.cuda.set_device(device)
    connection = Client(address, "AF_UNIX")
    connection.send_bytes(json.dumps({"rank": number, "pid": os.getpid()}).encode())
    if ranks > 1:
        from torch import distributed

        # The folder that the socket is in is the caller's alone, and so is who can meet here.
        store = distributed.FileStore(str(Path(address).with_name("store")), ranks)  # type: ignore[attr-defined]
        backend = "nccl" if device.type == "cuda" else "gloo"
        most = timedelta(seconds=COLLECTIVE_SECONDS)
        distributed.init_process_group(backend, store=store, rank=number, world_size=ranks, timeout=most)
    serve(connection, RankProcess(Ranks(number, ranks), device))
    os._exit(0)  # a collective that somebody left would be waited for


if __name__ == "__main__":
    main()
