"""Results of one test and of all tests: the pure part between replies and a verdict."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from runtime.sandbox import CallStatus
from verifiers.contract.text import clip
from verifiers.contract.verdict import Ground
from verifiers.programs.data.compare import agree
from verifiers.programs.data.values import Value, arguments_text, kind_of, literal
from verifiers.programs.guests import PlaceBrokenError
from verifiers.programs.plan import PlannedTest
from verifiers.programs.replies import ProgramReply, shown

EVIDENCE_CHARS = 1_000
GROUNDS = {
    CallStatus.TIMEOUT: Ground.TIMEOUT,
    CallStatus.CPU: Ground.TIMEOUT,
    CallStatus.EXPIRED: Ground.TIMEOUT,
    CallStatus.MEMORY: Ground.MEMORY,
}


class TestFinding(NamedTuple):
    """Result of one test of a submitted program. `ground` is None if it passed."""

    ground: Ground | None
    reason: str = ""
    got: str = ""
    """Short text of the returned value, to compare with a repetition. Empty if nothing was returned."""
    forged: bool = False

    @property
    def passed(self) -> bool:
        return self.ground is None


PASSED = TestFinding(None)


def once_more(ask: Callable[[], TestFinding], close: Callable[[], None]) -> TestFinding:
    """Calls `ask`, and again in a fresh sandbox if the first broke after the program had run in it. If the fresh one,
    which opened and worked, breaks too, the program is to blame. Raises SandboxError if no sandbox is available."""
    try:
        return ask()
    except PlaceBrokenError:
        close()
    try:
        return ask()
    except PlaceBrokenError as error:
        close()
        return TestFinding(Ground.REFUTED, f"it broke its sandbox, twice: {clip(ascii(str(error))[1:-1], 200)}")


def called(name: str, trial: PlannedTest) -> str:
    return f"{name}({clip(arguments_text(trial.arguments), 100)})"


def broken_off(name: str, reply: ProgramReply) -> TestFinding | None:
    """Returns the finding for a call that returned no value, or None if it returned one. `name` is the text of the
    call."""
    match reply.kind:
        case "value" | "loaded":
            return None
        case "raised" if "MemoryError" in reply.names:
            return TestFinding(Ground.MEMORY, f"{name} ran out of memory", shown(reply))
        case "raised" | "odd":
            return TestFinding(Ground.REFUTED, f"{name} {shown(reply)}", shown(reply))
        case "lost":
            ground = GROUNDS.get(reply.status, Ground.REFUTED)
            return TestFinding(ground, f"{name}: {shown(reply)}", forged=reply.forged)


def compared(name: str, trial: PlannedTest, reply: ProgramReply) -> TestFinding:
    """Compares a program's reply with a test's expected value or exception; returns the finding."""
    if trial.raises and reply.kind == "raised" and trial.raises in reply.names:
        return PASSED
    lost = broken_off(name, reply)
    if lost is not None and (reply.kind == "lost" or not trial.raises):
        return lost
    if trial.raises:
        gave = f"gave {shown(reply)}" if reply.kind == "value" else shown(reply)
        return TestFinding(Ground.REFUTED, f"{name} {gave}, and did not raise {trial.raises}", shown(reply))
    if agree(trial.expected, reply.value, trial.compare):
        return PASSED
    reason = f"{name} gave {shown(reply)}, not {clip(literal(trial.expected), 100)}"
    if literal(trial.expected) == literal(reply.value) or _numbers_alike(trial.expected, reply.value):
        reason += f": its type is {kind_of(reply.value)}, not {kind_of(trial.expected)}"
    return TestFinding(Ground.REFUTED, reason, shown(reply))


def _numbers_alike(one: Value, other: Value) -> bool:
    return (isinstance(one, bool | int | float) and isinstance(other, bool | int | float) and one == other) or (
        isinstance(one, list | tuple) and isinstance(other, list | tuple) and list(one) == list(other)
    )


def evidence(trial: PlannedTest, finding: TestFinding) -> dict[str, Any]:
    """Returns the data needed to repeat a program's test by hand."""
    details: dict[str, Any] = {"test": trial.number + 1, "kind": trial.origin, "visible": trial.visible}
    if trial.run is not None:
        details["stdin"] = clip(ascii(trial.run.stdin)[1:-1], EVIDENCE_CHARS)
        details["arguments"] = [clip(ascii(argument)[1:-1], 100) for argument in trial.run.arguments[:10]]
        details["expected"] = clip(ascii(trial.run.expected)[1:-1], EVIDENCE_CHARS)
    else:
        details["arguments"] = clip(arguments_text(trial.arguments), EVIDENCE_CHARS)
        if trial.raises:
            details["expected"] = f"raises {trial.raises}"
        elif trial.origin in ("example", "reference"):
            details["expected"] = clip(literal(trial.expected), EVIDENCE_CHARS)
        if trial.relation is not None:
            details["relation"] = trial.relation.kind
            if trial.pair is not None and trial.pair.second is not None:
                details["second_arguments"] = clip(literal(trial.pair.second), EVIDENCE_CHARS)
    if finding.got:
        details["got"] = clip(finding.got, EVIDENCE_CHARS)
    return details
