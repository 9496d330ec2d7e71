"""Chooses where `assay check` processes submissions: at a running broker, at its own as root, or in a self-confined
process, which is reported.

Invariants: running a submission (programs, proofs) requires a broker and the isolation of the policy; only reading one
works without.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from appliance.cli.shell.broker_target import find, listening
from appliance.cli.shell.options import read_settings
from appliance.config import places
from appliance.errors import AssayError, ExitCode
from appliance.settings import policy_files
from policies.permissions import backend_for
from runtime.profile import BackendName
from runtime.settings import RuntimeSettings
from verifiers import tools
from verifiers.checker import Checker
from verifiers.contract.kinds import Kind
from verifiers.contract.verdict import Verdict

if TYPE_CHECKING:
    from verifiers.contract.protocols import Judge


class CheckTarget:
    """The broker or process that verifies submissions; `settings` are a broker's, or None without one."""

    def __init__(
        self,
        settings: RuntimeSettings | None,
        tools_backend: BackendName = BackendName.NSJAIL,
        *,
        lean: Path | None = None,
        judge: Path | None = None,
        require_kernel_floor: bool = False,
    ) -> None:
        self._settings, self._tools_backend, self._lean = settings, tools_backend, lean
        self._require_kernel_floor = require_kernel_floor
        self._isolation_shown = False
        self._judge: Judge | None = None
        self.about = {} if lean is None else {"lean": str(lean)}
        """The target's part of a run's description."""
        if judge is not None:
            from appliance.cli.check.judge import judge_of

            self._judge, self.about["judge"] = judge_of(judge)

    @property
    def broker(self) -> RuntimeSettings:
        """Settings of the sandbox broker for submissions. Raises AssayError without one."""
        if self._settings is None:
            raise AssayError("no broker is available", "run this as root, or start the daemon", ExitCode.NOT_RUNNING)
        return self._settings

    def checker(self, *, jobs: int) -> Checker:
        """Returns a new checker that verifies up to `jobs` submissions concurrently; close it."""
        return Checker(
            self._settings,
            workers=jobs,
            tools_backend=self._tools_backend,
            lean=self._lean,
            judge=self._judge,
            require_kernel_floor=self._require_kernel_floor,
        )

    def say_isolation(self, verdict: Verdict) -> None:
        """Reports on standard error, once, that a verdict was reached without a sandbox."""
        if verdict.isolation == "process" and not self._isolation_shown:
            self._isolation_shown = True
            typer.echo("read in a self-confined process, because no broker is available", err=True)


def target_for(
    kinds: Collection[Kind], *, lean: Path | None = None, judge: Path | None = None, ready: int = 1
) -> CheckTarget:
    """Chooses the broker or process that verifies submissions of these kinds; none means all, as far as possible here.
    An own broker keeps `ready` sandboxes ahead. Raises AssayError (3) if submissions must be run without a broker;
    PolicyError; ModelError for an unusable judge."""
    settings = read_settings()
    socket = places.broker_socket(settings, settings.data)
    runs = any(kind.runs for kind in kinds)
    if not (runs or os.geteuid() == 0 or settings.sandbox.broker is not None or listening(socket)):
        return CheckTarget(None, lean=lean, judge=judge)
    runtime = find(ready=ready if runs or not kinds else 0).settings
    if lean is not None:
        own = runtime.own.model_copy(update={"programs": tools.programs(lean)})
        runtime = runtime.model_copy(update={"own": own})
    policy = policy_files.load_policy(settings.data)
    floor = policy.verifiers.require_kernel_floor
    backend = BackendName(backend_for(policy, "tools"))
    return CheckTarget(runtime, backend, lean=lean, judge=judge, require_kernel_floor=floor)
