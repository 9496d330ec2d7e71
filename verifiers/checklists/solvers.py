"""Solver that writes the JSON text a checklist fully determines, from schema values and the question.

Nothing is invented: a value that neither the schema nor the question gives means no proposal. The solver writes no
prose and inserts no words to please a list.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator
from typing import Any

from verifiers.checklists.spec import ChecklistSpec, JsonItem
from verifiers.contract.protocols import Proposal, Solver, SolverTools

MOST_DEPTH = 12
TYPES = {"string": str, "integer": int, "number": int | float, "boolean": bool, "array": list}
"""Python types of the JSON types."""
NAMED = (
    r"""["'`]?{key}["'`]?\s*(?:=|:|\bis\b)\s*("""
    r""""[^"\n]*"|'[^'\n]*'|-?[0-9]+(?:\.[0-9]+)?|true|false|null|\[[^\]\n]*\]|[^\s,;.]+)"""
)
"""Assignment of a value to a name in a question: `year = 1815`, `"name": "Ada"`."""


class OpenPlace(Exception):
    """Raised for a value that neither the JSON schema nor the question gives."""


class SchemaSolver:
    name = "schema"
    at_once = 1

    def proposals(
        self, spec: ChecklistSpec, question: str, tools: SolverTools, seconds: float
    ) -> Generator[Proposal, None, None]:
        try:
            value = instance(_schema(spec), question)
        except OpenPlace as error:
            tools.notes.append(f"the schema and the question leave {error} open")
            return
        yield Proposal(json.dumps(value, ensure_ascii=False, indent=2), self.name)


def solvers(spec: ChecklistSpec, _question: str, _files: bool) -> list[Solver]:
    return [SchemaSolver()] if _schema(spec) is not None else []


def _schema(spec: ChecklistSpec) -> Any:
    """Returns the JSON schema that a checklist requires of the whole text; None if there is not exactly one."""
    items = [item for item in spec.items if isinstance(item, JsonItem) and item.within == "whole"]
    if len(items) != 1:
        return None
    try:
        found = json.loads(items[0].rules)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def instance(schema: Any, question: str, name: str = "the value", depth: int = 0) -> Any:
    """Builds the only value that a JSON schema and a question determine; fields take the question's values for their
    names. Raises OpenPlace for a field that neither determines."""
    if not isinstance(schema, dict) or depth > MOST_DEPTH:
        raise OpenPlace(name)
    if "const" in schema:
        return schema["const"]
    options = schema.get("enum")
    if isinstance(options, list) and len(options) == 1:
        return options[0]
    kind = schema.get("type")
    if kind == "null":
        return None
    properties = schema.get("properties")
    if kind == "object" and isinstance(properties, dict):
        wanted = schema.get("required", list(properties))
        return {key: instance(properties.get(key), question, key, depth + 1) for key in wanted if isinstance(key, str)}
    if kind == "array" and isinstance(schema.get("prefixItems"), list):
        return [instance(each, question, name, depth + 1) for each in schema["prefixItems"]]
    value = _named(name, question)
    fits = isinstance(value, TYPES.get(str(kind), ())) and isinstance(value, bool) == (kind == "boolean")
    if (isinstance(options, list) and value not in options) or not (fits or kind is None):
        raise OpenPlace(name)
    return value


def _named(name: str, question: str) -> Any:
    """Finds the value that a question gives for a name: `year = 1815`, `"name": "Ada"`. Raises OpenPlace if it gives
    none."""
    found = re.search(NAMED.replace("{key}", re.escape(name)), question)
    if found is None:
        raise OpenPlace(name)
    value = found[1]
    if value[0] == "'":
        return value[1:-1]
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value
