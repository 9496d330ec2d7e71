"""Checks before a worker starts that work can begin: what is missing now is missing at every attempt.

Invariants: nothing is changed, and nothing heavy is imported. File contents are judged later, by the worker; here files
only have to exist completely. The configured model is examined closely (`appliance.readiness.model`), because a person
must fix its faults, and a night waits for that.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from appliance.config.configuration import Settings
from appliance.daemon.contract import BrokenError, NoRoomError, ReadOnlyDataError
from appliance.daemon.service.resource_watch import ResourceWatch
from appliance.inference.engine import ModelError
from appliance.ledger.audited import AuditedLedger, TamperedError
from appliance.readiness.model import ConfiguredModel, fault_of, read_config, require_positions
from appliance.readiness.sandbox import BrokerAwayError, is_served, named_in, require_isolation, require_tasksets
from appliance.records.cycles import Checkpoint, Cycle
from appliance.settings.config_layers import ConfigError
from appliance.system.durable_file import READ_ONLY_HINT, read_only_reason
from policies.policy import Policy
from runtime.errors import RefusedError, SandboxError


@dataclass(frozen=True)
class BlockedReason:
    """Obstacle that prevents a worker from starting."""

    text: str
    """Description with a hint."""
    passes: bool
    """True if unfinished work waits for the obstacle to pass."""
    blameless: bool = False
    """True for a fault of configuration or disk: it does not count as a worker's failure."""


@dataclass(frozen=True)
class Readiness:
    """Checks before a worker starts that everything it needs is there."""

    settings: Settings
    ledger: AuditedLedger
    policy: Callable[[], Policy]
    refused: RefusedError | None
    """Reason why model code cannot run while no broker answers."""
    own_broker: bool
    """True if a guard of this daemon restarts the broker whenever it ends."""
    model: ConfiguredModel
    watch: ResourceWatch

    def require(self, cycle: Cycle | None = None, tasksets: Sequence[str] | None = None) -> None:
        """Raises an error if a new cycle, or this unfinished one, cannot run; `tasksets` replaces the recipe's.

        RefusedError without isolation, BrokenError without the model in service, NoRoomError without the disk space
        that the policy requires or while resources are short, TamperedError for a ledger that differs from the audit
        log, ReadOnlyDataError for a read-only data folder, and what `require_configured` raises.
        """
        self.require_for_jobs()
        self.require_configured(cycle, tasksets)

    def require_for_jobs(self) -> None:
        """Raises an error, as `require` does, if jobs cannot run."""
        if reason := read_only_reason(self.settings.data):
            raise ReadOnlyDataError(reason, hint=READ_ONLY_HINT)
        self.ledger.require_whole()
        self.require_isolation()
        require_room(self.settings.data, self.policy().resources.min_free_gib)
        self.watch.require()
        champion = self._champion()
        if champion is not None:
            self._require_sound(champion, "in service", "or go back to the one before with `assay model rollback`")

    def require_configured(self, cycle: Cycle | None = None, tasksets: Sequence[str] | None = None) -> None:
        """Raises ConfigError if the cycle names a missing taskset, and what `require_model` raises. A night that has
        not begun uses the recipe in force."""
        fresh = cycle is not None and cycle.kind == "night" and cycle.plan.keys() <= {"recipe", "certified"}
        if cycle is not None and not fresh:
            require_tasksets(self.settings.data, named_in(cycle.plan), f"the plan of {cycle.id} names")
        else:
            require_tasksets(self.settings.data, self.settings.recipe.tasksets if tasksets is None else tasksets)
        self.require_model(cycle)

    def require_model(self, cycle: Cycle | None = None) -> None:
        """Raises ConfigError if the cycle cannot begin from the configured model, or exceeds the context of the one in
        service. Raises BrokenError if its starting model is damaged."""
        begun = self.ledger.checkpoint(cycle.plan["start"]) if cycle is not None and cycle.plan.get("start") else None
        if begun is not None:
            self._require_sound(begun, "that the cycle began from", "or start another cycle")
        else:
            self.require_tokens(self._tokens(cycle))

    def require_tokens(self, tokens: int) -> None:
        """Raises ConfigError if the starting model of a new cycle cannot read conversations of `tokens` tokens."""
        champion = self._champion()
        if champion is None:
            self.model.require(tokens)
        else:
            self._require_read(champion, tokens)

    def refuse_model(self, cycle: Cycle, fault: str) -> None:
        """Remembers a fault that a worker found in the configured model, so that cycles wait for another one."""
        self.model.refuse(self._tokens(cycle), fault)

    def require_isolation(self) -> None:
        """Raises RefusedError if model code cannot run isolated, because no sandbox broker answers or the policy is not
        met."""
        broker = self.settings.sandbox.broker
        if self.refused is not None and not (broker is not None and is_served(broker)):
            kind = BrokerAwayError if self.own_broker else RefusedError
            raise kind(str(self.refused), hint=self.refused.hint)
        require_isolation(self.settings, self.policy())

    def blocked(self, cycle: Cycle | None = None) -> BlockedReason | None:
        """Returns what prevents a new cycle, or this one, from running; None if nothing does."""
        return self._blocked(lambda: self.require(cycle))

    def jobs_blocked(self) -> BlockedReason | None:
        """Returns what prevents jobs from running; None if nothing does."""
        return self._blocked(self.require_for_jobs)

    def _champion(self) -> Checkpoint | None:
        digest = self.ledger.alias("champion")
        return self.ledger.checkpoint(digest) if digest else None

    def _require_read(self, champion: Checkpoint, tokens: int) -> None:
        try:
            config = read_config(self.settings.data / champion.folder)
        except (ModelError, OSError):
            return  # damaged: not a configuration fault
        try:
            require_positions(config, tokens)
        except ModelError as error:
            raise ConfigError(f"the model in service cannot be used: {error}", hint=error.hint) from error

    def _require_sound(self, model: Checkpoint, which: str, otherwise: str) -> None:
        folder = self.settings.data / model.folder
        if fault := fault_of(folder):
            raise BrokenError(
                f"the model {which} is damaged: {folder}: {fault}", hint=f"restore that folder from a copy, {otherwise}"
            )

    def _tokens(self, cycle: Cycle | None) -> int:
        """Returns the maximum tokens of a conversation, from the plan of a begun cycle, otherwise from the settings."""
        configured = self.settings.recipe.agent.max_tokens
        agent = {} if cycle is None else cycle.plan.get("recipe", {}).get("agent", {})
        return int(agent.get("max_tokens", configured))

    def _blocked(self, require: Callable[[], None]) -> BlockedReason | None:
        try:
            require()
        except BrokerAwayError as error:
            if self.own_broker:
                return BlockedReason(f"{error}; the daemon's broker restarts by itself", passes=True)
            return BlockedReason(f"{error}; {error.hint}", passes=False)
        except ConfigError as error:
            return BlockedReason(f"{error}; {error.hint}", passes=True, blameless=True)
        except ReadOnlyDataError as error:
            return BlockedReason(f"{error}; {error.hint}", passes=True, blameless=True)
        except (SandboxError, BrokenError, TamperedError) as error:
            return BlockedReason(f"{error}; {error.hint}", passes=isinstance(error, NoRoomError | TamperedError))
        return None


def require_room(data: Path, gib: float) -> None:
    """Raises NoRoomError if the data folder's disk has less space than the policy requires."""
    free = shutil.disk_usage(data).free / 2**30
    if free < gib:
        raise NoRoomError(
            f"the disk of {data} has {free:.1f} GiB left; the policy asks for {gib:g}",
            hint="free some space, or lower resources.min_free_gib in the policy",
        )
