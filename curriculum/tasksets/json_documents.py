"""JSON that has to fit a schema: any document that fits is right. One is made together with each schema."""

from __future__ import annotations

import json
from functools import partial
from random import Random
from typing import Any

from curriculum.contract.taskset import TaskDraft
from curriculum.contract.topics import IMPOSSIBLE, Item, TopicTaskset
from curriculum.tasksets.statements import COLOURS, DRINKS, GOODS, PETS, TRADES, digest
from verifiers.checklists.spec import ChecklistSpec, JsonItem
from verifiers.contract.kinds import AnswerForm
from verifiers.registry.spec import Spec

_ASKED = (
    "Write a JSON document that fits this JSON schema (draft 2020-12):",
    "Give one JSON document that is valid under this JSON schema, draft 2020-12:",
    "Which JSON document fits this schema (draft 2020-12)? Give one.",
)
Made = tuple[dict[str, Any], Any]
"""Schema and a value that fits it."""


def _value(rng: Random) -> Made:
    sort = rng.randrange(6)
    if sort == 0:
        step, low = rng.randint(3, 40), rng.randint(50, 500)
        fits = (low // step + 1) * step
        return {"type": "integer", "minimum": low, "maximum": fits + rng.randint(0, step), "multipleOf": step}, fits
    if sort == 1:
        letters, digits = rng.randint(2, 4), rng.randint(2, 5)
        text = "".join(rng.choices("ABCDEFGH", k=letters)) + "-" + "".join(rng.choices("0123456789", k=digits))
        return {"type": "string", "pattern": f"^[A-Z]{{{letters}}}-[0-9]{{{digits}}}$"}, text
    if sort == 2:
        words = rng.sample((*COLOURS, *DRINKS), 3)
        return {"enum": words}, rng.choice(words)
    if sort == 3:
        count, low = rng.randint(2, 4), rng.randint(10, 90)
        schema = {
            "type": "array", "items": {"type": "integer", "minimum": low, "maximum": low + 9},
            "minItems": count, "maxItems": count + 1, "uniqueItems": True,
        }  # fmt: skip
        return schema, sorted(rng.sample(range(low, low + 10), count))
    if sort == 4:
        least = rng.randint(6, 14)
        text = rng.choice(TRADES)
        while len(text) < least:
            text += f" {rng.choice(PETS)}"
        return {"type": "string", "minLength": least, "maxLength": len(text) + 2}, text
    schema = {"type": "string", "format": "date", "pattern": f"^{(year := rng.randint(1950, 2050))}-"}
    return schema, f"{year}-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}"


def _record(size: int, depth: int, rng: Random) -> Made:
    """Makes a JSON schema and a fitting object with `size` required properties, nested at most `depth` deep."""
    names = rng.sample(GOODS, size)
    made = {name: _record(2, depth - 1, rng) if depth and at == 0 else _value(rng) for at, name in enumerate(names)}
    schema = {
        "type": "object",
        "properties": {name: one for name, (one, _) in made.items()},
        "required": sorted(names),
        "additionalProperties": False,
    }
    return schema, {name: one for name, (_, one) in made.items()}


def _records(level: int, rng: Random) -> Made:
    return _record(3 + level, level // 2, rng)


def _lists(level: int, rng: Random) -> Made:
    """Makes a JSON schema and a fitting list of records, some of which need a given tag."""
    schema, _ = _record(2 + level // 2, 0, rng)
    count = 2 + level // 2
    wanted = rng.sample(PETS, 1 + level // 3)
    schema["properties"]["tag"] = {"enum": sorted({*wanted, *rng.sample(PETS, 3)})}
    schema["required"] = sorted([*schema["required"], "tag"])
    items = []
    for at in range(max(count, len(wanted))):
        one = {name: _fits(part, rng) for name, part in schema["properties"].items() if name != "tag"}
        items.append({**one, "tag": wanted[at] if at < len(wanted) else schema["properties"]["tag"]["enum"][0]})
    asked = {
        "type": "array",
        "minItems": count,
        "maxItems": len(items) + 1,
        "items": schema,
        "allOf": [{"contains": {"properties": {"tag": {"const": tag}}, "required": ["tag"]}} for tag in wanted],
    }
    return asked, items


def _fits(schema: dict[str, Any], rng: Random) -> Any:
    """Returns a value that fits a JSON schema made by `_value`."""
    if "enum" in schema:
        return rng.choice(schema["enum"])
    if schema["type"] == "integer":
        return -(-schema["minimum"] // schema["multipleOf"]) * schema["multipleOf"]
    if schema["type"] == "array":
        low = schema["items"]["minimum"]
        return [low + at for at in range(schema["minItems"])]
    if "format" in schema:
        return f"{schema['pattern'][1:-1]}-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}"
    if "minLength" in schema:
        return "".join(rng.choices("abcdeimnorst", k=schema["minLength"]))
    letters, digits = (int(part.split("}")[0]) for part in schema["pattern"].split("{")[1:])
    return "".join(rng.choices("ABCDEFGH", k=letters)) + "-" + "".join(rng.choices("0123456789", k=digits))


def _choices(level: int, rng: Random) -> Made:
    """Makes a JSON schema and a fitting list of records of several kinds, with required counts per kind."""
    sorts = rng.sample(TRADES, 2 + level // 2)
    forms = {sort: _record(1 + (level + 1) // 2, 0, rng) for sort in sorts}
    for sort, (schema, _) in forms.items():
        schema["properties"] = {"sort": {"const": sort}, **schema["properties"]}
        schema["required"] = sorted([*schema["required"], "sort"])
    count = 2 + level // 2
    chosen = rng.sample(sorts, min(len(sorts), 1 + level // 2))
    picked = [chosen[at % len(chosen)] for at in range(count)]
    schema = {
        "type": "array",
        "minItems": count,
        "maxItems": count,
        "items": {"oneOf": [one for one, _ in forms.values()]},
        "allOf": [
            {
                "contains": {"properties": {"sort": {"const": sort}}, "required": ["sort"]},
                "minContains": picked.count(sort),
            }
            for sort in chosen
        ],
    }
    return schema, [{"sort": sort, **forms[sort][1]} for sort in picked]


def _made(sort: Any, level: int, rng: Random) -> Item:
    schema, fits = sort(level, rng)
    rules = json.dumps(schema, indent=1)
    text = f"{rng.choice(_ASKED)}\n{rules}\nFormats count. Answer with the JSON alone, in one fenced code block."
    spec = ChecklistSpec(items=(JsonItem(name="fits the schema", rules=rules),))
    return Item(text=text, key=digest(rules), spec=spec, answer=json.dumps(fits))


def no_document_fits(draft: TaskDraft, number: int) -> Spec:
    """Returns the draft's checklist plus another JSON schema that no such value fits, so no answer passes."""
    assert isinstance(draft.spec, ChecklistSpec)
    other = JsonItem(name="is a number", rules=json.dumps({"const": IMPOSSIBLE + number}))
    return draft.spec.model_copy(update={"items": (*draft.spec.items, other)})


JSON_DOCUMENTS = TopicTaskset(
    name="json_documents",
    version=1,
    makers={
        "schemas_of_records": partial(_made, _records),
        "schemas_of_lists": partial(_made, _lists),
        "schemas_of_choices": partial(_made, _choices),
    },
    null_answers=("{}", "[]", "null", "true"),
    form=AnswerForm.BLOCK,
    contradicted=no_document_fits,
)
