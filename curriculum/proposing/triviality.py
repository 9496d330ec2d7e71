"""Detects programs that do no work, by their results for inputs near their own.

Pure: `probes` lists the calls, `require_work` judges their results. The first call is the proposal's own. `tells` finds
an answer in what a question shows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from curriculum.proposing.execution import ProgramCall, values_of
from curriculum.proposing.refusals import Reason, RefusedProposal
from curriculum.proposing.screening import ScreenedProgram
from verifiers.programs.data.values import DictPairs, Value, literal

LEAST_SHOWN = 3
"""Shortest answer, in characters, that counts as shown if the question contains it."""
_QUOTES = str.maketrans("", "", "'\"\\")


def probes(arguments: str) -> list[tuple[int, str]]:
    """Returns variants of a program's input, each with the position of the changed argument."""
    values = values_of(arguments)
    made = []
    for place, value in enumerate(values):
        for other in _others(value):
            changed = [*values[:place], other, *values[place + 1 :]]
            made.append((place, ", ".join(map(literal, changed))))
    return made


def require_work(
    program: ScreenedProgram, arguments: str, own: ProgramCall, found: Sequence[tuple[int, str, ProgramCall]]
) -> None:
    """Raises RefusedProposal for a proposed program that does no work, by its results for similar inputs. `found` has
    each probe's position, input and result."""
    if own.raised:
        raise RefusedProposal(Reason.RAISES, "it raises an exception")
    if program.looks_up:
        raise RefusedProposal(Reason.LOOKUP, "one line that reads a table or a constant")
    fine = [(place, call, ran) for place, call, ran in found if not ran.raised]
    if 2 * len(fine) < len(found):
        raise RefusedProposal(Reason.NARROW, "it raises for most inputs near its own")
    if all(ran == own for _, _, ran in fine):
        raise RefusedProposal(Reason.CONSTANT, "the same result for every input")
    calls = [(arguments, own), *((call, ran) for _, call, ran in fine)]
    for place in range(program.arity):
        if all(literal(values_of(call)[place]) == ran.value for call, ran in calls):
            raise RefusedProposal(Reason.IDENTITY, "it gives back its input")
        if all(ran == own for changed, _, ran in fine if changed == place):
            raise RefusedProposal(Reason.IGNORES, "an argument makes no difference")
    if own.value in map(literal, values_of(arguments)):
        raise RefusedProposal(Reason.SHOWN, "the result is one of the inputs")
    if own.value in program.literals and len(own.value) >= LEAST_SHOWN:
        raise RefusedProposal(Reason.LOOKUP, "the result is a constant of the program")


def tells(program: ScreenedProgram, value: str, beside: str = "") -> bool:
    """True if a program, its strings or `beside` contain a value, with any blanks and quotes. `value` is as Python
    writes it."""
    bare = value.translate(_QUOTES)
    texts = [one.translate(_QUOTES) for one in program.literals if one[:1] in ("'", '"')]
    return len(bare) >= LEAST_SHOWN and (
        any(_stands(value, one) for one in (program.source, beside)) or any(_stands(bare, one) for one in texts)
    )


def _stands(value: str, text: str) -> bool:
    value, text = (re.sub(r"\s*([^\w\s])\s*", r"\1", one) for one in (value, text))
    before, behind = (r"(?<![A-Za-z0-9])" * value[0].isalnum(), r"(?![A-Za-z0-9])" * value[-1].isalnum())
    return re.search(before + re.escape(value) + behind, text) is not None


def _others(value: Value) -> list[Value]:
    match value:
        case bool():
            return [not value]
        case int():
            return [value + 1, value + 7, abs(value) * 2 + 3]
        case str():
            return [value[::-1] + "b", value + "a", value[1:] or "zebra"]
        case list():
            return [[*value[1:], *_more(value)], value[::-1] + _more(value), [*value, *_more(value), *_more(value)]]
        case tuple():
            return [(*value[1:], *_more(list(value))), (*value, *_more(list(value)))]
        case DictPairs(pairs) if pairs:
            key, item = pairs[0]
            return [DictPairs(((key, other), *pairs[1:])) for other in _others(item)[:2]]
        case _:
            return []


def _more(items: list[Value]) -> list[Value]:
    """Returns a one-item list to append to `items`. The item has the type of the last one, or is 3 if none can be
    made."""
    others = _others(items[-1]) if items else []
    return others[:1] or [3]
