"""Whether work can begin at all, asked before a worker is started: what is missing now is missing at every attempt.

What always holds: nothing is changed, and nothing heavy is imported. What a file holds is judged later, by the worker;
here it only has to be there and whole.
"""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from appliance.config import Settings
from appliance.config_layers import ConfigError
from appliance.daemon.errors import BrokenError, NoRoomError
from appliance.ledger.audited import AuditedLedger, TamperedError
from appliance.sandbox_readiness import BrokerAwayError, is_served, require_isolation
from policies.policy import Policy
from runtime.errors import RefusedError, SandboxError

_LENGTH = struct.Struct("<Q")
MAX_HEADER_BYTES = 100_000_000
"""The format's own limit."""


@dataclass(frozen=True)
class BlockedReason:
    """Why no worker can begin."""

    text: str
    """With what to do."""
    passes: bool
    """Whether it may be gone without anybody's help."""


@dataclass(frozen=True)
class Readiness:
    """Asks for everything that a worker needs."""

    settings: Settings
    ledger: AuditedLedger
    policy: Callable[[], Policy]
    refused: RefusedError | None
    """Why model code cannot be run, as long as no broker answers."""
    own_broker: bool
    """Whether a guard of ours starts the broker again whenever it ends."""

    def require(self) -> None:
        """Raises RefusedError without isolation, ConfigError without the configured model, BrokenError without the one
        in service, NoRoomError without the room on disk that the policy asks for, TamperedError for a ledger that is
        not what the audit log says."""
        self.ledger.require_whole()
        self.require_isolation()
        require_room(self.settings.data, self.policy().resources.min_free_gib)
        digest = self.ledger.alias("champion")
        champion = self.ledger.checkpoint(digest) if digest else None
        folder = self.settings.data / champion.folder if champion is not None else self.settings.model.path
        fault = fault_of(folder) if folder is not None else ""
        if fault and champion is not None:
            raise BrokenError(
                f"the model in service is damaged: {folder}: {fault}",
                hint="put that folder back from a copy, or go back to the one before with `assay model rollback`",
            )
        if fault:
            raise ConfigError(
                f"model.path is {folder}: {fault}",
                hint="set it to a complete Hugging Face folder (config.json, tokenizer.json, *.safetensors), or unset "
                "it; pickled weights (.bin, .pt) are refused, for they can run code",
            )

    def require_isolation(self) -> None:
        """Raises RefusedError where model code cannot be run."""
        broker = self.settings.sandbox.broker
        if self.refused is not None and not (broker is not None and is_served(broker)):
            kind = BrokerAwayError if self.own_broker else RefusedError
            raise kind(str(self.refused), hint=self.refused.hint)
        require_isolation(self.settings, self.policy())

    def blocked(self) -> BlockedReason | None:
        """None when a worker can begin."""
        try:
            self.require()
        except BrokerAwayError as error:
            if self.own_broker:
                return BlockedReason(f"{error}; our own broker starts again by itself", passes=True)
            return BlockedReason(f"{error}; {error.hint}", passes=False)
        except (SandboxError, ConfigError, BrokenError, TamperedError) as error:
            return BlockedReason(f"{error}; {error.hint}", passes=isinstance(error, NoRoomError | TamperedError))
        return None


def require_room(data: Path, gib: float) -> None:
    """Raises NoRoomError when the disk of the data folder has less room than the policy asks for."""
    free = shutil.disk_usage(data).free / 2**30
    if free < gib:
        raise NoRoomError(
            f"the disk of {data} has {free:.1f} GiB left; the policy asks for {gib:g}",
            hint="free some space, or lower resources.min_free_gib in the policy",
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
