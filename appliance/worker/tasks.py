"""Entry points of a worker: one phase of a cycle, or all queued jobs."""

from __future__ import annotations

import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Literal

from appliance.config.configuration import Settings
from appliance.config.places import cluster_settings, runtime_settings
from appliance.inference.vllm.environment import find_environment
from appliance.learning.recipes.recipe import Recipe
from appliance.learning.recipes.stages import Stage
from appliance.ledger.ledger import Ledger
from appliance.planning.engine_share import engine_share, ways_of
from appliance.planning.hardware import find_machine
from appliance.planning.model_shape import EMBEDDED
from appliance.promotion.evidence import CHAMPION
from appliance.readiness.model import UnusableModelError, shape_in
from appliance.records.cycles import Cycle
from appliance.records.events import Event
from appliance.records.jobs import JobPart
from appliance.system.clock import utc_now
from appliance.worker.setup.context import WorkContext
from appliance.worker.setup.progress import CycleProgress
from appliance.worker.tensorboard import TensorBoard
from appliance.worker.work_on_jobs import work_on_jobs
from policies.policy import Policy


def run_cycle(
    phase: Literal["train", "evaluate"], name: str, data: Path, settings: Settings, ledger: Ledger, policy: Policy
) -> None:
    """Trains or evaluates a cycle, in this process. Raises LookupError for an unknown cycle."""
    from appliance.worker.cycle import CycleRun

    cycle = ledger.cycle(name)
    if cycle is None:
        raise LookupError(f"unknown cycle {name}")
    recipe = Recipe.model_validate(cycle.plan["recipe"])
    with ExitStack() as held:
        curves = None
        if settings.telemetry.tensorboard is not None:
            board = TensorBoard(settings.telemetry.tensorboard / name, partial(_warn, ledger))
            held.callback(board.close)
            curves = board.add
        if phase == "train":
            settings = beside_learner(settings, data, ledger, cycle)
        progress = CycleProgress(cycle, ledger, time.monotonic, curves=curves)
        context = held.enter_context(_context(data, settings, ledger, recipe, policy, say=progress.say))
        run = CycleRun(cycle, context, progress, settings.model.path)
        run.train() if phase == "train" else run.evaluate()


def beside_learner(settings: Settings, data: Path, ledger: Ledger, cycle: Cycle) -> Settings:
    """Returns settings in which vLLM gets the GPU memory share left beside this cycle's learner, unless set or
    unneeded. Raises ModelError if that is too little."""
    environment = find_environment() if settings.model.engine == "vllm" else None
    if environment is None or environment.package != "vllm":
        return settings
    planned = cycle.plan.get("start") or ledger.alias(CHAMPION)
    known = ledger.checkpoint(planned) if planned else None
    folder = data / known.folder if known is not None else settings.model.path
    try:
        shape = EMBEDDED if folder is None else shape_in(folder)
    except UnusableModelError:
        return settings  # reading the model reports the problem
    stages = tuple(map(Stage.model_validate, cycle.plan.get("stages", ())))
    share = engine_share(settings, shape, find_machine(), ways_of(Recipe.model_validate(cycle.plan["recipe"]), stages))
    if share is None:
        return settings
    return settings.model_copy(update={"vllm": settings.vllm.model_copy(update={"memory_share": share})})


def _warn(ledger: Ledger, text: str) -> None:
    ledger.put_event(Event(kind="warning", text=text, created=utc_now()))


def run_jobs(part: JobPart, data: Path, settings: Settings, ledger: Ledger, policy: Policy) -> None:
    """Runs queued jobs until none is runnable; a worker for one part also waits for new jobs."""
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
