"""Whether work can begin at all, asked before a worker is started: what is missing now is missing at every attempt.

What always holds: nothing is changed, and nothing heavy is imported. What a file holds is judged later, by the worker;
here it only has to be there and whole. A model that the configuration names is looked at closely
(`appliance.readiness.model`), for what is wrong with it is somebody's to put right, and a night waits for that.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from appliance.config.configuration import Settings
from appliance.daemon.contract.errors import BrokenError, NoRoomError, ReadOnlyDataError
from appliance.daemon.machine.resource_watch import ResourceWatch
from appliance.inference.engine import ModelError
from appliance.ledger.audited import AuditedLedger, TamperedError
from appliance.readiness.model import ConfiguredModel, fault_of, read_config, require_positions
from appliance.readiness.sandbox import BrokerAwayError, is_served, require_isolation
from appliance.readiness.tasksets import named_in, require_tasksets
from appliance.records.checkpoints import Checkpoint
from appliance.records.cycles import Cycle
from appliance.settings.config_layers import ConfigError
from appliance.system.read_only_disk import HINT, read_only_reason
from policies.policy import Policy
from runtime.errors import RefusedError, SandboxError


@dataclass(frozen=True)
class BlockedReason:
    """Why no worker can begin."""

    text: str
    """With what to do."""
    passes: bool
    """Whether what is unfinished waits for it to pass."""
    blameless: bool = False
    """Whether it is the configuration's, or the disk's: what a worker met then is no failure of it."""


@dataclass(frozen=True)
class Readiness:
    """Asks for everything that a worker needs."""

    settings: Settings
    ledger: AuditedLedger
    policy: Callable[[], Policy]
    refused: RefusedError | None
    """Why model code cannot be run, as long as no broker answers."""
    own_broker: bool
    """Whether a guard of ours starts the broker again whenever it ends."""
    model: ConfiguredModel
    watch: ResourceWatch

    def require(self, cycle: Cycle | None = None, tasksets: Sequence[str] | None = None) -> None:
        """What a new cycle needs, or this unfinished one; `tasksets` where it does not ask the recipe's. Raises
        RefusedError without isolation, BrokenError without the model in service, NoRoomError without the room on disk
        that the policy asks for or while work pauses for want of room or memory, TamperedError for a ledger that is not
        what the audit log says, ReadOnlyDataError where the data folder takes no writes, and what
        `require_configured` raises."""
        self.require_for_jobs()
        self.require_configured(cycle, tasksets)

    def require_for_jobs(self) -> None:
        """What jobs need; raises as `require` does."""
        if reason := read_only_reason(self.settings.data):
            raise ReadOnlyDataError(reason, hint=HINT)
        self.ledger.require_whole()
        self.require_isolation()
        require_room(self.settings.data, self.policy().resources.min_free_gib)
        self.watch.require()
        champion = self._champion()
        if champion is not None:
            self._require_sound(champion, "in service", "or go back to the one before with `assay model rollback`")

    def require_configured(self, cycle: Cycle | None = None, tasksets: Sequence[str] | None = None) -> None:
        """Raises ConfigError where a taskset that the cycle asks is not there, and what `require_model` raises. A night
        of which nothing was begun takes the recipe in force."""
        fresh = cycle is not None and cycle.kind == "night" and cycle.plan.keys() <= {"recipe", "certified"}
        if cycle is not None and not fresh:
            require_tasksets(self.settings.data, named_in(cycle.plan), f"the plan of {cycle.id} names")
        else:
            require_tasksets(self.settings.data, self.settings.recipe.tasksets if tasksets is None else tasksets)
        self.require_model(cycle)

    def require_model(self, cycle: Cycle | None = None) -> None:
        """Raises ConfigError where the cycle would begin from the configured model and cannot, or gives a conversation
        more than the model in service reads; BrokenError where what it began from is damaged."""
        begun = self.ledger.checkpoint(cycle.plan["start"]) if cycle is not None and cycle.plan.get("start") else None
        if begun is not None:
            self._require_sound(begun, "that the cycle began from", "or start another cycle")
        else:
            self.require_tokens(self._tokens(cycle))

    def require_tokens(self, tokens: int) -> None:
        """Raises ConfigError where what a new cycle would begin from reads no conversation of so many tokens."""
        champion = self._champion()
        if champion is None:
            self.model.require(tokens)
        else:
            self._require_read(champion, tokens)

    def refuse_model(self, cycle: Cycle, fault: str) -> None:
        """Remembers what a worker found wrong with the configured model."""
        self.model.refuse(self._tokens(cycle), fault)

    def require_isolation(self) -> None:
        """Raises RefusedError where model code cannot be run."""
        broker = self.settings.sandbox.broker
        if self.refused is not None and not (broker is not None and is_served(broker)):
            kind = BrokerAwayError if self.own_broker else RefusedError
            raise kind(str(self.refused), hint=self.refused.hint)
        require_isolation(self.settings, self.policy())

    def blocked(self, cycle: Cycle | None = None) -> BlockedReason | None:
        """What keeps a worker from a new cycle, or from this one; None when nothing does."""
        return self._blocked(lambda: self.require(cycle))

    def jobs_blocked(self) -> BlockedReason | None:
        """What keeps a worker from jobs."""
        return self._blocked(self.require_for_jobs)

    def _champion(self) -> Checkpoint | None:
        digest = self.ledger.alias("champion")
        return self.ledger.checkpoint(digest) if digest else None

    def _require_read(self, champion: Checkpoint, tokens: int) -> None:
        try:
            config = read_config(self.settings.data / champion.folder)
        except (ModelError, OSError):
            return  # damaged, which is no fault of the configuration
        try:
            require_positions(config, tokens)
        except ModelError as error:
            raise ConfigError(f"the model in service cannot be asked: {error}", hint=error.hint) from error

    def _require_sound(self, model: Checkpoint, which: str, otherwise: str) -> None:
        folder = self.settings.data / model.folder
        if fault := fault_of(folder):
            raise BrokenError(
                f"the model {which} is damaged: {folder}: {fault}",
                hint=f"put that folder back from a copy, {otherwise}",
            )

    def _tokens(self, cycle: Cycle | None) -> int:
        """Of a conversation; the plan's where the cycle has begun with it."""
        configured = self.settings.recipe.agent.max_tokens
        agent = {} if cycle is None else cycle.plan.get("recipe", {}).get("agent", {})
        return int(agent.get("max_tokens", configured))

    def _blocked(self, require: Callable[[], None]) -> BlockedReason | None:
        try:
            require()
        except BrokerAwayError as error:
            if self.own_broker:
                return BlockedReason(f"{error}; our own broker starts again by itself", passes=True)
            return BlockedReason(f"{error}; {error.hint}", passes=False)
        except ConfigError as error:
            return BlockedReason(f"{error}; {error.hint}", passes=True, blameless=True)
        except ReadOnlyDataError as error:
            return BlockedReason(f"{error}; {error.hint}", passes=True, blameless=True)
        except (SandboxError, BrokenError, TamperedError) as error:
            return BlockedReason(f"{error}; {error.hint}", passes=isinstance(error, NoRoomError | TamperedError))
        return None


def require_room(data: Path, gib: float) -> None:
    """Raises NoRoomError when the disk of the data folder has less room than the policy asks for."""
    free = shutil.disk_usage(data).free / 2**30
    if free < gib:
        raise NoRoomError(
            f"the disk of {data} has {free:.1f} GiB left; the policy asks for {gib:g}",
            hint="free some space, or lower resources.min_free_gib in the policy",
        )
