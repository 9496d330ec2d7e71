"""Runs what a worker is started for: one phase of a cycle, or all queued jobs."""

from __future__ import annotations

import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Literal

from appliance.clock import utc_now
from appliance.config import Settings
from appliance.learning.recipe import Recipe
from appliance.ledger.ledger import Ledger
from appliance.places import cluster_settings, runtime_settings
from appliance.records.events import Event
from appliance.records.jobs import JobPart
from appliance.worker.context import WorkContext
from appliance.worker.progress import CycleProgress
from appliance.worker.tensorboard import TensorBoard
from appliance.worker.work_on_jobs import work_on_jobs
from policies.policy import Policy


def run_cycle(
    phase: Literal["train", "evaluate"], name: str, data: Path, settings: Settings, ledger: Ledger, policy: Policy
) -> None:
    """Runs one phase of a cycle to its end. Raises LookupError when there is no such cycle."""
    from appliance.worker.cycle import CycleRun

    cycle = ledger.cycle(name)
    if cycle is None:
        raise LookupError(f"there is no cycle {name}")
    recipe = Recipe.recorded(cycle.plan["recipe"])
    with ExitStack() as held:
        curves = None
        if settings.telemetry.tensorboard is not None:
            board = TensorBoard(settings.telemetry.tensorboard / name, partial(_warn, ledger))
            held.callback(board.close)
            curves = board.add
        progress = CycleProgress(cycle, ledger, time.monotonic, curves=curves)
        context = held.enter_context(_context(data, settings, ledger, recipe, policy, say=progress.say))
        run = CycleRun(cycle, context, progress, settings.model.path)
        run.train() if phase == "train" else run.evaluate()


def _warn(ledger: Ledger, text: str) -> None:
    ledger.put_event(Event(kind="warning", text=text, created=utc_now()))


def run_jobs(part: JobPart, data: Path, settings: Settings, ledger: Ledger, policy: Policy) -> None:
    """Works on queued jobs until none is left that can be worked on; on one part of them also on those to come."""
    with _context(data, settings, ledger, settings.recipe, policy) as context:
        work_on_jobs(context, settings, part)


def _context(
    data: Path, settings: Settings, ledger: Ledger, recipe: Recipe, policy: Policy, **more: Any
) -> WorkContext:
    if idle := settings.vllm.without_effect(settings.model.engine):
        _warn(ledger, idle)
    if idle := settings.placement.without_effect:
        _warn(ledger, idle)
    runtime, cluster = runtime_settings(settings, data, policy), cluster_settings(settings, data)
    return WorkContext(
        data,
        ledger,
        runtime,
        recipe.agent,
        policy,
        cluster=cluster,
        engine=settings.model.engine,
        engines=settings.model.engines,
        learners=settings.model.learners,
        vllm=settings.vllm,
        placement=settings.placement,
        threads=settings.threads,
        device=settings.model.device,
        dtype=settings.model.dtype,
        **more,
    )
