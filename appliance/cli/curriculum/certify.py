"""`assay curriculum certify`: tests a taskset's checks; the report is signed into the audit log."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from appliance.cli.shell.named import TasksetNames
from appliance.cli.shell.options import api_client, read_settings
from appliance.cli.show.printing import for_people, points, prints, show_fields, show_line, show_progress, show_table
from common.counting import counted

if TYPE_CHECKING:
    from appliance.cli.curriculum.documents import CertificateDocument
    from curriculum.catalog import Catalog
    from curriculum.certification.certificate import Certificate
    from curriculum.contract.taskset import Taskset
    from verifiers.contract.kinds import Kind

SECONDS = 600.0
"""Timeout of the other process, in seconds."""


@prints
def certify(
    names: TasksetNames,
    seeds: Annotated[int, typer.Option("--seeds", min=1, max=10_000, help="Tasks of each level.")] = 50,
    made: Annotated[
        bool, typer.Option("--made", help="Print the version and the digest of its tasks, and certify nothing.")
    ] = False,
) -> Iterator[CertificateDocument | str]:
    """Test the checks of tasksets with reference answers and with agents that do no work, and their worlds with
    everything a model may do to them. Each report is signed into the audit log; only a taskset certified in its present
    version is trained on. Exit code 1 if one is not certified. With --json, print one line of JSON for each.

    Example: assay curriculum certify own/sums own/units --seeds 20
    """
    from appliance.cli.curriculum.catalog import catalog_of
    from appliance.cli.curriculum.documents import CertificateDocument
    from appliance.curriculum.own_sizes import small_tasksets
    from curriculum.certification.certificate import made_by

    catalog = catalog_of()
    tasksets = [catalog.named(name) for name in names]  # an unknown name is refused before any work
    failed = False
    for number, (name, taskset) in enumerate(zip(names, tasksets, strict=True)):
        if made:
            yield made_by(catalog, name)
            continue
        found = _certified(catalog, name, seeds)
        failed |= not found.holds
        document = CertificateDocument(**dict(found), signed=record(found))
        yield document
        if for_people():
            if number:
                show_line("")
            small = small_tasksets(read_settings().data, [name]).get(name, "")
            _show(document, _tried(found, taskset), small)
    if failed:
        raise typer.Exit(1)


def _certified(catalog: Catalog, name: str, seeds: int) -> Certificate:
    """Certifies one taskset: in this process if all that it judges is built in, else in sandboxes. Raises
    CurriculumError, SandboxError."""
    from appliance.cli.check.target import target_for
    from curriculum.certification.certify import certify, drafts_of
    from curriculum.certification.worlds import tried_in
    from curriculum.environments import ENVIRONMENTS
    from curriculum.registry import TASKSETS
    from runtime.sessions import Sessions
    from verifiers.registry import decide, is_decided, kind_of

    levels = range(catalog.named(name).level_count)
    first = [draft for level in levels for draft in drafts_of(catalog, name, level, 2)]
    kinds: list[Kind] = list({kind_of(draft.spec).name: kind_of(draft.spec) for draft in first}.values())
    run = partial(
        certify,
        catalog,
        name,
        seeds=seeds,
        elsewhere=partial(_elsewhere, name, read_settings().data),
        say=show_progress,
    )
    has_world = any(draft.environment in ENVIRONMENTS for draft in first)
    try:
        with ExitStack() as held:
            if name in TASKSETS and not has_world and all(is_decided(draft.spec) for draft in first):
                # all that is judged is the code's own, and nobody else's text is among it
                return run(lambda pairs: [decide(spec, answer) for spec, answer in pairs])
            target = target_for(kinds)
            checker = held.enter_context(target.checker(jobs=2))
            pool = held.enter_context(Sessions(target.broker)) if has_world else None
            worlds = tried_in(ENVIRONMENTS, pool) if pool is not None else None
            return run(checker.check_many, worlds=worlds)
    finally:
        show_progress("")


def _elsewhere(name: str, data: Path) -> str:
    """Returns the version and digest of a taskset's tasks as another process makes them (`--made`). Raises AssayError
    if it fails."""
    from appliance.errors import AssayError, ExitCode

    command = [sys.executable, "-I", "-m", "appliance.cli.main", "--data", str(data), "curriculum", "certify", name]
    run = subprocess.run([*command, "--made"], capture_output=True, timeout=SECONDS, check=False)
    if run.returncode:
        last = run.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise AssayError(
            f"another process cannot make tasks of {name}: {''.join(last)}", "try again", ExitCode.INFRASTRUCTURE
        )
    return run.stdout.decode().strip()


def record(found: Certificate) -> str:
    """Signs a certification report into the audit log, by the daemon or without one; returns a description of the
    result."""
    from appliance.audit.kept_heads import head_files
    from appliance.audit.machine_keys import key_file
    from appliance.client.failures import DaemonNotRunning
    from appliance.curriculum.certificates import record_without_daemon

    try:
        api_client().put_certificate(found)
    except DaemonNotRunning:
        settings = read_settings()
        if not key_file(settings.data, "daemon").exists():
            return "no: no audit log yet; start the daemon once, and certify again"
        record_without_daemon(settings.data, head_files(settings, settings.data), found)
    return "yes, into the audit log"


def _tried(found: Certificate, taskset: Taskset) -> str:
    from curriculum.own.taskset import OwnTaskset

    if not isinstance(taskset, OwnTaskset):
        return f"{found.tasks}, {counted(found.seeds, 'seed')} of each level"
    rows = len(taskset.content.rows)
    more = "" if found.tasks == rows else f": from {found.seeds} draws of each level; --seeds draws more"
    return f"{found.tasks} of {counted(rows, 'row')}, each once{more}"


def _show(found: CertificateDocument, tried: str, small: str) -> None:
    show_fields(
        [
            ("taskset", found.taskset),
            ("version", found.made),
            ("tasks", tried),
            ("certified", "yes" if found.holds else "no"),
            ("signed", found.signed),
            ("took", f"{found.seconds:.1f} s"),
            ("rows", small),
        ]
    )
    show_line("")
    show_table(
        ("agent", "passed at its worst level", "bar"),
        [
            (name, f"{one.passed} of {one.of}, {points(one.rate)}", _bar(one.bar, one.chance))
            for name, one in found.agents.items()
        ],
        empty="nothing was tried",
    )
    for fault in found.faults:
        show_line(f"fault: {fault}")


def _bar(bar: float, chance: float) -> str:
    return f"chance, {points(chance)}" if chance > bar else points(bar)
