"""Runs a submitted function, one test at a time.

Invariants: the candidate's sandbox receives its source, the driver, and the arguments of the current call; expected
values, and what a relation compares, stay here.
"""

from __future__ import annotations

from collections.abc import Iterator

from runtime.sandbox import CallStatus
from verifiers.contract.text import clip
from verifiers.contract.verdict import Ground
from verifiers.programs.clocks import LEAST_SECONDS, CandidateClock, Limit, SpecTimeError, SubmissionClock
from verifiers.programs.data.generators import smaller
from verifiers.programs.data.values import Arguments, literal
from verifiers.programs.findings import PASSED, TestFinding, broken_off, called, compared, once_more
from verifiers.programs.guests import LOAD_SECONDS, Guest, Opening
from verifiers.programs.judges import Judges, patient, seconds
from verifiers.programs.plan import PlannedTest
from verifiers.programs.relations import chained, holds
from verifiers.programs.replies import ProgramReply, shown
from verifiers.programs.spec import ProgramSpec

SHRINKS, SHRINK_SECONDS, SPEC_SHRINK_SECONDS = 200, 2.0, 5.0
"""Limits for shrinking a failing input: calls, seconds in them, and seconds of the spec's own code."""


class Candidate:
    """A submitted function that is run in a succession of sandboxes. Close it with `close`."""

    def __init__(
        self,
        spec: ProgramSpec,
        source: str,
        opening: Opening,
        judges: Judges,
        *,
        clock: CandidateClock,
        spec_clock: SubmissionClock,
        seed: int = 0,
    ) -> None:
        """Prepares a submission to run; its sandbox opens on first use. `clock` covers all calls of the submission,
        `spec_clock` all of the spec's own code for it."""
        self._spec, self._opening, self._judges = spec, opening, judges
        self._clock, self._spec_clock = clock, spec_clock
        others = [relation.other for relation in spec.relations if relation.other]
        wanted = " ".join(dict.fromkeys([spec.function, *others]))
        self.guest, self._other = (
            Guest(opening, source, wanted=wanted, driver=spec.driver, seed=seed, clock=clock) for _ in range(2)
        )
        """`_other` serves the second calls of relations: its results cannot be what the first guest remembered."""

    @property
    def clock(self) -> CandidateClock:
        return self._clock

    def close(self) -> None:
        self.guest.close()
        self._other.close()

    @property
    def alive(self) -> bool:
        """True if the submission's sandbox survived the last test."""
        return self.guest.alive

    @property
    def signals(self) -> tuple[str, ...]:
        return (*self.guest.signals, *self._other.signals)

    def begin(self) -> TestFinding:
        """Loads the submission's source in a sandbox. Raises SandboxError."""
        return once_more(self._begin, self.close)

    def _begin(self) -> TestFinding:
        least = Limit(LEAST_SECONDS, LEAST_SECONDS)
        reply = self.guest.load(self._clock.limit(max(self._spec.seconds, LOAD_SECONDS)) or least)
        lost = broken_off("the program", reply)
        if lost is None:
            return PASSED
        unreadable = reply.names[:1] in (("SyntaxError",), ("IndentationError",), ("TabError",)) or (
            reply.names[:1] == ("NameError",) and reply.text.startswith("the program defines no function")
        )
        if unreadable:
            return lost._replace(ground=Ground.UNREADABLE)
        return lost._replace(reason=f"{lost.reason} when it was loaded")

    def test(self, trial: PlannedTest) -> TestFinding:
        """Runs one test on the submission. Raises SandboxError, or SpecError if the spec's own code is broken."""
        return once_more(lambda: self._test(trial), self.close)

    def _test(self, trial: PlannedTest) -> TestFinding:
        if self._spec.fresh:
            self.guest.close()
        if trial.relation is not None:
            return self._relation(trial)
        name = called(self._spec.function, trial)
        reply = self._call(self._spec.function, trial.arguments)
        found = broken_off(name, reply) or PASSED if trial.origin == "property" else compared(name, trial, reply)
        if found.passed and trial.properties:
            return self._properties(name, trial, reply)
        return found

    def _call(self, function: str, arguments: Arguments, guest: Guest | None = None) -> ProgramReply:
        limit = self._clock.limit(self._spec.seconds)
        if limit is None:
            return ProgramReply("lost", text=self._clock.over(), status=CallStatus.TIMEOUT)
        return (guest or self.guest).call(function, arguments, limit)

    def _properties(self, name: str, trial: PlannedTest, reply: ProgramReply) -> TestFinding:
        for number in range(len(self._spec.properties)):
            ground, why = self._judges.holds(
                self._spec, number, reply.value, trial.arguments, self._opening, self._spec_clock
            )
            if ground is not None:
                return TestFinding(ground, f"{name} gave {shown(reply)}: {why}", shown(reply))
        return PASSED

    def _relation(self, trial: PlannedTest) -> TestFinding:
        relation, pair = trial.relation, trial.pair
        assert relation is not None
        assert pair is not None
        function = self._spec.function
        first = self._call(function, Arguments(pair.first))
        lost = broken_off(called(function, trial), first)
        if lost is not None:
            return lost
        arguments = Arguments(pair.second or chained(relation, pair, first.value))
        if self._spec.fresh:
            self._other.close()
        second = self._call(relation.other or function, arguments, self._other)
        then = f"{relation.other or function}({clip(literal(arguments.positional)[1:-1], 100)})"
        lost = broken_off(then, second)
        if lost is not None:
            return lost
        if holds(relation, pair, first.value, second.value, trial.compare):
            return PASSED
        reason = (
            f"{called(function, trial)} gave {shown(first)} and {then} gave {shown(second)}: violates {relation.kind}"
        )
        return TestFinding(Ground.REFUTED, reason, f"{shown(first)}; {shown(second)}")

    def shrunk(self, trial: PlannedTest, finding: TestFinding) -> tuple[PlannedTest, TestFinding]:
        """Returns a failed test and its finding for a simpler input if a bounded search finds one. Only for generated
        inputs; lost calls are not shrunk, because each costs a sandbox."""
        if trial.origin not in ("reference", "property") or finding.ground is not Ground.REFUTED or finding.forged:
            return trial, finding
        best, found = trial, finding
        simpler = self._simpler(best)
        least = max(LEAST_SECONDS, self._clock.left - SHRINK_SECONDS)
        least_of_spec = max(LEAST_SECONDS, self._spec_clock.left - SPEC_SHRINK_SECONDS)
        for _ in range(SHRINKS):
            asked = next(simpler, None)
            if asked is None or self._clock.left < least or self._spec_clock.left < least_of_spec:
                break
            if (asked := self._asked(asked)) is None:
                continue
            again = self.test(asked)
            if not self.guest.alive:
                break
            if again.ground is Ground.REFUTED:
                best, found, simpler = asked, again, self._simpler(asked)
        return best, found

    def _simpler(self, trial: PlannedTest) -> Iterator[PlannedTest]:
        values = trial.arguments.positional
        for place, generator in enumerate(self._spec.inputs):
            for simpler in smaller(generator, values[place]):
                yield trial._replace(arguments=Arguments((*values[:place], simpler, *values[place + 1 :])))

    def _asked(self, trial: PlannedTest) -> PlannedTest | None:
        """Returns a test of a new input with the reference's result, or None if the reference rejects the input."""
        if trial.origin == "property":
            return trial
        try:
            with self._judges.reference(self._spec, self._opening, self._spec_clock) as reference:
                reply = patient(reference, self._spec.function, trial.arguments, seconds(self._spec))
        except SpecTimeError:
            return None
        return trial._replace(expected=reply.value) if reply.kind == "value" else None
