"""Verifier of the kind `lean`: decides if a submission proves a statement, as Lean's kernel sees it.

The protocol. It takes from the submission one compiled file, and of that only its declarations:

1.  Words that no proof needs are refused before Lean reads the text (`screening`). 2.  The statement is compiled
separately, under a name with a secret mark (`statement`). 3.  The submission is compiled in a box that never checks
anything, without network (`boxes`). 4.  Another box, in which no submission ever ran, removes everything but
declarations from its compiled file (`olean`):
    no notation, instance, macro, attribute or initialiser is left to affect the check. The rest must be what Lean
    writes, object by object (`declarations`).
5.  There a file of ours imports both and states `theorem check : type_of% @statement := @target`. If it compiles, the
    kernel accepts the submission's theorem, by its full name, as a proof of the trusted statement.
6.  The axioms of `check` are compared with propext, Quot.sound and Classical.choice. 7.  If the toolchain can, a third
process checks the submission's declarations again with the kernel (`replay`). 8.  If the spec requires it, another
kernel than Lean's checks an export of `check`, in a box of its own (`second`).

Invariants: safe for several threads, several concurrent checks; only steps 5 to 8 give a pass. Sources:
leanprover/comparator and lean4checker for the threat model; Lean reference, "Validating a Lean proof".
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from verifiers.boxes.box import BoxLost, ToolBoxes
from verifiers.boxes.conductor import ConductorParts
from verifiers.contract.text import escaped
from verifiers.contract.verdict import Ground, Judgement, Outcome, Verdict
from verifiers.lean import judging
from verifiers.lean.boxes import LeanBox, LeanBoxes, LeanUnavailable, Role
from verifiers.lean.controls import LIMITS, PROBE
from verifiers.lean.headers import IDLE_MIB
from verifiers.lean.kernels import described, doubts
from verifiers.lean.kind import LEAN
from verifiers.lean.prepared import PreparedStatement, Preparer, trusted_options
from verifiers.lean.reading.commands import as_plain_file
from verifiers.lean.reading.lexer import normalized, plain, without_comments, without_room, words
from verifiers.lean.reading.screening import ScreeningFinding, computes, parts, screen
from verifiers.lean.second import HINT, SecondKernel, find_second
from verifiers.lean.spec import LeanSpec
from verifiers.lean.statement import CHECK, SUBMISSION, LeanStatement, digest, read_statement
from verifiers.lean.steps import Ran, header, step, without_imports
from verifiers.lean.submission import LeanSource, assemble
from verifiers.lean.toolchain import PROGRAM, Toolchain, find, how_to_have_one, tools

MOST_TEXT = 300_000
"""Maximum length of a submission, in characters."""
BOX_MIB = 5120
TMP_MIB = 256
SECOND_SECONDS = 60.0
"""Least CPU seconds for a second kernel."""
LATE = 0.3
"""CPU seconds beyond the limit in which a file that compiled in time may still be checked."""
SHORTEST = 0.05
"""Minimum remaining seconds for starting a step."""
ALL_BUT = 0.99
"""Share of its time limit that a killed step must have computed to count as timed out."""
NEWER = "Install a newer Lean, or take require_kernel_floor out of the policy."
BUSY_HINT = "Retry when the machine is less busy."


def conductor(parts: ConductorParts) -> LeanVerifier:
    """Builds a verifier that compiles Lean proofs in the boxes of these parts."""
    toolchain = find(parts.lean, projects=parts.lean_projects)
    floor = parts.require_kernel_floor
    return LeanVerifier(parts.boxes(), toolchain, find_second(), most=parts.workers, require_kernel_floor=floor)


class ProofClock:
    """CPU seconds left for all steps of one proof."""

    def __init__(self, seconds: float) -> None:
        self.left = seconds

    def took(self, ran: Ran) -> None:
        self.left -= max(0.0, ran.cpu)


@dataclass(frozen=True)
class SubmittedProof:
    """A submitted Lean proof to compile and check."""

    spec: LeanSpec
    statement: LeanStatement
    prepared: PreparedStatement
    source: LeanSource
    clock: ProofClock
    compiled: dict[str, str] = field(default_factory=dict)
    """Files of the accepted check, in base64, if a second kernel needs them."""

    def keep(self, asked: dict[str, Any], checked: Ran) -> None:
        """Keeps the compiled files of an accepted check."""
        self.compiled.update(asked["files"] | ({f"{CHECK}.olean": checked.file} if checked.file else {}))


class LeanVerifier:
    """Checks Lean proofs in boxes. `close()` ends all its boxes."""

    name = LEAN.name
    version = LEAN.version

    def __init__(
        self,
        launch: ToolBoxes | Callable[[], LeanBox],
        toolchain: Toolchain | None,
        second: SecondKernel | None = None,
        *,
        memory_mib: int = BOX_MIB,
        most: int | None = None,
        alone: bool = False,
        require_kernel_floor: bool = False,
    ) -> None:
        """Creates a verifier whose boxes start on first use. `launch` starts boxes with the program
        `toolchain.program` of this toolchain and second kernel. `most`: concurrent checks, by default one per core.
        `alone`: serves one statement, whose own code may run in its boxes. `require_kernel_floor`: decides nothing with
        a kernel of known holes."""
        self._toolchain, self._second = toolchain, second
        if isinstance(launch, ToolBoxes):
            boxes = launch
            launch = lambda: boxes.box(PROGRAM, memory_mib=memory_mib, tmp_mib=TMP_MIB, pids=128)  # noqa: E731
        self._launch, self._alone, self._require_floor = launch, alone, require_kernel_floor
        self._others: set[LeanVerifier] = set()
        """Verifiers in use for statements with code of their own."""
        self._boxes = LeanBoxes(launch, most or len(os.sched_getaffinity(0)))
        self._memory_mib = memory_mib - TMP_MIB
        self._mark = f"assay_{secrets.token_hex(8)}"
        self._preparer = Preparer(self._mark, self._ask, lambda: self._warm)

    def tools(self) -> dict[str, str]:
        return tools(self._toolchain)

    def check(self, spec: LeanSpec) -> None:
        """Raises SpecError, with a hint, for an unreadable statement. Only `verify` shows if Lean accepts it."""
        read_statement(spec)

    def close(self) -> None:
        self._boxes.close()
        for other in tuple(self._others):
            other.close()

    def verify(self, spec: LeanSpec, submission: str, seconds: float = 60.0) -> Verdict:
        """Verifies a proof of a Lean statement. Raises only SpecError, for a statement that does not compile."""
        began = time.monotonic()
        statement = read_statement(spec)
        if not self._alone and (screen(statement.source) or computes(statement.source)):
            return self._verified_alone(spec, submission, seconds)
        limit = min(seconds, spec.seconds)
        judged = self._judged(spec, statement, submission, limit)
        theorem = {"theorem": escaped(statement.full_name), "statement_sha256": digest(spec), "kernel_replayed": "no"}
        used = self.tools()
        if spec.kernels == 2 and self._second is not None:
            used |= {"second_kernel": str(self._second)}
        seconds = round(time.monotonic() - began, 4)
        kernel = {"kernel": described(self._toolchain.version)} if self._toolchain else {}
        judged = judged._replace(evidence=theorem | kernel | judged.evidence)
        return judged.verdict(self.name, self.version, tools=used, seconds=seconds)

    def _verified_alone(self, spec: LeanSpec, submission: str, seconds: float) -> Verdict:
        """Verifies a proof of a statement whose own code may run at compile time, in boxes used for nothing else."""
        memory_mib = self._memory_mib + TMP_MIB
        floor = self._require_floor
        other = LeanVerifier(
            self._launch,
            self._toolchain,
            self._second,
            memory_mib=memory_mib,
            most=1,
            alone=True,
            require_kernel_floor=floor,
        )
        self._others.add(other)
        try:
            if self._boxes.is_closed():
                other.close()
            return other.verify(spec, submission, seconds)
        finally:
            other.close()
            self._others.discard(other)

    def _judged(self, spec: LeanSpec, statement: LeanStatement, submission: str, limit: float) -> Judgement:
        """Judges a Lean submission. `limit` is the total time in seconds, including reading the text."""
        clock, began = ProofClock(limit), time.thread_time()
        if len(submission) > MOST_TEXT:
            return judging.failed(Ground.UNREADABLE, f"it has more than {MOST_TEXT} characters")
        try:
            submission.encode()
        except UnicodeEncodeError:
            return judging.failed(Ground.UNREADABLE, "it is not Unicode text")
        submission = normalized(submission)
        every = list(words(submission))
        submission = without_comments(submission, every)
        found = screen(submission, every, allowed=parts(spec.statement))
        if found:
            return judging.forbidden(found)
        submission = as_plain_file(submission, without_room(every))
        source = assemble(spec, statement, submission, without_room(words(submission)))
        if isinstance(source, ScreeningFinding):
            return judging.forbidden([source])
        clock.left = max(0.5, limit - (time.thread_time() - began))
        if self._toolchain is None:
            return judging.lost("no Lean is installed on this machine", how_to_have_one())
        if self._require_floor and (why := doubts(self._toolchain.version)):
            return judging.lost(f"the policy requires a kernel without known holes, and this one is {why}", NEWER)
        if spec.kernels == 2 and self._second is None:
            return judging.lost("the statement requires a second kernel, and none is installed", HINT)
        try:
            prepared = self._preparer.prepared(spec, statement)
            proof = SubmittedProof(spec, statement, prepared, source, clock)
            judged = self._compiled_and_checked(proof, limit)
            return self._checked_elsewhere(proof, judged) if judged.outcome is Outcome.PASS else judged
        except LeanUnavailable as error:
            return judging.lost(str(error), error.hint)
        except (BoxLost, ValidationError) as error:
            return judging.lost(f"the statement's box was lost: {error}", "")

    def _compiled_and_checked(self, proof: SubmittedProof, limit: float) -> Judgement:
        spec, source = proof.spec, proof.source
        compiled, isolation, warm = self._compile(proof)
        if isinstance(compiled, Judgement):
            return compiled
        if not compiled.compiled or compiled.file is None:
            judged = judging.compile_failure(compiled, source, limit, spec.memory_mib)
            return judged.noting(headers=warm)._replace(isolation=isolation)
        prepared = proof.prepared
        submitted = {f"{SUBMISSION}.olean": compiled.file}
        files, modules = prepared.trusted | submitted, [*map(plain, source.modules), "Init"]
        message = self._limits(spec) | {"bare": list(submitted), "modules": modules, "files": files}
        against = message | {"options": trusted_options(spec), "wanted": prepared.wanted, "keep": spec.kernels == 2}
        found, differs = self._checked_warmly(proof, against)
        if found is not None:
            return found.noting(headers=warm)
        asked = step(CHECK, prepared.check_file, **against)
        checked, isolation = self._twice("check", asked, proof.clock)
        if isinstance(checked, Judgement):
            return checked
        judged = judging.outcome_of_check(checked, proof.statement, source, self._mark)
        if judged.outcome is Outcome.PASS:
            proof.keep(against, checked)
            judged = self._replayed(proof, judged, message)
        if judged.outcome is Outcome.PASS and differs:
            judged = judging.lost("the kernel made something else of the compiled file than Lean's import did", "")
        return judged.noting(headers=self._cold)._replace(isolation=isolation)

    def _compile(self, proof: SubmittedProof) -> tuple[Ran | Judgement, str, str]:
        """Compiles a submitted proof. Returns the run or a judgement, its isolation, and `warm` or `cold`."""
        source, limits = proof.source, self._limits(proof.spec) | {"keep": True}
        modules = header(source.modules)
        if self._warm and modules is not None and modules == header(proof.statement.imports):
            asked = step(SUBMISSION, without_imports(source.text, source.modules), header=modules, **limits)
            ran, isolation = self._twice("compile", asked, proof.clock)
            if isinstance(ran, Judgement) or ran.settled:
                return ran, isolation, "warm"
        asked = step(SUBMISSION, source.text, files=proof.prepared.shared, **limits)
        return *self._twice("compile", asked, proof.clock), self._cold

    def _checked_warmly(self, proof: SubmittedProof, against: dict[str, Any]) -> tuple[Judgement | None, bool]:
        """Checks and replays a compiled proof in one step, in a process with preimported modules. The kernel adds the
        declarations of the statement and then of the submission, and the check is elaborated on top.

        Returns None if the cold way must decide, and True if the theorem differed here: the cold way may then explain
        why, but never pass.
        """
        modules = header(proof.statement.imports)
        if modules is None or not self._warm:
            return None, False
        text = proof.statement.added_check_file(self._mark)
        asked = step(CHECK, text, header=modules, add=list(against["files"]), **against)
        checked, isolation = self._twice("check", asked, proof.clock)
        if isinstance(checked, Judgement) or not checked.settled or checked.refused:
            return None, not isinstance(checked, Judgement) and checked.replayed == "yes" and judging.differs(checked)
        judged = judging.outcome_of_check(checked, proof.statement, proof.source, self._mark)
        if judged.outcome is Outcome.PASS:
            if checked.replayed != "yes":
                return None, False
            proof.keep(against, checked)
            judged = judging.outcome_of_replay(judged, checked.replayed, required=proof.spec.require_replay)
        return (judged._replace(isolation=isolation) if judged.ground is not Ground.BROKEN else None), False

    def _replayed(self, proof: SubmittedProof, judged: Judgement, message: dict[str, Any]) -> Judgement:
        """Judges a passing proof after a second kernel check of all its declarations, if available."""
        replayed: str | None = None
        if self._boxes.replays:
            asked = step("Replay", "", replay=f"{SUBMISSION}.olean", **message)
            ran, _ = self._twice("check", asked, proof.clock)
            if isinstance(ran, Judgement):
                return ran
            replayed = ran.replayed if ran.ended == "exited" and ran.code == 0 else ran.ended
        return judging.outcome_of_replay(judged, replayed, required=proof.spec.require_replay)

    def _checked_elsewhere(self, proof: SubmittedProof, judged: Judgement) -> Judgement:
        """Judges a passing proof after the second kernel, if the statement requires one. Its time is its own: no
        submission fails by it. Raises LeanUnavailable."""
        spec, second, toolchain = proof.spec, self._second, self._toolchain
        if spec.kernels == 1 or second is None or toolchain is None:
            return judged
        limits = self._limits(spec) | {"seconds": max(spec.seconds, SECOND_SECONDS), "lean": toolchain.version}
        files = {"files": proof.compiled, "bare": [f"{SUBMISSION}.olean"]}
        try:
            ran, _ = self._ask("kernel", step(CHECK, "", export=f"{self._mark}.check", **limits, **files))
        except (BoxLost, ValidationError) as error:
            return judging.lost(f"the box of the second kernel was lost: {error}", "")
        return judging.outcome_of_second(judged, ran, str(second), proof.statement.full_name)

    @property
    def _warm(self) -> bool:
        return self._boxes.headers == "warm"

    @property
    def _cold(self) -> str:
        return "cold" if self._warm else f"cold: {escaped(self._boxes.headers)}"

    def _limits(self, spec: LeanSpec) -> dict[str, Any]:
        most = min(spec.memory_mib, self._memory_mib)
        return {
            "memory_mib": most,
            "idle_mib": max(IDLE_MIB, self._memory_mib - most),
            "options": [f"-DmaxHeartbeats={spec.heartbeats}"],
        }

    def _twice(self, role: Role, message: dict[str, Any], clock: ProofClock) -> tuple[Ran | Judgement, str]:
        """Runs a Lean step within the remaining time. A step lost through no fault of the submission is retried once,
        in a fresh box. A crash of Lean, or a box that falls silent, counts against the submission only if it happens
        both times and a small theorem compiles there."""
        late = judging.failed(Ground.TIMEOUT, "Lean did not finish it in time")
        reason = hint = ""
        for _ in range(2):
            seconds = clock.left + (LATE if role == "check" else 0.0)
            if seconds < SHORTEST:
                break
            try:
                ran, isolation = self._ask(role, message | {"seconds": seconds})
            except BoxLost as error:
                if error.cause == "memory":
                    return judging.failed(Ground.MEMORY, f"it needs more than {self._memory_mib} MiB"), ""
                if error.cause == "timeout" and role == "compile" and reason and self._works(role):
                    return late, ""
                reason = f"the box was lost: {error}"
                continue
            except ValidationError:
                reason = "the box gave an invalid answer"
                continue
            if ran.starved:
                reason = "Lean could not start its threads"
            elif ran.broke_off and not (reason and self._works(role)):
                reason = f"Lean ended with {ran.ended} {ran.code}: {escaped(ran.err.strip() or ran.out.strip())}"
            elif ran.ended == "timeout" and ran.cpu < ALL_BUT * seconds:
                reason, hint = f"Lean was starved of CPU for {ran.seconds:.0f} s", BUSY_HINT
            else:
                clock.took(ran)
                return ran, isolation
        return (judging.lost(f"no verdict after two attempts: {reason}", hint) if reason else late), ""

    def _works(self, role: Role) -> bool:
        """True if a small theorem compiles in a box of this role. Raises BoxLost, ValidationError."""
        ran, _ = self._ask(role, step("Probe", PROBE, **LIMITS))
        return ran.compiled

    def _ask(self, role: Role, message: dict[str, Any]) -> tuple[Ran, str]:
        answer, isolation = self._boxes.ask(role, message)
        return Ran.model_validate(answer), isolation
