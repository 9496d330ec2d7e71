"""What of the configuration clients of the control API and readers of the audit log need.

`appliance.config.configuration` has the rest, which takes longer to load than a question to the daemon takes.
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
        raise ValueError("it names no file and no folder")
    return path


def _absolute(path: Path) -> Path:
    try:
        return path.expanduser().absolute()
    except RuntimeError as error:
        raise ValueError(f"{path} names the home folder of a user that does not exist") from error


AbsolutePath = Annotated[Path, BeforeValidator(_named), AfterValidator(_absolute)]


class ApiSettings(FrozenModel):
    socket: AbsolutePath | None = None
    """Where the control API listens; otherwise `run/assay.sock` in the data folder."""


class LogSettings(FrozenModel):
    level: Literal["debug", "info", "warning", "error"] = "info"
    """The least that is logged."""
    format: Literal["console", "json"] = "console"
    """`console` for people, `json` for programs: one object a line."""


class AuditSettings(FrozenModel):
    head: AbsolutePath | None = None
    """Where the audit log's newest signed head is kept, outside the data folder; otherwise in the state folder of
    the user that the data folder belongs to."""
    witness: AbsolutePath | None = None
    """Another file for that head, such as one on a second machine's disk."""


class ClientSettings(FrozenModel):
    """`load` reads the layers; the constructor reads nothing."""

    data: AbsolutePath
    """The data folder: ledger, models, artifacts. One daemon at a time works on it."""
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
        """What all layers say, as `read_layers` reads them. Raises ConfigError."""
        return cls.of_layers(read_layers(flags, environ, etc_dir, xdg_dir))

    @classmethod
    def of_layers(cls, layers: Iterable[Layer]) -> Self:
        """What these layers say. Raises ConfigError."""
        values, origins = merged(layers, cls)
        try:
            settings = cls(**values)
        except ValidationError as error:
            raise refused(error, origins) from error
        for key in _endless(settings):
            raise ConfigError(
                f"{origins.get(key, 'the configuration')}: {key} has no end", hint="give it a number that has one"
            )
        settings._origins = origins
        return settings

    @property
    def socket_path(self) -> Path:
        """Where the control API listens."""
        return self.api.socket or self.data / "run" / "assay.sock"


def _endless(settings: BaseModel, prefix: str = "") -> Iterator[str]:
    """The keys whose value is infinite: no figure of anything is, and JSON, which a worker is told them in, has no such
    number."""
    for key in type(settings).model_fields:
        value = getattr(settings, key)
        if isinstance(value, BaseModel):
            yield from _endless(value, f"{prefix}{key}.")
        elif isinstance(value, float) and not math.isfinite(value):
            yield f"{prefix}{key}"
