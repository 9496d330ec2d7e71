"""Writes a published model, or a checkpoint with an adapter and its base, as a plain Hugging Face folder or a GGUF
file.

What always holds: what is written was read and compared with its manifest, or is whole by its headers where it has
none; a target that exists is left alone.
"""

from __future__ import annotations

import re
import sqlite3
import tempfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from appliance.errors import AssayError, ExitCode, UsageError
from appliance.inference.engine import ADAPTER
from appliance.learning.checkpoints import model_files
from appliance.learning.errors import CheckpointError
from appliance.learning.folders import MANIFEST, verify, write_folder
from appliance.models.import_model import find_base
from appliance.readiness.model import fault_of
from appliance.system.durable_file import expanded

_DIGITS = re.compile(r"[0-9a-f]{6,64}")
_ALIASES = ("champion", "candidate", "previous", "canary")


@dataclass(frozen=True)
class Exported:
    digest: str
    merged: bool
    difference: float
    """Largest difference of log-probabilities between merged and unmerged, in nats."""


def export(model: str, target: Path, data: Path, base: str) -> Exported:
    """Writes the model as the folder `target`. Raises UsageError, CheckpointError and ModelError."""
    if target.exists():
        raise UsageError(f"{target} exists", "name a folder that does not: nothing is written over")
    source = published(model, data)
    if (source / ADAPTER).is_file():
        if not base:
            raise UsageError(
                f"{source} holds an adapter and no model", "name the model that it was trained beside with --base"
            )
        beside = find_base(base, data) or expanded(base)
        if not beside.is_dir():
            raise UsageError(
                f"there is no base model {base}", "name one that `assay model import` registered, or a model folder"
            )
        from appliance.learning.merging import export_merged

        difference = export_merged(source, _model_bytes(beside), target)
        return Exported(verify(target), True, difference)
    if base:
        raise UsageError(f"{source} holds no adapter", "leave --base out")
    if (source / MANIFEST).exists():
        verify(source)
    elif fault := fault_of(source):
        raise CheckpointError(f"{source}: {fault}", hint="copy the folder again, and export it then")
    return Exported(write_folder(target, model_files(source)), False, 0.0)


def export_gguf(model: str, target: Path, data: Path, base: str) -> tuple[Exported, int]:
    """Writes the model as one GGUF file, by way of a plain folder beside it; returns also how many tensors it has.
    Raises as `export`, and CheckpointError for a model that is not written so."""
    if target.exists():
        raise UsageError(f"{target} exists", "name a file that does not: nothing is written over")
    if not target.parent.is_dir():
        raise UsageError(f"there is no folder {target.parent}", "make it, or name another file")
    from appliance.models.gguf import write_gguf

    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".gguf-") as text:
        folder = Path(text) / target.stem
        return export(model, folder, data, base), write_gguf(folder, target)


def published(model: str, data: Path) -> Path:
    """The folder that a name, the first digits of a digest, or a path stands for. Raises UsageError."""
    if model in _ALIASES:
        digest = recorded_alias(data / "ledger.sqlite3", model)
        if digest is None:
            raise UsageError(f"no model is {model}", "`assay model ls` lists what there is")
        return data / "models" / digest
    models = data / "models"
    if _DIGITS.fullmatch(model) and models.is_dir():
        found = sorted(one for one in models.iterdir() if one.name.startswith(model))
        if len(found) == 1:
            return found[0]
        if found:
            raise UsageError(f"{len(found)} models begin with {model}", "give more digits")
    if (path := expanded(model)).is_dir():
        return path
    raise UsageError(
        f"there is no model {model}", "name champion, the first digits of a digest (`assay model ls`), or a folder"
    )


def alias(ledger: Path, name: str) -> str | None:
    """What an alias stands for; None where nothing does, and where the ledger cannot be read."""
    try:
        return recorded_alias(ledger, name)
    except AssayError:
        return None


def recorded_alias(ledger: Path, name: str) -> str | None:
    """Reads what an alias stands for; None where nothing does. Raises AssayError for a ledger that cannot be read."""
    if not ledger.exists():
        return None
    try:
        with closing(sqlite3.connect(f"{ledger.as_uri()}?mode=ro", uri=True)) as sql:
            row = sql.execute("SELECT manifest FROM aliases WHERE name = ?", (name,)).fetchone()
    except sqlite3.Error as error:
        raise AssayError(
            f"{ledger} cannot be read: {error}",
            "read it as the user that runs the daemon; `assay doctor` looks at the data folder",
            ExitCode.INFRASTRUCTURE,
        ) from error
    return row[0] if row and row[0] else None


def _model_bytes(folder: Path) -> dict[str, bytes]:
    return {name: path.read_bytes() for name, path in model_files(folder).items()}
