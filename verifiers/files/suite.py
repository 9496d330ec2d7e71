"""Runs the tests of a repository on a submission in a fresh sandbox, and compares what they observe.

Invariants: the sandbox gets the spec's tree, the submitted files that are declared, and nothing of the place in which
they were made: no configuration, cache, hook or test of a submission. The expected values never enter the sandbox: its
tests hand over what they would compare, and digests are compared here. A test that is missing, skipped, expected to
fail or named twice has failed. Sources that newly reach for the tests or the interpreter are not run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from importlib import resources
from typing import Any

from runtime.errors import BadRequestError, GuestLostError, StarvedError
from runtime.profile import PackageSet
from runtime.sandbox import CallStatus, ExecResult, Limits, Priority, Sandbox, SessionPool
from verifiers.boxes.late import HINT, late
from verifiers.boxes.own_time import LAST_PATIENCE
from verifiers.contract.errors import SpecError
from verifiers.contract.text import escaped
from verifiers.contract.verdict import Ground, Judgement
from verifiers.files.spec import FilesSpec, PlacedFile, SubmittedFile, SuiteCondition

TREE, PROGRAM, RESULT = "/work/repository", "/work/suite/suite.py", "/work/suite/result"
RESULT_BYTES = 16 << 20
VARIABLES = {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", "TZ": "UTC", "OPENBLAS_NUM_THREADS": "1"}
SHOWN = 5


def check(spec: FilesSpec, suite: SuiteCondition) -> None:
    """Raises SpecError for tests without names, or a declared file that the tree does not have."""
    missing = sorted(set(spec.declared) - {file.path for file in suite.tree})
    if missing:
        raise SpecError(f"{missing[0]}: a declared file that the tree lacks", hint="Add it to `suite.tree`.")
    if len({name for name, _ in suite.tests}) != len(suite.tests):
        raise SpecError("a test is named twice")


def sandbox_for(sessions: SessionPool, priority: Priority, digest: str, memory_mib: int, caller: str) -> Sandbox:
    """Opens a sandbox with a package set, for the tests of one repository. Raises SandboxError."""
    limits = Limits(
        call_seconds=7_000.0,
        memory_mib=memory_mib,
        work_mib=64,
        output_bytes=1 << 18,
        cpu_seconds=3_600.0,
        life_seconds=36_000.0,
    )
    packages = PackageSet(digest=digest, memory_mib=0)
    return sessions.sandbox(limits, userland=True, caller=caller, priority=priority, packages=packages)


def program() -> str:
    """Returns the source of the program that runs tests in a sandbox."""
    return resources.files(__package__).joinpath("suite_guest.py").read_text(encoding="utf-8")


def place(sandbox: Sandbox, files: Mapping[str, str]) -> None:
    """Writes a repository's files and the program that runs its tests into a new sandbox."""
    sandbox.write(PROGRAM, program().encode())
    for path, text in files.items():
        sandbox.write(f"{TREE}/{path}", text.encode())


def start(sandbox: Sandbox, asked: Mapping[str, Any], seconds: float, patience: float = 1.0) -> ExecResult:
    """Runs the guest's program in a repository and waits for its end."""
    argv = ["python3", "-P", "-s", PROGRAM, RESULT]
    stdin = json.dumps(asked).encode()
    return sandbox.exec(argv, stdin=stdin, cwd=TREE, env=VARIABLES, seconds=seconds, patience=patience)


def lines_of(sandbox: Sandbox) -> list[Any]:
    """Returns the lines of the program's result that are JSON. They are hostile where a submission ran."""
    found = []
    try:
        written = sandbox.read(RESULT, max_bytes=RESULT_BYTES).decode(errors="replace")
    except BadRequestError:
        return []
    for line in written.splitlines():
        try:
            found.append(json.loads(line))
        except (ValueError, RecursionError):
            continue
    return found


def failure(
    sessions: SessionPool,
    priority: Priority,
    suite: SuiteCondition,
    submitted: Mapping[str, SubmittedFile],
    seconds: float,
) -> Judgement | None:
    """Returns why the tests fail with the submitted files, or None. Raises SandboxError for infrastructure errors.

    The first try counts wall-clock time, which is quick; if that is used up, a last one counts the tests' own time. A
    sandbox lost twice is the submission's failure.
    """
    tree: dict[str, PlacedFile | SubmittedFile] = {file.path: file for file in suite.tree}
    texts = {path: file.text for path, file in (tree | dict(submitted)).items()}
    for patience in (1.0, LAST_PATIENCE):
        with closing(sandbox_for(sessions, priority, suite.packages, suite.memory_mib, "files")) as sandbox:
            try:
                place(sandbox, texts)
                if new := _forbidden(sandbox, submitted, suite.allowed):
                    reason = f"the submission newly uses {', '.join(new)[:200]}, which no repair here needs"
                    return Judgement(Ground.FORBIDDEN, reason, {}, suspected=True)
                asked = {"what": "run", "path": suite.path, "tests": [name for name, _ in suite.tests], "tells": ""}
                ran = start(sandbox, asked, seconds, patience)
                if ran.status is CallStatus.TIMEOUT and patience == 1.0:
                    continue
                return _compared(suite, ran, lines_of(sandbox), seconds)
            except GuestLostError:
                continue
    return Judgement(Ground.REFUTED, "the tests crashed their sandbox twice", {})


def _forbidden(sandbox: Sandbox, submitted: Mapping[str, SubmittedFile], allowed: Sequence[str]) -> list[str]:
    """Returns the watched names that the submitted sources use beyond the allowed ones. Runs nothing of them."""
    ran = start(sandbox, {"what": "used", "files": [path for path in submitted if path.endswith(".py")]}, 60.0)
    if ran.status is CallStatus.TIMEOUT:
        raise StarvedError("reading the submission took more than a minute", hint=HINT)
    try:
        found = json.loads(ran.stdout)
    except ValueError:
        return ["sources that cannot be read"]
    return [str(name) for name in found if name not in allowed]


def _compared(suite: SuiteCondition, ran: ExecResult, lines: Sequence[Any], seconds: float) -> Judgement | None:
    if ran.status is CallStatus.TIMEOUT:
        return Judgement(Ground.TIMEOUT, f"the tests {late(ran, seconds)}", {})
    if ran.status is CallStatus.EXPIRED:
        raise StarvedError("the sandbox ended at its wall-clock limit", hint=HINT)
    if ran.status is CallStatus.MEMORY:
        return Judgement(Ground.MEMORY, "the tests ran out of memory", {})
    found: dict[str, Any] = {}
    for line in lines:
        if isinstance(line, list) and len(line) == 3 and isinstance(line[0], str):
            found[line[0]] = line[1:] if line[0] not in found else None
    failed = [name for name, digest in suite.tests if found.get(name) != ["passed", digest]]
    if not failed:
        return None
    reason = f"{len(failed)} of {len(suite.tests)} tests fail"
    return Judgement(Ground.REFUTED, reason, {"failed": [escaped(name) for name in failed[:SHOWN]]})
