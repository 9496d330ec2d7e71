"""Whether work can begin at all, asked before a worker is started: what is missing now is missing at every attempt.

What always holds: nothing is changed, and nothing heavy is imported. What a file holds is judged later, by the worker;
here it only has to be there and whole.
"""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path

from appliance.config import ConfigError, Settings
from appliance.daemon.errors import BrokenError, NoRoomError
from appliance.places import runtime_settings
from runtime.backends import gvisor_find, nsjail_find
from runtime.backends.backend import Report
from runtime.broker.client import ask
from runtime.errors import RefusedError, SandboxError
from runtime.profile import BackendName

_LENGTH = struct.Struct("<Q")
MAX_HEADER_BYTES = 100_000_000
"""The format's own limit."""


class BrokerAwayError(RefusedError):
    """No broker answers now. One that somebody starts again may do so later."""


def require_isolation(settings: Settings) -> str:
    """Name and version of what the policy lets run model code. Raises RefusedError where it cannot be had: there is no
    other way; BrokerAwayError where nobody answers for the broker. Asks the broker where one is configured; otherwise
    looks whether one of ours could work."""
    runtime = runtime_settings(settings, settings.data)
    if runtime.broker is not None:
        return _of_broker(runtime.broker, runtime.backend)
    if runtime.backend is BackendName.GVISOR:
        gvisor = gvisor_find.describe(runtime.own.runsc)
        found = Report(gvisor.works, gvisor.version, gvisor.problem, gvisor.hint)
    else:
        found = nsjail_find.describe(runtime.own.nsjail)
    if not found.works:
        raise RefusedError(f"model code cannot be run safely: {found.problem}", hint=found.hint)
    return f"{runtime.backend.value} {found.version}"


def require_room(data: Path, gib: float) -> None:
    """Raises NoRoomError when the disk of the data folder has less room than the policy asks for."""
    free = shutil.disk_usage(data).free / 2**30
    if free < gib:
        raise NoRoomError(
            f"the disk of {data} has {free:.1f} GiB left; the policy asks for {gib:g}",
            hint="free some space, or lower resources.min_free_gib in the policy",
        )


def is_served(socket: Path) -> bool:
    """Whether a broker that we may use answers there."""
    try:
        ask(socket)
    except SandboxError:
        return False
    return True


def _of_broker(socket: Path, backend: BackendName) -> str:
    try:
        backends = ask(socket).backends
    except SandboxError as error:
        raise BrokerAwayError(f"model code cannot be run: {error}", hint=error.hint) from error
    if backend.value not in backends:
        raise RefusedError(
            f"model code cannot be run: the broker at {socket} has no {backend.value}, as the policy wants it",
            hint="`assay doctor`, as the broker's user, says why; sandbox.model_code in the policy names the backend",
        )
    return f"{backend.value} {backends[backend.value]}"


def require_model(folder: Path) -> None:
    """The model that the configuration names. Raises ConfigError unless it can be a model."""
    fault = fault_of(folder)
    if fault:
        raise ConfigError(
            f"model.path is {folder}: {fault}",
            hint="set it to a complete Hugging Face folder (config.json, tokenizer.json, *.safetensors), or unset it; "
            "pickled weights (.bin, .pt) are refused, for they can run code",
        )


def require_champion(folder: Path) -> None:
    """The model in service. Raises BrokenError unless it is still there."""
    fault = fault_of(folder)
    if fault:
        raise BrokenError(
            f"the model in service is damaged: {folder}: {fault}",
            hint="put that folder back from a copy, or go back to the one before with `assay model rollback`",
        )


def fault_of(folder: Path) -> str:
    """Why `folder` cannot be a model; empty when it has a model's files and none of them is cut short."""
    if not folder.is_dir():
        return "there is no such folder"
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        shards = sorted(folder.glob("*.safetensors"))
        broken = [shard.name for shard in shards if not is_whole(shard)]
    except FileNotFoundError:
        return "it has no config.json"
    except OSError as error:
        return f"{error.filename}: {error.strerror}"
    except ValueError:
        return "its config.json is not JSON"
    if not isinstance(config, dict):
        return "its config.json holds no table"
    if not shards:
        return "it has no safetensors file"
    return f"{broken[0]} is not as long as its header says" if broken else ""


def is_whole(shard: Path) -> bool:
    """Whether a safetensors file has the length that its header says: 8 bytes with the header's length, a JSON header,
    then as many bytes as the last tensor's end (the format's specification, huggingface/safetensors)."""
    size = shard.stat().st_size
    with shard.open("rb") as stream:
        start = stream.read(_LENGTH.size)
        if len(start) < _LENGTH.size:
            return False
        (length,) = _LENGTH.unpack(start)
        if length > min(MAX_HEADER_BYTES, size - _LENGTH.size):
            return False
        try:
            header = json.loads(stream.read(length))
            ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
            return bool(size == _LENGTH.size + length + max(ends, default=0))
        except (ValueError, LookupError, TypeError, AttributeError):
            return False
