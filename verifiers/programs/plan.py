"""Plan of tests: from a spec to its tests, in the order in which they run.

Invariants: the same spec gives the same tests in the same order, and the order does not reveal which tests are visible.
Seeds are derived from the spec's digest.

Results of one test and of all tests: the pure part between replies and a verdict.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from hashlib import sha256
from random import Random
from typing import Any, Literal, NamedTuple

from runtime.sandbox import CallStatus
from verifiers.contract.errors import SpecError
from verifiers.contract.text import clip
from verifiers.contract.verdict import Ground
from verifiers.programs.data.compare import CompareRule, agree
from verifiers.programs.data.generators import inputs
from verifiers.programs.data.values import Arguments, Value, arguments_text, kind_of, literal, read, read_arguments
from verifiers.programs.guests import PlaceBrokenError
from verifiers.programs.relations import Pair, pairs
from verifiers.programs.replies import ProgramReply, shown
from verifiers.programs.spec import Example, MetamorphicRelation, ProgramSpec, Run

Origin = Literal["example", "reference", "property", "relation", "run"]
NO_RESULTS: Mapping[int, Value] = {}


class ReferenceRun(NamedTuple):
    """One run of a reference that is a whole program."""

    stdin: str
    output: str
    seconds: float
    """CPU time of the slower of two runs, in seconds; 0 if too short to measure."""


class PlannedTest(NamedTuple):
    origin: Origin
    arguments: Arguments = Arguments(())
    expected: Value = None
    raises: str = ""
    """Expected exception; for a built-in one with several names, its own `__name__`."""
    visible: bool = False
    compare: CompareRule = CompareRule()
    properties: bool = False
    """True if the spec's properties are checked too."""
    relation: MetamorphicRelation | None = None
    pair: Pair | None = None
    run: Run | None = None
    seconds: float = 0.0
    """Time limit that replaces the spec's if it is longer, in seconds."""
    number: int = 0
    """Index in the spec's order: examples or runs, generated inputs, relations."""


@lru_cache(maxsize=256)
def digest(spec: ProgramSpec) -> str:
    return sha256(spec.model_dump_json().encode("utf-8", "surrogatepass")).hexdigest()


def seed_of(spec: ProgramSpec, purpose: str) -> int:
    """Returns a random seed that depends only on the spec and the purpose."""
    return int.from_bytes(sha256(f"{digest(spec)} {purpose}".encode()).digest()[:8])


def generated(spec: ProgramSpec, *, purpose: str = "inputs", count: int | None = None) -> list[Arguments]:
    """Generates inputs for a spec's reference and properties. Another purpose gives other inputs."""
    if not spec.inputs:
        return []
    made = inputs(spec.inputs, seed_of(spec, purpose), spec.generate if count is None else count)
    return [Arguments(values) for values in made]


def stdin_of(arguments: Arguments) -> str:
    """Renders generated values as standard input: one line each, items of a list or tuple separated by spaces."""
    return "".join(f"{_line(value)}\n" for value in arguments.positional)


def _line(value: Value) -> str:
    if isinstance(value, list | tuple):
        return " ".join(map(_line, value))
    return value if isinstance(value, str) else literal(value)


def planned(spec: ProgramSpec, example: Example) -> PlannedTest:
    expected = None if example.raises else read(example.expected)
    how = example.compare or spec.compare
    arguments = read_arguments(example.arguments)
    kind = getattr(builtins, example.raises, None)
    raises = kind.__name__ if isinstance(kind, type) else example.raises  # IOError is OSError
    return PlannedTest("example", arguments, expected, raises, example.visible, how)


def plan(spec: ProgramSpec, expected: Mapping[int, Value] = NO_RESULTS) -> list[PlannedTest]:
    """Returns all tests of a program spec, in its order. `expected`: the reference's results for the generated inputs
    by index; each is a `ReferenceRun` for whole programs.

    If the spec has a reference, inputs without a result are left out. Raises SpecError if no test remains or a relation
    has no usable input: untested code must not pass.
    """
    tests = [test._replace(number=number) for number, test in enumerate(_tests(spec, expected))]
    if not tests:
        raise SpecError("the spec yields no tests", hint="Give more examples, runs or inputs.")
    return tests


def _tests(spec: ProgramSpec, expected: Mapping[int, Value]) -> Iterator[PlannedTest]:
    for run in spec.runs:
        yield PlannedTest("run", visible=run.visible, run=run)
    for example in spec.examples:
        yield planned(spec, example)
    for found in expected.values() if not spec.function else ():
        assert isinstance(found, ReferenceRun)
        run = Run(stdin=found.stdin, expected=found.output)
        yield PlannedTest("reference", run=run, seconds=spec.slack * found.seconds)
    for place, arguments in enumerate(generated(spec) if spec.function else ()):
        if not spec.reference:
            yield PlannedTest("property", arguments, properties=True)
        elif place in expected:
            asked = bool(spec.properties)
            yield PlannedTest("reference", arguments, expected[place], compare=spec.compare, properties=asked)
    for order, relation in enumerate(spec.relations):
        made = list(pairs(relation, spec.inputs, seed_of(spec, f"relation {order}")))
        if not made:
            raise SpecError(
                f"no generated input can be changed for the relation {relation.kind}",
                hint="Declare `inputs` to which it applies, and the right `argument`.",
            )
        for pair in made:
            yield PlannedTest("relation", Arguments(pair.first), compare=spec.compare, relation=relation, pair=pair)


def shuffled(spec: ProgramSpec, tests: list[PlannedTest], turn: int = 0) -> list[PlannedTest]:
    """Returns the tests in a random order that the spec determines: of their first run, or of repetition `turn`."""
    mixed = list(tests)
    Random(seed_of(spec, f"order {turn}")).shuffle(mixed)
    return mixed


EVIDENCE_CHARS = 1_000
GROUNDS = {CallStatus.TIMEOUT: Ground.TIMEOUT, CallStatus.CPU: Ground.TIMEOUT, CallStatus.MEMORY: Ground.MEMORY}


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
    """Returns the finding for a call that returned no value, or None if it returned one. `name`: the call's text."""
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
