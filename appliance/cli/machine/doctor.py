"""`assay doctor`: checks this machine's abilities and gives advice on the rest.

Invariants: it changes nothing that outlives it. Each check observes the present machine and has a figure; it fails only
for faults that keep model code from running safely or the product from running at all. Versions of large packages come
from their metadata; nothing is imported for that.
"""

from __future__ import annotations

import importlib.metadata
import importlib.resources
import os
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from appliance.cli.machine.doctor_checks import CheckGrade, DoctorCheck, failed, ok, warning
from appliance.cli.machine.doctor_cluster import cluster
from appliance.cli.machine.doctor_gpus import gpus, probe
from appliance.cli.machine.doctor_isolation import isolation
from appliance.cli.machine.doctor_model import first_prompt, model
from appliance.cli.machine.recommended import shape_named
from appliance.cli.show.printing import Output, for_people, show_line
from appliance.daemon.processes.listening import MAX_PATH_BYTES
from appliance.errors import ExitCode
from appliance.inference.gpu_numbers import VISIBLE, shown_gpus
from appliance.inference.vllm.placement import INSTALL, count_gpus, find_environment, is_tested, tested_version
from appliance.nights.machine import own_processes
from appliance.planning.hardware import find_gpus
from appliance.planning.model_shape import EMBEDDED
from appliance.settings import policy_files
from appliance.settings.config_layers import ConfigError
from appliance.settings.data_schema import START_FRESH, ledger_fault, revision_of
from appliance.system.lock_owner import owner_of
from common.counting import counted
from common.errors import HintedError
from policies.errors import PolicyError
from runtime.model import FrozenModel
from verifiers.lean import toolchain
from verifiers.lean.kernels import doubts
from verifiers.lean.second import SecondKernel, find_second

if TYPE_CHECKING:
    from appliance.config.configuration import Settings
    from policies.policy import Policy

Version = Callable[[str], str]
"""Returns the version of an installed package. Raises PackageNotFoundError."""
SAFE_SQLITE = (3, 51, 3)
GIB = 1 << 30
ROOM = "`assay model ls` and `assay backup ls FOLDER` show what takes room"
INDENT = 25
"""Indent of the detail column."""


class DoctorDocument(FrozenModel):
    sound: bool
    checks: tuple[DoctorCheck, ...]


def run(settings: Settings, *, selftest: bool) -> Output[DoctorDocument]:
    """Runs every check of `assay doctor`, and shows each to a person; exit code 5 if one failed, 6 if the machine was
    too busy for one."""
    checks: list[DoctorCheck] = []
    for check in examine(settings, selftest=selftest):
        checks.append(check)
        if for_people():
            _show(check)
    broken = [check.name for check in checks if check.grade is CheckGrade.FAILED]
    warned = sum(check.grade is CheckGrade.WARNING for check in checks)
    unseen = [check.name for check in checks if check.grade is CheckGrade.UNDECIDED]
    warnings = counted(warned, "warning")
    said = f"failed: {', '.join(broken)}" if broken else f"model code can be run safely here; {warnings}"
    if unseen and not broken:
        said = f"too busy to look at: {', '.join(unseen)}; nothing failed; {warnings}"
    code = ExitCode.INFRASTRUCTURE if broken else ExitCode.BUSY if unseen else ExitCode.OK
    return Output(DoctorDocument(sound=not broken, checks=tuple(checks)), said, code)


def _show(check: DoctorCheck) -> None:
    colours = {
        CheckGrade.OK: typer.colors.GREEN,
        CheckGrade.WARNING: typer.colors.YELLOW,
        CheckGrade.FAILED: typer.colors.RED,
        CheckGrade.UNDECIDED: typer.colors.YELLOW,
    }
    grade = typer.style(f"{check.grade:<8}", fg=colours[check.grade])
    typer.echo(grade, nl=False)
    show_line(f"{check.name:<16} {check.figure}", indent=INDENT, used=8)
    if check.advice:
        show_line(f"{'':<{INDENT}}{check.advice}")
    if check.grade is not CheckGrade.OK:
        show_line(f"{'':<{INDENT}}see {check.page}")


def examine(settings: Settings, *, selftest: bool) -> Iterator[DoctorCheck]:
    """Runs all checks of `assay doctor` in the order of repair; the slow ones (sandboxes) come last."""
    yield python(sys.version_info[:3])
    yield sqlite(sqlite3.sqlite_version_info)
    computes = torch()
    yield computes
    yield vllm(settings.model.engine, here=settings.placement.engines == "here")
    if idle := settings.vllm.without_effect(settings.model.engine):
        yield warning("section [vllm]", idle, "set model.engine to vllm, or remove the section")
    alone = 1 if settings.placement.learners == "cluster" else settings.model.learners
    found = find_gpus()
    yield from gpus(
        found,
        count_gpus(),
        shown=len(shown_gpus(os.environ.get(VISIBLE), len(found))),
        learners=alone,
        engine=settings.model.engine,
        weights=handed_over(settings),
        ours=daemon_processes(settings.data),
        ask_torch=probe if computes.grade is CheckGrade.OK else None,
    )
    yield config(settings)
    yield from cluster(settings)
    found_model = model(settings)
    yield found_model
    if found_model.grade is CheckGrade.OK and (prompt := first_prompt(settings)) is not None:
        yield prompt
    yield ledger(settings.data / "ledger.sqlite3")
    rules = policy(settings.data)
    yield rules
    readable = _readable_policy(settings.data)
    yield disk(settings.data, least=readable.resources.min_free_gib if readable else 0.0)
    yield memory(Path("/proc/meminfo").read_text())
    yield socket_path(settings.socket_path)
    yield from verifiers(floor=readable is not None and readable.verifiers.require_kernel_floor)
    if rules.grade is CheckGrade.OK:
        seen = []
        for check in isolation(settings, selftest=selftest):
            seen.append(check)
            yield check
        yield programs(seen)


def daemon_processes(data: Path) -> frozenset[int]:
    """Returns the process ids of the daemon that owns this data folder and of all its children. Empty without an
    owner."""
    owner = owner_of(data / "run" / "lock")
    return frozenset() if owner is None or owner.pid is None else own_processes(owner.pid)


def handed_over(settings: Settings) -> int:
    """Returns the size in bytes of the weights passed to a learner or an engine. Returns 0 without a readable model,
    which has its own check."""
    try:
        _, shape = shape_named(settings, "")
    except HintedError:
        return 0
    training = settings.recipe.training
    halved = training.adapts and training.precision == "bfloat16"
    return 0 if shape is EMBEDDED else max(shape.file_bytes, shape.parameters * (2 if halved else 4))


def config(settings: Settings) -> DoctorCheck:
    """Checks that the recipe's tasksets exist; keys and values were validated when the configuration was read."""
    from appliance.curriculum.own_sizes import small_tasksets
    from appliance.readiness.sandbox import require_tasksets

    try:
        require_tasksets(settings.data, settings.recipe.tasksets)
    except ConfigError as error:
        advice = f"{error.hint}; correct the name in recipe.tasksets and restart the daemon"
        return failed("config", str(error), advice)
    small = small_tasksets(settings.data, settings.recipe.tasksets)
    advice = "; ".join(f"{name}: {sentence}" for name, sentence in small.items())
    return ok("config", f"valid; data in {settings.data}", advice)


def python(version: tuple[int, ...]) -> DoctorCheck:
    figure = f"{'.'.join(map(str, version))} at {sys.executable}"
    if version < (3, 11):
        return failed(
            "python", figure, "needs Python 3.11 or newer: run `ASSAY_PYTHON=/usr/bin/python3.12 ./install.sh`"
        )
    return ok("python", figure)


def sqlite(version: tuple[int, ...]) -> DoctorCheck:
    """Checks SQLite's version for a bug in resetting the write-ahead log with two checkpointing connections; only one
    process writes here."""
    note = "" if version >= SAFE_SQLITE else "before 3.51.3 only one process may write to a file; only one does"
    return ok("sqlite", ".".join(map(str, version)), note)


def torch() -> DoctorCheck:
    try:
        version = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return failed("torch", "not installed", "run install.sh")
    return torch_build(version, cores=len(os.sched_getaffinity(0)), gpus=_gpus(Path("/proc/driver/nvidia/gpus")))


def torch_build(version: str, *, cores: int, gpus: int) -> DoctorCheck:
    figure = f"{version}, {cores} cores, {gpus} NVIDIA GPUs"
    if gpus and version.endswith("+cpu"):
        return warning("torch", figure, "CPU-only build: run install.sh again")
    return ok("torch", figure)


def vllm(engine: str, folder: Path | None = None, *, here: bool = True) -> DoctorCheck:
    """Checks vLLM's Python environment, which is required only if vLLM is the configured engine and runs `here`."""
    found = find_environment(folder)
    if engine == "vllm" and not here:
        return ok("vllm", "engines are on hosts of the cluster", f"each host needs its environment: {INSTALL}")
    if found is not None and engine == "vllm" and not is_tested(found):
        figure = f"{found.package} {found.version} at {found.python}"
        return failed("vllm", figure, f"{tested_version(found.package)} was tested; rebuild the environment: {INSTALL}")
    if found is not None:
        note = "" if engine == "vllm" else "model.engine = vllm uses it"
        return ok("vllm", f"{found.package} {found.version} at {found.python}", note)
    if engine == "vllm":
        return failed("vllm", "model.engine is vllm, but its environment is missing", f"build it: {INSTALL}")
    return ok("vllm", "no environment", f"build one with {INSTALL}; the engine is {engine}")


def _gpus(folder: Path) -> int:
    return len(list(folder.iterdir())) if folder.is_dir() else 0


def ledger(path: Path) -> DoctorCheck:
    """Checks that the ledger is not from before schema 1."""
    revision = revision_of(path)
    if not revision:
        return ok("ledger", "none yet" if not path.exists() else f"{path} names no revision")
    if fault := ledger_fault(revision):
        return failed("ledger", f"{path} was {fault}", START_FRESH)
    return ok("ledger", f"{path}, revision {revision}")


def policy(data: Path) -> DoctorCheck:
    in_force = policy_files.in_force_file(data)
    try:
        loaded, name = policy_files.read_policy(data, in_force if in_force.exists() else None)
    except PolicyError as error:
        return failed("policy", str(error), error.hint)
    return ok("policy", f"{name}, {loaded.digest[:12]}")


def _readable_policy(data: Path) -> Policy | None:
    """Returns the policy in force; None if it cannot be read, which has its own check."""
    try:
        return policy_files.load_policy(data)
    except PolicyError:
        return None


def disk(folder: Path, *, least: float = 0.0) -> DoctorCheck:
    """Checks free disk space at the data folder or its nearest parent. Below `least` GiB no cycle begins."""
    there = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    free = shutil.disk_usage(there).free
    figure = f"{free / GIB:.1f} GiB free at {there}"
    if not there.is_dir() or not os.access(there, os.W_OK):
        return failed("disk", f"{there} cannot be written", "choose another folder with --data")
    if free < GIB // 2:
        return failed("disk", figure, f"make room, or choose another disk with --data; {ROOM}")
    if free < least * GIB:
        advice = f"no cycle begins: make room, or lower resources.min_free_gib in the policy; {ROOM}"
        return warning("disk", f"{figure}; the policy asks for {least:g}", advice)
    if free < 4 * GIB:
        return warning("disk", figure, f"make room for the checkpoints of many nights; {ROOM}")
    return ok("disk", figure)


def memory(meminfo: str) -> DoctorCheck:
    """Checks available memory; `meminfo` is the text of /proc/meminfo (proc(5)), in KiB."""
    fields = dict(line.split(":", 1) for line in meminfo.splitlines() if ":" in line)
    available, total = (int(fields[name].split()[0]) << 10 for name in ("MemAvailable", "MemTotal"))
    figure = f"{available / GIB:.1f} of {total / GIB:.1f} GiB available"
    if available < 2 * GIB:
        advice = "training and its sandboxes need 2 GiB: end other programs; `assay plan` says what a model takes"
        return warning("memory", figure, advice)
    return ok("memory", figure)


def socket_path(path: Path) -> DoctorCheck:
    length = len(os.fsencode(path))
    figure = f"{length} of {MAX_PATH_BYTES} bytes"
    if length > MAX_PATH_BYTES:
        advice = f"`assay serve` cannot listen at {path}: set a shorter path with ASSAY_API__SOCKET"
        return failed("socket", figure, advice)
    return ok("socket", figure)


def verifiers(version: Version = importlib.metadata.version, *, floor: bool = False) -> Iterator[DoctorCheck]:
    """Checks that the packages of verifiers that run without a sandbox, and Lean, are installed. `floor`: the policy
    requires a kernel without known holes."""
    yield _packages("answers", ("sympy", "mpmath"), version)
    yield _packages("claims", ("z3-solver", "cvc5"), version)
    yield _packages(
        "checklists", ("jsonschema-rs", "markdown-it-py", "mdit-py-plugins", "regress", "sentencex"), version
    )
    yield lean(toolchain.find(), find_second(), floor=floor)


def lean(found: toolchain.Toolchain | None, second: SecondKernel | None = None, *, floor: bool = False) -> DoctorCheck:
    """Reports the Lean toolchain that checks proofs, known holes of its kernel, and the second kernel, without starting
    them."""
    if found is None:
        return ok("lean", "absent", f"only proofs need it: {toolchain.how_to_have_one()}")
    facts = found.describe()
    other = f"second kernel: {second or 'none'}"
    if why := doubts(found.version):
        counts = "the policy requires the floor, so no proof counts" if floor else "proofs count, and evidence says so"
        figure = f"{facts['lean']} from {facts['from']}: {why}; {other}"
        return warning("lean", figure, f"known proofs of False; {counts}; `./install.sh --with lean=PLACE` for a newer")
    note = "each verdict says whether the kernel replayed the proof: `kernel_replayed` in its evidence"
    return ok("lean", f"{facts['lean']} from {facts['from']}; {facts['libraries'] or 'no libraries'}; {other}", note)


def programs(isolation: Iterable[DoctorCheck]) -> DoctorCheck:
    """Reports whether candidate programs can run, based on the sandbox check."""
    sandbox = next((check for check in isolation if check.name == "sandbox"), None)
    if sandbox is not None and sandbox.grade is CheckGrade.OK:
        return ok("programs", "run in sandboxes of their own, one for the candidate and one for the reference")
    return warning("programs", "cannot be run here", "see the lines above: no sandbox is available")


def _packages(name: str, packages: tuple[str, ...], version: Version) -> DoctorCheck:
    found, missing = [], []
    for package in packages:
        try:
            found.append(f"{package} {version(package)}")
        except importlib.metadata.PackageNotFoundError:
            missing.append(package)
    if missing:
        return warning(name, f"cannot be checked here: {', '.join(missing)} missing", "run install.sh again")
    return ok(name, ", ".join(found))
