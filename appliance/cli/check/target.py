"""Where `assay check` has submissions held: at the broker that runs, at one of its own as root, or in a process that
confines itself, which is shown.

What always holds: what runs a submission (programs, proofs) needs a broker, and the isolation that the written policy
has for it; only what reads a submission does without.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from appliance.cli.shell.broker_target import find, listening
from appliance.cli.shell.options import settings_of
from appliance.config import places
from appliance.errors import AssayError, ExitCode
from appliance.settings import policy_files
from policies.isolation import backend_for
from runtime.profile import BackendName
from runtime.settings import RuntimeSettings
from verifiers import tools
from verifiers.checker import Checker
from verifiers.contract.kinds import Kind
from verifiers.contract.verdict import Verdict

if TYPE_CHECKING:
    from verifiers.contract.judge import Judge


class CheckTarget:
    """`settings` of a broker, or None where there is none and can be none."""

    def __init__(
        self,
        settings: RuntimeSettings | None,
        tools_backend: BackendName = BackendName.NSJAIL,
        *,
        lean: Path | None = None,
        judge: Path | None = None,
    ) -> None:
        self._settings, self._tools_backend, self._lean = settings, tools_backend, lean
        self._isolation_shown = False
        self._judge: Judge | None = None
        self.about = {} if lean is None else {"lean": str(lean)}
        """What of it belongs to what a run is about."""
        if judge is not None:
            from appliance.cli.check.judge import judge_of

            self._judge, self.about["judge"] = judge_of(judge)

    @property
    def broker(self) -> RuntimeSettings:
        """Raises AssayError where there is none."""
        if self._settings is None:
            raise AssayError("no broker can be had here", "run this as root, or start the daemon", ExitCode.NOT_RUNNING)
        return self._settings

    def checker(self, *, jobs: int) -> Checker:
        """Decides or conducts `jobs` submissions at once; close it."""
        return Checker(
            self._settings, workers=jobs, tools_backend=self._tools_backend, lean=self._lean, judge=self._judge
        )

    def say_isolation(self, verdict: Verdict) -> None:
        """Once, when there was no sandbox around what decided."""
        if verdict.isolation == "process" and not self._isolation_shown:
            self._isolation_shown = True
            typer.echo("read in a process that confines itself, because no broker can be had here", err=True)


def target_for(
    context: typer.Context,
    data: Path | None,
    kinds: Collection[Kind],
    *,
    lean: Path | None = None,
    judge: Path | None = None,
    ready: int = 1,
) -> CheckTarget:
    """For submissions of these kinds; none are all of them, as far as that goes here. A broker of our own keeps `ready`
    sandboxes ahead. Raises AssayError (3) where submissions have to be run and there is no broker; PolicyError;
    ModelError for a judge that cannot be used."""
    settings = settings_of(context, data)
    socket = places.broker_socket(settings, settings.data)
    runs = any(kind.runs for kind in kinds)
    if not (runs or os.geteuid() == 0 or settings.sandbox.broker is not None or listening(socket)):
        return CheckTarget(None, lean=lean, judge=judge)
    runtime = find(context, data, ready=ready if runs or not kinds else 0).settings
    if lean is not None:
        own = runtime.own.model_copy(update={"programs": tools.programs(lean)})
        runtime = runtime.model_copy(update={"own": own})
    backend = BackendName(backend_for(policy_files.load_policy(settings.data), "tools"))
    return CheckTarget(runtime, backend, lean=lean, judge=judge)
