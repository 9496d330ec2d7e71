"""Compares two learners with one, and measures their communication (row G9 of the self-test).

Invariants: all take the same steps from the same weights, through the rank processes of real training. Direct memory
access between GPUs (NCCL_P2P_DISABLE) affects only the time of a step.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from appliance.gpu_selftest.errors import ProbeFailedError, ProbeNotRunError
from appliance.gpu_selftest.probe_models import PLAIN, ProbeSize, drawn_batch, random_model
from appliance.inference.folder import open_model
from appliance.learning.rank_processes import RankProcesses
from appliance.learning.recipes.recipe import TrainingRecipe
from appliance.learning.signal.grouping import make_groups
from appliance.learning.training.ranked_trainer import RankedTrainer
from appliance.learning.training.trainer import Trainer

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
