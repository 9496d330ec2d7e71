"""Registers base models: validated, and copied to the data folder under a name, with their licence text.

  <data>/bases/<name>/    the model's files, LICENSE, base.json, manifest.json

Invariants: a name refers to one set of files for ever. A base has a licence text: its own, or else the given one.
Folder and archive are untrusted: only regular files with a model's file names are written, each once; a linked text
file must lie in that folder or its Hugging Face cache, because it is copied with the model. One import writes at a
time, and removes leftovers of killed ones. Nothing is downloaded.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path, PurePosixPath

from appliance.inference.engine import ModelError
from appliance.learning.checkpoints import LICENSES, is_model_file, model_files
from appliance.learning.errors import CheckpointError
from appliance.learning.folders import Content, sweep, verify, write_folder
from appliance.learning.recipes.recipe import TrainingRecipe
from appliance.readiness.model import ModelFacts, UnusableModelError, examine, read_config, require_weights
from appliance.system.durable_file import expanded

BASES = "bases"
RECORD = "base.json"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_KIND = re.compile(r"[a-z0-9_]{1,64}")
_MAX_LICENSE = 1 << 20


@dataclass(frozen=True)
class ImportedBase:
    name: str
    folder: Path
    digest: str
    facts: ModelFacts
    license_file: str
    known: bool
    """True if already registered with the same files."""


def split_source(source: str) -> tuple[str, Path]:
    """Splits `NAME@PATH` into the model's name and path; without a name, the path's last part is the name. Raises
    UnusableModelError for an invalid name."""
    path = expanded(source)
    name, at, rest = source.partition("@")
    if at and not path.exists():
        path = expanded(rest)
    else:
        name = path.resolve().name.removesuffix(".gz").removesuffix(".tar").removesuffix(".tgz")
    if not _NAME.fullmatch(name):
        raise UnusableModelError(
            f"invalid model name {name!r}: use at most 64 letters, digits, dots, dashes and underscores",
            hint="put a name before the path: NAME@PATH",
        )
    return name, path


def import_base(source: str, data: Path, license_file: Path | None = None) -> ImportedBase:
    """Validates and registers the model of `[NAME@]PATH`, where PATH is a folder or a tar archive of one. Raises
    UnusableModelError for an invalid model, a missing licence text or a name in use; CheckpointError if it cannot be
    written, and OSError if it cannot be read."""
    name, path = split_source(source)
    with _alone(data / BASES), _as_folder(path, data) as folder:
        try:
            facts = examine(folder, TrainingRecipe())
            _require_known(folder)
            require_weights(folder)
        except ModelError as error:
            raise UnusableModelError(f"{path}: {error}", hint=error.hint) from error
        taken = model_files(folder)
        _require_own(taken, folder)
        files: dict[str, Content] = dict(taken)
        found = next((one for one in LICENSES if one in taken and _text_of(taken[one]).strip()), "")
        given = _license_text(license_file) if license_file is not None else b""
        if found and given and given != _license_text(taken[found]):
            raise UnusableModelError(
                f"{path} has its own licence text, {found}, which differs from --license",
                hint="omit --license: the model's own text is kept",
            )
        if given and not found:
            files["LICENSE"], found = given, "LICENSE"
        if not found:
            raise UnusableModelError(
                f"{path} has no licence text: none of {', '.join(LICENSES)}",
                hint="name the file with --license FILE: the model's author states there the permitted use",
            )
        record = {"name": name, "parameters": facts.parameters, "license_file": found}
        files[RECORD] = (json.dumps(record, indent=1, sort_keys=True) + "\n").encode()
        target = data / BASES / name
        known = target.exists()
        before = verify(target) if known else ""
        with tempfile.TemporaryDirectory(prefix=".unfinished-", dir=data / BASES) as apart:
            digest = write_folder(Path(apart) / name, files)
            if known and before != digest:
                raise UnusableModelError(
                    f"base model {name} exists already, with other files",
                    hint=f"give this one another name, as in {name}-2@{path}, or remove {target}",
                )
            if not known:
                (Path(apart) / name).rename(target)
    return ImportedBase(name, target, digest, facts, found, known)


def find_base(name: str, data: Path) -> Path | None:
    """Returns the folder of a registered base model, or None."""
    folder = data / BASES / name
    return folder if _NAME.fullmatch(name) and folder.is_dir() else None


def registered_bases(data: Path) -> list[str]:
    """Lists the names of the registered base models."""
    with suppress(FileNotFoundError):
        return sorted(one.name for one in (data / BASES).iterdir() if _NAME.fullmatch(one.name) and one.is_dir())
    return []


@contextmanager
def _alone(bases: Path) -> Iterator[None]:
    """Context that locks the folder of base models against other imports; the lock ends with the process."""
    try:
        bases.mkdir(parents=True, exist_ok=True)
        handle = os.open(bases, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise CheckpointError(
            f"{bases} cannot be made: {error.strerror}", hint="check that this user may write to the data folder"
        ) from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        sweep(bases)
        yield
    finally:
        os.close(handle)


def _require_known(folder: Path) -> None:
    """Raises ModelError for a model type that is not a causal language model in transformers. Searches the table in its
    source, since importing it takes seconds."""
    config, library = read_config(folder), find_spec("transformers")
    kind, places = config.get("model_type"), library and library.submodule_search_locations
    if isinstance(kind, str) and _KIND.fullmatch(kind) and places:
        source = (Path(places[0]) / "models" / "auto" / "modeling_auto.py").read_text(encoding="utf-8")
        table = source.partition("\nMODEL_FOR_CAUSAL_LM_MAPPING_NAMES")[2].partition("\n)")[0]
        if f'("{kind}", ' in table:
            return
    from appliance.inference.folder import require_known

    require_known(config)


def _require_own(files: Mapping[str, Path], folder: Path) -> None:
    """Raises UnusableModelError if one of the model's text files is a link to elsewhere. Linked weights are allowed:
    their header is verified."""
    own = folder.resolve()
    for name, path in files.items():
        place = path.resolve()
        if not (name.endswith(".safetensors") or place.parent in (own, own.parent.parent / "blobs")):
            raise UnusableModelError(
                f"{path} is a link to {place}, outside the folder",
                hint="check its target; run `cp -rL FOLDER COPY` to copy the files themselves",
            )


@contextmanager
def _as_folder(path: Path, data: Path) -> Iterator[Path]:
    if path.is_file() and tarfile.is_tarfile(path):
        with tempfile.TemporaryDirectory(prefix=".unfinished-", dir=data / BASES) as apart:
            _unpack(path, Path(apart))
            yield Path(apart)
    elif path.is_dir():
        yield path
    elif path.is_file() and _starts(path, b"GGUF"):
        raise UnusableModelError(
            f"{path} is a GGUF file, which cannot be imported: its weights are quantized for inference",
            hint="import the model that it was made from: `hf download NAME --local-dir FOLDER` on any machine",
        )
    else:
        raise UnusableModelError(
            f"{path} is neither a model folder nor a tar archive of one" if path.exists() else f"no such file: {path}",
            hint="nothing is downloaded here: run `hf download NAME --local-dir FOLDER`, and import that folder",
        )


def _starts(path: Path, mark: bytes) -> bool:
    with path.open("rb") as file:
        return file.read(len(mark)) == mark


def _unpack(archive: Path, folder: Path) -> None:
    """Unpacks a model's files from an archive into the folder; they are at its top, or in one folder there."""
    try:
        with tarfile.open(archive) as opened:
            for member in opened:
                at = PurePosixPath(member.name)
                depth = len(at.parts) - (at.parts[:1] == (".",))
                if not is_model_file(at.name) or depth > 2:
                    continue
                if not member.isreg() or (folder / at.name).exists():
                    fault = "is there twice" if member.isreg() else "is not a regular file"
                    raise UnusableModelError(f"{archive}: {member.name!r} {fault}", hint="create the archive again")
                if member.size > shutil.disk_usage(folder).free:
                    raise UnusableModelError(
                        f"{archive}: no space left for {member.name!r} of {member.size} bytes",
                        hint="free space on the disk of the data folder",
                    )
                content = opened.extractfile(member)
                assert content is not None
                with (folder / at.name).open("xb") as out:
                    shutil.copyfileobj(content, out, 1 << 20)
    except (tarfile.TarError, EOFError, ValueError, OSError) as error:
        raise UnusableModelError(
            f"{archive} cannot be unpacked: {error}", hint="copy or create the archive again"
        ) from error


def _text_of(file: Path) -> bytes:
    try:
        with file.open("rb") as stream:
            return stream.read(_MAX_LICENSE + 1)
    except OSError as error:
        raise UnusableModelError(f"{file}: {error.strerror}", hint="name a file with the licence's text") from error


def _license_text(file: Path) -> bytes:
    text = _text_of(file)
    if not text.strip() or len(text) > _MAX_LICENSE:
        raise UnusableModelError(f"{file} is not a licence text", hint="name a non-empty text file of at most 1 MiB")
    return text
