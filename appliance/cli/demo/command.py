"""`assay demo`: one night in miniature, from nothing to a verified artifact, with real parts.

The daemon's own core runs here with the same worker and ledger, only without the schedule. A demonstration interrupted
by Ctrl-C or kill -9 therefore resumes, and `assay serve` on the same data folder continues where it ended.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from rich.console import Console

from appliance.audit.kept_heads import head_files, head_name
from appliance.cli.demo.own_model import in_own_folder, shortened
from appliance.cli.demo.report import DemoReport, report
from appliance.cli.demo.screen import DemoProgress, screen
from appliance.cli.shell.noted_signals import HeldInterrupt
from appliance.client.messages import SubmitJob
from appliance.config.configuration import Settings
from appliance.daemon.coordination.core import Core
from appliance.daemon.processes.startup import started_broker
from appliance.errors import AssayError, ExitCode, UsageError
from appliance.ledger.ledger import Ledger
from appliance.ledger.lock import data_lock
from appliance.models.local_models import BASES, find_base
from appliance.records.cycles import Cycle, CycleState
from appliance.records.jobs import Job, JobState
from appliance.system.clock import file_stamp
from appliance.system.lock_owner import DEMONSTRATION
from policies.contract.decision import GateOutcome
from verifiers.predicate.spec import PredicateSpec

QUESTION = "find x with 7x+3=45"
SPEC = PredicateSpec(predicate="7*x + 3 == 45", variable="x", domain="integer")
"""Check of the answer; nobody has to know the answer."""

POLL_SECONDS = 0.5
KEPT_ASIDE = "before"
T = TypeVar("T")


def demo(settings: Settings, *, seed: int, fresh: bool, json_file: Path | None, model: str = "") -> int:
    """Runs or resumes the demonstration, or shows its result; returns the exit code. `model` is a pretrained model to
    start from, by default the embedded one. Raises what the core and importing raise."""
    console = Console()
    started = time.monotonic()
    registered = find_base(model, settings.data)
    if model:
        settings = in_own_folder(settings, model)
    if fresh:
        _set_aside(settings, console)
    if model:
        settings = shortened(settings, model, registered)
    with (
        started_broker(settings) as ground,
        Core(
            ground.settings, refused=ground.refused, own_broker=ground.broker is not None, purpose=DEMONSTRATION
        ) as core,
        ground.watched(
            lambda text: core.events.add("broker", text), lambda error: core.events.add("broker", str(error))
        ),
    ):
        ground.require_policy(core.policy.digest)
        _require_writable(json_file)
        cycle = _cycle(core, seed, console)
        spent_before = sum(cycle.seconds.values())
        with DemoProgress(console) as progress:
            cycle = _run_cycle(core, cycle, progress)
            if cycle.state in (CycleState.FAILED, CycleState.SET_ASIDE):
                raise AssayError(
                    f"the night failed: {cycle.failure}",
                    hint=f"see {settings.data / 'logs' / 'worker.log'}; `assay doctor` checks the machine",
                    code=ExitCode.INFRASTRUCTURE,
                )
            _require_no_wait(core, cycle)
            progress.begin("job")
            job = _run_job(core, cycle)
            _require_no_wait(core, cycle)
            progress.begin("verify")
            bundle = settings.data / "artifacts" / job.id if job.artifact else None
            verified = bundle is not None and _verify(bundle)
            progress.begin("")
        spent_here = sum(cycle.seconds.values()) - spent_before
        seconds = spent_before + max(time.monotonic() - started, spent_here)
        found = report(core.ledger, cycle, job, bundle=str(bundle or ""), verified=verified, seconds=seconds)
    console.print(screen(found, _commands(settings, found)))
    if json_file is not None:
        _write_json(json_file, found)
    return int(ExitCode.OK) if verified else int(ExitCode.FAILED_VERDICT)


def _cycle(core: Core, seed: int, console: Console) -> Cycle:
    """Returns the demonstration's night to run: an unfinished one, the finished demonstration, or a new one."""
    unfinished = core.cycles.unfinished()
    if unfinished is not None:
        core.readiness.require_configured(unfinished)
        console.print(f"continuing {unfinished.id}, which stopped in: {unfinished.phase}", markup=False)
        return unfinished
    for cycle in core.ledger.cycles(limit=1000):
        if cycle.kind == "demo" and cycle.state is CycleState.DONE:
            ended = cycle.updated[:16].replace("T", " ")
            console.print(
                f"the demonstration already ran here ({cycle.id}, finished {ended} UTC); "
                "this is its result. `assay demo --fresh` starts again.",
                markup=False,
            )
            return cycle
    minutes = "an hour" if core.settings.recipe.warm_start.own_model else "ten minutes"
    console.print(f"this takes about {minutes} on two idle cores; an estimate for this machine follows")
    return core.cycles.start("demo", seed)


def _run_cycle(core: Core, cycle: Cycle, progress: DemoProgress) -> Cycle:
    """Runs the worker on a cycle while showing the ledger's events; returns the cycle as it then is."""
    if cycle.state is not CycleState.RUNNING:
        return cycle
    seen = _last_event(core.ledger)

    def show() -> None:
        nonlocal seen
        for number, event in core.ledger.events(after=seen):
            progress.see(event)
            seen = number

    return _beside(core, lambda: core.cycles.run(cycle.id), show)


def _beside(core: Core, work: Callable[[], T], show: Callable[[], None]) -> T:
    """Runs `work` in another thread while this one shows progress, and returns its result. On Ctrl-C, or an exception
    of `show`, ends the worker first."""
    with HeldInterrupt() as interrupt, ThreadPoolExecutor(1, thread_name_prefix="demo-work") as pool:
        running = pool.submit(work)
        try:
            while not running.done():
                if interrupt.came:
                    raise KeyboardInterrupt
                wait([running], POLL_SECONDS)
                show()
        except BaseException:
            core.supervisor.close()
            raise
        return running.result()


def _require_no_wait(core: Core, cycle: Cycle) -> None:
    """Raises AssayError if the demonstration's work is blocked or paused, since nothing here retries later as the
    daemon does."""
    waits = core.supervisor.waits_for
    if not waits and not cycle.state.ended:
        blocked = core.readiness.blocked(cycle)
        waits = blocked.text if blocked is not None else "its night was paused: see the last event above"
    if waits:
        core.readiness.require_configured(core.cycles.unfinished())
        raise AssayError(
            f"the demonstration cannot continue now: {waits}",
            hint="run the same command again later: nothing is repeated",
            code=ExitCode.INFRASTRUCTURE,
        )


def _last_event(ledger: Ledger) -> int:
    last = 0
    while events := ledger.events(after=last, limit=1000):
        last = events[-1][0]
    return last


def _run_job(core: Core, cycle: Cycle) -> Job:
    """Runs the demonstration's job, recorded or new, with the night's model and without solvers."""
    job = core.jobs.submit(
        SubmitJob(question=QUESTION, spec=SPEC, seed=cycle.seed), name=f"job-{cycle.id}", solvers=False
    )
    if job.state in (JobState.QUEUED, JobState.RUNNING):
        _beside(core, core.supervisor.run_jobs, lambda: None)
    found = core.ledger.job(job.id)
    assert found is not None
    return found


def _verify(bundle: Path) -> bool:
    """Verifies a bundle in a separate process without shared state; returns True if accepted."""
    command = [sys.executable, "-I", "-m", "appliance.cli.main", "verify", str(bundle), "--json"]
    return subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode == ExitCode.OK


def _commands(settings: Settings, found: DemoReport) -> list[tuple[str, str]]:
    assay = _program()
    where = f" --data {settings.data}" if settings.origins()["data"] != "default" else ""
    against = {finding.gate for finding in found.findings if finding.outcome is not GateOutcome.PASSED}
    if against == {"approval"}:
        command, purpose = "approve", "your signature puts the candidate into service; `assay key new` makes your key"
    else:
        command, purpose = "show", "the objections to the candidate, gate by gate"
    use = []
    path = settings.model.path
    if settings.recipe.warm_start.own_model and path is not None:
        name = path.name if path.parent == settings.data / BASES else path
        use = [(f"{assay} model use {name}{where}", "settings for whole nights with this model")]
    return [
        *use,
        (f"{assay} serve{where}", "starts the daemon on this data folder; keep it running and use a second terminal"),
        (f"{assay} tui{where}", "the night, its rollouts, the decision and the jobs on one screen"),
        (f"{assay} model {command} {found.candidate[:12]}{where}", purpose),
    ]


def _program() -> str:
    """Returns the `assay` command as a person can type it in this folder: its name or its path."""
    installed = Path(sys.executable).with_name("assay")
    found = shutil.which("assay")
    if found is not None and Path(found).resolve() == installed.resolve():
        return "assay"
    here = Path.cwd()
    return str(installed.relative_to(here)) if installed.is_relative_to(here) else str(installed)


def _set_aside(settings: Settings, console: Console) -> None:
    """Moves an earlier data folder and its audit log's head aside, so that a fresh start loses nothing."""
    data = settings.data
    if not data.exists() or not any(data.iterdir()):
        return
    with data_lock(data):
        stamp = file_stamp()
        aside = data.with_name(f"{data.name}.{KEPT_ASIDE}-{stamp}")
        for head in head_files(settings, data):
            if head.exists():
                usual = head.name == head_name(data)
                head.rename(head.with_name(head_name(aside) if usual else f"{head.name}.{KEPT_ASIDE}-{stamp}"))
        data.rename(aside)
    console.print(f"moved {data} to {aside}", markup=False)


def _require_writable(file: Path | None) -> None:
    """Raises UsageError, before the long run, if the demonstration's result file is not writable without root's
    rights."""
    if file is not None and not os.access(file if file.exists() else file.absolute().parent, os.W_OK):
        raise UsageError(f"{file} cannot be written by the current user", hint="choose another file with --json")


def _write_json(path: Path, found: DemoReport) -> None:
    text = json.dumps(found.model_dump(mode="json"), indent=1) + "\n"
    try:
        path.write_text(text)
    except OSError as error:
        with suppress(OSError):
            path.unlink(missing_ok=True)
        raise UsageError(
            f"{path} cannot be written: {error.strerror}",
            hint="choose another file with --json; run the same command again, nothing is repeated",
        ) from error
