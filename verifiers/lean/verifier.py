"""Whether a submission proves a statement, as Lean's kernel sees it.

The protocol. What it leaves to the submission is one compiled file, and of that file only its declarations:

1.  Words that no proof needs are refused unread by Lean (`screening`).
2.  The statement is compiled apart, under a name with a secret mark (`statement`).
3.  The submission is compiled in a box that never checks anything, without network (`boxes`).
4.  Another box, where no submission ever ran, takes everything but declarations out of its compiled file (`olean`): no
    notation, instance, macro, attribute or initialiser of it is left to touch the check.
5.  There a file of ours imports both and states `theorem check : type_of% @statement := @target`. That it compiles
    means that the kernel accepts the submission's theorem, by its full name, as a proof of the trusted statement.
6.  The axioms of `check` are compared with propext, Quot.sound and Classical.choice.
7.  Where the toolchain can, a third process gives the submission's declarations to the kernel once more (`replay`).

What always holds: safe for several threads, several checks at once; only step 5 to 7 give a pass.
Sources: leanprover/comparator and lean4checker for the threat model; Lean reference, "Validating a Lean proof".
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable
from typing import Any

from pydantic import ValidationError

from verifiers.answers.reading import clipped
from verifiers.lean.boxes import Asked, LeanBoxes, LeanUnavailable, Role
from verifiers.lean.headers import IDLE_MIB
from verifiers.lean.judging import (
    Judged,
    compile_failure,
    forbidden,
    lost,
    outcome_of_check,
    outcome_of_replay,
    unreadable,
)
from verifiers.lean.lexer import without_room, words
from verifiers.lean.prepared import Prepared, Preparer, trusted_options
from verifiers.lean.screening import Finding, parts, screen
from verifiers.lean.spec import LeanSpec
from verifiers.lean.statement import CHECK, SUBMISSION, Statement, digest, read_statement
from verifiers.lean.steps import Ran, header, step, without_imports
from verifiers.lean.submission import Source, assemble
from verifiers.lean.toolchain import PROGRAM, Toolchain, how_to_have_one, tools
from verifiers.verdict import Ground, Outcome, Verdict
from verifiers.workers.box import BoxLost, ToolBoxes

MOST_TEXT = 300_000
"""Characters of a submission."""
BOX_MIB = 5120
TMP_MIB = 256
LATE = 0.3
"""Seconds beyond the clock in which what was compiled in time may still be checked."""
SHORTEST = 0.05
"""Seconds; a step that has fewer is not begun."""


class LeanVerifier:
    """`close()` ends all its boxes."""

    name = "lean"
    version = "2"

    def __init__(
        self,
        launch: ToolBoxes | Callable[[], Asked],
        toolchain: Toolchain | None,
        *,
        memory_mib: int = BOX_MIB,
        most: int | None = None,
    ) -> None:
        """`launch` gives boxes of the program `toolchain.program`. `most` checks at once: None is one for each core."""
        self._toolchain = toolchain
        if isinstance(launch, ToolBoxes):
            boxes = launch
            launch = lambda: boxes.box(PROGRAM, memory_mib=memory_mib, tmp_mib=TMP_MIB, pids=128)  # noqa: E731
        self._boxes = LeanBoxes(launch, most or len(os.sched_getaffinity(0)))
        self._memory_mib = memory_mib - TMP_MIB
        self._mark = f"assay_{secrets.token_hex(8)}"
        self._preparer = Preparer(self._mark, self._ask, lambda: self._warm)

    def tools(self) -> dict[str, str]:
        return tools(self._toolchain)

    def check(self, spec: LeanSpec) -> None:
        """Raises SpecError, with a hint, for a statement that cannot be read. Whether Lean accepts it shows only in
        `verify`."""
        read_statement(spec)

    def close(self) -> None:
        self._boxes.close()

    def verify(self, spec: LeanSpec, submission: str, seconds: float = 60.0) -> Verdict:
        """Raises SpecError for a statement that does not compile, and nothing else."""
        began = time.monotonic()
        statement = read_statement(spec)
        limit = min(seconds, spec.seconds)
        judged = self._judged(spec, statement, submission, limit)
        return Verdict(
            outcome=judged.outcome,
            score=1.0 if judged.outcome is Outcome.PASS else 0.0,
            reason=judged.reason,
            ground=judged.ground,
            evidence={
                "theorem": clipped(statement.full_name),
                "statement_sha256": digest(spec),
                "kernel_replayed": "no",
            }
            | judged.evidence,
            verifier=self.name,
            version=self.version,
            tools=self.tools(),
            isolation=judged.isolation,
            seconds=round(time.monotonic() - began, 4),
        )

    def _judged(self, spec: LeanSpec, statement: Statement, submission: str, limit: float) -> Judged:
        if len(submission) > MOST_TEXT:
            return unreadable(f"it has more than {MOST_TEXT} characters")
        try:
            submission.encode()
        except UnicodeEncodeError:
            return unreadable("it is not Unicode text")
        began = time.monotonic()
        every = list(words(submission))
        found = screen(submission, every, allowed=parts(spec.statement))
        if found:
            return forbidden(found)
        source = assemble(spec, statement, submission, without_room(every))
        if isinstance(source, Finding):
            return forbidden([source])
        read = time.monotonic() - began
        if self._toolchain is None:
            return lost("there is no Lean on this machine", how_to_have_one())
        try:
            prepared = self._preparer.prepared(spec, statement)
            return self._compiled_and_checked(spec, statement, prepared, source, limit, read)
        except LeanUnavailable as error:
            return lost(str(error), error.hint)
        except (BoxLost, ValidationError) as error:
            return lost(f"the statement's box was lost: {error}", "")

    def _compiled_and_checked(
        self, spec: LeanSpec, statement: Statement, prepared: Prepared, source: Source, limit: float, read: float
    ) -> Judged:
        """`limit` is the whole clock in seconds, of which reading the text took `read`."""
        deadline = time.monotonic() + max(0.5, limit - read)
        compiled, isolation, warm = self._compile(spec, statement, prepared, source, deadline)
        if isinstance(compiled, Judged):
            return compiled
        if not compiled.compiled or compiled.file is None:
            judged = compile_failure(compiled, source, limit, spec.memory_mib).within(isolation)
            return judged.noting(headers=warm)
        files = prepared.all | {f"{SUBMISSION}.olean": compiled.file}
        found = self._checked_warmly(spec, statement, prepared, source, files, deadline)
        if found is not None:
            return found.noting(headers=warm)
        checking = self._limits(spec) | self._against(spec, prepared, files)
        checked, isolation = self._twice("check", step(CHECK, prepared.check_file, **checking), deadline + LATE)
        if isinstance(checked, Judged):
            return checked
        judged = outcome_of_check(checked, statement, source, self._mark)
        if judged.outcome is Outcome.PASS:
            judged = self._replayed(spec, judged, files, deadline)
        return judged.within(isolation).noting(headers=self._cold)

    def _compile(
        self, spec: LeanSpec, statement: Statement, prepared: Prepared, source: Source, deadline: float
    ) -> tuple[Ran | Judged, str, str]:
        """The run, what it was isolated by, and whether its imports were `warm` or `cold`."""
        modules = header(source.modules)
        if self._warm and modules is not None and modules == header(statement.imports):
            text = without_imports(source.text, source.modules)
            message = self._limits(spec) | {"header": modules, "keep": True}
            ran, isolation = self._twice("compile", step(SUBMISSION, text, **message), deadline)
            if isinstance(ran, Judged) or ran.settled:
                return ran, isolation, "warm"
        message = self._limits(spec) | {"files": prepared.shared, "keep": True}
        return *self._twice("compile", step(SUBMISSION, source.text, **message), deadline), self._cold

    def _checked_warmly(
        self,
        spec: LeanSpec,
        statement: Statement,
        prepared: Prepared,
        source: Source,
        files: dict[str, str],
        deadline: float,
    ) -> Judged | None:
        """Check and replay in one: the kernel adds the statement's declarations and then the submission's to what the
        statement imports, and the check is elaborated on top of that. None where the usual way has to tell."""
        modules = header(statement.imports)
        if modules is None or not self._warm:
            return None
        message = self._limits(spec) | self._against(spec, prepared, files)
        text = statement.added_check_file(self._mark)
        message = step(CHECK, text, header=modules, add=list(files), **message)
        checked, isolation = self._twice("check", message, deadline + LATE)
        if isinstance(checked, Judged) or not checked.settled or checked.refused:
            return None
        judged = outcome_of_check(checked, statement, source, self._mark)
        if judged.outcome is Outcome.PASS:
            if checked.replayed != "yes":
                return None
            judged = outcome_of_replay(judged, checked.replayed, required=spec.require_replay)
        return judged.within(isolation) if judged.outcome is not Outcome.INFRA_ERROR else None

    @property
    def _warm(self) -> bool:
        return self._boxes.headers == "warm"

    @property
    def _cold(self) -> str:
        return "cold" if self._warm else f"cold: {clipped(self._boxes.headers)}"

    def _against(self, spec: LeanSpec, prepared: Prepared, files: dict[str, str]) -> dict[str, Any]:
        bare = [f"{SUBMISSION}.olean"]
        return {"options": trusted_options(spec), "files": files, "bare": bare, "wanted": prepared.wanted}

    def _replayed(self, spec: LeanSpec, judged: Judged, files: dict[str, str], deadline: float) -> Judged:
        """A pass, after the kernel was given all that the submission declares once more, where that is possible."""
        said: str | None = None
        name = f"{SUBMISSION}.olean"
        if self._boxes.replays:
            message = self._limits(spec) | {"files": files, "bare": [name], "replay": name}
            ran, _ = self._twice("check", step("Replay", "", **message), deadline + LATE)
            if isinstance(ran, Judged):
                return ran
            said = ran.replayed if ran.ended == "exited" and ran.code == 0 else ran.ended
        return outcome_of_replay(judged, said, required=spec.require_replay)

    def _limits(self, spec: LeanSpec) -> dict[str, Any]:
        most = min(spec.memory_mib, self._memory_mib)
        return {
            "memory_mib": most,
            "idle_mib": max(IDLE_MIB, self._memory_mib - most),
            "options": [f"-DmaxHeartbeats={spec.heartbeats}"],
        }

    def _twice(self, role: Role, message: dict[str, Any], end: float) -> tuple[Ran | Judged, str]:
        """A step that may take until `end`, of time.monotonic(). One that was lost for no fault of the submission's is
        run once more, in a fresh box, if there is time."""
        late = Judged(Outcome.FAIL, "Lean did not come to an end with it in time", Ground.TIMEOUT)
        reason = ""
        for _ in range(2):
            seconds = end - time.monotonic()
            if seconds < SHORTEST:
                break
            try:
                ran, isolation = self._ask(role, message | {"seconds": seconds})
            except BoxLost as error:
                if error.cause == "memory":
                    return Judged(Outcome.FAIL, f"it needs more than {self._memory_mib} MiB", Ground.MEMORY), ""
                if error.cause == "timeout" and role == "compile":
                    return late, ""
                reason = f"the box was lost: {error}"
                continue
            except ValidationError:
                reason = "the box gave an answer that is none"
                continue
            if not ran.starved:
                return ran, isolation
            reason = "Lean could not begin its threads"
        return (lost(f"no verdict after two attempts: {reason}", "") if reason else late), ""

    def _ask(self, role: Role, message: dict[str, Any]) -> tuple[Ran, str]:
        answer, isolation = self._boxes.ask(role, message)
        return Ran.model_validate(answer), isolation
