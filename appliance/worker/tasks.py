"""Runs what a worker is started for: one phase of a cycle, or all queued jobs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from appliance.clock import utc_now
from appliance.config import Settings
from appliance.engine_share import engine_share, ways_of
from appliance.hardware import find_machine
from appliance.inference.vllm.environment import find_environment
from appliance.learning.recipe import Recipe
from appliance.learning.stages import Stage
from appliance.ledger.ledger import Ledger
from appliance.model_readiness import UnusableModelError, shape_in
from appliance.model_shape import EMBEDDED
from appliance.places import cluster_settings, runtime_settings
from appliance.promotion import CHAMPION
from appliance.records.cycles import Cycle
from appliance.records.events import Event
from appliance.records.jobs import JobPart
from appliance.worker.context import WorkContext
from appliance.worker.progress import CycleProgress
from appliance.worker.work_on_jobs import work_on_jobs
from policies.policy import Policy

if TYPE_CHECKING:
    from tensorboardX.event_file_writer import EventsWriter


class TensorBoard:
    def __init__(self, folder: Path, problem: Callable[[str], None]) -> None:
        """`problem` is told, once, why nothing can be written."""
        self._folder = folder
        self._problem: Callable[[str], None] | None = problem
        self._writers: dict[str, EventsWriter] = {}

    def add(self, kind: str, figures: Mapping[str, float]) -> None:
        """Adds the figures of an event at their `step`; an event without one has no place on a curve."""
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
            problem(f"nothing is written for TensorBoard any more: {error}")

    def _opened(self, kind: str, step: int) -> EventsWriter:
        if kind not in self._writers:
            from tensorboardX.event_file_writer import EventsWriter
            from tensorboardX.proto.event_pb2 import Event, SessionLog

            folder = self._folder / kind
            folder.mkdir(parents=True, exist_ok=True)
            writer = self._writers[kind] = EventsWriter(str(folder / "events"))
            begun = SessionLog(status=SessionLog.START)  # from this step on it replaces what the folder has
            writer.write_event(Event(wall_time=time.time(), step=step, session_log=begun))
        return self._writers[kind]


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
        if phase == "train":
            settings = beside_learner(settings, data, ledger, cycle)
        progress = CycleProgress(cycle, ledger, time.monotonic, curves=curves)
        context = held.enter_context(_context(data, settings, ledger, recipe, policy, say=progress.say))
        run = CycleRun(cycle, context, progress, settings.model.path)
        run.train() if phase == "train" else run.evaluate()


def beside_learner(settings: Settings, data: Path, ledger: Ledger, cycle: Cycle) -> Settings:
    """The same settings, in which vLLM has the share of a GPU that is left beside this cycle's learner, where it needs
    one and nobody has set it. Raises ModelError where that is too little."""
    environment = find_environment() if settings.model.engine == "vllm" else None
    if environment is None or environment.package != "vllm":
        return settings
    planned = cycle.plan.get("start") or ledger.alias(CHAMPION)
    known = ledger.checkpoint(planned) if planned else None
    folder = data / known.folder if known is not None else settings.model.path
    try:
        shape = EMBEDDED if folder is None else shape_in(folder)
    except UnusableModelError:
        return settings  # whoever reads it says what is wrong with it
    stages = tuple(map(Stage.model_validate, cycle.plan.get("stages", ())))
    share = engine_share(settings, shape, find_machine(), ways_of(Recipe.recorded(cycle.plan["recipe"]), stages))
    if share is None:
        return settings
    return settings.model_copy(update={"vllm": settings.vllm.model_copy(update={"memory_share": share})})


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
