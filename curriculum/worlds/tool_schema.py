"""Checks whether a foreign JSON Schema can be used to validate a call's arguments. Pure.

Invariants: an accepted schema compiles, fetches nothing, and validates in bounded time: references that meet repeatedly
can need exponentially many steps, and the library blocks all other threads meanwhile. So a schema's steps are bounded
when it is accepted, and its steps on a value, with those of patterns on texts, before the value is checked.

Checks the arguments of a tool call: plain JSON, bounded, and valid by the tool's schema. Pure.

Arguments are the model's: hostile data. A violation is reported to the model in a sentence; nothing is repaired.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

from curriculum.contract.environment import ToolSchema

DEPTH = 8
"""Nesting limit of lists and objects."""
BYTES = 16_384
"""Size limit of a call's arguments, in bytes of JSON."""
LARGEST = 2**53
"""Largest integer that every JSON reader represents exactly."""
PATTERN_STEPS = 10_000
"""Backtracking limit of a schema's pattern per place of a text."""
PATTERN_BYTES = 1 << 18
"""Size limit of a compiled pattern."""
TOLD = 200
"""Length limit of an error message, in characters."""


def fault_of(tool: ToolSchema, arguments: object) -> str:
    """Checks a tool call's arguments. Returns their fault in a sentence, which may quote them; empty if valid."""
    return printable(_fault_of(tool, arguments))


def printable(text: str) -> str:
    """Replaces control characters other than newline by question marks."""
    return "".join(letter if letter.isprintable() or letter == "\n" else "?" for letter in text)


def _fault_of(tool: ToolSchema, arguments: object) -> str:
    if not isinstance(arguments, Mapping):
        return f"the arguments of {tool.name} are a JSON object"
    if wrong := unusable(arguments):
        return f"the arguments of {tool.name} {wrong}"
    text = json.dumps(arguments)
    if len(text) > BYTES:
        return f"the arguments of {tool.name} have more than {BYTES} bytes"
    wanted = set(tool.parameters.get("properties", {}))
    if unknown := sorted(arguments.keys() - wanted):
        takes = ", ".join(f"`{name}`" for name in tool.parameters.get("properties", {})) or "no arguments"
        return f"{tool.name} has no argument `{unknown[0][:40]}`; it takes {takes}"
    value = json.loads(text)
    if _Steps(tool.parameters).too_many(value):
        return f"the arguments of {tool.name} are too long for its schema: send fewer or shorter values"
    wrong = _misfit(tool.parameters, value)
    return f"{tool.name}: {wrong}"[:TOLD] if wrong else ""


def misfit(schema: dict[str, Any], value: object) -> str:
    """Returns what in plain JSON does not fit a usable schema, as a sentence, which may quote it; empty if all does."""
    if _Steps(schema).too_many(value):
        return "it is too long for its schema"
    return printable(_misfit(schema, value))


def _misfit(schema: dict[str, Any], value: object) -> str:
    from jsonschema_rs import ValidationError

    try:
        schema_validator(json.dumps(schema)).validate(value)
    except ValidationError as error:
        where = ".".join(str(step) for step in error.instance_path)
        return f"`{where}`: {error.message}" if where else str(error.message)
    return ""


def unusable(value: object, depth: int = DEPTH) -> str:
    """Returns why a value is not plain JSON, as the end of a sentence; empty if it is."""
    if isinstance(value, str):
        return "" if _is_text(value) else "hold text that is not Unicode"
    if isinstance(value, bool | None):
        return ""
    if isinstance(value, int):
        return "" if abs(value) <= LARGEST else "hold an integer that is too large"
    if isinstance(value, float):
        return "" if math.isfinite(value) else "hold a number that is not finite"
    if depth == 0:
        return f"are nested more than {DEPTH} deep"
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            return "hold a name that is no text"
        inner = [*value, *value.values()]
    elif isinstance(value, list | tuple):
        inner = list(value)
    else:
        return "are not JSON"
    return next((wrong for part in inner if (wrong := unusable(part, depth - 1))), "")


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@lru_cache(maxsize=256)
def schema_validator(schema: str) -> Any:
    """Compiles a JSON Schema; fetches nothing, and limits backtracking to `PATTERN_STEPS`. Raises the library's error
    for an invalid schema."""
    import jsonschema_rs  # only calls need it, not listing tools

    patterns = jsonschema_rs.FancyRegexOptions(backtrack_limit=PATTERN_STEPS, size_limit=PATTERN_BYTES)
    return jsonschema_rs.validator_for(schema, offline=True, pattern_options=patterns)


CHARS = 50_000
"""Length limit of a schema's JSON, in characters."""
MOST_STEPS = 5_000
"""Limit of subschemas that one value may be checked against, counted with repetition."""
MOST_WORK = 500_000
"""Limit of steps of a schema on a whole value; each takes up to two microseconds."""
DIALECTS = frozenset(
    f"{scheme}://json-schema.org/{draft}"
    for scheme in ("http", "https")
    for draft in (
        *(f"draft-0{number}/schema{end}" for number in (6, 7) for end in ("", "#")),
        *("draft/2019-09/schema", "draft/2020-12/schema"),
    )
)
_SAME = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else")
_SAME_BY_NAME = ("dependentSchemas", "dependencies")
_INNER = (
    *("items", "prefixItems", "additionalItems", "contains", "unevaluatedItems"),
    *("additionalProperties", "propertyNames", "unevaluatedProperties"),
)
_INNER_BY_NAME = ("properties", "patternProperties")
_LISTED = ("enum", "required", "dependentRequired", "const")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


def schema_fault(schema: dict[str, Any]) -> str:
    """Returns the fault of a foreign tool's JSON Schema, to end a sentence about its parameters; empty if valid."""
    text = json.dumps(schema)
    if len(text) > CHARS:
        return f"must have at most {CHARS} characters"
    if schema.get("type") != "object" or not isinstance(schema.get("properties", {}), dict):
        return "must be a JSON Schema of an object"
    for name, value in _names(schema):
        if name == "$id" and value is not schema.get("$id"):
            return "have a subschema with its own `$id`: leave it out"
        if name in _REFERENCES and not value.startswith("#"):
            return "refer to another document: nothing is fetched"
        if name == "$schema" and value not in DIALECTS:
            return "use an unknown dialect: leave `$schema` out"
    try:
        steps = _Steps(schema).of(schema, DEPTH)
    except RecursionError:
        steps = MOST_STEPS + 1
    if steps > MOST_STEPS:
        return "have references that need too many steps: use fewer"
    try:
        schema_validator(text)
    except Exception as error:  # noqa: BLE001 - the library's own, of several kinds
        return f"are not a valid JSON Schema: {str(error)[:200]}"
    return ""


def _names(value: Any) -> Iterator[tuple[str, str]]:
    """Yields every key with a string value in plain JSON, at any depth."""
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, dict):
            yield from ((name, inner) for name, inner in one.items() if isinstance(inner, str))
            left += one.values()
        elif isinstance(one, list):
            left += one


class _Steps:
    """Counts the subschemas that a JSON Schema checks one value against, with lists and objects nested `depth` deep."""

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._known: dict[tuple[int, int], int] = {}
        self._under_way: set[tuple[int, int]] = set()
        self._leaves: dict[int, tuple[int, int]] = {}

    def of(self, node: Any, depth: int) -> int:
        if not isinstance(node, dict) or depth < 0:
            return 1
        at = (id(node), depth)
        if at in self._known:
            return self._known[at]
        if at in self._under_way:
            return MOST_STEPS + 1  # it refers to itself for the same value
        self._under_way.add(at)
        steps = 1
        for inner, deeper in self._inner(node):
            steps += self.of(inner, depth - deeper)
            if steps > MOST_STEPS:
                break
        self._under_way.discard(at)
        self._known[at] = steps
        return steps

    def too_many(self, value: Any) -> bool:
        """True if the schema may take more than `MOST_WORK` steps on a list or object; the library may save some."""
        left = MOST_WORK
        waiting: list[tuple[Any, Any]] = [(self._root, value)]
        while waiting and left >= 0:
            node, one = waiting.pop()
            if not isinstance(node, dict):
                continue
            steps, named, known = _own_steps(node), node.get("patternProperties"), node.get("properties")
            items = [*one, *one.values()] if isinstance(one, dict) else one
            texts, inside = [part for part in items if isinstance(part, str)], _containers(items)
            if isinstance(one, list):
                steps += len(one) ** 2 // 50 if node.get("uniqueItems") else 0
            elif isinstance(named, dict):
                steps += len(named) * sum(map(_matching, one))
            places = {id(inner): name for name, inner in known.items()} if isinstance(known, dict) else {}
            chars = sum(map(_matching, texts))
            left -= steps
            for inner, deeper in self._inner(node):
                if not deeper:
                    waiting.append((inner, one))
                elif (name := places.get(id(inner))) is None:
                    steps, patterns = self._on_leaf(inner)
                    left -= (len(items) - len(inside)) * steps + chars * patterns + len(inside)
                    waiting += [(inner, part) for part in inside] if left >= 0 else []
                elif isinstance(one, dict) and name in one:
                    steps, patterns = self._on_leaf(inner)
                    left -= steps + (_matching(one[name]) * patterns if isinstance(one[name], str) else 0)
                    waiting += [(inner, part) for part in _containers([one[name]])]
                left -= 1
        return left < 0

    def _on_leaf(self, node: Any) -> tuple[int, int]:
        """Returns a subschema's steps and patterns on a text, number or constant."""
        if not isinstance(node, dict):
            return 1, 0
        if id(node) not in self._leaves:
            self._leaves[id(node)] = (MOST_WORK, 0)  # for a reference to itself
            inner = [self._on_leaf(one) for one, deeper in self._inner(node) if not deeper]
            steps = 1 + _own_steps(node) + sum(steps for steps, _ in inner)
            self._leaves[id(node)] = steps, ("pattern" in node) + sum(patterns for _, patterns in inner)
        return self._leaves[id(node)]

    def _inner(self, node: dict[str, Any]) -> Iterator[tuple[Any, int]]:
        for name in _REFERENCES:
            if isinstance(node.get(name), str):
                yield from ((one, 0) for one in self._targets(unquote(node[name][1:])))
        for names, by_name, deeper in ((_SAME, _SAME_BY_NAME, 0), (_INNER, _INNER_BY_NAME, 1)):
            for name in names:
                value = node.get(name)
                yield from ((one, deeper) for one in (value if isinstance(value, list) else [value]) if one is not None)
            for name in by_name:
                value = node.get(name)
                yield from ((one, deeper) for one in (value.values() if isinstance(value, dict) else ()))

    def _targets(self, fragment: str) -> list[Any]:
        """Returns the subschemas that a JSON Schema's reference may mean."""
        if not fragment.startswith("/"):
            return self._named(fragment) if fragment else [self._root]
        found: Any = self._root
        for step in fragment[1:].split("/"):
            name = step.replace("~1", "/").replace("~0", "~")
            if isinstance(found, dict):
                found = found.get(name)
            elif isinstance(found, list) and name.isascii() and name.isdigit() and int(name[:9]) < len(found):
                found = found[int(name[:9])]
            else:
                return []
        return [found]

    def _named(self, anchor: str) -> list[Any]:
        found: list[Any] = []
        left: list[Any] = [self._root]
        while left:
            one = left.pop()
            if isinstance(one, dict):
                if anchor in (one.get("$anchor"), one.get("$dynamicAnchor")):
                    found.append(one)
                left += one.values()
            elif isinstance(one, list):
                left += one
        return found


def _own_steps(node: dict[str, Any]) -> int:
    """Returns the steps of a subschema's lists of values and names, and of a division by a fraction."""
    listed = sum(len(node[name]) for name in _LISTED if isinstance(node.get(name), list | dict)) // 8
    return listed + 20 * isinstance(node.get("multipleOf"), float)


def _containers(items: Sequence[Any]) -> list[Any]:
    return [part for part in items if isinstance(part, list | dict)]


def _matching(text: str) -> int:
    """Returns the steps that a pattern may take on a text."""
    return len(text) * (1 + min(len(text), PATTERN_STEPS) // 200)
