"""Runs proposed programs twice, and makes labels of the results.

Invariants: each run has a fresh sandbox process in which nothing but computing is possible. A program is defined anew
for each call, in its own namespace: state that it keeps (in defaults, caches, iterators) is gone at the next call, and
the driver's results are unreachable. The second run makes the calls in reverse order, so that module state would show.
A program that uses the machine (clocks, addresses, files) is refused. Results come back as text, which is read as plain
data and never run. `InfrastructureError` passes through: a failed run says nothing about a proposal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from curriculum.proposing.labels import Basis, ProvenLabel, _minted, statement_digest
from curriculum.proposing.refusals import Reason, RefusedProposal
from curriculum.proposing.screening import FUNCTION, ScreenedProgram
from runtime.errors import InfrastructureError
from runtime.sandbox import CallResult, CallStatus, SessionPool, Tier
from verifiers.programs.data.values import DictPairs, NotPlainError, Value, literal, read

SECONDS = 1.0
"""Wall-clock limit of one run, with all its calls."""
_ONCE_MORE = (CallStatus.TIMEOUT, CallStatus.DIED)
"""Statuses after which a program runs once more, with the usual limit per call. The machine may have been busy, or the
interpreter lost; a second failure is the program's."""
RESULT_CHARS = 300
_TOO_MUCH = (CallStatus.TIMEOUT, CallStatus.CPU, CallStatus.EXPIRED, CallStatus.MEMORY)
_MACHINE = (CallStatus.DISK, CallStatus.FILES, CallStatus.PIDS)
_DRIVER = """
found = []
for call in [{calls}]:
    names = {{}}
    exec({source!r}, names)
    try:
        found.append((1, repr(names[{function!r}](*call))))
    except Exception as error:
        found.append((0, type(error).__name__))
print(repr(found))
"""
"""The program cannot see these names: each call runs in a dictionary of its own as globals."""


class ProgramCall(NamedTuple):
    """Result of one call of a proposed program: a value as a literal, or the name of an exception."""

    value: str
    raised: str = ""


@dataclass(frozen=True)
class Execution:
    """Results of a proposed program's calls, equal in both runs."""

    program: ScreenedProgram
    calls: tuple[str, ...]
    """Arguments of each call, as between its brackets."""
    results: tuple[ProgramCall, ...]


class Executor:
    """Runs proposed programs in sandbox sessions of a pool, on behalf of one caller."""

    def __init__(self, sessions: SessionPool, caller: str) -> None:
        self._sessions = sessions
        self._caller = caller

    def run(self, program: ScreenedProgram, calls: Sequence[str]) -> Execution:
        """Runs a proposed program on each call, in two processes. Raises RefusedProposal, for example if results
        differ, and InfrastructureError."""
        first = self._calls(program, calls)
        second = self._calls(program, calls[::-1])[::-1]
        if first != second:
            raise RefusedProposal(Reason.CHANGES, "another result the second time")
        return Execution(program, tuple(calls), tuple(first))

    def printed(self, code: str) -> ProvenLabel:
        """Runs a calculator line twice, and returns its output as the label. Raises RefusedProposal if the outputs
        differ or are empty, and InfrastructureError."""
        texts = [self._output(code).strip() for _ in range(2)]
        if texts[0] != texts[1]:
            raise RefusedProposal(Reason.CHANGES, "another result the second time")
        if not 0 < len(texts[0]) <= RESULT_CHARS:
            raise RefusedProposal(Reason.TOO_LARGE, "it prints nothing, or too much")
        return _minted(Basis.EXECUTED, statement_digest("line", code), texts[0])

    def _calls(self, program: ScreenedProgram, calls: Sequence[str]) -> list[ProgramCall]:
        given = ", ".join(f"({one},)" for one in calls)
        pairs = _pairs(self._output(_DRIVER.format(source=program.source, calls=given, function=FUNCTION)))
        if len(pairs) != len(calls):
            raise RefusedProposal(Reason.NOT_PLAIN, "another number of results")
        return [ProgramCall(_plain(text)) if fine else ProgramCall("", text) for fine, text in pairs]

    def _output(self, code: str) -> str:
        result = self._ran(code, SECONDS)
        if result.status in _ONCE_MORE:
            result = self._ran(code, None)
        _require_fine(result)
        return result.output

    def _ran(self, code: str, seconds: float | None) -> CallResult:
        with self._sessions.open(tier=Tier.PROCESS, caller=self._caller) as session:
            return session.run(code, seconds=seconds)


def call_label(execution: Execution, place: int = 0) -> ProvenLabel:
    """Returns the value of one executed call, as a label. Raises RefusedProposal if the call raised."""
    return calls_label(execution, [place])


def calls_label(execution: Execution, places: Sequence[int]) -> ProvenLabel:
    """Returns the values of several executed calls, a line each, as a label. Raises RefusedProposal if one raised."""
    results = [execution.results[place] for place in places]
    if any(one.raised for one in results):
        raise RefusedProposal(Reason.RAISES, "it raises an exception")
    of = statement_digest("calls", execution.program.source, *(execution.calls[place] for place in places))
    return _minted(Basis.EXECUTED, of, "\n".join(one.value for one in results))


def _require_fine(result: CallResult) -> None:
    match result.status:
        case CallStatus.OK if result.tier is not Tier.SANDBOX:
            return
        case CallStatus.OK:
            raise RefusedProposal(Reason.MACHINE, "it asks for more than computing")
        case CallStatus.EXCEPTION:
            raise RefusedProposal(Reason.RAISES, "it raises an exception")
        case CallStatus.DIED:
            raise RefusedProposal(Reason.RAISES, "it ends the interpreter")
        case CallStatus.OUTPUT:
            raise RefusedProposal(Reason.TOO_LARGE, "it prints too much")
        case status if status in _TOO_MUCH:
            raise RefusedProposal(Reason.SLOW, "it takes too much time or memory")
        case status if status in _MACHINE:
            raise RefusedProposal(Reason.MACHINE, "it asks for more than computing")
        case _:
            raise InfrastructureError(f"a proposal's run ended as {result.status.value}", hint="run `assay doctor`")


def _pairs(output: str) -> list[tuple[bool, str]]:
    """Parses the output of the program that runs a proposal's calls: for each call, whether it succeeded, and its
    result. Raises RefusedProposal if it is invalid."""
    try:
        found = read(output)
    except NotPlainError as error:
        raise RefusedProposal(Reason.NOT_PLAIN, "the reply cannot be read") from error
    made = []
    for one in found if isinstance(found, list) else [None]:
        match one:
            case (0 | 1 as fine, str() as text):
                made.append((bool(fine), text))
            case _:
                raise RefusedProposal(Reason.NOT_PLAIN, "the reply cannot be read")
    return made


def _plain(text: str) -> str:
    """Checks the text of a call's result, and returns it as a literal. Raises RefusedProposal if it is not plain data,
    or too large."""
    if len(text) > RESULT_CHARS:
        raise RefusedProposal(Reason.TOO_LARGE, f"a result beyond {RESULT_CHARS} characters")
    try:
        value = read(text)
    except NotPlainError as error:
        raise RefusedProposal(Reason.NOT_PLAIN, "the result is not plain data") from error
    _require_exact(value)
    return text


def _require_exact(value: Value) -> None:
    """Raises RefusedProposal for a result with a non-integer number, or with a value that is not plain data."""
    match value:
        case bool() | int() | str() | None:
            return
        case list() | tuple():
            for one in value:
                _require_exact(one)
        case DictPairs(pairs):
            for key, item in pairs:
                _require_exact(key)
                _require_exact(item)
        case _:
            raise RefusedProposal(Reason.NOT_PLAIN, f"a {type(value).__name__} in the result")


def canonical(arguments: str) -> str:
    """Returns the arguments of a proposed program's call as Python writes them. Raises RefusedProposal if they are not
    plain data, or too long."""
    if len(arguments) > RESULT_CHARS or "\n" in arguments.strip():
        raise RefusedProposal(Reason.TOO_LARGE, "an input of several lines, or too long")
    try:
        values = read(f"({arguments.strip()},)")
    except NotPlainError as error:
        raise RefusedProposal(Reason.UNREADABLE, "an input is not plain data") from error
    if not isinstance(values, tuple):
        raise RefusedProposal(Reason.UNREADABLE, "an input is not plain data")
    _require_exact(values)
    return ", ".join(map(literal, values))


def values_of(arguments: str) -> tuple[Value, ...]:
    """Parses a call's canonical arguments into their values."""
    found = read(f"({arguments},)")
    assert isinstance(found, tuple)
    return found
