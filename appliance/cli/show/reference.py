"""Writes docs/json.md: what each command prints with `--json`, and every field of it, from the models.

What always holds: all of it comes from `appliance.cli.show.outputs` and the models that it names.

    python -m appliance.cli.show.reference > docs/json.md
    python -m appliance.cli.show.reference --fields > tests/appliance/cli/show/json_fields.txt
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from appliance.cli.show.outputs import OUTPUTS, JsonOutput

_REF = "#/$defs/"
_HEAD = """\
# What `--json` prints

This page is generated from the models (`python -m appliance.cli.show.reference > docs/json.md`). `assay schema` lists
the commands, and `assay schema jobs ls` prints the JSON Schema of one.

- A command prints exactly one JSON document on standard output, in ASCII. Those that say "a line each" print one
  document a line while they follow something.
- What failed is one JSON document on standard error, `{"message": ..., "hint": ..., "exit_code": ...}`, with that exit
  code; standard output is then empty, unless the command had something to show all the same. A command line that cannot
  be read (2) is said in words. With `--json` nobody is asked anything on standard output.
- Fields are only added, so a program has to pass over those that it does not know. A field that is gone, or that has
  another type, is a new major version; a test compares every field with those that were printed before.
- `assay demo --json FILE` writes its result into a file. `assay config show --json` has whatever keys there are.
- Commands without `--json` print no result: they serve or follow something until they are ended (`serve`, `broker`,
  `gateway serve`, `cluster start`, `cluster join`), talk with a person (`tui`, `sandbox shell`, `curriculum try`),
  print a file as it is (`logs`, `policy migrate`, `policy show`), or do one thing that the exit code says all of
  (`stop`, `sandbox rm`, `cluster leave`).
"""
_FORMS = {"document": "", "list": "a list of ", "lines": "a line each: "}


def definitions() -> dict[str, Any]:
    """The JSON Schema of every model that is printed, and of those in it, by name."""
    models = {output.place: _model(output) for outputs in OUTPUTS.values() for output in outputs}
    _, found = models_json_schema([(one, "serialization") for one in models.values()])
    return dict(sorted(found["$defs"].items()))


def _model(output: JsonOutput) -> type[BaseModel]:
    found = output._replace(form="document").type()
    assert isinstance(found, type)
    assert issubclass(found, BaseModel)
    return found


def fields() -> list[str]:
    """One line for each command and document, for each field with its type, and for each value of an enumeration."""
    printed = [
        f"{command}: {said_of(output)}".rstrip() for command, outputs in sorted(OUTPUTS.items()) for output in outputs
    ]
    return printed + [f"{name}.{part}" for name, schema in definitions().items() for part in _parts(schema)]


def said_of(output: JsonOutput) -> str:
    return f"{_FORMS[output.form]}{output.model}{f' {output.when}' if output.when else ''}"


def _parts(schema: dict[str, Any]) -> Iterator[str]:
    for name, one in schema.get("properties", {}).items():
        yield f"{name}: {type_of(one)}"
    for value in schema.get("enum", ()):
        yield json.dumps(value)
    if "properties" not in schema and "enum" not in schema:
        yield f"*: {type_of(schema)}"


def type_of(schema: dict[str, Any]) -> str:
    """A schema in a few words; a model by its name."""
    if "$ref" in schema:
        return str(schema["$ref"]).removeprefix(_REF)
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " or ".join(dict.fromkeys(type_of(one) for one in schema[several]))
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        return " or ".join(map(json.dumps, schema["enum"]))
    kind = schema.get("type", "anything")
    if kind == "array":
        inner = schema.get("items", {"anyOf": schema["prefixItems"]} if "prefixItems" in schema else {})
        return f"list of {type_of(inner)}"
    if kind == "object":
        held = schema.get("additionalProperties")
        return f"map to {type_of(held)}" if isinstance(held, dict) else "map"
    return str(kind)


def page() -> str:
    """docs/json.md: a line for each command, and a table for each model."""
    made = [_HEAD, "\n## Commands\n\n| command | prints |\n|---|---|\n"]
    for command, outputs in OUTPUTS.items():
        made.append(f"| `{command}` | {'; '.join(map(_linked, outputs))} |\n")
    made.append("\n## Models\n")
    for name, schema in definitions().items():
        about = " ".join(str(schema.get("description", "")).split())
        made.append(f"\n### {name}\n\n{about}\n\n" if about else f"\n### {name}\n\n")
        made += _table(schema)
    return "".join(made)


def _linked(output: JsonOutput) -> str:
    return said_of(output).replace(output.model, f"[{output.model}](#{output.model.lower()})", 1)


def _table(schema: dict[str, Any]) -> list[str]:
    if "properties" in schema:
        rows = [f"| `{name}` | {_cell(type_of(one))} |\n" for name, one in schema["properties"].items()]
        return ["| field | is |\n|---|---|\n", *rows]
    if "enum" in schema:
        return [f"One of {', '.join(f'`{json.dumps(value)}`' for value in schema['enum'])}.\n"]
    return [f"A {type_of(schema)}.\n"]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write("\n".join(fields()) + "\n" if "--fields" in sys.argv[1:] else page())
