"""Writes bundles: an answer with everything needed to check it, as a folder or a single file.

A folder is complete or absent: files are written and synced in a temporary folder beside it, the manifest last, and the
folder is renamed. A kill leaves a hidden folder, which the next start removes.

The manifest is not signed; the seal beside it is (`appliance.jobs.attestation`). The manifest shows damage and careless
changes, and its digest identifies the bundle: a digest noted elsewhere (the ledger, an approval, a mail) proves that
this is the intended bundle. By itself it proves nothing about the maker: anyone who can write the folder can write a
new manifest. Nobody can forge that the answer meets the spec: each check proves that again by running the verifier.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from appliance.jobs import layout
from appliance.jobs.layout import BundleError, canonical, encode, sha256
from appliance.jobs.reading import BundleRead, read_bundle
from appliance.records.jobs import Validation
from appliance.system.durable_file import sync_folder, write_new
from common.counting import counted
from common.strict_json import require_bounds
from verifiers.contract.statement import StatementPart
from verifiers.contract.verdict import Verdict
from verifiers.registry.spec import Spec

UNFINISHED = ".unfinished-"


def write_bundle(
    folder: Path,
    *,
    answer: str,
    question: str,
    spec: Spec,
    verdict: Verdict,
    transcript: Sequence[Mapping[str, Any]],
    versions: Mapping[str, Any],
    files: Mapping[str, bytes] | None = None,
    statement: Sequence[StatementPart] = (),
    solved_by: str,
    meaning: Validation | None,
) -> str:
    """Writes a job's verified answer, with everything needed to check it, as a bundle. Returns the SHA-256 of its
    manifest.

    An existing bundle is replaced, for a job repeated because a kill came before its artifact was recorded. A kill
    between the two renames loses it, so nothing may refer to it yet. `transcript` has one `TranscriptEntry` per node,
    `files` the question's files by name. Raises BundleError for a verdict that is not a pass and for content that a
    bundle cannot represent, OSError if the disk fails.
    """
    if not verdict.passed:
        raise BundleError("the verdict is not a pass", hint="Only a verified answer becomes a bundle.")
    try:
        entries = [layout.TranscriptEntry.model_validate(dict(entry)).model_dump(mode="json") for entry in transcript]
        artifact_statement = layout.ArtifactStatement(solved_by=solved_by, claims=tuple(statement))
        contents = {
            layout.ANSWER: answer.encode(),
            layout.QUESTION: question.encode(),
            layout.SPEC: canonical(spec.model_dump(mode="json")),
            layout.VERDICT: canonical(verdict.model_dump(mode="json")),
            layout.TRANSCRIPT: canonical(entries),
            layout.VERSIONS: canonical(dict(versions)),
            layout.STATEMENT: canonical(artifact_statement.model_dump(mode="json")),
            **({layout.MEANING: canonical(meaning.model_dump(mode="json"))} if meaning is not None else {}),
            **{f"{layout.FILES}/{name}": data for name, data in (files or {}).items()},
        }
    except (ValidationError, ValueError, TypeError) as error:
        hint = "Texts must be encodable as UTF-8, and records must be plain JSON."
        raise BundleError(f"the content cannot be stored in a bundle: {error}", hint=hint) from error
    _require_room(contents)
    for name in layout.LARGEST.keys() - {layout.ANSWER, layout.QUESTION}:
        try:
            require_bounds(contents[name], layout.bounds_of(name))
        except ValueError as error:
            hint = "Verify a smaller check, and an answer in fewer turns."
            raise BundleError(f"{name} has {error}", hint=hint) from error
    listed = [{"name": name, "sha256": sha256(data), "bytes": len(data)} for name, data in sorted(contents.items())]
    manifest = canonical({"schema_version": layout.SCHEMA, "files": listed})
    write_folder(folder, {**contents, layout.MANIFEST: manifest})
    return sha256(manifest)


def write_folder(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Writes a bundle's files as a folder, atomically, replacing an existing one. Raises OSError."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=folder.parent))
    try:
        fresh = unfinished / "new"
        fresh.mkdir(mode=0o755)
        if any(name.startswith(f"{layout.FILES}/") for name in contents):
            (fresh / layout.FILES).mkdir(mode=0o755)
        for name in sorted(contents, key=lambda name: (name == layout.MANIFEST, name)):
            write_new(fresh / name, contents[name], 0o644)
        if (fresh / layout.FILES).exists():
            sync_folder(fresh / layout.FILES)
        sync_folder(fresh)
        if folder.is_symlink() or folder.exists():
            folder.rename(unfinished / "old")
        fresh.rename(folder)
        sync_folder(folder.parent)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def put_into(folder: Path, name: str, data: bytes) -> None:
    """Adds or replaces one file in a bundle's folder, atomically. Raises OSError."""
    unfinished = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=folder.parent))
    try:
        write_new(unfinished / "new", data, 0o644)
        (unfinished / "new").replace(folder / name)
        sync_folder(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def pack(folder: Path, out: Path) -> Path:
    """Writes a bundle's folder as one archive file and returns its path. Raises BundleError for an incomplete bundle or
    an existing file, OSError."""
    read = read_bundle(folder)
    _require_whole(read, folder)
    try:
        with out.open("xb") as file:
            file.writelines(encode(read.contents))
            file.flush()
            os.fsync(file.fileno())
    except FileExistsError as error:
        raise BundleError(f"{out} already exists", hint="Name another file with --out.") from error
    except OSError:
        out.unlink(missing_ok=True)
        raise
    return out


def unpack(file: Path, out: Path) -> Path:
    """Writes a packed bundle as a folder. Raises BundleError for an invalid file or an existing folder, OSError.

    Nothing is written before every byte was checked, and only a bundle's own names are written.
    """
    read = read_bundle(file)
    _require_whole(read, file)
    if out.is_symlink() or out.exists():
        raise BundleError(f"{out} already exists", hint="Name another folder with --out.")
    write_folder(out, read.contents)
    return out


def _require_whole(read: BundleRead, path: Path) -> None:
    if not read.intact:
        raise BundleError(f"{path} is not a complete bundle: {read.wrong[0]}", hint="Run `assay verify` for details.")


def _require_room(contents: Mapping[str, bytes]) -> None:
    came = {name: data for name, data in contents.items() if name.startswith(f"{layout.FILES}/")}
    for name, data in contents.items():
        most = layout.largest(name)
        if most is None:
            raise BundleError(f"invalid file name {name!a}", hint="Use letters, digits, `_`, `.` and `-`, at most 100.")
        if len(data) > most:
            raise BundleError(f"{name} has {len(data)} bytes", hint=f"At most {most} are allowed.")
    if len(came) > layout.MOST_FILES or sum(map(len, came.values())) > layout.LARGEST_FILES:
        raise BundleError(
            f"the question has {counted(len(came), 'file')} of {sum(map(len, came.values()))} bytes",
            hint=f"At most {layout.MOST_FILES} of {layout.LARGEST_FILES} bytes together are allowed.",
        )
