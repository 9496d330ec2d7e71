"""Registers base models: checked, copied into the data folder under a name, with the text of their licence.

    <data>/bases/<name>/    the model's files, LICENSE, base.json, manifest.json

What always holds: a name stands for one set of files; it is never given to others. A base has a licence text, the one
that came with it or the one that was named. An archive is read as data from a stranger: regular files of the names that
a model has, each once, and nothing else of it is written. Nothing is downloaded.
"""

from __future__ import annotations

import json
import re
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from appliance.inference.engine import ModelError
from appliance.learning.checkpoints import LICENSES, is_model_file, model_files
from appliance.learning.errors import CheckpointError
from appliance.learning.folders import Content, verify, write_folder
from appliance.learning.recipe import TrainingRecipe
from appliance.model_readiness import ModelFacts, UnusableModelError, examine

BASES = "bases"
RECORD = "base.json"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
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
    path = Path(source).expanduser()
    name, at, rest = source.partition("@")
    if at and not path.exists():
        path = Path(rest).expanduser()
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
    with _as_folder(path, data) as folder:
        try:
            facts = examine(folder, TrainingRecipe())
        except ModelError as error:
            raise UnusableModelError(f"{path}: {error}", hint=error.hint) from error
        files: dict[str, Content] = dict(model_files(folder))
        found = next((one for one in LICENSES if one in files), "")
        if license_file is not None:
            files["LICENSE"], found = _license_text(license_file), "LICENSE"
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
        with tempfile.TemporaryDirectory(prefix=".unfinished-", dir=_made(data / BASES)) as apart:
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


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CheckpointError(
            f"{folder} cannot be made: {error.strerror}", hint="check that this user may write to the data folder"
        ) from error
    return folder


@contextmanager
def _as_folder(path: Path, data: Path) -> Iterator[Path]:
    if path.is_file() and tarfile.is_tarfile(path):
        with tempfile.TemporaryDirectory(prefix=".unfinished-", dir=_made(data / BASES)) as apart:
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


def _license_text(file: Path) -> bytes:
    try:
        with file.open("rb") as stream:
            text = stream.read(_MAX_LICENSE + 1)
    except OSError as error:
        raise UnusableModelError(f"{file}: {error.strerror}", hint="name a file with the licence's text") from error
    if not text.strip() or len(text) > _MAX_LICENSE:
        raise UnusableModelError(
            f"{file} holds no licence text", hint="name a text file of at most 1 MiB that is not empty"
        )
    return text
