"""Exports a published model, or an adapter with its base, as a Hugging Face folder or a GGUF file.

Invariants: the source is verified against its manifest, or by its headers if it has none; an existing target is never
overwritten. The exported chat template writes the format in which the model was trained, or the result says why not.
"""

from __future__ import annotations

import re
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from appliance.errors import AssayError, ExitCode, UsageError
from appliance.inference.engine import ADAPTER, ModelError
from appliance.learning.checkpoints import model_files
from appliance.learning.errors import CheckpointError
from appliance.learning.folders import MANIFEST, verify, write_folder
from appliance.models.local_models import find_base
from appliance.readiness.model import fault_of, try_text
from appliance.system.durable_file import expanded

T = TypeVar("T")
_DIGITS = re.compile(r"[0-9a-f]{6,64}")
_ALIASES = ("champion", "candidate", "previous", "canary")


@dataclass(frozen=True)
class Exported:
    digest: str
    merged: bool
    difference: float
    """Largest difference of log-probabilities between merged and unmerged, in nats."""
    template: str = ""
    """Reason that the chat template does not write the trained format exactly; empty if it does."""


def export(model: str, target: Path, data: Path, base: str) -> Exported:
    """Writes a published model, merged with its adapter if it has one, as the new folder `target`. Raises UsageError,
    CheckpointError and ModelError."""
    if target.exists():
        raise UsageError(f"{target} exists", "name a new folder: nothing is overwritten")
    source = published(model, data)
    if (source / ADAPTER).is_file():
        if not base:
            raise UsageError(f"{source} has an adapter but no model", "name its base model with --base")
        beside = find_base(base, data) or expanded(base)
        if not beside.is_dir():
            raise UsageError(
                f"unknown base model {base}", "name one that `assay model import` registered, or a model folder"
            )
        from appliance.learning.merging import export_merged

        written, fault = _template(beside)
        difference = export_merged(source, _replaced(_model_bytes(beside), written), target)
        return Exported(verify(target), True, difference, fault)
    if base:
        raise UsageError(f"{source} has no adapter", "omit --base")
    if (source / MANIFEST).exists():
        verify(source)
    elif fault := fault_of(source):
        raise CheckpointError(f"{source}: {fault}", hint="copy the folder again before exporting it")
    written, fault = _template(source)
    return Exported(write_folder(target, _replaced(model_files(source), written)), False, 0.0, fault)


def export_gguf(model: str, target: Path, data: Path, base: str) -> tuple[Exported, int]:
    """Writes a published model as one GGUF file, through a temporary folder; also returns its number of tensors. Raises
    as `export`, and CheckpointError for a model that GGUF does not support."""
    if target.exists():
        raise UsageError(f"{target} exists", "name a new file: nothing is overwritten")
    if not target.parent.is_dir():
        raise UsageError(f"no such folder: {target.parent}", "create it, or name another file")
    from appliance.models.gguf import write_gguf

    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".gguf-") as text:
        folder = Path(text) / target.stem
        return export(model, folder, data, base), write_gguf(folder, target)


def published(model: str, data: Path) -> Path:
    """Returns the folder of a model, named by an alias, a digest prefix, a base model's name, or a path. Raises
    UsageError."""
    if model in _ALIASES:
        digest = recorded_alias(data / "ledger.sqlite3", model)
        if digest is None:
            raise UsageError(f"alias {model} is not set", "run `assay model ls` to list models")
        return data / "models" / digest
    models = data / "models"
    if _DIGITS.fullmatch(model) and models.is_dir():
        found = sorted(one for one in models.iterdir() if one.name.startswith(model))
        if len(found) == 1:
            return found[0]
        if found:
            raise UsageError(f"{len(found)} models begin with {model}", "give more digits")
    if (base := find_base(model, data)) is not None:
        return base
    if (path := expanded(model)).is_dir():
        return path
    raise UsageError(
        f"unknown model {model}",
        "name champion, the first digits of a digest or a base model (`assay model ls`), or a folder",
    )


def alias(ledger: Path, name: str) -> str | None:
    """Returns the digest of the model with this alias; None if unset, or if the ledger is unreadable."""
    try:
        return recorded_alias(ledger, name)
    except AssayError:
        return None


def recorded_alias(ledger: Path, name: str) -> str | None:
    """Returns the digest of the model with this alias in the ledger, or None. Raises as `recorded_aliases`."""
    return recorded_aliases(ledger).get(name)


def recorded_aliases(ledger: Path) -> dict[str, str]:
    """Returns the digests of the models with an alias in the ledger; empty without one, and for an empty file, as
    SQLite creates it before its first table. Raises AssayError for an unreadable ledger."""
    if not ledger.exists() or not ledger.stat().st_size:
        return {}
    with reading(ledger) as sql:
        rows = sql.execute("SELECT name, manifest FROM aliases WHERE manifest IS NOT NULL").fetchall()
    return {name: manifest for name, manifest in rows if manifest}


@contextmanager
def reading(ledger: Path) -> Iterator[sqlite3.Connection]:
    """Context with a read-only connection to an existing ledger. Raises AssayError if it cannot be read."""
    try:
        with closing(sqlite3.connect(f"{ledger.as_uri()}?mode=ro", uri=True)) as sql:
            yield sql
    except sqlite3.Error as error:
        raise AssayError(
            f"{ledger} cannot be read: {error}",
            "run as the user of the daemon, or run `assay doctor` to check the data folder",
            ExitCode.INFRASTRUCTURE,
        ) from error


def _template(folder: Path) -> tuple[dict[str, bytes | None], str]:
    """Returns the files that make the chat template of an exported model exact, None for one to leave out, and the
    reason if none can."""
    try:
        tried = try_text(folder, export=True)
    except ModelError as error:
        return {}, str(error)
    files = {name: None if text is None else text.encode() for name, text in tried["files"].items()}
    return files, tried["no_template"]


def _replaced(files: Mapping[str, T], others: Mapping[str, bytes | None]) -> dict[str, T | bytes]:
    changed: dict[str, T | bytes] = {name: files[name] for name in files.keys() - others.keys()}
    return changed | {name: content for name, content in others.items() if content is not None}


def _model_bytes(folder: Path) -> dict[str, bytes]:
    return {name: path.read_bytes() for name, path in model_files(folder).items()}
