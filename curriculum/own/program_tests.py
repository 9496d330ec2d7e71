"""Reads common test formats as call examples: `assert f(1, [2]) == 3`, and inputs with outputs.

Invariants: a test is parsed and never run; only a call with plain values, compared with a plain value, becomes an
example. Anything else is refused, because its code would run beside the submission.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

CANDIDATE = "candidate"
"""Name of the function in HumanEval's `check(candidate)`."""
MOST_TESTS = 500
MOST_CHARS = 1_000_000
_MAY_NOT_RUN = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.TryStar, ast.With, ast.AsyncWith, ast.Match)


def examples_of(tests: Any, function: str) -> tuple[str, list[dict[str, Any]]]:
    """Parses assertions such as `assert f(1) == 2` into call examples. Returns the function's name and the examples.
    Raises ValueError for any other test."""
    text = "\n".join(map(str, tests)) if isinstance(tests, list) else str(tests)
    if len(text) > MOST_CHARS:
        raise ValueError(f"they have more than {MOST_CHARS:,} characters")
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError("they are not Python") from None
    found = [one for one in ast.walk(tree) if isinstance(one, ast.Assert)]
    if not found:
        raise ValueError("they have no assertion")
    if len(found) > MOST_TESTS:
        raise ValueError(f"there are more than {MOST_TESTS}")
    inner = (below for one in ast.walk(tree) if isinstance(one, _MAY_NOT_RUN) for below in ast.walk(one))
    if any(isinstance(one, ast.Assert) for one in inner):
        raise ValueError("an assertion is in a branch or loop, so it may run never or often")
    examples = [_example(one.test) for one in found]
    names = {name for name, _ in examples}
    if len(names) != 1:
        raise ValueError("they call more than one function")
    [called] = names
    if called == CANDIDATE and not function:
        raise ValueError("they call `candidate`, and no column names the function (entry_point)")
    if function and called not in (function, CANDIDATE):
        raise ValueError("they call another function than the named one")
    return function or called, [example for _, example in examples]


def _example(test: ast.expr) -> tuple[str, dict[str, Any]]:
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq | ast.Is)):
        raise ValueError("an assertion does not compare a call with a value")
    sides = [test.left, test.comparators[0]]
    calls = [side for side in sides if isinstance(side, ast.Call) and isinstance(side.func, ast.Name)]
    if len(calls) != 1 or isinstance(calls[0], ast.Constant):
        raise ValueError("an assertion does not compare a call with a value")
    call = calls[0]
    assert isinstance(call.func, ast.Name)
    expected = sides[1] if sides[0] is call else sides[0]
    for value in (*call.args, *(keyword.value for keyword in call.keywords), expected):
        try:
            ast.literal_eval(value)
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            raise ValueError("an assertion has a value that is not plain") from None
    arguments = [ast.unparse(one) for one in call.args]
    arguments += [f"{one.arg}={ast.unparse(one.value)}" for one in call.keywords]
    return call.func.id, {"arguments": ", ".join(arguments), "expected": ast.unparse(expected)}


def runs_of(tests: Mapping[str, Any], function: str) -> dict[str, Any]:
    """Converts a problem's tests, `inputs` and `outputs` in the format of APPS and TACO, to spec fields. They are calls
    if a function is named, else standard input and output. Raises ValueError."""
    inputs, outputs = tests.get("inputs", tests.get("input")), tests.get("outputs", tests.get("output"))
    if not isinstance(inputs, list) or not isinstance(outputs, list) or not inputs or len(inputs) != len(outputs):
        raise ValueError("inputs and outputs differ in number")
    if len(inputs) > MOST_TESTS:
        raise ValueError(f"there are more than {MOST_TESTS}")
    if function:
        results = _results(outputs)
        examples = [
            {"arguments": ", ".join(map(repr, _listed(given))), "expected": repr(expected)}
            for given, expected in zip(inputs, results, strict=True)
        ]
        return {"function": function, "examples": examples}
    if not all(isinstance(one, str) for one in (*inputs, *outputs)):
        raise ValueError("inputs and outputs are not text, and no function is named")
    return {"runs": [{"stdin": given, "expected": out} for given, out in zip(inputs, outputs, strict=True)]}


def _listed(given: Any) -> list[Any]:
    return given if isinstance(given, list) else [given]


def _results(outputs: list[Any]) -> list[Any]:
    """Unwraps the function results of a problem in the format of APPS if each is in a one-item list."""
    wrapped = all(isinstance(one, list) and len(one) == 1 for one in outputs)
    return [one[0] for one in outputs] if wrapped else outputs
