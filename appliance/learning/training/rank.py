"""Rank process: one of the processes that train a model together, or the only one.

  python -I -m appliance.learning.training.rank SOCKET NUMBER RANKS DEVICE PARENT

It serves the requests of `rank_processes` over the Unix socket until it closes, and dies with the process PARENT. It
reads a model's files only if their digest matches the request. After each answer it frees GPU memory beyond its own
state, since engines may share the GPU.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from multiprocessing.connection import Client, Connection
from pathlib import Path
from typing import Any, Literal

import torch

from appliance.learning.errors import LearningError
from appliance.learning.folders import read_verified, write_folder
from appliance.learning.ranks import Ranks
from appliance.learning.recipes.recipe import TrainingRecipe, WarmStartRecipe
from appliance.learning.state import gathered
from appliance.learning.training.sft import Encoded, SftTrainer
from appliance.learning.training.trainer import Trainer
from appliance.learning.training.updates import is_out_of_memory, open_for
from appliance.records.training import Group, Judged
from appliance.system.ending import end_with
from common.errors import HintedError

Answer = dict[str, Any]
COLLECTIVE_SECONDS = 1800.0
"""Timeout of a collective, between two of which there is less than a pass. A rank that waits on a GPU is busy, so only
this ends it; `rank_processes` gives up idle ranks."""
ROOM = (
    "set recipe.training.method to lora, lower recipe.agent.max_tokens, or set model.device to cpu; where vLLM is on "
    "the same GPU, set vllm.sleep to 2 or lower vllm.memory_share; run `assay plan` to see what fits"
)


class RankProcess:
    """State of one training process, which answers requests in turn. Every rank does the same work; rank 0 writes."""

    def __init__(self, ranks: Ranks, device: torch.device, tell: Callable[[Answer], None] = lambda _: None) -> None:
        """Creates the state of one rank; the first one tells its passes with `tell` while it answers."""
        self._ranks, self._device, self._tell = ranks, device, tell
        self._learner: Trainer | SftTrainer | None = None
        self._told: list[list[float]] = []
        """Teacher's log-probabilities for the samples of the requested step."""

    def answer(self, message: Mapping[str, Any]) -> Answer:
        """Executes a request to this training process, such as a step or a save. Raises its errors, and KeyError for an
        unknown request."""
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
        self._learner = None  # free the previous model first
        self._give_back()
        files = read_verified(Path(folder), expect=digest)
        settings |= {"companions": files, "ranks": self._ranks}
        training = TrainingRecipe.model_validate(settings.pop("way") if kind == "warm_start" else recipe)
        model = open_for(files, training).to(self._device)
        if kind == "warm_start":
            shown = [Encoded(tuple(ids), tuple(mask)) for ids, mask in settings.pop("demonstrations")]
            warm = WarmStartRecipe.model_validate(recipe)
            self._learner = SftTrainer(model, shown, warm, way=training, **settings)
        else:
            teacher = (lambda *_asked: self._told) if settings.pop("taught") else None
            self._learner = Trainer(model, training, teacher=teacher, **settings)
        if self._ranks.number == 0:
            self._learner.on_pass = lambda done, count: self._tell({"passes": [done, count]})
        return {}

    @property
    def learner(self) -> Trainer | SftTrainer:
        if self._learner is None:
            raise ValueError("no model has been opened")
        return self._learner

    def _step(
        self, step: int, judged: list[Any], groups: list[Any], told: list[list[float]], prompts: dict[str, list[int]]
    ) -> Answer:
        assert isinstance(self.learner, Trainer), "the open learner trains on demonstrations"
        rollouts, self._told = [Judged.model_validate(one) for one in judged], told
        compared = [Group.model_validate(one) for one in groups]
        return {"figures": self.learner.train_step(step, rollouts, compared, prompts)}

    def _sft_steps(self, count: int) -> Answer:
        assert isinstance(self.learner, SftTrainer), "the open learner trains on rollouts"
        return {"figures": self.learner.run_steps(count), "step": self.learner.step}

    def _save(self, folder: str, notes: dict[str, Any]) -> Answer:
        return {"digest": self.learner.save(Path(folder), notes)}

    def _restore(self, folder: str) -> Answer:
        return {"notes": self.learner.restore(Path(folder)), "step": self.learner.step}

    def _take_moments(self, folder: str) -> Answer:
        self.learner.take_moments(Path(folder))
        return {}

    def _weights(self, folder: str) -> Answer:
        files = self.learner.trained.files(hashed=False)  # each checkpoint is hashed
        if self._ranks.number:
            gathered(files)
            return {}
        return {"digest": write_folder(Path(folder), files), "base": self.learner.trained.base}

    def _give_back(self) -> None:
        """Frees GPU memory for the sampling engines: gradients, and the allocator's cache."""
        if self._device.type != "cuda":
            return
        if self._learner is not None:
            self._learner.model.zero_grad(set_to_none=True)
        gc.collect()
        torch.cuda.empty_cache()


def serve(connection: Connection, process: RankProcess) -> None:
    """Serves requests to a training process until the connection closes. Continues after its own errors, even if other
    ranks cannot."""
    while True:
        try:
            message = json.loads(connection.recv_bytes())
        except EOFError:
            return
        try:
            answer = process.answer(message)
        except Exception as error:  # noqa: BLE001 - any error is reported to the caller, who ends this process
            answer = _refusal(error, message["ask"])
        _send(connection, answer)


def _send(connection: Connection, answer: Answer) -> None:
    connection.send_bytes(json.dumps(answer).encode())


def _refusal(error: Exception, asked: str) -> Answer:
    if is_out_of_memory(error):
        reason = (str(error).strip().splitlines() or ["no reason given"])[0][:200]
        text = f"the learner ran out of memory during {asked}: {reason}"
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

        # Only the caller can access the socket's folder, so no one else can join.
        store = distributed.FileStore(str(Path(address).with_name("store")), ranks)  # type: ignore[attr-defined]
        backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"  # offloaded weights are on the CPU
        most = timedelta(seconds=COLLECTIVE_SECONDS)
        distributed.init_process_group(backend, store=store, rank=number, world_size=ranks, timeout=most)
    serve(connection, RankProcess(Ranks(number, ranks), device, partial(_send, connection)))
    os._exit(0)  # a normal exit would wait for an abandoned collective


if __name__ == "__main__":
    main()
