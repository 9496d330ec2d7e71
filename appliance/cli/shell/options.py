"""Options that many commands share, and what follows from them: the settings and a client of the control API."""

from __future__ import annotations

from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

if TYPE_CHECKING:
    from appliance.client import ApiClient
    from appliance.client.connection import ApiConnection
    from appliance.config.configuration import Settings
    from appliance.settings.client_config import ClientSettings
    from appliance.settings.config_layers import Layer

S = TypeVar("S", bound="ClientSettings")


def _folder(text: str) -> Path:
    """An empty name is an unset variable of a script, and must not mean the folder that it happens to run in."""
    if not text:
        raise typer.BadParameter("the name of the folder is empty")
    return Path(text)


Data = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="DIR",
        parser=_folder,
        help="The data folder; otherwise ASSAY_DATA, otherwise the configuration's.",
    ),
]
JSON_ASKED: ContextVar[bool] = ContextVar("JSON_ASKED", default=False)
"""Whether the command that runs was given --json: then what fails is said as JSON, too."""


def _json_asked(wanted: bool) -> bool:
    JSON_ASKED.set(wanted)
    return wanted


Json = Annotated[
    bool,
    typer.Option("--json", help="Print JSON, for a program (`assay schema` has its schema).", callback=_json_asked),
]
MOST_SEED = (1 << 62) - 1
"""What a model's first weights can be drawn from has 63 bits, and a later cycle takes the next one."""
Seed = Annotated[int | None, typer.Option("--seed", min=0, max=MOST_SEED, help="Otherwise the next one.")]
Limit = Annotated[int, typer.Option("--limit", min=1, max=1000, help="How many, newest first.")]
Person = Annotated[str | None, typer.Option("--as", metavar="NAME", help="Who asks; otherwise the name of the login.")]


def settings_of(context: typer.Context, data: Path | None) -> Settings:
    """Reads the configuration in force, and has the log obey it; `--data` may stand before or after the command."""
    from appliance.config.configuration import Settings

    return _with_log(Settings.of_layers(_layers(context, data)))


def socket_of(context: typer.Context, data: Path | None) -> Path:
    """Where the daemon listens. Raises ApiError for a folder that was named and is not there."""
    settings, named = client_settings_of(context, data), data or context.find_root().obj
    if named is not None and settings.api.socket is None and not settings.data.exists():
        from appliance.client.failures import ApiError

        raise ApiError(
            f"there is no folder {settings.data}, so no daemon runs on it",
            hint="--data names the data folder that `assay serve` was started with; it makes one that is not there",
            exit_code=3,
        )
    return settings.socket_path


def data_of(context: typer.Context, data: Path | None) -> Path:
    return client_settings_of(context, data).data


def client_settings_of(context: typer.Context, data: Path | None) -> Settings | ClientSettings:
    """For a command that needs no more of it. Only that is loaded, unless anything else is configured: a fault anywhere
    in the configuration is said by every command."""
    from appliance.settings.client_config import ClientSettings

    layers = _layers(context, data)
    if any(layer.values.keys() - ClientSettings.model_fields.keys() for layer in layers):
        return settings_of(context, data)
    return _with_log(ClientSettings.of_layers(layers))


def client_of(context: typer.Context, data: Path | None) -> ApiClient:
    from appliance.client.api_client import ApiClient

    return ApiClient(socket_of(context, data))


def connection_of(context: typer.Context, data: Path | None) -> ApiConnection:
    """For a command that needs none of the client's own questions, and so not what they are answered with."""
    from appliance.client.connection import ApiConnection

    return ApiConnection(socket_of(context, data))


def _layers(context: typer.Context, data: Path | None) -> list[Layer]:
    from appliance.settings.config_layers import read_layers

    return read_layers({"data": data or context.find_root().obj})


def _with_log(settings: S) -> S:
    from appliance.settings.logs import configure_when_needed

    configure_when_needed(settings.log.level, settings.log.format)
    return settings
