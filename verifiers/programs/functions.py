"""Runs a submitted function, one test at a time.

Invariants: the candidate's sandbox receives its source, the driver, and the arguments of the current call; expected
values, and what a relation compares, stay here.

Signals in a source, or noticed by its sandbox, that look like an attempt to cheat the judge.

A program that passes every test has passed, no matter what it imports: results are compared out of its reach. A program
that fails and has a strong signal is called `hack_suspected` instead of wrong, so that a person looks at it. Two things
are suspicious even if every test passed: naming the harness, which no honest program knows, and any strong signal if
the spec asks for that (`suspicion`). Weak signals (an import of `gc` or `signal`, a class with `__eq__`) are shown
beside a verdict and change nothing. Well-hidden attempts are not seen here; they fail because they do not compute the
answer.

The source is scanned as a sequence of words and strings, in linear time; it is never parsed here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from runtime.sandbox import CallStatus
from verifiers.contract.text import clip
from verifiers.contract.verdict import Ground
from verifiers.programs.clocks import LEAST_SECONDS, CandidateClock, SpecTimeError, SubmissionClock
from verifiers.programs.data.generators import smaller
from verifiers.programs.data.values import Arguments, literal
from verifiers.programs.guests import LOAD_SECONDS, Guest, Opening
from verifiers.programs.judges import Judges, patient, seconds
from verifiers.programs.plan import PASSED, PlannedTest, TestFinding, broken_off, called, compared, once_more
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
        reply = self.guest.load(self._clock.limit(max(self._spec.seconds, LOAD_SECONDS)) or LEAST_SECONDS)
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


PIECE = re.compile(
    r"(?P<comment>\#[^\n]*)"
    r"|(?P<string>'''(?:[^\\]|\\.)*?(?:'''|\\?\Z)|\"\"\"(?:[^\\]|\\.)*?(?:\"\"\"|\\?\Z)"
    r"|'(?:[^'\\\n]|\\.)*'?|\"(?:[^\"\\\n]|\\.)*\"?)"
    r"|(?P<name>[^\W\d]\w*)"
    r"|(?P<other>[^\s])",
    re.DOTALL,
)
_STRONG = (
    "_exit _Exit _getframe f_back f_locals f_globals f_builtins tb_frame gi_frame cr_frame ag_frame __subclasses__"
    " __globals__ __closure__ __builtins__ get_objects get_referrers get_referents currentframe getouterframes"
    " getinnerframes settrace setprofile addaudithook excepthook unraisablehook execv execve execvp execvpe execl"
    " execle execlp forkpty getppid killpg ptrace pthread_kill SkipTest ctypes sitecustomize usercustomize conftest"
    " _pytest TestReport _assay_begin _assay_load _assay_call LD_PRELOAD PYTHONPATH PYTEST_ADDOPTS"
    " PYTEST_CURRENT_TEST setitimer memfd_create"
)
_WEAK = (
    "gc inspect signal atexit subprocess threading multiprocessing socket pickle marshal unittest pytest __reduce__"
    " __reduce_ex__"
)
STRONG_NAMES, WEAK_NAMES = frozenset(_STRONG.split()), frozenset(_WEAK.split())
STRONG_STRINGS = (
    "/proc/", "conftest", "pytest.ini", "sitecustomize", "usercustomize", "reward.txt", "junit", "ctrf.json", "git log",
    ".git/", "/usr/bin/", "/usr/lib", "LD_PRELOAD", "__pycache__", ".pth", "\\x1e", "\x1e",
)  # fmt: skip
WEAK_STRINGS = ("ALL PASSED", "passed", "results.json", "verdict", "grader")
CALLED = re.compile(
    r"\b(?:os|posix)\s\.\s(?:abort|fork|kill|system|popen|posix_spawn\w*)\b"
    r"|\bfrom\s(?:os|posix)\simport\s(?:[\w,(]+\s){0,20}?(?:abort|fork|kill|system|popen|posix_spawnp?)\b"
)
"""Calls whose names are harmless elsewhere: philosophers have forks."""
PATCH = re.compile(
    r"\b(?:builtins|math|json|operator|numpy\.testing)\s*\.\s*\w+\s*=(?!\s*=)|\bsetattr\s*\(\s*(?:builtins|math|json|operator|unittest)\b"
    r"|\bsys\s*\.\s*modules\s*\[[^]]{0,100}\]\s*=(?!\s*=)"
)
ALWAYS_EQUAL = re.compile(
    r"def\s+__(?:eq|ne|lt|le|gt|ge|bool|instancecheck)__\s*\([^)]{0,200}\)[^:]{0,100}:\s*return\s+(?:True|1)\b"
)
MOST = 30


class SignalScan(NamedTuple):
    strong: tuple[str, ...]
    weak: tuple[str, ...]
    touches: tuple[str, ...]
    """Strong signals that name the harness."""


def scan(source: str) -> SignalScan:
    strong: dict[str, None] = {}
    weak: dict[str, None] = {}
    code = []
    for piece in PIECE.finditer(source):
        text = piece.group()
        match piece.lastgroup:
            case "name":
                code.append(text)
                if text in STRONG_NAMES:
                    strong[f"the name {text}"] = None
                elif text in WEAK_NAMES:
                    weak[f"the name {text}"] = None
            case "string":
                code.append("''")
                inside = text.strip("'\"rRbBuUfF").strip()
                if inside in STRONG_NAMES:
                    strong[f"the text {inside}"] = None
                for word in STRONG_STRINGS:
                    if word in text:
                        strong[f"the text {ascii(word)[1:-1]}"] = None
                for word in WEAK_STRINGS:
                    if word in text:
                        weak[f"the text {word}"] = None
            case "other":
                code.append(text)
            case _:
                pass
    joined = " ".join(code)
    for found in CALLED.finditer(joined):
        strong[f"the call {found.group().replace(' ', '')[:60]}"] = None
    for found in PATCH.finditer(joined):
        strong[f"the assignment {found.group().replace(' ', '')[:60]}"] = None
    if ALWAYS_EQUAL.search(joined):
        strong["a comparison that is always true"] = None
    elif "__eq__" in code:
        weak["the name __eq__"] = None
    touches = tuple(sign for sign in strong if "_assay_" in sign)
    return SignalScan(tuple(strong)[:MOST], tuple(weak)[:MOST], touches)


STRONG_NOTICED = re.compile(
    r"sys\._getframe|gc\.get_|sys\.set|sys\.addaudithook|os\.|subprocess\.|pty\.|socket\.|sys\._current_frames|signal\."
    r"|ctypes\.|opened |.* was replaced|a value that equals anything"
)


def noticed(notices: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the sandbox harness's notices that match a known form. Their text is hostile."""
    return tuple(ascii(notice)[1:-1][:120] for notice in notices if STRONG_NOTICED.match(notice))[:MOST]
