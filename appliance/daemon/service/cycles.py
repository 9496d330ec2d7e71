"""Cycles, begun by people or the schedule and run by workers. Invariants: at most one is unfinished."""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from appliance.client.messages import CycleDetail, StartTraining, StoredFile
from appliance.config.configuration import Settings
from appliance.daemon.contract import BrokenError, EventLog, RefusedByPolicyError, RequestError
from appliance.daemon.service.decision import decide_cycle, has_answers, next_phase
from appliance.daemon.service.readiness import Readiness
from appliance.daemon.service.supervisor import WorkerSupervisor, work_of_cycle
from appliance.daemon.views import ledger_views as views
from appliance.daemon.views.cycle_views import CandidateNeed, candidate_wait
from appliance.daemon.views.ledger_views import cycle_named
from appliance.learning.recipes.stages import Stage, refusal
from appliance.ledger.audited import AuditedLedger
from appliance.ledger.ledger import LedgerError
from appliance.promotion.evidence import CANDIDATE, CHAMPION
from appliance.readiness.sandbox import named_in
from appliance.records.cycles import Cycle, CycleState
from appliance.settings.config_layers import ConfigError
from appliance.system.durable_file import sync_folder, write_new
from common.bounded_models import first_fault
from policies.policy import Policy

CycleKind = Literal["demo", "night", "evaluation", "training"]
TRACES = "traces"
"""Folder of conversations by SHA-256, in the data folder."""


@dataclass
class Cycles:
    """Starts, runs and ends cycles; thread-safe, but `run` blocks. `ended` is called after each run."""

    ledger: AuditedLedger
    settings: Settings
    readiness: Readiness
    supervisor: WorkerSupervisor
    events: EventLog
    now: Callable[[], str]
    policy: Callable[[], Policy]
    ended: Callable[[], object]
    certified: Callable[[], Mapping[str, str]] = dict
    """Returns the tasksets certified here, by version and digest; built-in ones bring their own."""

    def __post_init__(self) -> None:
        self._starting = threading.Lock()

    def unfinished(self) -> Cycle | None:
        return views.unfinished_cycle(self.ledger)

    def detail(self, name: str) -> CycleDetail:
        """Returns a cycle with its steps, models, evaluations and decisions. Raises NotThereError,
        AmbiguousPrefixError."""
        return views.cycle_detail(self.ledger, cycle_named(self.ledger, name))

    def start(
        self,
        kind: Literal["demo", "night"],
        seed: int | None = None,
        plan: Mapping[str, Any] | None = None,
        *,
        scheduled: bool = False,
        anew: bool = True,
        name: str = "",
    ) -> Cycle:
        """Records a new cycle, to be run later, or returns the unfinished one. Seed None takes the next.

        `plan` has the settings of the model, by default those in force. Raises what `Readiness.require` raises; a
        `scheduled` cycle instead waits for a usable configuration. Without `anew`, raises RefusedByPolicyError if a
        candidate waits only for a person: a new one would replace it unseen. `name`, from `new_cycle_id`, is the id of
        a new one.
        """
        with self._starting:
            unfinished = self.unfinished()
            if unfinished is not None:
                self.readiness.require_configured(unfinished)
                return unfinished
            if not anew:
                self._require_nobody_waits()
            try:
                self.readiness.require(tasksets=None if plan is None else named_in(plan))
            except ConfigError as error:
                if not scheduled:
                    raise
                self.events.add("schedule", f"a cycle is due and waits: {error}; {error.hint}")
            return self._begin(kind, seed, plan, name)

    def _require_nobody_waits(self) -> None:
        candidate, waits = self.ledger.alias(CANDIDATE), candidate_wait(self.ledger, self.policy(), None, self.now())
        if candidate is not None and waits.need is CandidateNeed.PERSON:
            raise RefusedByPolicyError(
                f"{candidate[:12]} {waits.text}; a night now trains another one, which takes its place as candidate",
                hint="`assay model approve candidate` or `assay model reject candidate` first; `assay cycle start "
                f"--anew` trains another one anyway, and `assay model approve {candidate[:12]}` still names this one",
            )

    def train(self, wanted: StartTraining) -> Cycle:
        """Records a cycle that trains in the requested stages, to be run later.

        Raises RequestError for invalid stages, RefusedByPolicyError while a cycle is unfinished, and what
        `Readiness.require` raises.
        """
        stages = self._stages(wanted)
        with self._starting:
            if (unfinished := self.unfinished()) is not None:
                raise RefusedByPolicyError(
                    f"{unfinished.id} is not finished",
                    hint="wait (`assay cycle watch`) or cancel it first; --resume resumes a training",
                )
            self.readiness.require(tasksets=[name for stage in stages for name in stage.recipe.tasksets])
            self.readiness.require_tokens(stages[-1].recipe.agent.max_tokens)
            plan = {
                "recipe": stages[-1].recipe.model_dump(mode="json"),
                "stages": [stage.model_dump(mode="json") for stage in stages],
                "named": {"name": wanted.name, "digest": wanted.digest},
            }
            return self._begin("training", wanted.seed, plan)

    def put_traces(self, content: bytes) -> StoredFile:
        """Stores a file of conversations that a training stage will name, by its digest. Raises BrokenError."""
        digest = hashlib.sha256(content).hexdigest()
        path = self.settings.data / TRACES / digest
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not path.exists() or path.read_bytes() != content:
                beside = path.with_name(f".{digest}.{secrets.token_hex(4)}")
                write_new(beside, content)
                beside.replace(path)
                sync_folder(path.parent)
        except OSError as error:
            raise BrokenError(
                f"the conversations cannot be stored: {error.strerror}", hint="free some space on the disk"
            ) from error
        return StoredFile(sha256=digest, bytes=len(content))

    def _stages(self, wanted: StartTraining) -> tuple[Stage, ...]:
        """Validates requested training stages and resolves their teacher models to digests. Raises RequestError."""
        try:
            stages = tuple(Stage.model_validate(one) for one in wanted.stages)
        except ValidationError as error:
            raise RequestError(f"a stage's {first_fault(error)}", hint="`assay train --dry-run` checks it") from error
        if why := refusal(stages):
            raise RequestError(why, hint="`assay train --dry-run` checks a recipe")
        for stage in stages:
            if stage.file and not (self.settings.data / TRACES / stage.file).is_file():
                raise RequestError(f"the conversations of {stage.name} were not sent", hint="`assay train` sends them")
        return tuple(self._with_teacher(stage) for stage in stages)

    def _with_teacher(self, stage: Stage) -> Stage:
        if stage.kind != "distil":
            return stage
        named = self.ledger.alias(stage.scored_by) or stage.scored_by
        known = self.ledger.checkpoint(named) if len(named) >= 6 else None
        if known is None:
            raise RequestError(
                f"stage {stage.name}: no such model: {stage.scored_by}",
                hint="`assay model ls` lists models; give at least six digits, or an alias",
            )
        own, scored = (_tokenizer(folder) for folder in (self._begins_from(), self.settings.data / known.folder))
        if own is not None and scored is not None and own != scored:
            raise RequestError(
                f"stage {stage.name}: {known.manifest[:12]} has a different tokenizer than the trained model",
                hint="choose a teacher of the same family: probabilities are comparable only for equal tokens",
            )
        return stage.model_copy(update={"scored_by": known.manifest})

    def _begins_from(self) -> Path | None:
        """Returns the folder of the model that a training starts from: the one in service, else the configured one;
        None if a training makes its own first."""
        served = self.ledger.alias(CHAMPION)
        champion = self.ledger.checkpoint(served) if served else None
        return self.settings.data / champion.folder if champion is not None else self.settings.model.path

    def evaluate(self, model: str) -> Cycle:
        """Records a cycle that compares the model with the champion on fresh sealed questions, without training.

        Raises RefusedByPolicyError if there is nothing to compare with or a cycle is unfinished, and what
        `Readiness.require` raises.
        """
        with self._starting:
            champion, unfinished = self.ledger.alias(CHAMPION), self.unfinished()
            if champion is None or champion == model:
                why = "no champion exists" if champion is None else f"{model[:12]} is the champion itself"
                raise RefusedByPolicyError(f"{why}: nothing to compare it with", hint="see `assay model ls`")
            if unfinished is not None:
                raise RefusedByPolicyError(
                    f"{unfinished.id} is not finished", hint="wait for it (`assay cycle watch`), or cancel it first"
                )
            self.readiness.require()
            compared = {"start": champion, "candidate": model, "again": model}
            cycle = self._begin("evaluation", None, self._plan() | compared)
            self.ledger.set_aliases({CANDIDATE: model}, f"evaluated anew by {cycle.id}", self.now())
        return cycle

    def _plan(self) -> dict[str, Any]:
        return {"recipe": self.settings.recipe.model_dump(mode="json")}

    def _certified(self) -> dict[str, Any]:
        return {"certified": dict(known)} if (known := self.certified()) else {}

    def _begin(self, kind: CycleKind, seed: int | None, plan: Mapping[str, Any] | None, name: str = "") -> Cycle:
        now = self.now()
        last_seed = max((cycle.seed for cycle in self.ledger.cycles(limit=10_000)), default=-1)
        cycle = Cycle(
            id=name or new_cycle_id(kind, now),
            kind=kind,
            seed=last_seed + 1 if seed is None else seed,
            plan={**(self._plan() if plan is None else plan), **self._certified()},
            phase="prepare",
            state=CycleState.RUNNING,
            created=now,
            updated=now,
        )
        self.ledger.put_cycle(cycle)
        self.events.add("cycle", f"{cycle.id} begins with seed {cycle.seed}")
        return cycle

    def cancel(self, name: str) -> Cycle:
        """Cancels a cycle and returns it; its trained models stay on record, without a pending decision.

        Raises NotThereError, AmbiguousPrefixError, RefusedByPolicyError for one that has ended or is evaluated, or
        whose candidate's sealed answers are on record: a look that could be undone would count only when it pleased.
        """
        cycle = cycle_named(self.ledger, name)
        if cycle.state is CycleState.CANCELLED:
            return cycle
        if cycle.state is CycleState.RUNNING and has_answers(cycle, self.ledger):
            raise RefusedByPolicyError(
                f"cycle {cycle.id} has the candidate's sealed answers on record: it must be decided",
                hint="wait for its decision (`assay cycle watch`), then `assay model reject candidate`",
            )
        if not cycle.state.ended and next_phase(cycle, self.ledger) != "decide":
            self.supervisor.cancel_cycle(cycle)
            cycle = cycle_named(self.ledger, cycle.id)
        if cycle.state is not CycleState.CANCELLED:
            state = cycle.state.value if cycle.state.ended else "evaluated"
            raise RefusedByPolicyError(
                f"cycle {cycle.id} is {state} already", hint=f"see `assay cycle show {cycle.id}`"
            )
        self.events.add("cycle", f"{cycle.id} was cancelled by a person")
        return cycle

    def resume(self, name: str) -> Cycle:
        """Resumes a parked cycle. Raises NotThereError, AmbiguousPrefixError, and RefusedByPolicyError for any other
        cycle or while another one is unfinished."""
        with self._starting:
            cycle, unfinished = cycle_named(self.ledger, name), self.unfinished()
            name = cycle.id
            if cycle.state is not CycleState.SET_ASIDE:
                raise RefusedByPolicyError(
                    f"cycle {name} is not parked: it is {cycle.state.value}", hint=f"see `assay cycle show {name}`"
                )
            if unfinished is not None:
                raise RefusedByPolicyError(
                    f"{unfinished.id} is not finished", hint="wait for it (`assay cycle watch`), or cancel it first"
                )
            self.ledger.leases.revive(work_of_cycle(name))
            resumed = {"state": CycleState.RUNNING, "failure": "", "updated": self.now()}
            self.ledger.put_cycle(cycle.model_copy(update=resumed))
        self.events.add("cycle", f"{name} resumes: a person retried it")
        return cycle_named(self.ledger, name)

    def run(self, name: str) -> Cycle:
        """Runs workers until the cycle is evaluated and decided, has failed, or waits; returns it. See
        `appliance.daemon.service.supervisor`."""
        self._renew(cycle_named(self.ledger, name))
        cycle = self.supervisor.run_cycle(name)
        if cycle.state is CycleState.RUNNING and next_phase(cycle, self.ledger) == "decide":
            decide_cycle(cycle, self.ledger, self.policy(), self.settings.data)
            cycle = cycle_named(self.ledger, name)
        self.ended()
        return cycle

    def misconfigured(self) -> str:
        """Returns the configuration fault that prevents cycles, with a hint; empty if none."""
        try:
            self.readiness.require_configured(self.unfinished())
        except ConfigError as error:
            return f"{error}; {error.hint}"
        except (BrokenError, LedgerError):
            pass  # reported elsewhere; not a configuration fault
        return ""

    def _renew(self, cycle: Cycle) -> None:
        """Gives an unbegun night's cycle the recipe in force, where the fault it waited for may be fixed."""
        plan = {**self._plan(), **self._certified()}
        fresh = cycle.kind == "night" and cycle.state is CycleState.RUNNING and cycle.plan.keys() == plan.keys()
        if fresh and cycle.plan != plan:
            self.ledger.put_cycle(cycle.model_copy(update={"plan": plan}))


def _tokenizer(folder: Path | None) -> bytes | None:
    """Returns the content of a model folder's tokenizer file; None if unreadable. The stage itself verifies what it
    reads."""
    try:
        return None if folder is None else (folder / "tokenizer.json").read_bytes()
    except OSError:
        return None


def new_cycle_id(kind: CycleKind, now: str) -> str:
    return f"{kind}-{now[:19].replace(':', '').replace('-', '')}-{secrets.token_hex(2)}".lower()
