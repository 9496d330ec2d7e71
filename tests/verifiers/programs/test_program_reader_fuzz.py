"""Results, values and specs from random texts: each is read or refused, always alike, and read as Python reads it."""

from __future__ import annotations

import ast
import contextlib
import json
import math
import os
import time
from random import Random

import pytest

from verifiers.contract.errors import SpecError
from verifiers.programs.data.compare import CompareRule, agree
from verifiers.programs.data.values import (
    NotPlainError,
    Value,
    arguments_text,
    literal,
    of_native,
    read,
    read_arguments,
)
from verifiers.programs.files import spec_of_toml
from verifiers.programs.replies import find, mark, parse

NONCE = "0123456789abcdef"
JSON_PIECES = [
    *'{}[]:,"-+.eE0123456789tfn \n\\\x00', '{"v": ', '"t": [', '{"d": [[', '{"s": [', '{"i": "ff"}', '{"u": "c3a9"}',
    '{"b": "00"}', '{"f": "nan"}', '{"c": [1.0, 2.0]}', "true", "null", "NaN", "Infinity", "1e999", "1.5", '"r": ["E"]',
    '"m": ""', '"s": ["x"]', '{"l": 1}', '{"x": "odd"}', "\x1e", mark(NONCE), "\ud800", "é", "[" * 70, "]" * 70,
]  # fmt: skip
PYTHON_PIECES = [
    *"()[]{},:'\"-+*. 0123456789jeE_\n\\#", "None", "True", "nan", "inf", "set()", "frozenset({1})", "b'a'", "f'a'",
    "0x1f", "1_0", "1e5", "'é'", "...", "lambda: 1", "**", "x", "__import__('os')", " if 1 else ", " for ", "key=",
    "(1,)",
    "{1: 2}", "{1, 2}", "1+2j", "r'\\'", "'''", "\x00", "\ud800",
]  # fmt: skip
TOML_PIECES = [
    *"=[]{}\"'\n#,. 0123", "function", "examples", "[[examples]]\n", "arguments", "expected", "raises",
    "visible = true\n",
    "[[inputs]]\n", 'kind = "list"\n', "generate = 5\n", "[compare]\n", 'rule = "close"\n', "nan", "-inf", "1979-05-27",
    '"""', "'''", "\\u0000", "é", "seconds = -1\n", "least = 10\n", "most = 1\n", "low = 9\n", "high = 1\n",
]  # fmt: skip
TOML = """function = "f"
generate = 5
reference = "def f(x): return x"
[[inputs]]
kind = "integer"
[[examples]]
arguments = "1"
expected = 1
visible = true
[[examples]]
arguments = [[1, 2], "a"]
raises = "ValueError"
[compare]
rule = "close"
absolute = 0.5
"""
RULES = [
    CompareRule(),
    CompareRule(rule="equal"),
    CompareRule(rule="any_order"),
    CompareRule(rule="close", relative=0.1),
]


def _native(source: Random, depth: int = 3) -> object:
    kind = source.randrange(14 if depth else 8)
    inner = range(source.randrange(4))
    match kind:
        case 0:
            return source.choice([None, True, False])
        case 1 | 2:
            return source.choice([0, 1, -1, 7, 1 << 64, -(1 << 210), 10**400]) + source.randrange(3)
        case 3 | 4:
            return source.choice([0.0, -0.0, 0.5, 1.0, 1e300, -1e-300, math.inf, math.nan]) * source.choice([1, 1, 3.7])
        case 5:
            return "".join(source.choices("ab '\"\\\n\x1eé\ud800\U0001f600", k=source.randrange(6)))
        case 6:
            return bytes(source.randrange(256) for _ in inner)
        case 7:
            return complex(source.choice([0.0, 1.5, math.nan]), source.choice([1.0, math.inf]))
        case 8 | 9:
            return [_native(source, depth - 1) for _ in inner]
        case 10 | 11:
            return tuple(_native(source, depth - 1) for _ in inner)
        case 12:
            return {source.choice([1, "a", (1, 2), None, 2.5]): _native(source, depth - 1) for _ in inner}
        case _:
            return {source.choice([1, "a", (1, "b"), None, 2.5, frozenset({1})]) for _ in inner}


def _changed(source: Random, text: str, pieces: list[str]) -> str:
    for _ in range(source.choice([0, 1, 1, 2, 5])):
        at, end = sorted(source.randrange(len(text) + 1) for _ in range(2))
        end = min(end, at + source.randrange(4))
        text = text[:at] + source.choice(["", source.choice(pieces), text[at:end] * 2]) + text[end:]
    return text


def _values(source: Random) -> None:
    """A value comes back from its text, and only what Python reads as a literal is one."""
    value = of_native(_native(source))
    text = literal(value)
    again = read(text) if "complex" not in text else value
    assert literal(again) == text
    for how in RULES:
        assert agree(value, again, how), text
    changed = _changed(source, text, PYTHON_PIECES)
    try:
        found = read(changed)
    except NotPlainError:
        return
    assert literal(read(changed)) == literal(found)
    with contextlib.suppress(ValueError, SyntaxError, TypeError, RecursionError):  # nan, inf, a set in a set
        assert literal(of_native(ast.literal_eval(changed.strip()))) == literal(found), changed
    other = of_native(_native(source))
    for how in RULES[:3]:
        assert agree(found, other, how) == agree(other, found, how), (literal(found), literal(other))
    if agree(found, other, RULES[0]):
        assert _untyped(found) == _untyped(other), (literal(found), literal(other))


def _untyped(value: Value) -> str:
    """As texts are compared where zeros have one sign."""
    return literal(value).replace("-0.0", "0.0")


def _arguments(source: Random) -> None:
    text = ", ".join(literal(of_native(_native(source, 2))) for _ in range(source.randrange(3)))
    changed = _changed(source, text + source.choice(["", ", key=1"]), PYTHON_PIECES)
    try:
        found = read_arguments(changed)
    except NotPlainError:
        return
    if "complex" not in (again := arguments_text(found)):
        assert arguments_text(read_arguments(again)) == again, changed


def _replies(source: Random) -> None:
    """Whatever stands behind the mark: a reply, the same each time, or none."""
    if source.random() < 0.4:
        text = "".join(source.choices(JSON_PIECES, k=source.randrange(30)))
    else:
        made: object = {"v": _tagged(source, 3), "s": source.choice([[], ["os.fork"], [1]])}
        if source.random() < 0.2:
            made = source.choice([{"r": ["E", "F"], "m": "text"}, {"x": "a thing"}, {"l": 1}, {}])
        text = _changed(source, json.dumps(made), JSON_PIECES)
    reply = parse(text)
    assert (reply is None) == (parse(text) is None)
    if reply is not None:
        assert literal(reply.value) == literal(parse(text).value)  # type: ignore[union-attr]
        assert all(isinstance(word, str) and len(word) <= 120 for word in (*reply.names, *reply.signals))
    assert find(f"noise{mark(NONCE)}{text}\x1e", NONCE).forged == (mark(NONCE) in text)


def _tagged(source: Random, depth: int) -> object:
    """As a guest writes values, more or less."""
    items = [_tagged(source, depth - 1) for _ in range(source.randrange(3))] if depth else []
    return source.choice(
        [None, True, 5, 1 << 70, 0.5, "text", items, items, {"t": items}, {"s": items}, {"d": [items]},
         {"d": [[1, items], [1, 2]]}, {"i": "-0x1f"}, {"i": " 1_0"}, {"u": "f09f9880"}, {"b": "0aff"}, {"f": "inf"},
         {"f": 1}, {"c": [1.0, "nan"]}, {"t": items, "s": items}, {}, {"q": 1}]
    )  # fmt: skip


def _specs(source: Random) -> int:
    """A text is a spec that can be stored and read again, or refused."""
    text = _changed(source, TOML, TOML_PIECES)
    try:
        spec = spec_of_toml(text)
    except SpecError:
        return 0
    assert type(spec).model_validate_json(spec.model_dump_json()) == spec
    assert spec.examples or spec.generate or spec.runs
    return 1


def fuzz(seed: int, *, rounds: int | None = None, seconds: float = 0.0) -> str:
    """So many rounds, or for so long, of one text of each sort; what was done, in a few words."""
    source = Random(seed)
    until = time.monotonic() + seconds
    count = usable = 0
    slowest = 0.0
    while count < rounds if rounds is not None else time.monotonic() < until:
        started = time.process_time()
        _values(source)
        _arguments(source)
        _replies(source)
        usable += _specs(source)
        slowest = max(slowest, time.process_time() - started)
        count += 1
    assert slowest < 5, slowest
    return f"seed {seed}: {count} texts of each of four sorts, {usable} usable specs, slowest {slowest:.2f} s"


@pytest.mark.filterwarnings("ignore:invalid")  # what Python's parser thinks of such texts
def test_texts_become_values_results_and_specs_or_are_refused() -> None:
    fuzz(int(os.environ.get("FUZZ_SEED", "1")), rounds=250)


@pytest.mark.slow
@pytest.mark.timeout(2000)
@pytest.mark.filterwarnings("ignore:invalid")
def test_ten_minutes_of_texts_become_values_results_and_specs_or_are_refused() -> None:
    print(fuzz(int(os.environ.get("FUZZ_SEED", "1")), seconds=float(os.environ.get("FUZZ_SECONDS", "600"))))
