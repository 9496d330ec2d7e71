"""Owns a worker's engine, session pool, checker and policy, and closes them together."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from appliance.agent.budget import AgentBudget
from appliance.agent.loop import Agent
from appliance.inference.engine import Engine, ModelError, ModelFiles
from appliance.inference.engines import make_engines
from appliance.inference.gpu_numbers import VISIBLE
from appliance.inference.vllm.placement import VllmSettings
from appliance.learning.folders import read_verified
from appliance.learning.learner_devices import CPU, learner_devices, sampled_on, usable_gpus
from appliance.learning.rank_processes import RankGroup, RankProcesses
from appliance.ledger.ledger import Ledger
from appliance.placement.settings import PlacementSettings
from appliance.planning.hardware import find_machine
from appliance.records.cycles import Checkpoint, Event
from appliance.records.rollouts import Purpose, RolloutEnd
from appliance.records.training import RolloutFilter
from appliance.rendering.formats import load_renderer
from appliance.rendering.renderer import Renderer
from appliance.system.clock import utc_now
from common.errors import HintedError
from policies.permissions import backend_for
from policies.policy import Policy
from runtime.cluster import ClusterSessions
from runtime.errors import InfrastructureError
from runtime.profile import BackendName
from runtime.sandbox import SessionPool
from runtime.sessions import Sessions
from runtime.settings import ClusterSettings, RuntimeSettings
from verifiers.checker import Checker

if TYPE_CHECKING:
    from appliance.scheduling.engine_pool import EnginePool

NEWEST, PAGE = 128, 16
"""Maximum rollouts read, and rollouts per page: each may have a number or two for tens of thousands of tokens."""


def known_lengths(ledger: Ledger) -> list[int]:
    """Returns tokens per conversation of the newest recorded training rollouts, newest first. A conversation rewritten
    midway counts as two."""
    found: list[int] = []
    last: str | None = None
    for _ in range(NEWEST // PAGE):
        page = ledger.rollouts(RolloutFilter(purpose=Purpose.TRAIN, before=last), limit=PAGE)
        whole = (one.rollout for one in page if one.rollout.ended is not RolloutEnd.INFRA_ERROR)
        found += [sum(len(node.ids) for node in sample) for rollout in whole for sample in rollout.samples]
        if len(page) < PAGE:
            break
        last = page[-1].rollout.id
    return [tokens for tokens in found if tokens]


def sessions(
    runtime: RuntimeSettings, cluster: ClusterSettings | None, say: Callable[[str], object] = lambda text: None
) -> SessionPool:
    """Opens a pool of sandbox sessions on this machine, or over its cluster with equal limits and isolation. Reports
    joined and lost hosts to `say`, best effort."""
    if cluster is None:
        return Sessions(runtime)

    def said(text: str) -> None:
        with suppress(HintedError):  # the pool works without its events
            say(text)

    packages = runtime.own.packages
    return ClusterSessions(cluster, runtime.limits, backend=runtime.backend, packages=packages, said=said)


class WorkContext:
    """Context manager for a worker's resources, started lazily: pool, checker, engine.

    The checker runs programs in sessions of the pool, and runs our own tools in the backend the policy names. `threads`
    is the engine's thread count: sampling and training are bit-equal only at an equal count. `say` receives an event
    kind and text about work on other hosts, `still` frequent texts about the progress of long work.
    """

    def __init__(
        self,
        data: Path,
        ledger: Ledger,
        runtime: RuntimeSettings,
        budget: AgentBudget,
        policy: Policy,
        clock: Callable[[], float] = time.monotonic,
        *,
        cluster: ClusterSettings | None = None,
        engine: str = "torch",
        engines: int = 1,
        learners: int = 1,
        vllm: VllmSettings | None = None,
        placement: PlacementSettings = PlacementSettings(),  # noqa: B008 - frozen
        threads: int | None = None,
        device: str = "auto",
        dtype: str = "auto",
        say: Callable[[str, str], object] = lambda kind, text: None,
        still: Callable[[str], object] = lambda text: None,
    ) -> None:
        self.data = data
        self.ledger = ledger
        self.budget = budget
        self.policy = policy
        self.clock = clock
        self._engine_name, self._engine_count = engine, engines
        self._learners = learners
        self._vllm, self._placement, self._cluster = vllm, placement, cluster
        self._threads = threads
        self._device = device
        self._dtype = dtype
        self._say, self._still = say, still
        self._loaded: tuple[str, Renderer] | None = None
        self.sessions: SessionPool = sessions(runtime, cluster, partial(say, "placed"))
        self.checker = Checker(
            runtime,
            sessions=self.sessions,
            tools_backend=BackendName(backend_for(policy, "tools")),
            require_kernel_floor=policy.verifiers.require_kernel_floor,
        )
        self.checker.on_checked = lambda done, count: still(f"{done} of {count} answers checked in sandboxes")
        self.checker.on_alarm = lambda text: ledger.put_event(Event(kind="warning", text=text, created=utc_now()))

    @cached_property
    def engine(self) -> EnginePool:
        from appliance.scheduling.engine_pool import EnginePool

        made = self._made(self._engine_count)
        return EnginePool(made, self.budget.max_tokens, self.clock, lengths=lambda: known_lengths(self.ledger))

    def another_engine(self) -> Engine:
        """Creates a sampling engine like those in use; the caller closes it."""
        return self._made(1)[0]

    def _made(self, count: int) -> list[Engine]:
        wanted: dict[str, Any] = {
            "rows": self.budget.concurrent,
            "slots": self.budget.max_tokens,
            "threads": self._threads,
            "device": self._device,
            "dtype": self._dtype,
            "vllm": self._vllm,
        }
        if self._placement.engines == "cluster":
            from appliance.placement.engines import make_placed_engines

            return make_placed_engines(
                self._engine_name,
                count,
                cluster=self._cluster,
                placement=self._placement,
                said=partial(self._say, "placed"),
                **wanted,
            )
        return make_engines(self._engine_name, count, **wanted)

    @cached_property
    def ranks(self) -> RankGroup | None:
        """Training processes, or None when this process trains: several ranks, or one on a GPU so that a crash stays
        isolated. Raises ModelError, and InfrastructureError also for missing GPUs, since one may have failed."""
        if self._placement.learners == "cluster":
            from appliance.placement.engines import PlacedLearners

            learners = PlacedLearners(
                self._learners,
                cluster=self._cluster,
                placement=self._placement,
                threads=self._threads,
                engines=self._engine_count if self._placement.engines == "cluster" else 0,
            )
            self._say("placed", f"the learners train on {learners.host}")
            return learners
        try:
            devices = learner_devices(self._device, self._learners, usable_gpus(self._device), self._sampled_on())
        except ModelError as error:
            raise InfrastructureError(str(error), hint=error.hint) from error
        if self._device == "auto" and CPU in devices and (there := find_machine().gpus):
            learned = f"torch cannot use {there[0].name}, which nvidia-smi lists: training runs on the CPU"
            self._say(
                "warning", f"{learned}; run `assay doctor` for the reason, or set model.device = cuda to forbid this"
            )
        if devices == (CPU,):
            return None
        return RankProcesses(devices, threads=self._threads)

    def make_room(self) -> None:
        """Puts existing sampling engines to sleep so that they free GPU memory for a learner."""
        if "engine" in vars(self):
            self.engine.sleep()

    def _sampled_on(self) -> tuple[int, ...]:
        vllm, here = self._vllm or VllmSettings(), self._placement.engines == "here"
        placed = self._engine_count * self._placement.engine_gpus
        return sampled_on(self._engine_name, vllm, os.environ.get(VISIBLE), here=here, placed=placed)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        if "engine" in vars(self):
            self.engine.close()
        if "ranks" in vars(self) and self.ranks is not None:
            self.ranks.close()
        self.checker.close()
        self.sessions.close()

    def agent_of(self, model: Checkpoint) -> Agent:
        """Loads that model into the engine and returns an agent that runs rollouts with it. Raises LearningError or
        ModelError if the folder differs from its record."""
        return self.agent(self.load(model))

    def load(self, model: Checkpoint) -> Renderer:
        """Loads a model's weights into the engine unless present, and returns the renderer of its chat format. Files
        are hashed and used in one read, so the answering weights are the recorded ones."""
        if self._loaded is None or (self._loaded[0], self.engine.version) != (model.manifest, model.manifest):
            files = read_verified(self.data / model.folder, expect=model.manifest)
            self.engine.push(files, model.manifest)
            self._loaded = model.manifest, load_renderer(files)
        return self._loaded[1]

    def agent(self, renderer: Renderer, budget: AgentBudget | None = None) -> Agent:
        """Returns an agent that runs rollouts with the engine's current weights, within the context's budget or the
        given one."""
        made = Agent(self.engine, self.sessions, renderer, budget or self.budget, self.clock)
        made.on_poll = lambda ended, asked: self._still(f"{ended} of {asked} attempts ended") if asked else None
        return made


def try_out(engine: Engine, files: ModelFiles) -> None:
    """Loads a model into an engine and scores one question. Raises ModelError or RenderingError; machine failures
    propagate unchanged."""
    renderer = load_renderer(files)
    try:
        engine.push(files, "the model")
        scores = engine.score([renderer.question("1 + 1?")])
    except (ModelError, InfrastructureError, MemoryError):
        raise
    except Exception as error:  # any error of model code given unexpected weights
        from appliance.inference.device import is_gpus

        if is_gpus(error):
            raise
        raise ModelError(
            f"it cannot read a question: {error}", hint="copy tokenizer.json and the weights from one model"
        ) from error
    if not all(map(math.isfinite, scores[0])):
        raise ModelError("its weights give no finite probabilities", hint="copy the folder again, or take another")
