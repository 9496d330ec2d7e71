"""Registers base models: validated, and copied to the data folder under a name, with their licence text.

A source is a folder, an archive of one, a GGUF file, or a model in another program's store (`local_models`).

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
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Self

from appliance.inference.engine import ModelError
from appliance.learning.checkpoints import LICENSES, is_model_file, model_files
from appliance.learning.errors import CheckpointError
from appliance.learning.folders import Content, sweep, verify, write_folder
from appliance.learning.recipes.recipe import TrainingRecipe
from appliance.models.gguf_reader import MAGIC, read_gguf
from appliance.models.local_models import BASES, LocatedModel, Stores, locate
from appliance.readiness.model import COMPLETE, ModelFacts, UnusableModelError, examine, read_config, require_weights

RECORD = "base.json"
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
    quantised_from: str
    """Number formats of the weights before they became plain ones, such as `Q4_K, Q6_K`; empty for plain weights."""
    dropped: tuple[str, ...]
    """Parts of the source that the registered model does not have."""


def import_base(source: str, data: Path, places: Stores, license_file: Path | None = None) -> ImportedBase:
    """Validates and registers the model of `[NAME@]SOURCE`. Raises UnusableModelError for an invalid model, a missing
    licence text or a name in use; UsageError for an unknown source; CheckpointError if it cannot be written, and
    OSError if it cannot be read."""
    located = locate(source, places)
    name, path = located.name, located.path
    with alone_in(data / BASES), _as_folder(located, data, license_file is not None) as (folder, quantized):
        try:
            facts = examine(folder, TrainingRecipe())
            _require_known(folder)
            require_weights(folder)
        except ModelError as error:
            hint = located.finish if located.finish and error.hint == COMPLETE else error.hint
            raise UnusableModelError(f"{path}: {error}", hint=hint) from error
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
            raise _unlicensed(path)
        record = {"name": name, "parameters": facts.parameters, "license_file": found}
        record |= {"quantised_from": quantized} if quantized else {}
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
        dropped = (*located.dropped, *_left_out(folder, taken), *_unwritten(facts.omits))
    return ImportedBase(name, target, digest, facts, found, known, quantized, dropped)


def _left_out(folder: Path, taken: Mapping[str, Path]) -> Iterator[str]:
    """Yields a line about the files of a folder that do not belong to a model."""
    others = sorted(one.name for one in folder.iterdir() if one.name not in taken and not one.name.startswith("."))
    if others:
        yield ", ".join(others[:5]) + (f" and {len(others) - 5} more files" if len(others) > 5 else "")


def _unwritten(text: str) -> Iterator[str]:
    """Yields a line about the text that the model's own chat template writes, but its format here does not."""
    if text:
        yield f"text that its own chat template puts before each conversation: {text.strip()!r:.300}"


@contextmanager
def alone_in(bases: Path) -> Iterator[None]:
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
def _as_folder(located: LocatedModel, data: Path, licensed: bool) -> Iterator[tuple[Path, str]]:
    """Context with the model as a folder, and the number formats of quantized weights. `licensed`: a licence text is
    given, so that the source needs none."""
    path = located.path
    if path.is_dir():
        yield path, ""
        return
    if not path.exists():
        raise UnusableModelError(
            f"no such file: {path}",
            hint="nothing is downloaded here: run `hf download NAME --local-dir FOLDER`, and import that folder; "
            "`assay model import` lists the models of this machine",
        )
    with tempfile.TemporaryDirectory(prefix=".unfinished-", dir=data / BASES) as text:
        apart = Path(text)
        if path.is_file() and _starts(path, MAGIC):
            from appliance.models.gguf_import import write_model

            file = read_gguf(path)
            beside = next((one for name in LICENSES if (one := path.with_name(name)).is_file()), None)
            if content := located.license or (_license_text(beside) if beside else b""):
                (apart / "LICENSE").write_bytes(content)
            elif not licensed:
                raise _unlicensed(path, file.fields.get("general.license"))
            yield apart, write_model(file, apart)
        elif path.is_file() and _is_archive(path):
            _unpack(path, apart)
            yield apart, ""
        else:
            raise UnusableModelError(
                f"{path} is neither a model folder, nor a tar archive of one, nor a GGUF file",
                hint="see `assay model import --help` for the sources",
            )


def _unlicensed(path: Path, named: object = None) -> UnusableModelError:
    said = f" (it names the licence {named!a:.60})" if isinstance(named, str) else ""
    return UnusableModelError(
        f"{path} has no licence text: none of {', '.join(LICENSES)}{said}",
        hint="name the file with --license FILE: the model's author states there the permitted use",
    )


def _starts(path: Path, mark: bytes) -> bool:
    with path.open("rb") as file:
        return file.read(len(mark)) == mark


class _Member(tarfile.TarInfo):
    """Member of an archive; one whose extended header or map of holes would fill the memory is refused."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        member = super().frombuf(buf, encoding, errors)
        if member.type == tarfile.GNUTYPE_SPARSE or (member.type in b"xgXLK" and member.size > _MAX_LICENSE):
            raise tarfile.ReadError("it has a sparse file, or a header of more than 1 MiB")
        return member

    def _proc_gnusparse_10(self, *_parts: object) -> None:
        raise tarfile.ReadError("it has a sparse file")


def _is_archive(path: Path) -> bool:
    try:
        tarfile.open(path, tarinfo=_Member).close()
    except (tarfile.TarError, EOFError):
        return False
    return True


def _unpack(archive: Path, folder: Path) -> None:
    """Unpacks a model's files from an archive into the folder; they are at its top, or in one folder there."""
    try:
        with tarfile.open(archive, tarinfo=_Member) as opened:
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
