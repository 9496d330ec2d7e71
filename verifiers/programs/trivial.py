"""Programs that do none of the work: tests that one of them passes are worthless.

`refuse_idle` decides without running any: the results of such programs are known here, and compared like a candidate's.
Only properties are evaluated elsewhere, and a driver has to be run (`driven`).

A program that returns its argument counts as idle if no test states a right result, or only examples beside relations
or properties do: these then distinguish nothing. Examples alone, or a reference, may ask for it. Relations alone are
also refused if two such programs with different results satisfy them (a list sorted, and the same reversed).
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple, Protocol

from verifiers.contract.errors import SpecError
from verifiers.contract.text import clip
from verifiers.contract.verdict import Ground
from verifiers.programs.data.compare import NUMBER, CompareRule, NumberTolerance, agree, decimal, printed
from verifiers.programs.data.values import (
    Arguments,
    NotPlainError,
    Value,
    arguments_text,
    literal,
    read,
    read_arguments,
)
from verifiers.programs.plan import PlannedTest
from verifiers.programs.relations import chained, holds
from verifiers.programs.spec import ProgramSpec, Run

CONSTANTS = ("None", "0", "1", "True", "False", "''", "[]", "()", "{}", "-1", "nan", "inf")
MOST_EXPECTED = 200
"""Maximum number of expected values that are tried as a constant result."""
EXACT = CompareRule()
SIMPLE: dict[str, Callable[[Any], Value]] = {
    "the sorted items": sorted,
    "the items from the last to the first": lambda given: list(reversed(given)),
    "the first item": lambda given: given[0],
    "the last item": lambda given: given[-1],
    "the length": len,
    "the sum": sum,
    "the least item": min,
    "the greatest item": max,
    "the size": abs,
    "the negative": lambda given: -given,
    "twice": lambda given: given + given,
    "the text": str,
}
"""Simple functions of one argument, tried regardless of the task."""
SHARES = (Decimal("0.5"), Decimal("0.377"), Decimal("0.613"))
"""Positions between two bounds; one half may give an integer."""
HINT = "Add tests that it fails: other results, hidden ones, or a reference with generated inputs; or compare strictly."


@dataclass(frozen=True)
class Raised:
    names: frozenset[str]
    """Names of the exception class and its bases."""


class IdleProgram(NamedTuple):
    """A program that does no work, represented by its behaviour."""

    what: str
    gives: Callable[[Arguments], Value | Raised]


class AsksProperty(Protocol):
    def __call__(self, number: int, result: Value, arguments: Arguments) -> tuple[Ground | None, str]:
        """Checks property `number` for a result. Returns None as basis if it holds, else the basis and the reason."""


def refuse_idle(spec: ProgramSpec, tests: Sequence[PlannedTest], ask: AsksProperty | None = None) -> None:
    """Raises SpecError if a program that does no work passes every test. `ask` is required for properties."""
    if spec.driver:
        return
    if not spec.function:
        passing = _idle_output(spec, [trial.run for trial in tests if trial.run is not None])
    else:
        told = [trial for trial in tests if trial.origin in ("example", "reference")]
        passes = (one.what for one in _functions(spec, told) if all(_passes(one, trial, spec, ask) for trial in tests))
        passing = next(passes, "") or _two_ways(spec, tests, told)
    if passing:
        raise SpecError(f"{passing} passes every test", hint=HINT)


def _functions(spec: ProgramSpec, told: Sequence[PlannedTest]) -> Iterator[IdleProgram]:
    """Yields functions that do no work and may pass `told`, the tests with a known result."""
    results = [trial.expected for trial in told if not trial.raises]
    constants = [read(text) for text in CONSTANTS]
    if spec.inputs or any(any(trial.arguments) for trial in told):
        constants += {literal(value): value for value in results[:MOST_EXPECTED]}.values()
        constants += map(float, _between([_number(trial) for trial in told if not trial.raises]))
    else:  # the task may be a constant
        constants = [one for one in constants if one is None or any(not agree(v, one, EXACT) for v in results)]
    yield from (IdleProgram(f"a function that returns {clip(literal(one), 60)}", _always(one)) for one in constants)
    for name in {"ValueError", *(trial.raises for trial in told if trial.raises)}:
        yield IdleProgram(f"a function that raises {name}", _always(_raised(name)))
    if not results or ((spec.relations or spec.properties) and not spec.reference):
        most = max([len(spec.inputs), *(len(trial.arguments.positional) for trial in told)])
        yield from (IdleProgram(f"a function that returns argument {n + 1}", _nth(n)) for n in range(most))
    table = {_key(one.arguments): _raised(one.raises) if one.raises else one.expected for one in told if one.visible}
    if table:
        yield IdleProgram("a table of the visible examples", lambda given: table.get(_key(given)))
        guesses = {literal(one): one for one in [*map(read, CONSTANTS), *table.values()] if not isinstance(one, Raised)}
        for text, guess in guesses.items():
            what = f"a table of the visible examples that returns {clip(text, 60)} for everything else"
            yield IdleProgram(what, lambda given, guess=guess: table.get(_key(given), guess))  # type: ignore[misc]


def _passes(idle: IdleProgram, trial: PlannedTest, spec: ProgramSpec, ask: AsksProperty | None) -> bool:
    given = idle.gives(trial.arguments)
    if isinstance(given, Raised) or trial.raises:
        return isinstance(given, Raised) and trial.raises in given.names
    if trial.relation is not None and trial.pair is not None:
        second = trial.pair.second or chained(trial.relation, trial.pair, given)
        then = idle.gives(Arguments(second))
        return not isinstance(then, Raised) and holds(trial.relation, trial.pair, given, then, trial.compare)
    if trial.origin != "property" and not agree(trial.expected, given, trial.compare):
        return False
    numbers = range(len(spec.properties) if trial.properties else 0)
    return all(ask is not None and ask(number, given, trial.arguments)[0] is None for number in numbers)


def _two_ways(spec: ProgramSpec, tests: Sequence[PlannedTest], told: Sequence[PlannedTest]) -> str:
    """Names two simple programs with different results that both pass, for a spec with relations only; else empty."""
    if told or spec.properties or not spec.relations:
        return ""
    passing: list[tuple[str, list[Value | Raised]]] = []
    for name, does in SIMPLE.items():
        given = _of_first(does)
        if not all(_passes(IdleProgram(name, given), trial, spec, None) for trial in tests):
            continue
        gives = [given(Arguments(trial.pair.first)) for trial in tests if trial.pair is not None]
        for other, others in passing:
            if any(isinstance(a, Raised) or isinstance(b, Raised) or not agree(a, b, EXACT)
                   for a, b in zip(gives, others, strict=True)):  # fmt: skip
                return f"a function that returns {other} of its argument, and another that returns {name},"
        passing.append((name, gives))
    return ""


def _of_first(does: Callable[[Any], Value]) -> Callable[[Arguments], Value | Raised]:
    def gives(given: Arguments) -> Value | Raised:
        try:
            return does(given.positional[0])
        except (TypeError, ValueError, LookupError, ArithmeticError):
            return Raised(frozenset(["Exception"]))

    return gives


def _always(outcome: Value | Raised) -> Callable[[Arguments], Value | Raised]:
    return lambda _given: outcome


def _nth(place: int) -> Callable[[Arguments], Value | Raised]:
    return lambda given: given.positional[place] if place < len(given.positional) else None


def _raised(name: str) -> Raised:
    kind = getattr(builtins, name, None)
    return Raised(frozenset([name, *(base.__name__ for base in kind.__mro__)] if isinstance(kind, type) else [name]))


def _key(given: Arguments) -> str:
    """Returns the lookup key of arguments in a table: equal for equal values, positional or named."""
    named = sorted(given.named, key=lambda pair: pair[0])
    return literal(_plainly([*given.positional, *(value for _, value in named)]))


def _plainly(value: Value) -> Value:
    match value:
        case list():
            return [*map(_plainly, value)]
        case tuple():
            return tuple(map(_plainly, value))
        case bool():
            return int(value)
        case float() if value.is_integer():
            return int(value)
        case _:
            return value


def _number(trial: PlannedTest) -> tuple[Decimal, NumberTolerance] | None:
    """Returns a test's expected number with its tolerance; None if nothing else is near it."""
    value = trial.expected
    if trial.compare.rule != "close" or isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return (decimal(value), trial.compare.tolerance) if abs(value) <= sys.float_info.max else None


def _between(expected: Sequence[tuple[Decimal, NumberTolerance] | None]) -> list[Decimal]:
    """Returns numbers within the tolerances of all expected ones, if any."""
    low, high = Decimal("-inf"), Decimal("inf")
    for one in expected:
        if one is None:
            return []
        number, (absolute, relative) = one
        within = max(absolute, relative * number.copy_abs())
        low, high = max(low, number - within), min(high, number + within)
    return [low + (high - low) * share for share in SHARES] if low <= high and expected else []


def _idle_output(spec: ProgramSpec, runs: Sequence[Run]) -> str:
    def alike(run: Run, got: str) -> bool:
        return printed(run.expected, got, spec.output, spec.compare.tolerance)

    asks = any(run.stdin or run.arguments for run in runs)
    codes = {run.exit_code for run in runs} - {None}
    texts = [""] if asks or codes <= {0} else []
    if asks:
        texts += dict.fromkeys(run.expected for run in runs[:MOST_EXPECTED])
        numbers = [run.expected.strip() for run in runs] if spec.output == "numbers" else []
        if numbers and all(map(NUMBER.fullmatch, numbers)):
            texts += map(str, _between([(Decimal(one), spec.compare.tolerance) for one in numbers]))
    for text in texts if len(codes) < 2 else ():
        if all(alike(run, text) for run in runs):
            return f"a program that prints {clip(ascii(text), 60)}"
    table = {_asked(run): run for run in runs if run.visible}
    for guess in dict.fromkeys(["", *(run.expected for run in table.values())]) if asks and table else ():
        else_ = Run(expected=guess)
        known = [table.get(_asked(run), else_) for run in runs]
        if all(
            alike(run, one.expected) and run.exit_code in (None, one.exit_code)
            for run, one in zip(runs, known, strict=True)
        ):
            return f"a table of the visible runs that prints {clip(ascii(guess), 60)} for everything else"
    return ""


def _asked(run: Run) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return tuple(run.stdin.split()), run.arguments


def driven(spec: ProgramSpec) -> dict[str, str]:
    """Returns sources of programs that do no work, by description, for a spec with a driver: these must be run to see
    what the driver does."""
    name = spec.function
    methods = (
        "def __init__(*_, **__):\n        pass\n    def __getattr__(self, _):\n        return lambda *_, **__: None"
    )
    return (
        {
            "an empty program": "pass\n",
            "a function that returns None": f"def {name}(*_, **__):\n    return None\n",
            "a class whose methods return None": f"class {name}:\n    {methods}\n",
        }
        if spec.driver
        else {}
    )


def trivial(spec: ProgramSpec) -> dict[str, str]:
    """Returns sources of programs that do no work, by description."""
    if not spec.function:
        if spec.language != "python":
            return {"an empty program": "\n"}
        return {
            "an empty program": "pass\n",
            "a program that repeats its input": "import sys\nsys.stdout.write(sys.stdin.read())\n",
            "a table of the visible runs": "import sys\nprint("
            + repr({(run.stdin, run.arguments): run.expected for run in spec.runs if run.visible})
            + ".get((sys.stdin.read(), tuple(sys.argv[1:])), ''), end='')\n",
        }
    name = spec.function
    others = "".join(
        f"def {relation.other}(*given, **named):\n    return None\n" for relation in spec.relations if relation.other
    )
    if spec.driver:  # the driver may use anything
        return {"a class without methods": f"class {name}:\n    pass\n"}
    bodies = {
        f"a function that returns {value}": f"return {value}" for value in CONSTANTS if value not in ("nan", "inf")
    }
    bodies["a function that returns its argument"] = "return given[0] if given else None"
    bodies["a function that raises"] = "raise ValueError"
    found = {what: f"def {name}(*given, **named):\n    {body}\n{others}" for what, body in bodies.items()}
    return found | {"a table of the visible examples": _table(spec) + others}


def _table(spec: ProgramSpec) -> str:
    rows = []
    for example in spec.examples:
        if example.visible and example.expected:
            try:
                text = arguments_text(read_arguments(example.arguments))
            except NotPlainError:
                continue
            rows.append(f"    if _key({text}) == asked: return {example.expected}\n")
    return (
        "nan, inf = float('nan'), float('inf')\ndef _key(*given, **named):\n    return repr((given, named))\n"
        f"def {spec.function}(*given, **named):\n    asked = _key(*given, **named)\n{''.join(rows)}    return None\n"
    )
