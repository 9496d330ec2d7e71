"""A JSON text for a checklist that pins it down: a schema whose values are given, by itself or by the question.

Nothing is made up: where the schema leaves a value open and the question does not name it, there is no proposal. No
prose is written here, and no word is put anywhere to please a list.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator
from typing import Any

from appliance.jobs.solvers.solver import Proposal, Tools
from appliance.records import Job
from verifiers.checklists.spec import ChecklistSpec, JsonItem

MOST_DEPTH = 12
NAMED = (
    r"""["'`]?{key}["'`]?\s*(?:=|:|\bis\b)\s*("""
    r""""[^"\n]*"|'[^'\n]*'|-?[0-9]+(?:\.[0-9]+)?|true|false|null|\[[^\]\n]*\]|[^\s,;.]+)"""
)
"""How a question gives a name its value: `year = 1815`, `"name": "Ada"`."""


class Open(Exception):
    """A value that nobody names."""


class SchemaSolver:
    name = "schema"
    at_once = 1

    @staticmethod
    def takes(job: Job) -> bool:
        return isinstance(job.spec, ChecklistSpec) and _schema(job.spec) is not None

    def proposals(self, job: Job, tools: Tools, seconds: float) -> Generator[Proposal, None, None]:
        schema = _schema(job.spec) if isinstance(job.spec, ChecklistSpec) else None
        if schema is None:
            return
        try:
            value = instance(schema, job.question)
        except Open as error:
            tools.notes.append(f"the schema and the question leave {error} open")
            return
        yield Proposal(json.dumps(value, ensure_ascii=False, indent=2), self.name)


def _schema(spec: ChecklistSpec) -> Any:
    """That of the only item that asks for the whole text as JSON; None where it is not so."""
    items = [item for item in spec.items if isinstance(item, JsonItem) and item.within == "whole"]
    if len(items) != 1:
        return None
    try:
        found = json.loads(items[0].rules)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def instance(schema: Any, question: str, name: str = "the value", depth: int = 0) -> Any:
    """The value that a schema pins down, with what the question says of the names in it. Raises Open."""
    if not isinstance(schema, dict) or depth > MOST_DEPTH:
        raise Open(name)
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
    said = _said(name, question)
    if isinstance(options, list) and said not in options:
        raise Open(name)
    if not _is(said, kind):
        raise Open(name)
    return said


def _said(name: str, question: str) -> Any:
    """What the question says of a name: `year = 1815`, `"name": "Ada"`. Raises Open."""
    found = re.search(NAMED.replace("{key}", re.escape(name)), question)
    if found is None:
        raise Open(name)
    word = found[1]
    if word[0] == "'":
        return word[1:-1]
    try:
        return json.loads(word)
    except (ValueError, RecursionError):
        return word


def _is(value: Any, kind: Any) -> bool:
    match kind:
        case "string":
            return isinstance(value, str)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "boolean":
            return isinstance(value, bool)
        case "array":
            return isinstance(value, list)
        case None:
            return True
        case _:
            return False
