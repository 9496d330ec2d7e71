"""The seal of a bundle: a signed statement beside the folder, about every byte in it. docs/bundle.md is its format.

What always holds: a seal names the manifest and every file of the bundle by SHA-256, the verdict, the model and the
policy; it is checked offline, with the signer's public key and nothing else. It says who made the bundle and that
nothing was changed since. That the answer is right is not its matter: that is decided anew by the verifier.
"""

from __future__ import annotations

import os
from pathlib import Path

from appliance.jobs.format import LARGEST, MANIFEST, VERDICT, VERSIONS, BundleError, sha256, strict
from policies.attestation import Attested, state, stated
from policies.envelopes import MAX_BYTES, PublicKey, Signer
from policies.refusals import Refused

SEALED = "urn:assay:bundle:1"
SUFFIX = ".seal.json"


def seal_file(folder: Path) -> Path:
    """Beside the folder, so that the folder holds what its manifest lists and nothing else."""
    return folder.with_name(f"{folder.name}{SUFFIX}")


def write_seal(folder: Path, signer: Signer, *, made_at: str) -> Path:
    """Signs the bundle as it lies there. Raises BundleError for a folder that is no bundle, OSError."""
    contents = _contents(folder)
    verdict, versions = strict(contents[VERDICT]), strict(contents[VERSIONS])
    weights = versions.get("weights")
    predicate = {
        "verdict": {name: str(verdict[name]) for name in ("outcome", "verifier", "version")},
        "model": str(weights.get("manifest") if isinstance(weights, dict) else weights),
        "policy": str(versions.get("policy", "")),
        "environment": sha256(contents[VERSIONS]),
        "madeAt": made_at,
    }
    envelope = state({name: sha256(content) for name, content in contents.items()}, SEALED, predicate, signer)
    path = seal_file(folder)
    beside = path.with_name(f".{path.name}.new")
    with beside.open("wb") as out:
        out.write(envelope)
        out.flush()
        os.fsync(out.fileno())
    beside.replace(path)
    return path


def check_seal(folder: Path, key: PublicKey, seal: Path | None = None) -> Attested:
    """What the seal says, when that key signed it and it is about exactly these bytes. Raises BundleError."""
    path = seal or seal_file(folder)
    try:
        with path.open("rb") as source:
            envelope = source.read(MAX_BYTES + 1)
        found = stated(envelope, key, SEALED)
    except OSError as error:
        raise BundleError(
            f"there is no seal to read: {path}: {error.strerror}", hint="Get it from where the bundle is from."
        ) from error
    except Refused as error:
        raise BundleError(f"the seal {path} does not hold: {error}", hint=error.hint) from error
    here = {name: sha256(content) for name, content in _contents(folder).items()}
    if here != dict(found.subjects):
        changed = sorted(
            name for name in here.keys() | found.subjects.keys() if here.get(name) != found.subjects.get(name)
        )
        raise BundleError(
            f"the seal {path} is about other bytes: {', '.join(changed)}", hint="Get the bundle once more."
        )
    return found


def _contents(folder: Path) -> dict[str, bytes]:
    try:
        names = {entry.name for entry in os.scandir(folder)}
        if names != {*LARGEST, MANIFEST}:
            odd = ", ".join(map(ascii, sorted(names ^ {*LARGEST, MANIFEST})))
            raise BundleError(
                f"{folder} does not hold exactly the files of a bundle: {odd}", hint="See docs/bundle.md."
            )
        return {name: (folder / name).read_bytes() for name in sorted(names)}
    except OSError as error:
        raise BundleError(f"{folder} cannot be read: {error.strerror}", hint="Name a bundle's folder.") from error
