"""Writes folders atomically, with a manifest.

A folder is written under a temporary name beside its target; every file and the folder are synced to disk, a manifest
with size and SHA-256 of every file is written last, and then the folder is renamed. A power cut, kill or full disk
leaves the old state and at most a leftover, which `sweep` removes at the next start. A folder's digest is the SHA-256
of its manifest file. Only the process that locks the data folder writes.

Not protected: an attacker who rewrites a file together with its manifest. The digest in the ledger reveals that.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from io import BufferedReader
from pathlib import Path
from typing import Any

from appliance.learning.errors import CheckpointError
from common.errors import reading

MANIFEST = "manifest.json"
FORMAT = "assay-folder-1"
_LEFTOVER = ".unfinished-"
_CHUNK = 1 << 20
_MAX_MANIFEST_BYTES = 1 << 20
_RESTORE = "use an older checkpoint or create it again; the folder can be removed"
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


Content = bytes | Path | Iterable[bytes | memoryview]
"""Content of a file to write: bytes, a file to copy, or an iterator of chunks."""


def write_folder(target: Path, files: Mapping[str, Content]) -> str:
    """Writes `files` by name as the folder `target`, with a manifest, and returns the manifest's digest. Keeps an
    existing folder with an equal digest, replaces any other. Raises CheckpointError on a read or write error, which
    leaves the previous state."""
    return _write(target.parent, files, lambda digest: target)


def write_by_digest(parent: Path, files: Mapping[str, Content]) -> str:
    """Writes `files` as a folder below `parent` that is named by its own digest, and returns the digest; otherwise as
    `write_folder`."""
    return _write(parent, files, lambda digest: parent / digest)


def verify(folder: Path, *, expect: str | None = None) -> str:
    """Verifies every byte of a folder against its manifest and returns the manifest's digest. Raises CheckpointError
    for a missing, truncated, changed, unlisted or irregular file, and if the digest is not `expect`, which detects a
    rewritten manifest."""
    recorded, digest = _expected(folder, expect)
    for name in sorted(recorded):
        _check(folder / name, recorded[name])
    return digest


def read_verified(folder: Path, *, expect: str | None = None, names: Collection[str] | None = None) -> dict[str, bytes]:
    """Reads a folder's files once each, verified against its manifest; with `names`, only those. Raises CheckpointError
    as `verify`."""
    recorded, _ = _expected(folder, expect)
    wanted = recorded if names is None else recorded.keys() & names
    return {name: _check(folder / name, recorded[name], keep=True) for name in sorted(wanted)}


def sweep(parent: Path) -> list[str]:
    """Removes leftovers of interrupted writes below `parent` and returns their names. Call at each start."""
    if not parent.is_dir():
        return []
    left = sorted(entry for entry in parent.iterdir() if entry.name.startswith(_LEFTOVER))
    for entry in left:
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
    return [entry.name for entry in left]


def remove_folder(folder: Path) -> None:
    """Removes a folder so that a kill leaves a leftover, never half a checkpoint."""
    aside = folder.with_name(f"{_LEFTOVER}removed-{folder.name}")
    if aside.exists():
        shutil.rmtree(aside)
    folder.rename(aside)
    _sync_folder(folder.parent)
    shutil.rmtree(aside)


def _write(parent: Path, files: Mapping[str, Content], name: Callable[[str], Path]) -> str:
    if not files or any(not _is_plain(file) or file == MANIFEST for file in files):
        raise ValueError(f"invalid file names for a folder: {sorted(files)}")
    # A fixed name: the target is unknown before the digest. Only one process writes here.
    temporary = parent / f"{_LEFTOVER}{os.getpid()}"
    at = parent
    try:
        parent.mkdir(parents=True, exist_ok=True)
        if temporary.exists():
            shutil.rmtree(temporary)
        temporary.mkdir()
        recorded: dict[str, dict[str, Any]] = {}
        for file in sorted(files):
            at = temporary / file
            recorded[file] = _put(at, files[file])
        at = temporary / MANIFEST
        manifest = _written({"format": FORMAT, "files": recorded})
        _put(at, manifest)
        _sync_folder(temporary)
        digest = hashlib.sha256(manifest).hexdigest()
        _put_in_place(temporary, name(digest), digest)
    except OSError as error:
        raise _explained(error, at, parent) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)  # after a failure, Ctrl-C included
    return digest


def _put_in_place(temporary: Path, target: Path, digest: str) -> None:
    if os.path.lexists(target):
        try:
            same = verify(target) == digest
        except CheckpointError:
            same = False
        if same:
            shutil.rmtree(temporary)
            return
        if target.is_symlink() or not target.is_dir():
            raise FileExistsError(errno.EEXIST, "not a folder", str(target))
        remove_folder(target)
    temporary.rename(target)
    _sync_folder(target.parent)


def _chunks(source: Path) -> Iterator[bytes]:
    with source.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            yield chunk


def _put(path: Path, content: Content) -> dict[str, Any]:
    """Writes one file, syncs it, and returns its size and SHA-256 for the manifest."""
    digest, size = hashlib.sha256(), 0
    with path.open("xb") as out:
        if isinstance(content, bytes):
            out.write(content)
            digest.update(content)
            size = len(content)
        else:
            for chunk in _chunks(content) if isinstance(content, Path) else content:
                out.write(chunk)
                digest.update(chunk)
                size += len(chunk)
        out.flush()
        os.fsync(out.fileno())
    return {"bytes": size, "sha256": digest.hexdigest()}


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _expected(folder: Path, expect: str | None) -> tuple[dict[str, dict[str, Any]], str]:
    recorded, digest = _listed(folder)
    if expect is not None and digest != expect:
        raise CheckpointError(f"{folder} has digest {digest[:12]}, not {expect[:12]}", hint=_RESTORE)
    return recorded, digest


def _listed(folder: Path) -> tuple[dict[str, dict[str, Any]], str]:
    """Returns the files listed in a folder's manifest, and the manifest's digest. Raises CheckpointError unless the
    folder has exactly these files."""
    recorded, digest = _read_manifest(folder)
    with reading(folder, CheckpointError, _RESTORE):
        present = {entry.name for entry in os.scandir(folder)} - {MANIFEST}
    if missing := sorted(recorded.keys() - present):
        raise CheckpointError(f"{folder} lacks {', '.join(missing)}", hint=_RESTORE)
    if extra := sorted(present - recorded.keys()):
        raise CheckpointError(f"{folder} holds {', '.join(map(repr, extra))}, not in its manifest", hint=_RESTORE)
    return recorded, digest


def _written(manifest: dict[str, Any]) -> bytes:
    """Serialises a folder's manifest canonically, so that equal manifests have equal bytes."""
    return json.dumps(manifest, indent=1, sort_keys=True).encode() + b"\n"


def _read_manifest(folder: Path) -> tuple[dict[str, dict[str, Any]], str]:
    if folder.is_symlink() or not folder.is_dir():
        raise CheckpointError(f"{folder} is not a folder", hint="check the path; links are not followed")
    if not (folder / MANIFEST).exists():
        raise CheckpointError(f"{folder} has no manifest: writing it never finished", hint=_RESTORE)
    with _open(folder / MANIFEST) as source:
        raw = source.read(_MAX_MANIFEST_BYTES)
    try:
        content = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"the manifest of {folder} is not readable JSON", hint=_RESTORE) from error
    files = content.get("files") if isinstance(content, dict) and content.get("format") == FORMAT else None
    if not isinstance(files, dict) or not all(
        _is_plain(name)
        and isinstance(line, dict)
        and isinstance(line.get("bytes"), int)
        and isinstance(line.get("sha256"), str)
        for name, line in files.items()
    ):
        raise CheckpointError(f"the manifest of {folder} is not of the form {FORMAT}", hint=_RESTORE)
    if _written(content) != raw:
        raise CheckpointError(f"the manifest of {folder} is not in canonical form", hint=_RESTORE)
    return files, hashlib.sha256(raw).hexdigest()


def _open(path: Path) -> BufferedReader:
    """Opens a regular file for reading, without following links."""
    try:
        # O_NONBLOCK: a pipe in a file's place must not block the caller forever.
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        reason = "is a link" if error.errno == errno.ELOOP else f"cannot be read: {error.strerror}"
        raise CheckpointError(f"{path} {reason}", hint=_RESTORE) from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise CheckpointError(f"{path} is not a regular file", hint=_RESTORE)
    return os.fdopen(handle, "rb")


def _check(path: Path, recorded: dict[str, Any], *, keep: bool = False) -> bytes:
    """Checks a file's size and SHA-256 against its manifest line; returns its content if `keep`, else b"". Raises
    CheckpointError."""
    with _open(path) as source:
        size = os.fstat(source.fileno()).st_size
        if size != recorded["bytes"]:
            raise CheckpointError(f"{path} has {size} bytes, not {recorded['bytes']}", hint=_RESTORE)
        with reading(path, CheckpointError, _RESTORE):
            content = source.read() if keep else b""
            digest = hashlib.sha256(content) if keep else hashlib.file_digest(source, "sha256")
    if digest.hexdigest() != recorded["sha256"]:
        raise CheckpointError(f"{path} was changed after it was written", hint=_RESTORE)
    return content


def _is_plain(name: str) -> bool:
    return bool(name) and name not in (".", "..") and "/" not in name and "\0" not in name


def _explained(error: OSError, at: Path, parent: Path) -> CheckpointError:
    if error.errno in _FULL:
        return CheckpointError(
            f"no room to write {at.name} below {parent}: {error.strerror}",
            hint=f"free space on the disk that holds {parent}; what was saved before is untouched",
        )
    where = error.filename or at
    return CheckpointError(
        f"cannot save below {parent}: {where}: {error.strerror}",
        hint=f"check that {parent} is a folder that this user may write to; what was saved before is untouched",
    )
