"""`assay schema`: the JSON Schema of a command's `--json` output, from the command's return annotation.

Invariants: types that only an annotation names are imported when a schema is requested, and not before.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import sys
import types
from collections.abc import Iterator, Sequence
from functools import reduce
from operator import or_
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import typer

from appliance.cli.show.printing import Output, prints_without_data, show_table
from runtime.model import FrozenModel

Form = Literal["document", "list", "lines"]


class JsonOutput(NamedTuple):
    """Output of a command with `--json`: one document, a list of documents, or a stream of documents one per line."""

    type: Any
    """Model of a document."""
    form: Form = "document"
    when: str = ""
    """Condition for this output if a command has several."""

    @property
    def model(self) -> str:
        return str(self.type.__name__)


class CommandSchema(FrozenModel):
    command: str
    when: str
    """Condition for this document if a command prints one of several."""
    form: Form
    model: str


@prints_without_data
def schema(
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="COMMAND...", help="Words of the command; without any, list the commands."),
    ] = None,
) -> Output[Annotated[list[CommandSchema], "without a command; with one, its JSON Schema"] | None]:
    """Print the JSON Schema of a command's --json output, or list the commands that have one.

    Fields are only added. `assay docs build` writes all of them on one page.

    Example: assay schema jobs ls
    """
    from appliance.errors import UsageError

    words = " ".join(command or ())
    if outputs_of(words):
        typer.echo(json.dumps(schema_of(words), indent=2, ensure_ascii=True))
        return Output(None)
    known = all_outputs(imported=False)
    listed = [
        CommandSchema(command=name, when=output.when, form=output.form, model=output.model)
        for name, outputs in known.items()
        if not words or name.startswith(f"{words} ")
        for output in outputs
    ]
    if not listed:
        import difflib

        near = difflib.get_close_matches(words, known, n=2, cutoff=0.6)
        hint = f"did you mean {' or '.join(near)}? " if near else ""
        raise UsageError(f"no command {words!r} prints JSON", f"{hint}list those that do with `assay schema`")
    rows = [(one.command, one.form, one.model, one.when) for one in listed]
    return Output(listed, lambda: show_table(("command", "prints", "model", "when"), rows, empty=""))


def schema_of(words: str) -> dict[str, Any]:
    """Returns the JSON Schema of a command's `--json` output, or of one line of a stream. Unknown fields are allowed,
    because fields may be added."""
    from pydantic import TypeAdapter
    from pydantic.json_schema import GenerateJsonSchema

    shapes = [list.__class_getitem__(one.type) if one.form == "list" else one.type for one in outputs_of(words)]
    union: Any = reduce(or_, shapes)
    schema = TypeAdapter(union).json_schema(mode="serialization")
    return {"$schema": GenerateJsonSchema.schema_dialect, **_open(schema), "title": f"assay {words} --json"}


def outputs_of(words: str) -> Sequence[JsonOutput]:
    """Returns the outputs of the command with these words; none for a group, an unknown command, or one without
    JSON."""
    found = _root()
    for word in words.split():
        found = found.get_command(None, word) if hasattr(found, "get_command") else None
        if found is None:
            return ()
    return _outputs(found)


def all_outputs(*, imported: bool = True) -> dict[str, Sequence[JsonOutput]]:
    """Returns the outputs of every command that prints JSON, by its words. If not `imported`, models are placeholders
    that have only their names."""
    leaves = _leaves(_root())
    return {words: outputs for words, command in leaves if (outputs := _outputs(command, imported=imported))}


def _root() -> Any:
    from appliance.cli.main import app

    return typer.main.get_command(app)


def _leaves(group: Any, *path: str) -> Iterator[tuple[str, Any]]:
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        if hasattr(command, "list_commands"):
            yield from _leaves(command, *path, name)
        else:
            yield " ".join((*path, name)), command


def _outputs(command: Any, *, imported: bool = True) -> Sequence[JsonOutput]:
    returned = getattr(command.callback, "returned", None) if hasattr(command, "callback") else None
    if returned is None or not any("--json" in one.opts for one in command.params):
        return ()
    found = (
        returned() if callable(returned) else _evaluated(returned, sys.modules[command.callback.__module__], imported)
    )
    if get_origin(found) is Output:
        (found,) = get_args(found)
    return [_output(one) for one in _members(found) if one is not types.NoneType]


def _output(found: Any) -> JsonOutput:
    found, when = get_args(found) if get_origin(found) is Annotated else (found, "")
    origin = get_origin(found)
    if origin is None:
        return JsonOutput(found, when=when)
    (document,) = (one for one in _members(get_args(found)[0]) if one is not str)
    return JsonOutput(document, "list" if issubclass(origin, Sequence) else "lines", when)


def _members(found: Any) -> tuple[Any, ...]:
    return get_args(found) if get_origin(found) in (Union, types.UnionType) else (found,)


def _evaluated(annotation: str, module: types.ModuleType, imported: bool) -> Any:
    """Evaluates a return annotation with the names of its module, including those imported only for type checkers."""
    names = dict(vars(module))
    wanted = {node.id for node in ast.walk(ast.parse(annotation)) if isinstance(node, ast.Name)} - names.keys()
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            standard = node.module.partition(".")[0] in sys.stdlib_module_names
            for name in {alias.name for alias in node.names} & wanted:
                load = imported or standard
                names[name] = getattr(importlib.import_module(node.module), name) if load else type(name, (), {})
    function = types.SimpleNamespace(__annotations__={"return": annotation})
    return get_type_hints(function, names, include_extras=True)["return"]


def _open(value: Any) -> Any:
    """Returns a JSON Schema without `additionalProperties: false`, at any depth."""
    if isinstance(value, dict):
        return {
            name: _open(one) for name, one in value.items() if not (name == "additionalProperties" and one is False)
        }
    return [_open(one) for one in value] if isinstance(value, list) else value
