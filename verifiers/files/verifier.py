"""Verifier of declared files: their content, and the results of commands in a fresh sandbox.

Invariants: nothing of the place in which the files were made takes part, only their text and mode. Each command has its
own sandbox with the declared files and the spec's additions. Results are compared outside the sandbox, so no file can
tamper with the judge; a command that crashes its sandbox has failed. A command is limited by its own time, and a
sandbox that does not start decides nothing. The score of a foreign test is evidence and never a pass. `suite.py` runs
the tests of a repository.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from contextlib import closing
from typing import Any

from runtime.errors import BadRequestError, GuestLostError, StarvedError
from runtime.profile import PackageSet
from runtime.sandbox import CallStatus, ExecResult, Limits, Priority, Sandbox, SessionPool
from verifiers.boxes.conductor import ConductorParts
from verifiers.boxes.late import HINT, late
from verifiers.boxes.own_time import LAST_PATIENCE
from verifiers.contract.errors import SpecError
from verifiers.contract.text import clip, escaped
from verifiers.contract.verdict import FOREIGN_REWARD, Ground, Judgement, Verdict
from verifiers.files import suite
from verifiers.files.kind import FILES
from verifiers.files.spec import (
    CommandCondition,
    FilesSpec,
    ForeignTest,
    PlacedFile,
    SubmittedFile,
    read,
    removed_in,
    same_lines,
)

LIMITS = Limits(
    call_seconds=600.0, memory_mib=512, work_mib=64, output_bytes=1 << 18, cpu_seconds=600.0, life_seconds=7200.0
)
REWARD_BYTES = 4_096
FOLDER = "/work/files"
ENDED = {CallStatus.CPU: Ground.TIMEOUT, CallStatus.MEMORY: Ground.MEMORY}


def conductor(parts: ConductorParts) -> FilesVerifier:
    """Builds a verifier that runs commands in sandboxes of these parts."""
    return FilesVerifier(parts.sessions(), isolation=parts.isolation)


def check(spec: FilesSpec) -> None:
    """Raises SpecError for a spec that requires nothing of the files, or nothing that could fail."""
    for condition in spec.files:
        if condition.path not in spec.declared:
            raise SpecError(f"{condition.path}: condition on an undeclared file", hint="Add it to `declared`.")
        if condition.mode is None and not (condition.equals or "").strip():
            raise SpecError(f"{condition.path}: empty condition", hint="Set `equals` or `mode`.")
    for command in spec.commands:
        if command.stdout is None and not command.leaves:
            raise SpecError("a command has no expected result", hint="Set `stdout` or `leaves`.")
    if len(set(spec.declared)) != len(spec.declared):
        raise SpecError("a file is declared twice")
    for files in [*(command.files for command in spec.commands), _placed_by(spec.foreign)]:
        paths = {*spec.declared, *(file.path for file in files)}
        if inside := next((path for path in sorted(paths) if not paths.isdisjoint(_folders(path))), None):
            raise SpecError(f"{inside}: a parent folder is itself a file", hint="Rename one of the two.")
    if spec.foreign is not None and not spec.foreign.command and not set(spec.foreign.rewards) <= set(spec.declared):
        raise SpecError("no declared file has the foreign score", hint="Declare one of `rewards`, or set a command.")
    if spec.suite is not None:
        suite.check(spec, spec.suite)
    if not (spec.files or spec.commands or spec.foreign or spec.suite):
        raise SpecError("the files have no conditions", hint="Add conditions on files, or commands.")


def _placed_by(test: ForeignTest | None) -> tuple[PlacedFile, ...]:
    return () if test is None else (*test.world, *test.files)


class FilesVerifier:
    """Thread-safe verifier of the kind `files`. The caller keeps ownership of the session pool."""

    name = FILES.name
    version = FILES.version

    def __init__(
        self, sessions: SessionPool, *, isolation: str = "gvisor", priority: Priority = Priority.TRAINING
    ) -> None:
        self._sessions, self._isolation, self._priority = sessions, isolation, priority

    def check(self, spec: FilesSpec, *, prove: bool = False) -> None:
        check(spec)

    def verify(self, spec: FilesSpec, submission: str, seconds: float | None = None) -> Verdict:
        """Verifies the submitted files against a spec's conditions and commands. `seconds` lowers the time limit of
        each command. Raises SpecError, or SandboxError if no sandbox is available."""
        check(spec)
        begun = time.monotonic()
        judgement = self._judged(spec, submission, min(spec.seconds, seconds or spec.seconds))
        backends = getattr(self._sessions, "backends", {})
        tools = {self._isolation: backends[self._isolation]} if self._isolation in backends else {}
        return judgement.verdict(self.name, self.version, seconds=time.monotonic() - begun, tools=tools)

    def close(self) -> None:
        """No-op: this verifier holds no resources."""

    def _judged(self, spec: FilesSpec, submission: str, seconds: float) -> Judgement:
        submitted = read(spec, submission)
        if isinstance(submitted, str):
            return Judgement(Ground.UNREADABLE, submitted, {})
        for condition in spec.files:
            one = submitted[condition.path]
            if condition.mode is not None and one.mode != condition.mode:
                return _refuted(f"{condition.path} has the mode {one.mode}, not {condition.mode}")
            if condition.equals is not None and not same_lines(one.text, condition.equals):
                return _refuted(f"{condition.path} has the wrong content").noting(read=escaped(one.text))
        facts: dict[str, object] = {"files": len(spec.declared), "commands": len(spec.commands)}
        for command in spec.commands:
            failed = self._tried(submitted, command, seconds)
            if failed is not None:
                return failed._replace(isolation=self._isolation)
        if spec.suite is not None:
            failed = suite.failure(self._sessions, self._priority, spec.suite, submitted, seconds)
            if failed is not None:
                return failed._replace(isolation=self._isolation)
            facts["tests"] = len(spec.suite.tests)
        if spec.foreign is not None and not spec.foreign.command:
            found = next((submitted[path].text for path in spec.foreign.rewards if path in submitted), "")
            facts[FOREIGN_REWARD] = _number(found)
        elif spec.foreign is not None:
            with closing(self._sandbox(spec.foreign)) as sandbox:
                facts |= _rewarded(sandbox, submitted, spec.foreign, removed_in(submission))
        if spec.only_foreign:
            said = facts[FOREIGN_REWARD]
            score = f"its score is {said:g}" if isinstance(said, float) else "no score"
            reason = f"only a foreign test judged it: {score}"
            return Judgement(Ground.UNKNOWN, reason, facts, isolation=self._isolation)
        return Judgement(Ground.TESTED, "all conditions on the files hold", facts, isolation=self._isolation)

    def _tried(
        self, submitted: dict[str, SubmittedFile], command: CommandCondition, seconds: float
    ) -> Judgement | None:
        """Runs one command beside the submitted files; returns its failure, or None. Raises SandboxError for
        infrastructure errors; a sandbox lost twice is the submission's failure."""
        for _ in range(2):
            with closing(self._sandbox()) as sandbox:
                _place(sandbox, FOLDER, submitted, command.files)
                try:
                    return _failure(sandbox, FOLDER, command, seconds)
                except GuestLostError:
                    continue
        return _refuted(f"`{_shown(command)}` crashed its sandbox twice")

    def _sandbox(self, test: ForeignTest | None = None) -> Sandbox:
        limits = LIMITS if test is None else LIMITS.model_copy(update={"memory_mib": test.memory_mib})
        packages = PackageSet(digest=test.packages, memory_mib=0) if test is not None and test.packages else None
        more: dict[str, Any] = {"packages": packages} if packages is not None else {}
        return self._sessions.sandbox(limits, userland=True, caller="files", priority=self._priority, **more)


def _failure(sandbox: Sandbox, folder: str, condition: CommandCondition, seconds: float) -> Judgement | None:
    """Runs one command and returns its failure, or None. Raises GuestLostError if the sandbox is lost, StarvedError if
    the machine is too busy."""
    shown = _shown(condition)
    try:
        stdin = condition.stdin.encode()
        ran = sandbox.exec(condition.command, stdin=stdin, cwd=folder, seconds=seconds, patience=LAST_PATIENCE)
    except BadRequestError as error:
        return _refuted(f"`{shown}` cannot be run: {clip(str(error), 80)}")
    if ran.status is CallStatus.TIMEOUT:
        return Judgement(Ground.TIMEOUT, f"`{shown}` {late(ran, seconds)}", _said(ran))
    if ran.status is CallStatus.EXPIRED:
        raise StarvedError("the sandbox ended at its wall-clock limit", hint=HINT)
    if ran.status is not CallStatus.OK:
        ground = ENDED.get(ran.status, Ground.REFUTED)
        return Judgement(ground, f"`{shown}` ended with {ran.status.value}", _said(ran))
    if condition.exit_code is not None and ran.exit_code != condition.exit_code:
        return _refuted(f"`{shown}` exited with code {ran.exit_code}").noting(**_said(ran))
    if condition.stdout is not None and not same_lines(ran.stdout.decode(errors="replace"), condition.stdout):
        return _refuted(f"`{shown}` printed unexpected output").noting(**_said(ran))
    for left in condition.leaves:
        try:
            found = sandbox.read(f"{folder}/{left.path}").decode(errors="replace")
        except BadRequestError as error:
            return _refuted(f"`{shown}` left no readable {left.path}: {clip(str(error), 80)}")
        if not same_lines(found, left.text):
            return _refuted(f"`{shown}` left unexpected content in {left.path}").noting(read=escaped(found))
    return None


def _place(sandbox: Sandbox, folder: str, submitted: dict[str, SubmittedFile], more: Iterable[PlacedFile]) -> None:
    """Writes the submitted files into a new sandbox, with `more` replacing files of the same name. Raises SandboxError.
    Nothing submitted runs here, and modes are set last."""
    files = {path: PlacedFile(path=path, text=one.text, mode=one.mode) for path, one in submitted.items()}
    modes: dict[str, list[str]] = {}
    for file in (files | {file.path: file for file in more}).values():
        sandbox.write(f"{folder}/{file.path}", file.text.encode())
        if file.mode != "644":
            modes.setdefault(file.mode, []).append(f"{folder}/{file.path}")
    for mode, paths in modes.items():
        sandbox.exec(["chmod", mode, *paths])


def _rewarded(
    sandbox: Sandbox, submitted: dict[str, SubmittedFile], test: ForeignTest, removed: frozenset[str]
) -> dict[str, object]:
    """Runs a third-party test on the submitted files; returns the score that it wrote, between 0 and 1, or None, and
    what it printed. Scores that differ are none. Raises StarvedError if the machine is too busy."""
    before = {one.path: SubmittedFile(one.text, one.mode) for one in test.world if one.path not in removed}
    try:
        if test.folders:
            sandbox.exec(["mkdir", "-p", *(f"/work/{path}" for path in test.folders)])
        _place(sandbox, "/work", before | submitted, test.files)
        ran = sandbox.exec(test.command, seconds=test.seconds, env=dict(test.variables), patience=LAST_PATIENCE)
    except BadRequestError as error:
        return {FOREIGN_REWARD: None, "test": clip(str(error), 200)}
    if ran.status is CallStatus.TIMEOUT:
        late(ran, test.seconds)
    found = {}
    for path in test.rewards:
        try:
            written = sandbox.read(f"/work/{path}", max_bytes=REWARD_BYTES)
        except BadRequestError:
            continue
        found[path] = _number(written.decode(errors="replace"))
    facts = {"test": ran.status.value, **_said(ran)}
    if len(set(found.values())) > 1:
        told = ", ".join(f"{path.rpartition('/')[2]} {score}" for path, score in found.items())
        return {FOREIGN_REWARD: None, "scores differ": told, **facts}
    return {FOREIGN_REWARD: next(iter(found.values()), None), **facts}


def _number(text: str) -> float | None:
    try:
        found = json.loads(text)
        found = found.get("reward") if isinstance(found, dict) else found
    except (ValueError, RecursionError):
        return None
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    return float(found) if 0 <= found <= 1 else None  # rejects NaN and integers too large for a float


def _folders(path: str) -> list[str]:
    """Returns the parent folders of a path."""
    parts = path.split("/")
    return ["/".join(parts[:depth]) for depth in range(1, len(parts))]


def _shown(condition: CommandCondition) -> str:
    return clip(" ".join(condition.command), 80)


def _refuted(reason: str) -> Judgement:
    return Judgement(Ground.REFUTED, reason, {})


def _said(ran: ExecResult) -> dict[str, object]:
    return {
        "printed": escaped(ran.stdout.decode(errors="replace")),
        "errors": escaped(ran.stderr.decode(errors="replace")),
    }
