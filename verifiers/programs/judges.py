"""What the spec's own code says: the reference's results or output, and whether a property holds.

What always holds: it runs in sandboxes that no candidate is ever in, and no candidate's code is ever there; what a
candidate returned comes in as a literal that the judge wrote. A reference's results are made once for a spec and kept.
Spec's code that breaks is the spec's fault (`SpecError`), not the candidate's.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager

from runtime.sandbox import CallStatus
from verifiers.contract.errors import SpecError
from verifiers.contract.text import clip
from verifiers.programs import values as v
from verifiers.programs.clocks import Limit, SubmissionClock
from verifiers.programs.compare import agree, printed
from verifiers.programs.findings import TestFinding, compared
from verifiers.programs.guests import SPEC_SECONDS, Guest, Opening
from verifiers.programs.plan import digest, generated, planned, stdin_of
from verifiers.programs.replies import ProgramReply, shown
from verifiers.programs.signals import scan
from verifiers.programs.spec import ProgramSpec, Run
from verifiers.programs.streams import StreamProgram

KEPT_RESULTS = 64
"""Specs whose reference's results are kept."""
KEPT_GUESTS = 4
"""Sandboxes of the spec's own code that are kept warm."""
LEAST_USED = 0.5
"""A reference may refuse inputs; it has to take at least this share of them."""


class Judges:
    """Safe to use from several threads. Close it, and nothing of it is left."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._results: OrderedDict[str, dict[int, v.Value]] = OrderedDict()
        self._making: dict[str, threading.Lock] = {}
        self._free: list[tuple[str, Guest]] = []
        self._closed = False

    def close(self) -> None:
        with self._lock:
            self._closed = True
            free, self._free = self._free, []
        for _, guest in free:
            guest.close()

    def cached(self, spec: ProgramSpec, make: Callable[[], dict[int, v.Value]]) -> dict[int, v.Value]:
        """What was made for this spec before, or is made now, once however many ask."""
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
                while len(self._results) > KEPT_RESULTS:
                    self._results.popitem(last=False)
            return found

    def results(self, spec: ProgramSpec, opening: Opening) -> dict[int, v.Value]:
        """What the reference gives for each generated input, by its place; inputs for which it raises are left out.

        Raises SpecError for a reference that is wrong about an example, or gives what is no plain data or too little.
        """
        with self.reference(spec, opening) as guest:
            for place, example in enumerate(spec.examples):
                trial = planned(spec, example)
                reply = patient(guest, spec.function, trial.arguments, spec.seconds)
                if not compared(spec.function, trial, reply).passed:
                    raise SpecError(
                        f"the reference disagrees with example {place + 1}: {shown(reply)}",
                        hint="One of the two is wrong.",
                    )
            found: dict[int, v.Value] = {}
            inputs = generated(spec)
            for place, arguments in enumerate(inputs):
                reply = patient(guest, spec.function, arguments, spec.seconds)
                if reply.kind == "value":
                    found[place] = reply.value
                elif reply.kind != "raised":
                    text = clip(v.arguments_text(arguments))
                    raise SpecError(f"the reference gives no result for ({text}): {shown(reply)}")
        enough(len(found), len(inputs))
        if scan(spec.reference).chancy:
            self._settled(spec, opening, inputs, found)
        results = {v.literal(value) for value in found.values()}
        results |= {example.raises or v.literal(v.read(example.expected)) for example in spec.examples}
        if found and len(results) == 1 and not spec.properties:
            raise SpecError(
                "the reference gives the same result for every input, so a constant passes",
                hint="Declare `inputs` for which results differ.",
            )
        return found

    def _settled(
        self, spec: ProgramSpec, opening: Opening, inputs: list[v.Arguments], found: dict[int, v.Value]
    ) -> None:
        """Raises SpecError where the reference says something else the next time, elsewhere and by other chances."""
        again = Guest(opening, spec.reference, wanted=spec.function, driver=spec.driver, own=True, seed=1)
        with again:
            for place, value in reversed(found.items()):
                reply = patient(again, spec.function, inputs[place], spec.seconds)
                if reply.kind != "value" or not agree(value, reply.value, spec.compare):
                    text = clip(v.arguments_text(inputs[place]))
                    raise SpecError(
                        f"the reference gives another result for ({text}) the next time: {shown(reply)}",
                        hint="Leave chance and clocks out of it, or ask for properties instead.",
                    )

    def reference(self, spec: ProgramSpec, opening: Opening) -> AbstractContextManager[Guest]:
        return self._guest(f"reference {digest(spec)}", spec.reference, spec.function, spec.driver, opening)

    def holds(
        self, spec: ProgramSpec, number: int, result: v.Value, arguments: v.Arguments, opening: Opening, seconds: float
    ) -> tuple[bool, str]:
        """Whether the property holds, and why not: what is nothing (`result and ...` of an empty result) is no True.
        Raises SpecError where it says something else than True or False."""
        source = spec.properties[number]
        asked = v.Arguments((result, *arguments.positional), arguments.named)
        with self._guest(f"property {number} {digest(spec)}", source, "holds", "", opening) as guest:
            reply = patient(guest, "holds", asked, seconds)
        if reply.kind == "value":
            if reply.value is True or reply.value is False:
                return reply.value, "" if reply.value else f"property {number + 1} does not hold"
            if reply.value in (None, 0, "", b"", [], (), v.DictPairs(()), v.Elements(())):
                return False, f"property {number + 1} does not hold: {shown(reply)}"
            raise SpecError(f"property {number + 1} returned {shown(reply)}", hint="It says True or False.")
        return False, f"property {number + 1} does not hold: {shown(reply)}"

    @contextmanager
    def _guest(self, key: str, source: str, wanted: str, driver: str, opening: Opening) -> Iterator[Guest]:
        """A warm one or a new one; back among the warm ones when nothing was lost in it. Raises SpecError when the
        source cannot be loaded."""
        with self._lock:
            warm = next((place for place, (name, _) in enumerate(self._free) if name == key), None)
            guest = self._free.pop(warm)[1] if warm is not None else None
        guest = guest or Guest(opening, source, wanted=wanted, driver=driver, own=True)
        try:
            reply = guest.load(Limit.of(SPEC_SECONDS))
            if reply.kind != "loaded":
                raise SpecError(f"the spec's own code cannot be used: {shown(reply)}")
            yield guest
        except BaseException:
            guest.close()
            raise
        with self._lock:
            if guest.alive:
                self._free.append((key, guest))
            surplus = [self._free.pop(0) for _ in self._free[0 if self._closed else KEPT_GUESTS :]]
        for _, one in surplus:
            one.close()


def outputs(spec: ProgramSpec, opening: Opening) -> dict[int, v.Value]:
    """Standard output for each generated input, by its place; input for which the reference does not end with 0 is left
    out. Raises SpecError for a reference that is wrong about a run, or ends in no way at all, and SandboxError."""
    found: dict[int, v.Value] = {}
    with closing(StreamProgram(spec, spec.reference, opening, clock=SubmissionClock())) as program:
        for place, run in enumerate(spec.runs):
            code, text = _ran(program, run, spec)
            if (run.exit_code is not None and code != run.exit_code) or not printed(
                run.expected, text, spec.output, absolute=spec.compare.absolute, relative=spec.compare.relative
            ):
                raise SpecError(
                    f"the reference disagrees with run {place + 1}: it prints {clip(ascii(text))} and ends with {code}",
                    hint="One of the two is wrong.",
                )
        inputs = generated(spec)
        for place, arguments in enumerate(inputs):
            code, text = _ran(program, Run(stdin=stdin_of(arguments)), spec)
            if code == 0:
                found[place] = text
    enough(len(found), len(inputs))
    if len({run.expected.strip() for run in spec.runs} | {str(text).strip() for text in found.values()}) == 1:
        raise SpecError(
            "the reference prints the same for every input, so a constant passes",
            hint="Declare `inputs` for which it prints something else.",
        )
    return found


def _ran(program: StreamProgram, run: Run, spec: ProgramSpec) -> tuple[int, str]:
    result = program.run(run, Limit.of(max(SPEC_SECONDS, spec.seconds)))
    if isinstance(result, TestFinding):
        raise SpecError(f"the reference cannot be used: {result.reason}")
    if result.status is not CallStatus.OK or result.exit_code is None:
        raise SpecError(f"the reference does not end on {clip(ascii(run.stdin), 80)}: {result.status}")
    return result.exit_code, result.stdout.decode("utf-8", "surrogateescape")


def enough(taken: int, made: int) -> None:
    """Raises SpecError where the reference refuses most inputs."""
    if taken < LEAST_USED * made:
        raise SpecError(f"the reference takes {taken} of {made} generated inputs", hint="Declare `inputs` closer.")


def patient(guest: Guest, function: str, arguments: v.Arguments, seconds: float) -> ProgramReply:
    """Asks the spec's own code, once more where the first call was lost. Raises SandboxError."""
    limit = Limit.of(max(seconds, SPEC_SECONDS))
    reply = guest.call(function, arguments, limit)
    return guest.call(function, arguments, limit) if reply.kind == "lost" else reply
