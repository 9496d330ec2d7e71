"""Options shared by many commands, with the settings and API clients they lead to."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from common.plugins.allowed import refuse_as_root
from common.plugins.installed import PluginError

if TYPE_CHECKING:
    from appliance.client import ApiClient
    from appliance.config.configuration import Settings
    from appliance.settings.client_config import ClientSettings
    from appliance.settings.config_layers import Layer
    from common.plugins.installed import Pin

S = TypeVar("S", bound="ClientSettings")


def _folder(text: str) -> Path:
    """Returns the path of a folder option. Rejects an empty name, which comes from an unset script variable and must
    not mean the current folder."""
    if not text:
        raise typer.BadParameter("the name of the folder is empty")
    return Path(text)


DATA: ContextVar[Path | None] = ContextVar("DATA", default=None)
"""Folder of --data, before or after the running command; None if not given."""
_PARSED: ContextVar[bool] = ContextVar("_PARSED", default=False)
"""True if the command's own --data was read, so that `DATA` is what it means."""


def _data_read(context: typer.Context, folder: Path | None) -> Path | None:
    _PARSED.set(context.parent is not None)
    if folder is not None:
        DATA.set(folder)
    return folder


Data = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="DIR",
        parser=_folder,
        callback=_data_read,
        is_eager=True,
        help="Data folder (default: ASSAY_DATA, else as configured).",
    ),
]
JSON_ASKED: ContextVar[bool] = ContextVar("JSON_ASKED", default=False)
"""True if the running command has --json; errors are then JSON, too."""


def _json_asked(wanted: bool) -> bool:
    JSON_ASKED.set(wanted)
    return wanted


Json = Annotated[bool, typer.Option("--json", help="Print JSON (schema: `assay schema`).", callback=_json_asked)]
MOST_SEED = (1 << 62) - 1
"""Largest seed: weights are drawn from 63 bits, and a later cycle takes the next one."""
Seed = Annotated[int | None, typer.Option("--seed", min=0, max=MOST_SEED, help="Seed (default: the next one).")]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, help="Maximum number, newest first.")]
Person = Annotated[str | None, typer.Option("--as", metavar="NAME", help="Your name (default: your login name).")]


def read_settings() -> Settings:
    """Reads the configuration in force and applies its log settings."""
    from appliance.config.configuration import Settings

    return _with_log(Settings.of_layers(_layers()))


def daemon_socket() -> Path:
    """Returns the path of the daemon's socket. Raises ApiError if the named data folder does not exist."""
    settings = read_client_settings()
    if DATA.get() is not None and settings.api.socket is None and not settings.data.exists():
        from appliance.client.failures import ApiError

        raise ApiError(
            f"no such data folder: {settings.data}",
            hint="set --data to the folder of a running `assay serve`, which creates a missing one",
            exit_code=3,
        )
    return settings.socket_path


def _typed_folder(words: Sequence[str]) -> Path | None:
    """Returns the folder of --data in a command line that is not parsed yet, because a name from outside is part of the
    command. Raises PluginError where --data may be the value of another option."""
    typed = None
    for before, word, after in zip(["", *words], words, [*words[1:], ""], strict=False):
        if word == "--":
            break
        if word == "--data" or word.startswith("--data="):
            if before.startswith("-") and "=" not in before and before != "--json":
                raise PluginError(
                    f"plug-ins: --data may be the value of {before}", hint="write it first: `assay --data DIR ...`"
                )
            typed = after if word == "--data" else word.removeprefix("--data=")
    return Path(typed) if typed else None


def plugins_of_command() -> tuple[Pin, ...]:
    """Returns the distributions admitted by the policy in force of the data folder that the command line names; asked
    for when a command first needs one. Raises ConfigError and PolicyError."""
    from appliance.settings.client_config import ClientSettings
    from appliance.settings.config_layers import read_layers
    from appliance.settings.policy_files import plugins_in_force

    layers = read_layers({"data": DATA.get() if _PARSED.get() else _typed_folder(sys.argv[1:])})
    services = [one.values.get("service") for one in layers]
    if any(isinstance(one, Mapping) and one.get("user") not in (None, "root") for one in services):
        refuse_as_root()
    known = [replace(one, values={key: one.values[key] for key in one.values.keys() & {"data"}}) for one in layers]
    return plugins_in_force(ClientSettings.of_layers(known).data)


def data_folder() -> Path:
    return read_client_settings().data


def read_client_settings() -> Settings | ClientSettings:
    """Reads only the clients' part of the configuration if nothing else is configured, which is faster. Any fault in
    the rest is still reported by every command."""
    from appliance.settings.client_config import ClientSettings

    layers = _layers()
    if any(layer.values.keys() - ClientSettings.model_fields.keys() for layer in layers):
        return read_settings()
    return _with_log(ClientSettings.of_layers(layers))


def api_client(**settings: float) -> ApiClient:
    """Returns a client of the daemon; `settings` are those of `ApiClient`, such as `timeout_seconds`."""
    from appliance.client.api_client import ApiClient

    return ApiClient(daemon_socket(), **settings)


def _layers() -> list[Layer]:
    from appliance.settings.config_layers import read_layers

    return read_layers({"data": DATA.get()})


def _with_log(settings: S) -> S:
    from appliance.settings.logs import configure_when_needed

    configure_when_needed(settings.log.level, settings.log.format)
    return settings
