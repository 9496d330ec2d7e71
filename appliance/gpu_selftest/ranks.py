"""Compares two learners with one (row G9), and measures rollouts that continue during learner steps (row G8).

Invariants: all take the same steps from the same weights, through the rank processes of real training. Direct memory
access between GPUs (NCCL_P2P_DISABLE) affects only the time of a step.

Both arms sample and learn from equally many tokens in alternation, and differ only in waiting for each other. Weights
are random, and pushed with their proof before the first round.
"""

from __future__ import annotations

import math
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import torch

from appliance.gpu_selftest.errors import ProbeFailedError, ProbeNotRunError
from appliance.gpu_selftest.probe_models import (
    PLAIN,
    ProbeSize,
    drawn_batch,
    learn_step,
    make_trainer,
    random_model,
    wait_for,
)
from appliance.inference.adapters import push_model
from appliance.inference.device import Placement
from appliance.inference.engine import Engine, GenerationRequest
from appliance.inference.folder import open_model
from appliance.inference.torch.engine import TorchEngine
from appliance.inference.vllm.engine import VllmEngine
from appliance.inference.vllm.process import VllmProcess
from appliance.learning.rank_processes import RankProcesses
from appliance.learning.recipes.recipe import TrainingRecipe
from appliance.learning.signal.grouping import make_groups
from appliance.learning.training.ranked_trainer import RankedTrainer
from appliance.learning.training.trainer import Trainer
from appliance.placement.engine_servant import TORCH, torch_environment
from appliance.system.patience import Patience

STEPS = 2
"""Steps taken; the first warms up, the second is timed."""
CLOSE = 1e-3
"""Maximum relative difference of a loss and of a gradient norm."""
APART = 0.05
"""Maximum distance of weights relative to their movement: for a gradient of pure rounding, Adam amplifies its sign."""


def sharded_learners(devices: Sequence[str], size: ProbeSize) -> str:
    """G9: compares training sharded over all devices (FSDP2) with one learner on the first, with and without direct
    access between GPUs. Raises ProbeNotRunError for fewer than two."""
    if len(devices) < 2:
        raise ProbeNotRunError("FSDP2 over NCCL: not run, it needs two GPUs")
    recipe = TrainingRecipe.model_validate({**PLAIN, "micro_batch_tokens": size.tokens})
    files = _files(size)
    alone = open_model(files).to(torch.device(devices[0]))
    one = Trainer(alone, recipe, 1, max_tokens=size.tokens, companions=files)
    wanted = [_step(one, recipe, size, step) for step in range(STEPS)]
    seen = [f"one learner {wanted[-1]['seconds']:.2f} s per step"]
    for disabled in ("0", "1"):
        shared = open_model(files)
        with RankProcesses(devices, variables={"NCCL_P2P_DISABLE": disabled}) as processes:
            several = RankedTrainer(processes, shared, recipe, 1, max_tokens=size.tokens, companions=files)
            found = [_step(several, recipe, size, step) for step in range(STEPS)]
        how = f"{len(devices)} learners with NCCL_P2P_DISABLE={disabled}"
        for got, expected in zip(found, wanted, strict=True):
            for name in ("loss", "gradient_norm"):
                if not math.isclose(got[name], expected[name], rel_tol=CLOSE, abs_tol=1e-5):
                    raise ProbeFailedError(f"{how}: {name} {got[name]:.6g}, and {expected[name]:.6g} with one")
        apart = _apart(shared, alone, open_model(files))
        if not apart <= APART:
            raise ProbeFailedError(f"{how}: weights differ from one learner's by {apart:.1e} of their movement")
        seen.append(f"{how} {found[-1]['seconds']:.2f} s, weights differ by {apart:.0e} of their movement")
    return f"FSDP2 on {', '.join(devices)}: {'; '.join(seen)}"


def _files(size: ProbeSize) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory(prefix="assay-probe-") as folder:
        random_model(size, torch.device("cpu")).save_pretrained(folder)
        return {file.name: file.read_bytes() for file in Path(folder).iterdir()}


def _step(trainer: Trainer | RankedTrainer, recipe: TrainingRecipe, size: ProbeSize, step: int) -> Mapping[str, float]:
    judged = drawn_batch(size, step)
    return trainer.train_step(step, judged, make_groups(judged, recipe, 0))


def _apart(one: Any, other: Any, start: Any) -> float:
    """Returns the distance between the weights of two models, relative to the second one's distance from `start`."""

    def distance(left: Any, right: Any) -> float:
        pairs = zip(left.parameters(), right.parameters(), strict=True)
        return math.sqrt(sum(float((a.detach().cpu() - b.detach().cpu()).square().sum()) for a, b in pairs))

    return distance(one, other) / distance(other, start)


WORTH = 1.3
"""Minimum gain in rollouts per second."""


@dataclass(frozen=True)
class OverlapSize:
    model: ProbeSize
    drawn: int
    """Tokens sampled per rollout; the rest is its prompt."""
    rounds: int


@dataclass(frozen=True)
class Overlap:
    """Median times of sampling and learning, sequential and concurrent, over the rounds."""

    push: float
    """Seconds of a push with its proof, needed per step in either arm."""
    sampling: float
    learning: float
    """Seconds of each alone."""
    together: float
    """Seconds of both concurrently."""
    worth: float
    """Gain in rollouts per second, without the pushes."""
    spread: tuple[float, float]

    @property
    def with_pushes(self) -> float:
        """Gain in speed by concurrent sampling and learning, with a push per step, for which both wait."""
        return (self.push + self.sampling + self.learning) / (self.push + self.together)

    def __str__(self) -> str:
        low, high = self.spread
        return (
            f"{self.worth:.2f} times [{low:.2f}, {high:.2f}] (sampling {self.sampling:.2f} s, learning "
            f"{self.learning:.2f}, concurrently {self.together:.2f}; with a push of {self.push:.2f} s per step "
            f"{self.with_pushes:.2f} times)"
        )


def rollouts_beside_learner(device: torch.device, size: OverlapSize) -> str:
    """G8: compares rollouts per second concurrent with and before the learner's step, with the torch engine in another
    and in this process."""
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    rows, slots = size.model.rollouts, size.model.tokens
    on_gpu = device.type == "cuda"
    apart = VllmEngine(rows, slots, dtype=str(dtype).removeprefix("torch."), gpu=on_gpu, start=_start)
    found = {
        "in a process of its own": measure(apart, device, size),
        "in the learner's process": measure(TorchEngine(rows, slots, placement=Placement(device, dtype)), device, size),
    }
    said = "; ".join(f"torch engine {where}: {one}" for where, one in found.items())
    if on_gpu and max(one.worth for one in found.values()) < WORTH:
        raise ProbeFailedError(f"the gain is below {WORTH} times: {said}")
    return said if on_gpu else f"a CPU cannot show the gain; {said}"


def measure(engine: Engine, device: torch.device, size: OverlapSize, begin: Callable[[], object] = int) -> Overlap:
    """Measures sampling and learning one after the other and concurrently, in alternation, and closes the engine.
    `begin` initialises the learner's thread."""
    recipe = TrainingRecipe.model_validate({**PLAIN, "precision": "bfloat16"})
    trainer = make_trainer(device, size.model, recipe)
    model: Any = trainer.model
    judged = drawn_batch(size.model)
    learner = ThreadPoolExecutor(1, "learner", initializer=begin)

    def learn() -> None:
        learn_step(trainer, judged)
        wait_for(device)

    def at_once(number: int) -> None:
        learned = learner.submit(learn)
        _roll(engine, size, number)
        learned.result()

    seconds: dict[str, list[float]] = {name: [] for name in ("push", "sampling", "learning", "together")}
    try:
        push_model(engine, model, "first")
        learner.submit(learn).result()
        _roll(engine, size, 0)
        for number in range(1, size.rounds + 1):
            seconds["push"].append(_seconds(partial(push_model, engine, model, f"round {number}")))
            seconds["sampling"].append(_seconds(partial(_roll, engine, size, number)))
            seconds["learning"].append(_seconds(lambda: learner.submit(learn).result()))
            seconds["together"].append(_seconds(partial(at_once, number)))
    finally:
        learner.shutdown()
        engine.close()
    alone = zip(seconds["sampling"], seconds["learning"], seconds["together"], strict=True)
    worth = [(one + other) / both for one, other, both in alone]
    middle = {name: statistics.median(found) for name, found in seconds.items()}
    return Overlap(**middle, worth=statistics.median(worth), spread=(min(worth), max(worth)))


def _roll(engine: Engine, size: OverlapSize, number: int) -> None:
    """Samples all rollouts of a round to their last token."""
    random, model = Random(f"overlap {number}"), size.model
    for row in range(model.rollouts):
        prompt = tuple(random.randrange(1, model.vocabulary) for _ in range(model.tokens - size.drawn))
        engine.submit(GenerationRequest(number * model.rollouts + row, prompt, -1, model.tokens, 1.0, row))
    while engine.unfinished:
        engine.step()


def _seconds(work: Callable[[], object]) -> float:
    started = time.monotonic()
    work()
    return time.monotonic() - started


def _start(settings: dict[str, Any]) -> VllmProcess:
    """Starts a torch engine in a process of its own."""
    return VllmProcess(torch_environment(), settings, threads=None, patience=Patience(), module=TORCH)
