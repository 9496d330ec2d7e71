"""What a worker is started for: one cycle, or all queued jobs."""

from __future__ import annotations

import time
from pathlib import Path

from appliance.config import Settings
from appliance.learning.recipe import Recipe
from appliance.ledger.ledger import Ledger
from appliance.places import cluster_settings, load_policy, runtime_settings
from appliance.worker.equipment import Equipment
from appliance.worker.progress import Progress
from appliance.worker.work_on_jobs import work_on_jobs
from policies.policy import Policy


def run_cycle(name: str, data: Path, settings: Settings, ledger: Ledger) -> None:
    """Runs one cycle to its end. Raises LookupError when there is no such cycle."""
    from appliance.worker.night import Night

    cycle = ledger.cycle(name)
    if cycle is None:
        raise LookupError(f"there is no cycle {name}")
    recipe = Recipe.model_validate(cycle.plan["recipe"])
    progress = Progress(cycle, ledger, time.monotonic)
    with _equipment(data, settings, ledger, recipe, load_policy(data)) as equipment:
        Night(cycle, equipment, progress, settings.model.path).run()


def run_jobs(data: Path, settings: Settings, ledger: Ledger) -> None:
    """Works on queued jobs until none is left that can be worked on."""
    with _equipment(data, settings, ledger, settings.recipe, load_policy(data)) as equipment:
        work_on_jobs(equipment, settings)


def _equipment(data: Path, settings: Settings, ledger: Ledger, recipe: Recipe, policy: Policy) -> Equipment:
    runtime, cluster = runtime_settings(settings, data), cluster_settings(settings, data)
    return Equipment(data, ledger, runtime, recipe.agent, policy, cluster=cluster, threads=settings.threads)
