"""`assay config`: the values in force and their origins."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from pydantic import RootModel

from appliance.cli.shell.options import read_settings
from appliance.cli.show.printing import Output, for_people, prints, show_fields
from runtime.model import FrozenModel

app = typer.Typer(help="Show the configuration and the origin of its values.", no_args_is_help=True)


class ConfigValue(FrozenModel):
    value: Any
    origin: str


class ConfigDocument(RootModel[dict[str, ConfigValue]]):
    """Every configuration key, dotted, with value and origin."""


class ConfigKeyDocument(FrozenModel):
    name: str
    type: str
    unit: str
    default: Any
    description: str
    variable: str
    value: Any
    origin: str


@app.command("show")
@prints
def show(
    origin: Annotated[bool, typer.Option("--origin", help="Show the origin of each value.")] = False,
    explain: Annotated[
        str | None, typer.Option("--explain", metavar="KEY", help="Describe a key, or all keys of a section.")
    ] = None,
) -> Output[ConfigDocument | Annotated[list[ConfigKeyDocument], "with --explain"]]:
    """Show every value in force; --json always includes origins.

    Example: assay config show --explain schedule.cron
    """
    settings = read_settings()
    values, origins = settings.leaves(), settings.origins()
    if explain is not None:
        from appliance.config.reference import explained

        keys = [
            ConfigKeyDocument(**vars(key), variable=key.variable, value=values[key.name], origin=origins[key.name])
            for key in explained(explain)
        ]
        return Output(keys, lambda: _show_keys(keys))
    if for_people():
        typer.echo(settings.render(origins=origin))
    return Output(ConfigDocument({key: ConfigValue(value=values[key], origin=one) for key, one in origins.items()}))


def _show_keys(keys: list[ConfigKeyDocument]) -> None:
    from appliance.config.reference import as_written

    for place, key in enumerate(keys):
        if place:
            typer.echo()
        show_fields(
            [
                ("key", key.name),
                ("purpose", key.description),
                ("type", key.type),
                ("unit", key.unit or "none"),
                ("default", as_written(key.default)),
                ("variable", key.variable),
                ("in force", f"{as_written(key.value)}, from {key.origin}"),
            ]
        )
