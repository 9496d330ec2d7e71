"""Verifier of the kind `program`: a verdict from tests that ran in sandboxes.

A pass is `tested`: evidence, not proof. Invariants: a pass needs every planned test answered and compared on this side;
a test that did not run, was skipped or lost is not passed. Passed tests must pass again, in another process, in another
order and with another random seed. A failure on our side is `infra_error`, after one retry with everything new; a
failure that follows the program everywhere is the program's. A spec that cannot decide, or that an idle program passes,
raises `SpecError` before the submission is read.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import Any

from runtime.errors import BadRequestError, RefusedError, SandboxError
from runtime.sandbox import Priority, SessionPool
from verifiers.boxes.conductor import ConductorParts
from verifiers.contract.errors import SpecError
from verifiers.contract.text import clip
from verifiers.contract.verdict import Ground, Outcome, Verdict
from verifiers.programs import checking, functions
from verifiers.programs.clocks import CandidateClock, NotMeasuredError, SpecTimeError, SubmissionClock, spec_clock
from verifiers.programs.data.values import Value
from verifiers.programs.functions import Candidate
from verifiers.programs.guests import Opening, opening
from verifiers.programs.judges import FASTER, Judges, Proved, outputs
from verifiers.programs.kind import PROGRAM
from verifiers.programs.plan import PlannedTest, TestFinding, evidence, plan, seed_of, shuffled
from verifiers.programs.spec import SOURCE_CHARS, ProgramSpec
from verifiers.programs.streams import StreamProgram
from verifiers.programs.trivial import HINT, driven, refuse_idle

ATTEMPTS = 2
SHOWN_ANYHOW = 20
"""Maximum number of visible tests that still run after a hidden one failed, to see if only visible ones pass."""
MOST_LOST = 100
"""Maximum number of sandboxes that one submission may break: opening each takes time that no call limit counts."""
IDLE_SECONDS = 1.0
"""Time limit for a property on an idle program's result, in seconds; it may not terminate for some."""
FLAKY = "gives different results for the same input"


Findings = list[tuple[PlannedTest, TestFinding]]
"""Tests of one round with their findings, in the order in which they ran."""


def conductor(parts: ConductorParts) -> ProgramVerifier:
    """Returns a verifier that runs programs in the sessions of these parts."""
    return ProgramVerifier(parts.sessions(), isolation=parts.isolation)


class ProgramVerifier:
    """Verifies submitted programs. Thread-safe. `close` ends its warm sandboxes, not the session pool."""

    name = PROGRAM.name
    version = PROGRAM.version

    def __init__(
        self, sessions: SessionPool, *, isolation: str = "gvisor", priority: Priority = Priority.TRAINING
    ) -> None:
        """Creates a verifier that uses the pool's sandboxes. `isolation`: its backend, for verdicts."""
        self._sessions, self._isolation, self._priority = sessions, isolation, priority
        self._judges = Judges()

    def close(self) -> None:
        self._judges.close()

    def check(self, spec: ProgramSpec, *, prove: bool = False) -> None:
        """Raises SpecError for an unusable program spec. With `prove`, also runs the reference on the examples."""
        checking.check(spec)
        if prove:
            place = self.opening(spec)
            try:
                self._proved(spec, place, spec.total_seconds)
            except NotMeasuredError:
                self._proved(spec, place.reading(), spec.total_seconds)

    def verify(
        self, spec: ProgramSpec, submission: str, seconds: float | None = None, *, thorough: bool = True
    ) -> Verdict:
        """Verifies a submitted program by running the spec's tests. `seconds` limits the own time of all tests
        together. Without `thorough` nothing is repeated and no failing input is shrunk, for callers that assess the
        tests. Raises SpecError only for the spec's fault."""
        checking.check(spec)
        started = time.monotonic()
        own = min(spec.total_seconds, seconds or spec.total_seconds)
        verdict = self._verdict(Outcome.INFRA_ERROR, Ground.BROKEN, "it was not tried")
        if len(submission) > SOURCE_CHARS or "\0" in submission:
            why = "it contains NUL" if "\0" in submission else f"longer than {SOURCE_CHARS} characters"
            verdict = self._verdict(Outcome.FAIL, Ground.UNREADABLE, why)
        elif not submission.strip():
            verdict = self._verdict(Outcome.FAIL, Ground.UNREADABLE, "the submission is empty")
        else:
            for _ in range(ATTEMPTS):
                try:
                    verdict = self._judged(spec, submission, own, thorough)
                    break
                except SandboxError as error:
                    hint = f" {error.hint}" if error.hint else ""
                    verdict = self._verdict(Outcome.INFRA_ERROR, Ground.BROKEN, f"{error}.{hint}")
                    if isinstance(error, RefusedError | BadRequestError):
                        break
        return verdict.model_copy(update={"seconds": time.monotonic() - started})

    def opening(self, spec: ProgramSpec) -> Opening:
        """Returns the recipe for opening this spec's sandboxes."""
        return opening(self._sessions, spec, self._priority)

    def _proved(self, spec: ProgramSpec, place: Opening, own: float) -> dict[int, Value]:
        """Checks a spec's own code in a sandbox, and returns the reference's results by input. Raises SpecError,
        SandboxError."""
        if not (spec.reference or spec.properties or spec.driver or spec.relations):
            return {}

        def prove() -> Proved:
            clock = partial(spec_clock, own, measured=place.measured)
            proved = Proved({})
            try:
                if spec.reference:
                    make = self._judges.results if spec.function else outputs
                    proved = make(spec, place, clock)
                tests = plan(spec, proved.found)
                about = clock()
                self._judges.sound(spec, tests, place, about)
                refuse_idle(
                    spec, tests, partial(self._judges.holds, spec, opening=place, clock=about, most=IDLE_SECONDS)
                )
            except SpecTimeError as error:
                raise SpecError(f"the spec's own code takes too long: {error}", hint=FASTER) from error
            for what, source in driven(spec).items():
                makes = self._makes(spec, source, place.reading(), own, about)
                findings = self._round(spec, makes, tests, {}, thorough=False)
                if _first_failed(findings) is None:
                    raise SpecError(f"{what} passes every test", hint=HINT)
            return proved

        return self._judges.cached(spec, prove).found

    def _makes(
        self, spec: ProgramSpec, source: str, place: Opening, own: float, spec_clock: SubmissionClock, seed: int = 0
    ) -> Callable[[], Candidate | StreamProgram]:
        """Returns a factory of runners for a program's source, each with its own clock."""

        def candidate() -> Candidate | StreamProgram:
            clock = CandidateClock(own, measured=place.measured)
            if not spec.function:
                return StreamProgram(spec, source, place, clock=clock)
            return Candidate(spec, source, place, self._judges, clock=clock, spec_clock=spec_clock, seed=seed)

        return candidate

    def _judged(self, spec: ProgramSpec, source: str, own: float, thorough: bool) -> Verdict:
        place = self.opening(spec)
        try:
            return self._judge(spec, source, own, thorough, place)
        except NotMeasuredError:
            return self._judge(spec, source, own, thorough, place.reading())

    def _judge(self, spec: ProgramSpec, source: str, own: float, thorough: bool, place: Opening) -> Verdict:
        tests = plan(spec, self._proved(spec, place, own))
        source = source.removeprefix("\ufeff")
        scan = functions.scan(source)
        about = spec_clock(own, measured=place.measured)
        seen: dict[str, None] = {}
        findings = self._round(
            spec, self._makes(spec, source, place, own, about), shuffled(spec, tests), seen, thorough=thorough
        )
        failed = _first_failed(findings)
        if failed is None and spec.twice != "never" and thorough:
            candidate = self._makes(spec, source, place, own, about, seed_of(spec, "again"))
            again = self._round(spec, candidate, shuffled(spec, tests, 1), seen, thorough=thorough)
            if (differs := _first_failed(again)) is not None:
                trial, found = differs
                failed = trial, found._replace(reason=f"it {FLAKY}: {found.reason}")
                findings = again
        return self._concluded(spec, tests, findings, failed, scan, seen)

    def _round(
        self,
        spec: ProgramSpec,
        candidate: Callable[[], Candidate | StreamProgram],
        tests: list[PlannedTest],
        seen: dict[str, None],
        *,
        thorough: bool,
    ) -> Findings:
        """Runs the tests on a new runner up to the first failure, or all for a partial score. Returns findings."""
        findings: Findings = []
        one = candidate()
        lost = 0
        try:
            begun = one.begin()
            if not begun.passed:
                return [(tests[0], begun)]
            for place, trial in enumerate(tests):
                if lost >= MOST_LOST:
                    findings.append((trial, TestFinding(Ground.REFUTED, "it broke too many sandboxes")))
                    continue
                found = one.test(trial)
                lost += not one.alive
                if thorough and found.ground is Ground.REFUTED and found.got:
                    found = self._steady(candidate, trial, found)
                if thorough and not found.passed and not spec.partial and isinstance(one, Candidate):
                    trial, found = one.shrunk(trial, found)  # noqa: PLW2901
                findings.append((trial, found))
                if not found.passed and not spec.partial:
                    visible = [other for other in tests[place + 1 :] if other.visible][:SHOWN_ANYHOW]
                    findings += [(other, one.test(other)) for other in visible if thorough and found.got]
                    break
            if findings[-1][1].passed and one.clock.settle():
                findings[-1] = (findings[-1][0], TestFinding(Ground.TIMEOUT, one.clock.over()))
        finally:
            seen.update(dict.fromkeys(one.signals))
            one.close()
        return findings

    def _steady(
        self, candidate: Callable[[], Candidate | StreamProgram], trial: PlannedTest, found: TestFinding
    ) -> TestFinding:
        """Repeats a failed test alone. Returns its finding, marked as flaky if the program's result changed."""
        with closing(candidate()) as other:
            begun = other.begin()
            again = other.test(trial) if begun.passed else begun
        if again.got == found.got and again.passed == found.passed:
            return found
        forged = found.forged or again.forged
        return found._replace(reason=f"it {FLAKY}: {found.reason}", forged=forged)

    def _concluded(
        self,
        spec: ProgramSpec,
        tests: list[PlannedTest],
        findings: Findings,
        failed: tuple[PlannedTest, TestFinding] | None,
        scan: functions.SignalScan,
        seen: dict[str, None],
    ) -> Verdict:
        strong = (*scan.strong, *(f"at run time: {signal}" for signal in functions.noticed(tuple(seen))))
        facts: dict[str, Any] = {"tests": len(tests)}
        if strong or scan.weak:
            facts["signals"] = [*strong[:20], *scan.weak[:10]]
        if failed is None:
            visible = sum(trial.visible for trial in tests)
            facts["visible"] = visible
            reason = f"all {len(tests)} tests passed" if len(tests) > 1 else "the test passed"
            refused = strong if spec.suspicion == "refuses" else scan.touches
            if refused:
                reason += f"; but it looks like an attempt to cheat the judge: {'; '.join(refused[:3])}"
                return self._verdict(Outcome.HACK_SUSPECTED, Ground.FORBIDDEN, reason, facts)
            return self._verdict(Outcome.PASS, Ground.TESTED, reason, facts, score=1.0)
        trial, found = failed
        facts["failed"] = evidence(trial, found)
        shown = [one.passed for asked, one in findings if asked.visible]
        if shown:
            facts["visible_passed"] = f"{sum(shown)} of {len(shown)}"
        score = 0.0
        if spec.partial:
            passed = sum(one.passed for _, one in findings)
            facts["passed"] = passed
            score = passed / len(tests)
        if strong or found.forged:
            what = "; ".join(strong[:3]) or "the nonce of a call was printed more than once"
            reason = f"{clip(found.reason, 300)}. It looks like an attempt to cheat the judge: {what}"
            return self._verdict(Outcome.HACK_SUSPECTED, Ground.FORBIDDEN, reason, facts)
        return self._verdict(Outcome.FAIL, found.ground or Ground.REFUTED, clip(found.reason, 500), facts, score=score)

    def _verdict(
        self, outcome: Outcome, ground: Ground, reason: str, facts: dict[str, Any] | None = None, *, score: float = 0.0
    ) -> Verdict:
        backends = getattr(self._sessions, "backends", {})
        return Verdict(
            outcome=outcome,
            score=score,
            reason=reason,
            ground=ground,
            evidence=facts or {},
            verifier=self.name,
            version=self.version,
            tools={self._isolation: backends[self._isolation]} if self._isolation in backends else {},
            isolation=self._isolation if outcome is not Outcome.INFRA_ERROR else "",
            seconds=0.0,
        )


def _first_failed(findings: Findings) -> tuple[PlannedTest, TestFinding] | None:
    return next((pair for pair in findings if not pair[1].passed), None)
