"""Writing a bundle: a folder with an answer and everything that somebody else needs to check it.

It is there whole or not at all: the files are written into a temporary folder beside it and synced, the manifest last,
and then the folder is renamed. What a kill leaves behind is a hidden folder that `remove_unfinished` takes away.

The manifest itself is not signed; the seal beside the folder is (`appliance.jobs.seal`). The manifest shows damage and
careless changes, and its digest names the bundle: a digest that was noted elsewhere (the ledger, an approval, a mail)
proves that this is the bundle that was meant. By itself it proves nothing about who made the bundle: whoever can write
the folder can write a new manifest. What nobody can forge is the other half, that the answer fulfils the spec: that is
proved again at each check, by running the verifier.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from appliance.jobs.format import (
    ANSWER,
    LARGEST,
    MANIFEST,
    QUESTION,
    SCHEMA,
    SPEC,
    TRANSCRIPT,
    VERDICT,
    VERSIONS,
    BundleError,
    Entry,
    canonical,
    sha256,
)
from verifiers.spec import Spec
from verifiers.verdict import Verdict

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
) -> str:
    """Writes the bundle and gives the SHA-256 of its manifest.

    A bundle that is already there is replaced: that is for a job that is done again because it was killed before its
    artifact was recorded. A kill between the two renames loses it, so nothing may refer to it yet. `transcript` holds
    one `Entry` a node. Raises BundleError for a verdict that is no pass and for content that a bundle cannot hold,
    OSError where the disk does not let it.
    """
    if not verdict.passed:
        raise BundleError("the verdict is not a pass", hint="Only what was verified becomes a bundle.")
    files = _contents(answer, question, spec, verdict, transcript, versions)
    listed = [{"name": name, "sha256": sha256(data), "bytes": len(data)} for name, data in sorted(files.items())]
    manifest = canonical({"schema_version": SCHEMA, "files": listed})
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=folder.parent))
    try:
        fresh = unfinished / "new"
        fresh.mkdir(mode=0o755)
        for name, data in [*sorted(files.items()), (MANIFEST, manifest)]:
            _write(fresh / name, data)
        _sync(fresh)
        if folder.is_symlink() or folder.exists():
            folder.rename(unfinished / "old")
        fresh.rename(folder)
        _sync(folder.parent)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return sha256(manifest)


def remove_unfinished(artifacts: Path) -> int:
    """Takes away what killed writers left in a folder of bundles; gives how many. No writer may be at work there."""
    left = list(artifacts.glob(UNFINISHED + "*")) if artifacts.is_dir() else []
    for path in left:
        shutil.rmtree(path)
    return len(left)


def _contents(
    answer: str,
    question: str,
    spec: Spec,
    verdict: Verdict,
    transcript: Sequence[Mapping[str, Any]],
    versions: Mapping[str, Any],
) -> dict[str, bytes]:
    try:
        entries = [Entry.model_validate(dict(entry)).model_dump(mode="json") for entry in transcript]
        files = {
            ANSWER: answer.encode(),
            QUESTION: question.encode(),
            SPEC: canonical(spec.model_dump(mode="json")),
            VERDICT: canonical(verdict.model_dump(mode="json")),
            TRANSCRIPT: canonical(entries),
            VERSIONS: canonical(dict(versions)),
        }
    except (ValidationError, ValueError, TypeError) as error:
        hint = "Texts must be encodable as UTF-8, and records must be plain JSON."
        raise BundleError(f"this cannot be put into a bundle: {error}", hint=hint) from error
    for name, data in files.items():
        if len(data) > LARGEST[name]:
            raise BundleError(f"{name} would have {len(data)} bytes", hint=f"At most {LARGEST[name]} are kept.")
    return files


def _write(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
    with os.fdopen(descriptor, "wb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
