"""The part of the configuration that control API clients and audit log readers need.

`appliance.config.configuration` has the rest, which takes longer to load than a question to the daemon.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, PrivateAttr, ValidationError

from appliance.settings.config_layers import ETC, ConfigError, Layer, Origins, merged, read_layers, refused
from runtime.model import FrozenModel


def _named(path: Any) -> Any:
    if isinstance(path, str) and (not path.strip() or "\0" in path):
        raise ValueError("not a file or folder name")
    return path


def _absolute(path: Path) -> Path:
    try:
        return path.expanduser().absolute()
    except RuntimeError as error:
        raise ValueError(f"{path}: unknown user") from error


AbsolutePath = Annotated[Path, BeforeValidator(_named), AfterValidator(_absolute)]


class ApiSettings(FrozenModel):
    socket: AbsolutePath | None = None
    """Socket of the control API; default: `run/assay.sock` in the data folder."""


class LogSettings(FrozenModel):
    level: Literal["debug", "info", "warning", "error"] = "info"
    """Least severe level that is logged."""
    format: Literal["console", "json"] = "console"
    """`console` for people, `json` for programs: one object per line."""


class AuditSettings(FrozenModel):
    head: AbsolutePath | None = None
    """Copy of the audit log's newest signed head, outside the data folder; default: in the state folder of the data
    folder's owner."""
    witness: AbsolutePath | None = None
    """Another copy of that head, for example on a second machine's disk."""


class ClientSettings(FrozenModel):
    """Settings shared by all commands. `load` reads the configuration layers; the constructor reads nothing."""

    data: AbsolutePath
    """Data folder with ledger, models and artifacts; used by one daemon at a time."""
    api: ApiSettings = ApiSettings()
    log: LogSettings = LogSettings()
    audit: AuditSettings = AuditSettings()

    _origins: Origins = PrivateAttr(default_factory=dict)

    @classmethod
    def load(
        cls,
        flags: Mapping[str, Any] | None = None,
        environ: Mapping[str, str] | None = None,
        etc_dir: Path = ETC,
        xdg_dir: Path | None = None,
    ) -> Self:
        """Returns the settings merged from all configuration layers (see `read_layers`). Raises ConfigError."""
        return cls.of_layers(read_layers(flags, environ, etc_dir, xdg_dir))

    @classmethod
    def of_layers(cls, layers: Iterable[Layer]) -> Self:
        """Returns the settings merged and validated from these configuration layers. Raises ConfigError."""
        values, origins = merged(layers, cls)
        try:
            settings = cls(**values)
        except ValidationError as error:
            raise refused(error, origins) from error
        for key in _endless(settings):
            raise ConfigError(
                f"{origins.get(key, 'the configuration')}: {key} is infinite", hint="give it a finite number"
            )
        settings._origins = origins
        return settings

    @property
    def socket_path(self) -> Path:
        """Path of the control API's socket."""
        return self.api.socket or self.data / "run" / "assay.sock"


def _endless(settings: BaseModel, prefix: str = "") -> Iterator[str]:
    """Yields the configuration keys with an infinite value, which is never meaningful and cannot be passed to workers
    as JSON."""
    for key in type(settings).model_fields:
        value = getattr(settings, key)
        if isinstance(value, BaseModel):
            yield from _endless(value, f"{prefix}{key}.")
        elif isinstance(value, float) and not math.isfinite(value):
            yield f"{prefix}{key}"
