"""Options that many commands share, and what follows from them: the settings and a client of the control API."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from appliance.client import ApiClient
    from appliance.config import Settings


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
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for a program.")]
Limit = Annotated[int, typer.Option("--limit", min=1, max=1000, help="How many, newest first.")]
Person = Annotated[
    str | None, typer.Option("--as", metavar="NAME", help="Whose word it is; otherwise the name of the login.")
]


def settings_of(context: typer.Context, data: Path | None) -> Settings:
    """The configuration in force; `--data` may stand before or after the command."""
    from appliance.config import Settings

    return Settings.load({"data": data or context.find_root().obj})


def client_of(context: typer.Context, data: Path | None) -> ApiClient:
    from appliance.client import ApiClient

    return ApiClient(settings_of(context, data).socket_path)


def person_of(name: str | None) -> str:
    """Who speaks: the name given, otherwise the login that owns this process."""
    import os
    import pwd

    return name or pwd.getpwuid(os.getuid()).pw_name
