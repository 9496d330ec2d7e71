"""Registers base models: checked, copied into the data folder under a name, with the text of their licence.

    <data>/bases/<name>/    the model's files, LICENSE, base.json, manifest.json

What always holds: a name stands for one set of files; it is never given to others. A base has a licence text, the one
that came with it or, where none did, the one that was named. Folder and archive are read as data from a stranger:
regular files of the names that a model has, each once, and nothing else is written; a text that a link in a folder
leads to is taken from that folder or its Hugging Face cache only, for it goes wherever the model goes. One import
writes at a time, and removes what one that was killed left. Nothing is downloaded.
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
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path, PurePosixPath

from appliance.inference.engine import ModelError
from appliance.learning.checkpoints import LICENSES, is_model_file, model_files
from appliance.learning.errors import CheckpointError
from appliance.learning.folders import Content, sweep, verify, write_folder
from appliance.learning.recipes.recipe import TrainingRecipe
from appliance.readiness.model import ModelFacts, UnusableModelError, examine, read_config
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
    """It was registered before, with the same files."""


def split_source(source: str) -> tuple[str, Path]:
    """Splits `NAME@PATH`, or a path alone, whose own name is the model's. Raises UnusableModelError for a name
    that is none."""
    path = expanded(source)
    name, at, rest = source.partition("@")
    if at and not path.exists():
        path = expanded(rest)
    else:
        name = path.resolve().name.removesuffix(".gz").removesuffix(".tar").removesuffix(".tgz")
    if not _NAME.fullmatch(name):
        raise UnusableModelError(
            f"{name!r} is no name of a model: letters, digits, dots, dashes and underscores, at most 64",
            hint="give it one before the path: NAME@PATH",
        )
    return name, path


def import_base(source: str, data: Path, license_file: Path | None = None) -> ImportedBase:
    """Checks and registers the model of `[NAME@]PATH`, where PATH is a folder or a tar archive of one.

    Raises UnusableModelError when it is no sound model, has no licence text, or the name is another model's;
    CheckpointError when it cannot be written, and OSError when it cannot be read.
    """
    name, path = split_source(source)
    with _alone(data / BASES), _as_folder(path, data) as folder:
        try:
            facts = examine(folder, TrainingRecipe())
            _require_known(folder)
        except ModelError as error:
            raise UnusableModelError(f"{path}: {error}", hint=error.hint) from error
        taken = model_files(folder)
        _require_own(taken, folder)
        files: dict[str, Content] = dict(taken)
        found = next((one for one in LICENSES if one in taken and _text_of(taken[one]).strip()), "")
        given = _license_text(license_file) if license_file is not None else b""
        if found and given and given != _license_text(taken[found]):
            raise UnusableModelError(
                f"{path} has a licence text of its own, {found}, and another was named",
                hint="leave --license out: what came with the model is kept",
            )
        if given and not found:
            files["LICENSE"], found = given, "LICENSE"
        if not found:
            raise UnusableModelError(
                f"{path} has no licence text: none of {', '.join(LICENSES)}",
                hint="name the file with --license FILE: whoever made the model says there what may be done with it",
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
                    f"there is a base model {name} already, with other files",
                    hint=f"give this one another name, as in {name}-2@{path}, or remove {target}",
                )
            if not known:
                (Path(apart) / name).rename(target)
    return ImportedBase(name, target, digest, facts, found, known)


def find_base(name: str, data: Path) -> Path | None:
    """The folder of a registered base model; None when there is none of that name."""
    folder = data / BASES / name
    return folder if _NAME.fullmatch(name) and folder.is_dir() else None


@contextmanager
def _alone(bases: Path) -> Iterator[None]:
    """Waits until no other import writes there; the lock is its process's, and goes with it."""
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
    """Raises ModelError for a kind of model that transformers cannot have write text. The table of those that it can is
    looked for in its source: loading it takes seconds."""
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
    """Raises UnusableModelError for a text that lies elsewhere. Weights may: they are nothing else, by their header."""
    own = folder.resolve()
    for name, path in files.items():
        place = path.resolve()
        if not (name.endswith(".safetensors") or place.parent in (own, own.parent.parent / "blobs")):
            raise UnusableModelError(
                f"{path} is a link to {place}, outside of the folder",
                hint="look at what it leads to; `cp -rL FOLDER COPY` makes a folder with the files themselves",
            )


@contextmanager
def _as_folder(path: Path, data: Path) -> Iterator[Path]:
    if path.is_file() and tarfile.is_tarfile(path):
        with tempfile.TemporaryDirectory(prefix=".unfinished-", dir=data / BASES) as apart:
            _unpack(path, Path(apart))
            yield Path(apart)
    elif path.is_dir():
        yield path
    else:
        raise UnusableModelError(
            f"{path} is neither a model folder nor a tar archive of one" if path.exists() else f"there is no {path}",
            hint="nothing is downloaded here: fetch the model with `hf download NAME --local-dir FOLDER`, and import "
            "that folder",
        )


def _unpack(archive: Path, folder: Path) -> None:
    """Writes what an archive has of a model: files at its top, or in one folder there."""
    try:
        with tarfile.open(archive) as opened:
            for member in opened:
                at = PurePosixPath(member.name)
                depth = len(at.parts) - (at.parts[:1] == (".",))
                if not is_model_file(at.name) or depth > 2:
                    continue
                if not member.isreg() or (folder / at.name).exists():
                    fault = "is there twice" if member.isreg() else "is no regular file"
                    raise UnusableModelError(f"{archive}: {member.name!r} {fault}", hint="make the archive again")
                if member.size > shutil.disk_usage(folder).free:
                    raise UnusableModelError(
                        f"{archive}: there is no room for {member.name!r} of {member.size} bytes",
                        hint="free space on the disk of the data folder",
                    )
                content = opened.extractfile(member)
                assert content is not None
                with (folder / at.name).open("xb") as out:
                    shutil.copyfileobj(content, out, 1 << 20)
    except (tarfile.TarError, EOFError, ValueError, OSError) as error:
        raise UnusableModelError(
            f"{archive} cannot be unpacked: {error}", hint="copy or make the archive again"
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
        raise UnusableModelError(
            f"{file} holds no licence text", hint="name a text file of at most 1 MiB that is not empty"
        )
    return text
