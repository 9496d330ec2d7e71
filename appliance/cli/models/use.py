"""`assay model use`: writes the settings of a model into the configuration file. Does not need the daemon."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from appliance.cli.shell.options import read_settings
from appliance.cli.show.printing import Output, for_people, prints, show_line
from runtime.model import FrozenModel

if TYPE_CHECKING:
    from appliance.config.configuration import Settings


class UsedModel(FrozenModel):
    folder: str
    file: str
    """Configuration file."""
    changes: dict[str, Any]
    """Written values by dotted key; empty if the file had them all."""
    overridden: tuple[str, ...]
    """Environment variables and flags that set one of these keys otherwise."""
    hours: float
    """Hours of a night at most, computed."""


@prints
def use_model(
    name: Annotated[str, typer.Argument(help="A registered base model, or a model folder.")],
    form: Annotated[
        str,
        typer.Option("--format", metavar="NAME", help="Conversation format, if not the model's own: told, chatml, ..."),
    ] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Write without asking.")] = False,
) -> Output[UsedModel]:
    """Write the settings with which nights train a model into the configuration file.

    They are those of `assay plan`: method, precision, context, group and concurrency that fit here, and a learning rate
    by size. The changed lines are shown first. Other keys and comments stay. With --format the model is copied under
    the name NAME-FORMAT. Exit code 0: written, or there was nothing to do; 1: no way of training fits; 2: unknown or
    unusable model, unknown format, invalid file, or not confirmed; 5: not writable.

    Example: assay model use qwen3-0.6b
    """
    from appliance.errors import AssayError, ExitCode, UsageError
    from appliance.models.use_model import difference, with_values
    from appliance.settings.config_layers import file_in_use
    from appliance.system.durable_file import replace_file

    settings = read_settings()
    folder = _folder(settings, name, form)
    values, hours = _values(settings, folder)
    file = file_in_use()
    before = file.read_text() if file.exists() else ""
    after, changes = with_values(before, _needed(settings, file, values))
    _require_valid(after, file)
    overridden = tuple(
        place
        for key, place in settings.origins().items()
        if key in values and settings.leaves()[key] != values[key] and place not in ("default", str(file))
    )
    used = UsedModel(folder=str(folder), file=str(file), changes=changes, overridden=overridden, hours=hours)
    for place in overridden:
        typer.echo(f"{place} sets one of these keys otherwise and comes first: remove it", err=True)
    if not changes:
        return Output(used, f"nothing to do: {file} has these settings")
    if for_people():
        for line in difference(before, after, file):
            show_line(line)
    if not yes:
        if not for_people() or not sys.stdin.isatty():
            raise UsageError("cannot ask for confirmation without a terminal", "add --yes to write the file")
        typer.echo(f"Write {file}? [y/N] ", nl=False, err=True)
        if input().strip().lower() not in ("y", "yes"):
            raise UsageError("nothing was written", "run the command again to write the file")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_file(file.resolve(), after.encode())  # a link stays
    except OSError as error:
        raise AssayError(
            f"{file} cannot be written: {error.strerror}", "run as its owner", ExitCode.INFRASTRUCTURE
        ) from error
    return Output(used, lambda: _show_next(settings, file))


def _show_next(settings: Settings, file: Path) -> None:
    from appliance.models.export_model import alias
    from appliance.system.lock_owner import owner_of

    show_line(f"wrote {file}")
    if owner_of(settings.data / "run" / "lock") is not None:
        show_line("restart the daemon: it still runs with the earlier settings")
    if champion := alias(settings.data / "ledger.sqlite3", "champion"):
        show_line(f"nights go on from {champion[:12]}, which is in service: use another data folder for this model")
    show_line("next: `assay doctor` shows the first prompt, `assay serve` starts the nights")


def _folder(settings: Settings, name: str, form: str) -> Path:
    """Returns the folder of the named model, in this format. Raises UsageError and ModelError."""
    from appliance.errors import UsageError
    from appliance.inference.engine import ModelError
    from appliance.models.local_models import find_base, registered_bases
    from appliance.models.use_model import in_format
    from appliance.readiness.model import UnusableModelError
    from appliance.system.durable_file import expanded

    base = find_base(name, settings.data)
    path = base or expanded(name)
    if form and base is None and path.is_dir():
        raise UsageError(f"{name} is not registered", "import it first: the copy in another format has its licence")
    if not path.is_dir():
        known = ", ".join(registered_bases(settings.data)) or "none"
        raise UsageError(f"unknown model {name}", f"registered: {known}; `assay model import NAME@SOURCE` adds one")
    if not form:
        return path.absolute()
    try:
        return in_format(path, settings.data, form)
    except ModelError as error:
        raise UnusableModelError(str(error), hint=error.hint) from error


def _values(settings: Settings, folder: Path) -> tuple[dict[str, Any], float]:
    """Returns the recommended settings by dotted key, and the hours of a night. Raises ModelError, and AssayError (1)
    if no way of training fits."""
    from appliance.cli.machine.recommended import machine_of, recommended
    from appliance.errors import AssayError, ExitCode
    from appliance.inference.engine import ModelError
    from appliance.readiness.model import UnusableModelError, examine, shape_in

    best = recommended(settings, shape_in(folder), machine_of(settings))
    if best is None:
        raise AssayError(
            "no way of training this model fits into this machine",
            f"run `assay plan {folder}` to see what is missing",
            ExitCode.FAILED_VERDICT,
        )
    try:
        examine(folder, settings.recipe.training, int(best.values["recipe.agent.max_tokens"]))
    except ModelError as error:
        raise UnusableModelError(f"{folder}: {error}", hint=error.hint) from error
    return {"model.path": str(folder), **best.values}, best.plan.hours


def _needed(settings: Settings, file: Path, values: dict[str, Any]) -> dict[str, Any]:
    """Returns the values that the file must have: those that it sets, and those that are not the default."""
    from appliance.config.configuration import Settings
    from appliance.settings.config_layers import Layer

    origins = settings.origins()
    plain = Settings.of_layers([Layer("default", {"data": str(settings.data)})]).leaves()
    return {key: value for key, value in values.items() if plain.get(key) != value or origins.get(key) == str(file)}


def _require_valid(text: str, file: Path) -> None:
    """Raises ConfigError if the text is not a valid configuration."""
    from appliance.config.configuration import Settings
    from appliance.settings.config_layers import Layer, read_layers
    from common.toml_files import read_toml

    layers = [one if one.name != str(file) else Layer(str(file), read_toml(text)) for one in read_layers()]
    Settings.of_layers(layers)
