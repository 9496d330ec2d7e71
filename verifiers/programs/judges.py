"""What the spec's own code says: the reference's results, and whether a property holds.

What always holds: it runs in sandboxes that no candidate is ever in, and no candidate's code is ever there; what a
candidate returned comes in as a literal that the judge wrote. A reference's results are made once for a spec and kept.
Spec's code that breaks is the spec's fault (`SpecError`), not the candidate's.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from verifiers.errors import SpecError
from verifiers.programs.clocks import Limit
from verifiers.programs.compare import agree
from verifiers.programs.guests import SPEC_SECONDS, Answer, Guest, Opening
from verifiers.programs.plan import digest, generated
from verifiers.programs.signals import scan
from verifiers.programs.spec import ProgramSpec
from verifiers.programs.values import Arguments, Elements, Pairs, Value, arguments_text, literal, read, read_arguments

KEPT_RESULTS = 64
"""Specs whose reference's results are kept."""
KEPT_GUESTS = 4
"""Sandboxes of the spec's own code that are kept warm."""
LEAST_USED = 0.5
"""A reference may refuse inputs; it has to take at least this share of them."""
SHOWN = 120
ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}\b")
"""Of an object: another one each time, and of no use to anybody."""


class Judges:
    """Safe to use from several threads. Close it, and nothing of it is left."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._results: OrderedDict[str, dict[int, Value]] = OrderedDict()
        self._making: dict[str, threading.Lock] = {}
        self._free: list[tuple[str, Guest]] = []
        self._closed = False

    def close(self) -> None:
        with self._lock:
            self._closed = True
            free, self._free = self._free, []
        for _, guest in free:
            guest.close()

    def results(self, spec: ProgramSpec, opening: Opening) -> dict[int, Value]:
        """What the reference gives for each generated input, by its place; inputs for which it raises are left out.

        Raises SpecError for a reference that is wrong about an example, or gives what is no plain data or too little.
        """
        return self.kept(spec, lambda: self._made(spec, opening)) if spec.reference else {}

    def kept(self, spec: ProgramSpec, make: Callable[[], dict[int, Value]]) -> dict[int, Value]:
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

    def _made(self, spec: ProgramSpec, opening: Opening) -> dict[int, Value]:
        with self.reference(spec, opening) as guest:
            for place, example in enumerate(spec.examples):
                told = patient(guest, spec.function, read_arguments(example.arguments), spec.seconds)
                right = (
                    example.raises in told.names
                    if example.raises
                    else told.kind == "value"
                    and agree(read(example.expected), told.value, example.compare or spec.compare)
                )
                if not right:
                    raise SpecError(
                        f"the reference disagrees with example {place + 1}: {shown(told)}",
                        hint="One of the two is wrong.",
                    )
            found: dict[int, Value] = {}
            inputs = generated(spec)
            for place, arguments in enumerate(inputs):
                told = patient(guest, spec.function, arguments, spec.seconds)
                if told.kind == "value":
                    found[place] = told.value
                elif told.kind != "raised":
                    text = arguments_text(arguments)[:SHOWN]
                    raise SpecError(f"the reference gives no result for ({text}): {shown(told)}")
        enough(len(found), len(inputs))
        if scan(spec.reference).chancy:
            self._settled(spec, opening, inputs, found)
        constant = len({literal(value) for value in found.values()}) == 1
        if constant and not spec.properties and not _other_result(spec, next(iter(found.values()))):
            raise SpecError(
                "the reference gives the same result for every input, so a constant passes",
                hint="Declare `inputs` for which results differ.",
            )
        return found

    def _settled(self, spec: ProgramSpec, opening: Opening, inputs: list[Arguments], found: dict[int, Value]) -> None:
        """Raises SpecError where the reference says something else the next time, elsewhere and by other chances."""
        again = Guest(opening, spec.reference, wanted=spec.function, driver=spec.driver, own=True, seed=1)
        with again:
            for place, value in reversed(found.items()):
                told = patient(again, spec.function, inputs[place], spec.seconds)
                if told.kind != "value" or not agree(value, told.value, spec.compare):
                    text = arguments_text(inputs[place])[:SHOWN]
                    raise SpecError(
                        f"the reference gives another result for ({text}) the next time: {shown(told)}",
                        hint="Leave chance and clocks out of it, or ask for properties instead.",
                    )

    @contextmanager
    def reference(self, spec: ProgramSpec, opening: Opening) -> Iterator[Guest]:
        with self._guest(f"reference {digest(spec)}", spec.reference, spec.function, spec.driver, opening) as guest:
            yield guest

    def holds(
        self, spec: ProgramSpec, number: int, result: Value, arguments: Arguments, opening: Opening, seconds: float
    ) -> tuple[bool, str]:
        """Whether the property holds, and why not: what is nothing (`result and ...` of an empty result) is no True.
        Raises SpecError where it says something else than True or False."""
        source = spec.properties[number]
        asked = Arguments((result, *arguments.positional), arguments.named)
        with self._guest(f"property {number} {digest(spec)}", source, "holds", "", opening) as guest:
            told = patient(guest, "holds", asked, seconds)
        if told.kind == "value":
            if told.value is True or told.value is False:
                return told.value, "" if told.value else f"property {number + 1} does not hold"
            if told.value in (None, 0, "", b"", [], (), Pairs(()), Elements(())):
                return False, f"property {number + 1} does not hold: {shown(told)}"
            raise SpecError(f"property {number + 1} returned {shown(told)}", hint="It says True or False.")
        return False, f"property {number + 1} does not hold: {shown(told)}"

    @contextmanager
    def _guest(self, key: str, source: str, wanted: str, driver: str, opening: Opening) -> Iterator[Guest]:
        """A warm one or a new one; back among the warm ones when nothing was lost in it. Raises SpecError when the
        source cannot be loaded."""
        guest = None
        with self._lock:
            for entry in self._free:
                if entry[0] == key:
                    guest = entry[1]
                    self._free.remove(entry)
                    break
        if guest is None:
            guest = Guest(opening, source, wanted=wanted, driver=driver, own=True)
        try:
            told = guest.load(Limit.of(SPEC_SECONDS))
            if told.kind != "loaded":
                raise SpecError(f"the spec's own code cannot be used: {shown(told)}")
            yield guest
        except BaseException:
            guest.close()
            raise
        surplus: list[Guest] = []
        with self._lock:
            if self._closed or not guest.alive:
                surplus.append(guest)
            else:
                self._free.append((key, guest))
                while len(self._free) > KEPT_GUESTS:
                    surplus.append(self._free.pop(0)[1])
        for one in surplus:
            one.close()


def enough(taken: int, made: int) -> None:
    """Raises SpecError where the reference refuses most inputs."""
    if taken < LEAST_USED * made:
        raise SpecError(f"the reference takes {taken} of {made} generated inputs", hint="Declare `inputs` closer.")


def patient(guest: Guest, function: str, arguments: Arguments, seconds: float) -> Answer:
    """Asks the spec's own code, once more where the first call was lost. Raises SandboxError."""
    limit = Limit.of(max(seconds, SPEC_SECONDS))
    told = guest.call(function, arguments, limit)
    return guest.call(function, arguments, limit) if told.kind == "lost" else told


def _other_result(spec: ProgramSpec, value: Value) -> bool:
    return any(example.raises or literal(read(example.expected)) != literal(value) for example in spec.examples)


def shown(told: Answer) -> str:
    """In a few words; hostile ones are escaped."""
    match told.kind:
        case "value":
            text = literal(told.value)
            return text if len(text) <= SHOWN else text[: SHOWN - 3] + "..."
        case "raised":
            name = told.names[0] if told.names else "an exception"
            text = f"raised {name}: {told.text}" if told.text else f"raised {name}"
        case "odd":
            text = f"returned {told.text}, which is not plain data"
        case "loaded":
            text = "was loaded"
        case "lost":
            text = told.text
    return ADDRESS.sub("0x...", ascii(text[:SHOWN])[1:-1])
