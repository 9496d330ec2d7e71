"""The verdict about a program, from tests that ran in sandboxes.

A pass is `tested`: evidence, no proof. What always holds: a pass needs every test of the plan answered and compared on
this side; a test that did not run, was skipped or lost is not passed. Where the source mentions chance, clocks or
threads, everything that passed has to pass once more, in another process, another order and with other random numbers.
What broke on our side is `infra_error`, after one more attempt with everything new. A spec that cannot decide raises
`SpecError`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from runtime.errors import BadRequestError, RefusedError, SandboxError
from runtime.sandbox import Priority, SessionPool
from verifiers.programs import checking, signals
from verifiers.programs.clocks import PATIENCE, Clock
from verifiers.programs.findings import Finding, clip, evidence
from verifiers.programs.functions import Candidate
from verifiers.programs.guests import Opening, opening
from verifiers.programs.judges import Judges
from verifiers.programs.outputs import outputs
from verifiers.programs.plan import Trial, plan, seed_of, shuffled
from verifiers.programs.spec import SOURCE_CHARS, ProgramSpec
from verifiers.programs.streams import Program
from verifiers.programs.values import Value
from verifiers.verdict import Ground, Outcome, Verdict

ATTEMPTS = 2
SHOWN_ANYHOW = 20
"""After a failure among hidden tests: so many visible ones are still run, to tell whether only those are passed."""
MOST_LOST = 100
"""Places that one submission may bring to an end: each takes time to open that no limit of its calls counts."""
FLAKY = "gives another result for the same input the next time"


class Outcomes(NamedTuple):
    """Of one round: what each test came to, in the order in which they ran."""

    findings: list[tuple[Trial, Finding]]

    @property
    def first(self) -> tuple[Trial, Finding] | None:
        return next((pair for pair in self.findings if not pair[1].passed), None)


class ProgramVerifier:
    """Safe to use from several threads. `close` ends what it keeps warm; the pool stays whose it is."""

    name = "program"
    version = "3"

    def __init__(
        self, sessions: SessionPool, *, isolation: str = "gvisor", priority: Priority = Priority.TRAINING
    ) -> None:
        """`isolation` names the backend of the pool, for verdicts."""
        self._sessions, self._isolation, self._priority = sessions, isolation, priority
        self._judges = Judges()

    def close(self) -> None:
        self._judges.close()

    def check(self, spec: ProgramSpec, *, prove: bool = False) -> None:
        """Raises SpecError. To `prove` also runs the reference, in a sandbox, against the examples."""
        checking.check(spec)
        if prove:
            self._results(spec, self.opening(spec))

    def verify(self, spec: ProgramSpec, submission: str, seconds: float | None = None) -> Verdict:
        """`seconds` is the wall clock of all tests together, and the most of their own time. Raises SpecError for the
        spec's sake only."""
        return self._tried(spec, submission, seconds, thorough=True)

    def once(self, spec: ProgramSpec, submission: str) -> Verdict:
        """As `verify`, for those who ask about the tests: nothing is repeated, and no failing input made smaller."""
        return self._tried(spec, submission, None, thorough=False)

    def _tried(self, spec: ProgramSpec, submission: str, seconds: float | None, *, thorough: bool) -> Verdict:
        checking.check(spec)
        started = time.monotonic()
        own, wall = min(spec.total_seconds, seconds or spec.total_seconds), seconds or PATIENCE * spec.total_seconds
        verdict = self._verdict(Outcome.INFRA_ERROR, Ground.BROKEN, "it was not tried")
        if len(submission) > SOURCE_CHARS or "\0" in submission:
            why = "it has a NUL" if "\0" in submission else f"longer than {SOURCE_CHARS} characters"
            verdict = self._verdict(Outcome.FAIL, Ground.UNREADABLE, why)
        elif not submission.strip():
            verdict = self._verdict(Outcome.FAIL, Ground.UNREADABLE, "there is no program")
        else:
            for _ in range(ATTEMPTS):
                try:
                    verdict = self._judge(spec, submission, partial(Clock, own, wall), thorough)
                    break
                except SandboxError as error:
                    hint = f" {error.hint}" if error.hint else ""
                    verdict = self._verdict(Outcome.INFRA_ERROR, Ground.BROKEN, f"{error}.{hint}")
                    if isinstance(error, RefusedError | BadRequestError):
                        break
        return verdict.model_copy(update={"seconds": time.monotonic() - started})

    def opening(self, spec: ProgramSpec) -> Opening:
        """How its programs get their places."""
        return opening(self._sessions, spec, caller="programs", priority=self._priority)

    def _results(self, spec: ProgramSpec, place: Opening) -> dict[int, Value]:
        if spec.function or not spec.reference:
            return self._judges.results(spec, place)
        return self._judges.kept(spec, lambda: outputs(spec, place))

    def _judge(self, spec: ProgramSpec, source: str, clock: Callable[[], Clock], thorough: bool) -> Verdict:
        place = self.opening(spec)
        tests = plan(spec, self._results(spec, place))
        source = source.removeprefix("\ufeff")
        scan = signals.scan(source)

        def candidate(seed: int = 0) -> Candidate | Program:
            if spec.function:
                return Candidate(spec, source, place, self._judges, clock=clock(), seed=seed)
            return Program(spec, source, place, clock=clock())

        seen: dict[str, None] = {}
        outcomes = self._round(spec, candidate, shuffled(spec, tests), seen, thorough)
        failed = outcomes.first
        repeated = spec.twice == "always" or (spec.twice == "if_chancy" and scan.chancy)
        if failed is None and repeated and thorough:
            seed = seed_of(spec, "again")
            again = self._round(spec, lambda: candidate(seed), shuffled(spec, tests, 1), seen, thorough)
            # Out of time says nothing of another result: it was in time before, and the machine may be busy now.
            if again.first is not None and again.first[1].ground is not Ground.TIMEOUT:
                trial, found = again.first
                failed = trial, found._replace(reason=f"it {FLAKY}: {found.reason}")
                outcomes = again
        return self._concluded(spec, tests, outcomes, failed, scan, seen)

    def _round(
        self,
        spec: ProgramSpec,
        candidate: Callable[[], Candidate | Program],
        tests: list[Trial],
        seen: dict[str, None],
        thorough: bool,
    ) -> Outcomes:
        """All tests up to the first failure; all of them where a share is asked for."""
        findings: list[tuple[Trial, Finding]] = []
        one = candidate()
        lost = 0
        try:
            begun = one.begin()
            if not begun.passed:
                return Outcomes([(tests[0], begun)])
            for place, trial in enumerate(tests):
                if lost >= MOST_LOST:
                    findings.append((trial, Finding(Ground.REFUTED, "it was ended too often to be asked again")))
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
        finally:
            seen.update(dict.fromkeys(one.signals))
            one.close()
        return Outcomes(findings)

    def _steady(self, candidate: Callable[[], Candidate | Program], trial: Trial, found: Finding) -> Finding:
        """Asks once more, alone: a result that depends on anything but the input has a reason of its own."""
        other = candidate()
        try:
            begun = other.begin()
            again = other.test(trial) if begun.passed else begun
        finally:
            other.close()
        if again.got == found.got and again.passed == found.passed:
            return found
        forged = found.forged or again.forged
        return found._replace(reason=f"it {FLAKY}: {found.reason}", forged=forged)

    def _concluded(
        self,
        spec: ProgramSpec,
        tests: list[Trial],
        outcomes: Outcomes,
        failed: tuple[Trial, Finding] | None,
        scan: signals.Scan,
        seen: dict[str, None],
    ) -> Verdict:
        strong = (*scan.strong, *(f"it did {word}" for word in signals.noticed(tuple(seen))))
        told: dict[str, Any] = {"tests": len(tests)}
        if strong or scan.weak:
            told["signals"] = [*strong[:20], *scan.weak[:10]]
        if failed is None:
            visible = sum(trial.visible for trial in tests)
            told["visible"] = visible
            reason = f"all {len(tests)} tests passed" if len(tests) > 1 else "the test passed"
            refused = strong if spec.suspicion == "refuses" else scan.touches
            if refused:
                reason += f"; but it looks like an attempt on the judge: {'; '.join(refused[:3])}"
                return self._verdict(Outcome.HACK_SUSPECTED, Ground.FORBIDDEN, reason, told)
            return self._verdict(Outcome.PASS, Ground.TESTED, reason, told, score=1.0)
        trial, found = failed
        told["failed"] = evidence(trial, found)
        shown = [one.passed for asked, one in outcomes.findings if asked.visible]
        if shown:
            told["visible_passed"] = f"{sum(shown)} of {len(shown)}"
        score = 0.0
        if spec.partial:
            passed = sum(one.passed for _, one in outcomes.findings)
            told["passed"] = passed
            score = passed / len(tests)
        if strong or found.forged:
            what = "; ".join(strong[:3]) or "the judge's mark was printed more than once"
            reason = f"{clip(found.reason, 300)}. It looks like an attempt on the judge: {what}"
            return self._verdict(Outcome.HACK_SUSPECTED, Ground.FORBIDDEN, reason, told)
        return self._verdict(Outcome.FAIL, found.ground or Ground.REFUTED, clip(found.reason, 500), told, score=score)

    def _verdict(
        self,
        outcome: Outcome,
        ground: Ground,
        reason: str,
        told: dict[str, Any] | None = None,
        *,
        score: float = 0.0,
    ) -> Verdict:
        return Verdict(
            outcome=outcome,
            score=score,
            reason=reason,
            ground=ground,
            evidence=told or {},
            verifier=self.name,
            version=self.version,
            tools=self._tools(),
            isolation=self._isolation if outcome is not Outcome.INFRA_ERROR else "",
            seconds=0.0,
        )

    def _tools(self) -> dict[str, str]:
        found = getattr(self._sessions, "backends", {})
        return {self._isolation: found[self._isolation]} if self._isolation in found else {}
