"""Entry points of a worker: one phase of a cycle, or all queued jobs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from appliance.config.configuration import Settings
from appliance.config.places import cluster_settings, runtime_settings
from appliance.inference.vllm.placement import find_environment
from appliance.learning.recipes.recipe import Recipe
from appliance.learning.recipes.stages import Stage
from appliance.ledger.ledger import Ledger
from appliance.planning.engine_share import engine_share, ways_of
from appliance.planning.hardware import find_machine
from appliance.planning.model_shape import EMBEDDED
from appliance.promotion.evidence import CHAMPION
from appliance.readiness.model import UnusableModelError, shape_in
from appliance.records.cycles import Cycle, Event
from appliance.records.jobs import JobPart
from appliance.system.clock import utc_now
from appliance.worker.setup.context import WorkContext
from appliance.worker.setup.progress import CycleProgress
from appliance.worker.work_on_jobs import work_on_jobs
from policies.policy import Policy

if TYPE_CHECKING:
    from tensorboardX.event_file_writer import EventsWriter


def run_cycle(
    phase: Literal["prepare", "train", "evaluate"],
    name: str,
    data: Path,
    settings: Settings,
    ledger: Ledger,
    policy: Policy,
) -> None:
    """Prepares, trains or evaluates a cycle, in this process. Raises LookupError for an unknown cycle."""
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
        reports = {"say": progress.say, "still": progress.still}
        context = held.enter_context(_context(data, settings, ledger, recipe, policy, **reports))
        run = CycleRun(cycle, context, progress, settings.model.path)
        {"prepare": run.prepare, "train": run.train, "evaluate": run.evaluate}[phase]()


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


class TensorBoard:
    def __init__(self, folder: Path, problem: Callable[[str], None]) -> None:
        """Prepares to write curves to a TensorBoard folder. `problem` is called once, with the reason that nothing can
        be written."""
        self._folder = folder
        self._problem: Callable[[str], None] | None = problem
        self._writers: dict[str, EventsWriter] = {}

    def add(self, kind: str, figures: Mapping[str, float]) -> None:
        """Adds an event's figures to the TensorBoard curves at their `step`; ignores events without one."""
        drawn = {f"{kind}/{name}": value for name, value in figures.items() if name not in ("step", "steps")}
        if "step" not in figures or not drawn or self._problem is None:
            return
        from tensorboardX.proto.event_pb2 import Event  # here: it loads torch
        from tensorboardX.summary import scalar

        step = int(figures["step"])
        try:
            writer = self._opened(kind, step)
            for name, value in drawn.items():
                writer.write_event(Event(wall_time=time.time(), step=step, summary=scalar(name, value)))
            writer.flush()
        except OSError as error:
            self._say(error)

    def close(self) -> None:
        for writer in self._writers.values():
            try:
                writer.close()
            except OSError as error:
                self._say(error)
        self._writers.clear()

    def _say(self, error: OSError) -> None:
        problem, self._problem = self._problem, None
        if problem is not None:
            problem(f"writing for TensorBoard stopped: {error}")

    def _opened(self, kind: str, step: int) -> EventsWriter:
        if kind not in self._writers:
            from tensorboardX.event_file_writer import EventsWriter
            from tensorboardX.proto.event_pb2 import Event, SessionLog

            folder = self._folder / kind
            folder.mkdir(parents=True, exist_ok=True)
            writer = self._writers[kind] = EventsWriter(str(folder / "events"))
            begun = SessionLog(status=SessionLog.START)  # replaces the folder's steps from here on
            writer.write_event(Event(wall_time=time.time(), step=step, session_log=begun))
        return self._writers[kind]
