"""`assay schema`: the JSON Schema of a command's `--json` output."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from appliance.cli.shell.options import Json


def schema(
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="COMMAND...", help="Words of the command; without any, list the commands."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Print the JSON Schema of a command's --json output, or list the commands that have one.

    Fields are only added. `assay docs build` writes all of them on one page.

    Example: assay schema jobs ls
    """
    from appliance.cli.documents.data import CommandSchema
    from appliance.cli.show.outputs import OUTPUTS, schema_of
    from appliance.cli.show.printing import show_records
    from appliance.errors import UsageError

    words = " ".join(command or ())
    if words in OUTPUTS:
        typer.echo(json.dumps(schema_of(words), indent=2, ensure_ascii=True))
        return
    listed = [
        CommandSchema(command=name, when=output.when, form=output.form, model=output.model)
        for name, outputs in OUTPUTS.items()
        if not words or name.startswith(f"{words} ")
        for output in outputs
    ]
    if not listed:
        import difflib

        near = difflib.get_close_matches(words, OUTPUTS, n=2, cutoff=0.6)
        hint = f"did you mean {' or '.join(near)}? " if near else ""
        raise UsageError(f"no command {words!r} prints JSON", f"{hint}list those that do with `assay schema`")
    show_records(
        listed,
        ("command", "prints", "model", "when"),
        lambda one: (one.command, one.form, one.model, one.when),
        empty="",
        as_json=as_json,
    )
