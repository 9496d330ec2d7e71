"""Runs a whole program, once per test, and compares its output.

Invariants: the sandbox contains the source, the tool and the standard input of the current run. Output and exit status
come from the sandbox's supervisor, in which no candidate code runs. The source is rewritten before each run; a sandbox
in which that fails is replaced by a fresh one, and so is one in which no program starts, once.
"""

from __future__ import annotations

from functools import partial

from runtime.errors import BadRequestError, BrokerLostError, BusyError, InfrastructureError, RefusedError, SandboxError
from runtime.sandbox import CallStatus, ExecResult, Sandbox
from verifiers.boxes.late import late
from verifiers.boxes.own_time import LAST_PATIENCE
from verifiers.contract.text import clip
from verifiers.contract.verdict import Ground
from verifiers.programs.clocks import SubmissionClock
from verifiers.programs.data.compare import printed
from verifiers.programs.guests import OURS, Opening, PlaceBrokenError, its_own_doing, processor_seconds
from verifiers.programs.languages import FILE, tool_of
from verifiers.programs.plan import GROUNDS, PASSED, PlannedTest, TestFinding, once_more
from verifiers.programs.spec import ProgramSpec, Run

BUILD_SECONDS = 30.0
LOOK_SECONDS = 1.0
"""Time limit for starting a tool without work, in seconds, to see if it exists."""
SENTENCES = {CallStatus.OUTPUT: "printed more than {output} bytes", CallStatus.MEMORY: "took more than {memory} MiB"}


class StreamProgram:
    """A submitted program that runs in a succession of sandboxes."""

    def __init__(self, spec: ProgramSpec, source: str, opening: Opening, *, clock: SubmissionClock) -> None:
        self._spec, self._opening, self.clock = spec, opening, clock
        self._tool = tool_of(spec, source)
        self._path = f"/work/{self._tool.file}"
        self._source = source.encode("utf-8", "surrogatepass")
        self._box: Sandbox | None = None
        self._ran = False
        """True once the program has run in the current sandbox."""
        self._excused = False
        """True once a dead sandbox was excused: the next death counts against the program."""
        self.signals: tuple[str, ...] = ()

    def close(self) -> None:
        box, self._box = self._box, None
        if box is not None:
            self.clock.closing(box)
            box.close()

    @property
    def alive(self) -> bool:
        """True if the program's sandbox survived the last test."""
        return self._box is not None

    def begin(self) -> TestFinding:
        """Opens a sandbox and builds the program if necessary. Raises SandboxError; RefusedError without the tool."""
        return once_more(self._begin, self.close)

    def _begin(self) -> TestFinding:
        self._box, self._ran = self._opening.sandbox(), False
        self.clock.opened(self._box, partial(processor_seconds, self._box))
        self._box.write(self._path, self._source)
        if not self._tool.build:
            return PASSED
        if not self._tool.run[0].startswith("/work/"):
            self._look_for(self._tool.run[0])
        limit = self.clock.limit(BUILD_SECONDS)
        if limit is None:
            return TestFinding(Ground.TIMEOUT, self.clock.over())
        built = self._exec(self._tool.build, b"", limit)
        if built.status is CallStatus.OK and built.exit_code == 0:
            return PASSED
        if built.status is not CallStatus.OK:
            return self._broken_off("building it", built, limit)
        why = clip(ascii(built.stderr.decode(errors="replace").strip())[1:-1], 200)
        return TestFinding(Ground.UNREADABLE, f"it could not be built: {why}")

    def test(self, trial: PlannedTest) -> TestFinding:
        """Runs the program on one test's input and checks its output. Raises SandboxError; RefusedError if the image
        lacks the tool."""
        run = trial.run
        assert run is not None
        return once_more(lambda: self._test(run, max(self._spec.seconds, trial.seconds)), self.close)

    def _test(self, run: Run, seconds: float) -> TestFinding:
        limit = self.clock.limit(seconds)
        if limit is None:
            return TestFinding(Ground.TIMEOUT, self.clock.over())
        result = self.run(run, limit)
        if isinstance(result, TestFinding):
            return result
        if result.status is not CallStatus.OK:
            return self._broken_off("the program", result, limit)
        return self._compared(run, result)

    def run(self, run: Run, limit: float) -> ExecResult | TestFinding:
        """Runs the program once, building it first if necessary. Returns a finding if its build failed. Raises as
        `begin`, and PlaceBrokenError."""
        if self._spec.fresh:
            self.close()
        if self._box is None:
            found = self._begin()
            if not found.passed:
                return found
        assert self._box is not None
        if not self._tool.build and self._ran and not self._rewritten(self._box):
            self.close()
            found = self._begin()
            if not found.passed:
                return found
        result = self._exec((*self._tool.run, *run.arguments), run.stdin.encode("utf-8", "surrogatepass"), limit)
        if result.status is not CallStatus.OK:
            self.close()
        return result

    def _rewritten(self, box: Sandbox) -> bool:
        """Writes the source anew; False in a sandbox that can no longer be used, regardless of the cause. Raises
        BrokerLostError, BusyError."""
        try:
            box.write(self._path, self._source)
        except (BrokerLostError, BusyError):
            raise
        except SandboxError:
            return False
        return True

    def _exec(self, command: tuple[str, ...], stdin: bytes, limit: float) -> ExecResult:
        assert self._box is not None
        argv = [argument.replace(FILE, self._path) for argument in command]
        ran, self._ran = self._ran, True
        try:
            with its_own_doing():
                result = self._box.exec(argv, stdin=stdin, seconds=limit, patience=LAST_PATIENCE)
        except PlaceBrokenError as error:
            if not ran and isinstance(error.__cause__, BadRequestError):
                raise self._absent(command[0], error) from error
            raise
        self.clock.took(result)
        if result.status in OURS:
            raise InfrastructureError("the sandbox's own limits ended it", hint="Run `assay doctor`.")
        if result.status is CallStatus.DIED and not self._excused:
            self._excused = True
            raise PlaceBrokenError("the sandbox ended during the run")
        return result

    def _look_for(self, tool: str) -> None:
        """Raises RefusedError if the sandbox lacks the tool; runs before any candidate code."""
        assert self._box is not None
        try:
            self._box.exec([tool], seconds=LOOK_SECONDS)
        except BadRequestError as error:
            raise self._absent(tool, error) from error

    def _absent(self, tool: str, error: Exception) -> RefusedError:
        return RefusedError(
            f"sandboxes here have no {tool}, which {self._spec.language} needs: {error}",
            hint="Use a guest root that has it, or name an installed tool in `tool`.",
        )

    def _broken_off(self, what: str, result: ExecResult, limit: float) -> TestFinding:
        if result.status is CallStatus.TIMEOUT:
            return TestFinding(Ground.TIMEOUT, f"{what} {late(result, limit)}")
        sentence = SENTENCES.get(result.status, "ended the sandbox: {status}").format(
            output=self._opening.limits.output_bytes, memory=self._spec.memory_mib, status=result.status
        )
        return TestFinding(GROUNDS.get(result.status, Ground.REFUTED), f"{what} {sentence}")

    def _compared(self, run: Run, result: ExecResult) -> TestFinding:
        got = result.stdout.decode("utf-8", "surrogateescape")
        if run.exit_code is not None and result.exit_code != run.exit_code:
            last = result.stderr.decode(errors="replace").strip().rpartition("\n")[2]
            ended = f"ended with {result.exit_code}, not {run.exit_code}"
            ground = Ground.MEMORY if last.startswith("MemoryError") else Ground.REFUTED
            detail = f": {clip(ascii(last)[1:-1], 100)}" if last else ""
            return TestFinding(ground, f"the program {ended}{detail}", ended)
        if printed(run.expected, got, self._spec.output, self._spec.compare.tolerance):
            return PASSED
        return TestFinding(
            Ground.REFUTED, f"the program printed {_difference(run.expected, got)}", ascii(got[:500])[1:-1]
        )


def _difference(expected: str, got: str) -> str:
    ours, theirs = expected.rstrip().split("\n"), got.rstrip().split("\n")
    for number, line in enumerate(ours):
        if number >= len(theirs):
            return f"{len(theirs) if got.strip() else 0} of {len(ours)} lines"
        if line.rstrip() != theirs[number].rstrip():
            shown, wanted = clip(ascii(theirs[number].rstrip()), 60), clip(ascii(line.rstrip()), 60)
            return f"{shown}, not {wanted}, in line {number + 1}"
    if len(theirs) > len(ours):
        return f"{len(theirs)} lines instead of {len(ours)}"
    return "the same words with other white space"
