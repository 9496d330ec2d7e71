"""Runs the spec's own code: results or output of the reference, and properties.

Invariants: it runs in sandboxes that never contain a candidate's code; a candidate's result enters as data that the
judge wrote. A reference's results are computed once per spec and cached. All calls for one submission share a clock.
Broken spec code is the spec's fault (`SpecError`), not the candidate's; a property that does not finish decides nothing
(`Ground.UNKNOWN`).
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from hashlib import sha256
from typing import NamedTuple

from runtime.sandbox import CallStatus
from verifiers.contract.errors import SpecError
from verifiers.contract.text import clip
from verifiers.contract.verdict import Ground
from verifiers.programs.clocks import SpecTimeError, SubmissionClock
from verifiers.programs.data import values as v
from verifiers.programs.data.compare import agree, printed
from verifiers.programs.guests import SPEC_SECONDS, Guest, Opening, PlaceBrokenError
from verifiers.programs.plan import (
    PlannedTest,
    ReferenceRun,
    TestFinding,
    compared,
    digest,
    generated,
    planned,
    stdin_of,
)
from verifiers.programs.replies import ProgramReply, shown, tagged
from verifiers.programs.spec import LITERAL_CHARS, ProgramSpec, Run
from verifiers.programs.streams import StreamProgram

KEPT_RESULTS = 64
"""Maximum number of specs whose reference results are cached."""
KEPT_CHARS, MOST_CHARS = 64 << 20, 32 << 20
"""Maximum size of all cached results, and of those of one spec, in characters received."""
MOST_HELD = 100_000
"""Maximum number of cached property calls that held."""
MOST_KNOWN = 20
"""Maximum number of examples on which a property is tried."""
NOTHING: tuple[v.Value, ...] = (False, None, 0, "", b"", [], (), v.DictPairs(()), v.Elements(()))
EXHAUSTED = frozenset(["MemoryError", "RecursionError"])
CHANCE = "Remove randomness and clocks from it, or check properties instead."
FASTER = "Make it faster, generate fewer inputs, or give more seconds."
KEPT_GUESTS = 4
"""Maximum number of warm sandboxes for specs' own code."""
MADE_BYTES = 1 << 20
"""Output limit of a maker, in bytes."""
LEAST_USED = 0.5
"""Minimum share of inputs that a reference must accept."""


class Proved(NamedTuple):
    """Results of a spec's reference that passed all checks."""

    found: dict[int, v.Value]
    """Results of the reference for generated inputs by index; a `ReferenceRun` each for whole programs."""
    chars: int = 0
    """Total size of the results, in characters received."""


class Judges:
    """Runs and caches specs' own code. Safe to use from several threads. `close` ends all its sandboxes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._results: OrderedDict[str, Proved] = OrderedDict()
        self._held: set[bytes] = set()
        self._making: dict[str, threading.Lock] = {}
        self._free: list[tuple[str, Guest]] = []
        self._closed = False

    def close(self) -> None:
        with self._lock:
            self._closed = True
            free, self._free = self._free, []
        for _, guest in free:
            guest.close()

    def cached(self, spec: ProgramSpec, make: Callable[[], Proved]) -> Proved:
        """Returns a spec's cached reference results, or makes them now; concurrent callers share one computation."""
        key = digest(spec)
        with self._lock:
            making = self._making.setdefault(key, threading.Lock())
        with making:
            with self._lock:
                if key in self._results:
                    self._results.move_to_end(key)
                    return self._results[key]
            found = make()
            with self._lock:
                self._results[key] = found
                self._making.pop(key, None)
                while len(self._results) > KEPT_RESULTS or (
                    len(self._results) > 1 and sum(one.chars for one in self._results.values()) > KEPT_CHARS
                ):
                    self._results.popitem(last=False)
            return found

    def results(self, spec: ProgramSpec, opening: Opening, clock: Callable[[], SubmissionClock]) -> Proved:
        """Runs a spec's reference on each generated input, twice, and returns its results by index; inputs for which it
        raises are left out.

        Calls `clock` once for each of the two runs. Raises SpecError for a reference that contradicts an example,
        returns values that are not plain data, accepts too few inputs, or is not deterministic; SpecTimeError.
        """
        with self.reference(spec, opening, clock()) as guest:
            for number, example in enumerate(spec.examples):
                trial = planned(spec, example)
                reply = patient(guest, spec.function, trial.arguments, seconds(spec))
                if not compared(spec.function, trial, reply).passed:
                    raise SpecError(
                        f"the reference disagrees with example {number + 1}: {shown(reply)}",
                        hint="Correct one of the two.",
                    )
            found: dict[int, v.Value] = {}
            chars = 0
            inputs = generated(spec)
            for place, arguments in enumerate(inputs):
                reply = patient(guest, spec.function, arguments, seconds(spec))
                chars += reply.chars
                if reply.kind == "value":
                    found[place] = reply.value
                elif reply.kind != "raised":
                    text = clip(v.arguments_text(arguments))
                    raise SpecError(f"the reference gives no result for ({text}): {shown(reply)}")
                bounded(chars)
        enough(len(found), len(inputs))
        self._settled(spec, opening, inputs, found, clock())
        results = {v.literal(value) for value in found.values()}
        results |= {example.raises or v.literal(v.read(example.expected)) for example in spec.examples}
        if found and len(results) == 1 and not spec.properties:
            raise SpecError(
                "the reference gives the same result for every input, so a constant passes",
                hint="Declare `inputs` for which results differ.",
            )
        return Proved(found, chars)

    def _settled(
        self,
        spec: ProgramSpec,
        opening: Opening,
        inputs: list[v.Arguments],
        found: dict[int, v.Value],
        clock: SubmissionClock,
    ) -> None:
        """Raises SpecError if the reference returns another result in a second run, with another random seed."""
        again = Guest(opening, spec.reference, wanted=spec.function, driver=spec.driver, own=True, seed=1, clock=clock)
        with again:
            for place, value in reversed(found.items()):
                reply = patient(again, spec.function, inputs[place], seconds(spec))
                if reply.kind != "value" or not agree(value, reply.value, spec.compare):
                    text = clip(v.arguments_text(inputs[place]))
                    raise SpecError(
                        f"the reference gives another result for ({text}) when run again: {shown(reply)}", hint=CHANCE
                    )

    def reference(self, spec: ProgramSpec, opening: Opening, clock: SubmissionClock) -> AbstractContextManager[Guest]:
        return self._guest(f"reference {digest(spec)}", spec.reference, spec.function, spec.driver, opening, clock)

    def holds(
        self,
        spec: ProgramSpec,
        number: int,
        result: v.Value,
        arguments: v.Arguments,
        opening: Opening,
        clock: SubmissionClock,
        most: float = math.inf,
    ) -> tuple[Ground | None, str]:
        """Runs a spec's property on a result. Returns None as basis if it holds within `most` seconds; else why it does
        not, or why that is unknown.

        An empty value (from `result and ...`) counts as False. Raises SpecError for a property that returns anything
        but True or False, or that imports a missing module.
        """
        source, name = spec.properties[number], f"property {number + 1}"
        asked = v.Arguments((result, *arguments.positional), arguments.named)
        key = sha256(f"{digest(spec)} {number} {tagged(asked)}".encode()).digest()
        with self._lock:
            if key in self._held:
                return None, ""
        try:
            with self._guest(f"{name} {digest(spec)}", source, "holds", "", opening, clock) as guest:
                reply = patient(guest, "holds", asked, min(most, seconds(spec)))
        except SpecTimeError as error:
            return Ground.UNKNOWN, f"{name} is undecided: {error}"
        if reply.kind == "value" and reply.value is True:
            with self._lock:
                if len(self._held) >= MOST_HELD:
                    self._held.clear()
                self._held.add(key)
            return None, ""
        if reply.kind == "value" and reply.value in NOTHING:
            return Ground.REFUTED, f"{name} does not hold" + (f": {shown(reply)}" if reply.value is not False else "")
        if reply.kind in ("value", "odd"):
            raise SpecError(f"{name} returned {shown(reply)}", hint="Return True or False.")
        if reply.kind == "lost" or EXHAUSTED.intersection(reply.names):
            return Ground.UNKNOWN, f"{name} is undecided: {shown(reply)}"
        if "ImportError" in reply.names:
            raise SpecError(f"{name} is broken: it {shown(reply)}", hint="A sandbox has only the standard library.")
        return Ground.REFUTED, f"{name} does not hold: {shown(reply)}"

    def sound(self, spec: ProgramSpec, tests: list[PlannedTest], opening: Opening, clock: SubmissionClock) -> None:
        """Raises SpecError for a property that the reference's results violate or, without a reference, that raises for
        every example."""
        for number in range(len(spec.properties)):
            for trial in tests:
                if trial.origin != "reference":
                    continue
                ground, why = self.holds(spec, number, trial.expected, trial.arguments, opening, clock)
                if ground is not None:
                    raise SpecError(
                        f"{why}: for what the reference gives for ({clip(v.arguments_text(trial.arguments))})",
                        hint="Correct one of the two." if ground is Ground.REFUTED else FASTER,
                    )
            known = [trial for trial in tests if trial.origin == "example" and not trial.raises][:MOST_KNOWN]
            said = [self.holds(spec, number, one.expected, one.arguments, opening, clock) for one in known]
            if said and all("raised" in why for _, why in said) and not spec.reference:
                raise SpecError(f"{said[0][1]}, for every example", hint="Correct the property or the examples.")

    @contextmanager
    def _guest(
        self, key: str, source: str, wanted: str, driver: str, opening: Opening, clock: SubmissionClock
    ) -> Iterator[Guest]:
        """Yields a sandbox with a spec's own code loaded, warm or new; it stays warm afterwards if no call was lost.
        Raises SpecError if the source does not load, SpecTimeError."""
        with self._lock:
            warm = next((place for place, (name, _) in enumerate(self._free) if name == key), None)
            guest = self._free.pop(warm)[1] if warm is not None else None
        guest = guest or Guest(opening, source, wanted=wanted, driver=driver, own=True)
        guest.use(clock)
        try:
            reply = guest.load(limit_of(clock, SPEC_SECONDS))
            if reply.status is CallStatus.TIMEOUT:
                raise SpecTimeError(f"loading {shown(reply)}")
            if reply.kind != "loaded":
                raise SpecError(f"the spec's own code cannot be used: {shown(reply)}")
            yield guest
        except BaseException:
            guest.close()
            raise
        guest.use(SubmissionClock())
        with self._lock:
            if guest.alive:
                self._free.append((key, guest))
            surplus = [self._free.pop(0) for _ in self._free[0 if self._closed else KEPT_GUESTS :]]
        for _, one in surplus:
            one.close()


def outputs(spec: ProgramSpec, opening: Opening, clock: Callable[[], SubmissionClock]) -> Proved:
    """Runs a reference program on each generated or made input and returns a `ReferenceRun` by index; inputs on which
    it exits with a non-zero status are left out. Raises as `Judges.results`, and SandboxError."""
    found: dict[int, ReferenceRun] = {}
    inputs = [*map(stdin_of, generated(spec)), *_made(spec, opening, clock)]
    with closing(StreamProgram(spec, spec.reference, opening, clock=clock())) as program:
        for place, run in enumerate(spec.runs):
            code, text, _ = _ran(program, run, spec)
            if (run.exit_code is not None and code != run.exit_code) or not _alike(spec, run.expected, text):
                raise SpecError(
                    f"the reference disagrees with run {place + 1}: it prints {clip(ascii(text))} and ends with {code}",
                    hint="Correct one of the two.",
                )
        chars = 0
        for place, stdin in enumerate(inputs):
            code, text, computed = _ran(program, Run(stdin=stdin), spec)
            if code == 0:
                found[place] = ReferenceRun(stdin, text, computed)
                bounded(chars := chars + len(stdin) + len(text))
    enough(len(found), len(inputs))
    with closing(StreamProgram(spec, spec.reference, opening, clock=clock())) as program:
        for place, before in reversed(found.items()):
            code, text, computed = _ran(program, Run(stdin=before.stdin), spec)
            if code != 0 or not _alike(spec, before.output, text):
                raise SpecError(
                    f"the reference prints something else for {clip(ascii(before.stdin))} when run again", hint=CHANCE
                )
            found[place] = before._replace(seconds=max(before.seconds, computed))
    if len({run.expected.strip() for run in spec.runs} | {one.output.strip() for one in found.values()}) == 1:
        raise SpecError(
            "the reference prints the same for every input, so a constant passes",
            hint="Declare `inputs` for which it prints something else.",
        )
    return Proved({**found}, chars)


def _made(spec: ProgramSpec, opening: Opening, clock: Callable[[], SubmissionClock]) -> list[str]:
    """Runs a spec's maker on each of its cases and returns the printed inputs. Raises as `outputs`."""
    if not spec.cases:
        return []
    room = opening.limits.model_copy(update={"output_bytes": max(opening.limits.output_bytes, MADE_BYTES)})
    maker = spec.model_copy(update={"language": "python", "tool": None})
    made = []
    with closing(StreamProgram(maker, spec.maker, opening._replace(limits=room), clock=clock())) as program:
        for case in spec.cases:
            code, text, _ = _ran(program, Run(stdin=case), maker, "maker")
            if code != 0 or not 0 < len(text) <= LITERAL_CHARS:
                raise SpecError(
                    f"the maker prints {len(text)} characters for {clip(ascii(case))} and ends with {code}",
                    hint=f"It prints an input of 1 to {LITERAL_CHARS} characters and ends with 0.",
                )
            made.append(text)
    return made


def _alike(spec: ProgramSpec, expected: str, got: str) -> bool:
    return printed(expected, got, spec.output, spec.compare.tolerance)


def _ran(program: StreamProgram, run: Run, spec: ProgramSpec, name: str = "reference") -> tuple[int, str, float]:
    """Runs a spec's own program once; returns its exit code, output and CPU seconds. Raises as `outputs`."""
    try:
        result = program.run(run, limit_of(program.clock, seconds(spec)))
    except PlaceBrokenError:
        program.close()
        try:
            result = program.run(run, limit_of(program.clock, seconds(spec)))
        except PlaceBrokenError as error:
            raise SpecError(f"the {name} breaks its sandbox, twice: {error}") from error
    if isinstance(result, TestFinding):
        raise SpecError(f"the {name} cannot be used: {result.reason}")
    if result.status is not CallStatus.OK or result.exit_code is None:
        raise SpecError(f"the {name} does not finish on {clip(ascii(run.stdin), 80)}: {result.status}")
    return result.exit_code, result.stdout.decode("utf-8", "surrogateescape"), result.computed or 0.0


def bounded(chars: int) -> None:
    """Raises SpecError if a reference's results exceed MOST_CHARS characters, to bound memory."""
    if chars > MOST_CHARS:
        raise SpecError(
            f"the reference's results are more than {MOST_CHARS >> 20} MiB", hint="Generate fewer or smaller inputs."
        )


def enough(taken: int, made: int) -> None:
    """Raises SpecError if a reference rejects most of the generated inputs."""
    if taken < LEAST_USED * made:
        raise SpecError(
            f"the reference accepts only {taken} of {made} generated inputs", hint="Declare narrower `inputs`."
        )


def seconds(spec: ProgramSpec) -> float:
    """Returns the time limit of one call of a spec's own code, in seconds, within its clock."""
    return max(SPEC_SECONDS, spec.seconds)


def limit_of(clock: SubmissionClock, most: float) -> float:
    """Returns the time limit of a call by a clock, at most `most` seconds. Raises SpecTimeError if no time is left."""
    limit = clock.limit(most)
    if limit is None:
        raise SpecTimeError(clock.over())
    return limit


def patient(guest: Guest, function: str, arguments: v.Arguments, most: float) -> ProgramReply:
    """Calls the spec's own code, and retries a lost call once. Raises SandboxError; SpecTimeError if it did not finish,
    which a retry would not change."""
    reply = ProgramReply("lost")
    for _ in range(2):
        limit = limit_of(guest.clock, most)
        try:
            reply = guest.call(function, arguments, limit)
        except PlaceBrokenError as error:
            guest.close()
            reply = ProgramReply("lost", text=f"it broke its sandbox: {error}")
        if reply.status is CallStatus.TIMEOUT:
            raise SpecTimeError(f"it {reply.text}")
        if reply.kind != "lost":
            break
    return reply
