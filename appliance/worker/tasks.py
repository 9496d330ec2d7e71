"""What a worker is started for: one cycle, or all queued jobs."""

from __future__ import annotations

import time
from pathlib import Path

import torch

from appliance.agent.dialect import Codec
from appliance.config import Settings
from appliance.daemon.readiness import require_isolation
from appliance.jobs.solve import Solver, attempts
from appliance.jobs.versions import versions
from appliance.learning.checkpoints import verify
from appliance.learning.recipe import Recipe
from appliance.ledger.ledger import Ledger
from appliance.places import cluster_settings, load_policy, runtime_settings
from appliance.promotion import CHAMPION
from appliance.records import JobState
from appliance.worker.equipment import Equipment
from appliance.worker.night import Night
from appliance.worker.progress import Progress, utc_now
from appliance.worker.seeds import derive
from policies.policy import Policy


def run_cycle(name: str, data: Path, settings: Settings, ledger: Ledger) -> None:
    """Runs one cycle to its end. Raises LookupError when there is no such cycle."""
    _use_threads(settings)
    cycle = ledger.cycle(name)
    if cycle is None:
        raise LookupError(f"there is no cycle {name}")
    recipe = Recipe.model_validate(cycle.plan["recipe"])
    progress = Progress(cycle, ledger, time.monotonic)
    with _equipment(data, settings, ledger, recipe, load_policy(data)) as equipment:
        Night(cycle, equipment, progress, settings.model.path).run()


def run_jobs(data: Path, settings: Settings, ledger: Ledger) -> None:
    """Works on queued jobs until none is left; each by the champion of its moment."""
    _use_threads(settings)
    recipe = settings.recipe
    policy = load_policy(data)
    with _equipment(data, settings, ledger, recipe, policy) as equipment:
        while (job := ledger.next_job()) is not None:
            champion = ledger.alias(CHAMPION)
            known = ledger.checkpoint(champion) if champion else None
            if known is None:
                return
            folder = data / known.folder
            if equipment.engine.weights != known.manifest:
                # Loaded by digest: what was approved is what answers.
                verify(folder)
                equipment.engine.load(folder, known.manifest)
            ledger.put_job(job.model_copy(update={"state": JobState.RUNNING, "updated": utc_now()}))
            codec = Codec.load(folder)
            solver = Solver(
                equipment.agent(codec),
                codec,
                equipment.checker,
                ledger,
                data,
                versions(known, policy.digest, require_isolation(settings)),
                utc_now,
            )
            solver.solve(job, attempts(job, temperature=recipe.training.temperature, derive=derive, policy=policy))


def _equipment(data: Path, settings: Settings, ledger: Ledger, recipe: Recipe, policy: Policy) -> Equipment:
    runtime, cluster = runtime_settings(settings, data), cluster_settings(settings, data)
    return Equipment(data, ledger, runtime, recipe.agent, policy, cluster=cluster)


def _use_threads(settings: Settings) -> None:
    """Sampling and training give the same bits only under the same number of threads."""
    if settings.threads is not None:
        torch.set_num_threads(settings.threads)
