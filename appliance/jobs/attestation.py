"""The seal of a bundle: a signed statement inside it about every other byte. docs/bundle.md has the format.

Invariants: a seal names the manifest and every file by SHA-256, the verdict, model, policy and signing key; its claims
about files match their content; it is checked offline. With the signer's public key it proves who made the bundle and
that nothing changed since. Without that key it proves that nothing changed since somebody sealed it, and with which
key. It does not prove that the answer is right: the verifier decides that again.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path

from appliance.jobs.bundle import put_into
from appliance.jobs.layout import BOUNDS, SEAL, STATEMENT, VERDICT, VERSIONS, BundleError, sha256
from appliance.jobs.reading import BundleRead, read_bundle
from appliance.text.printable import printable
from common import strict_json
from policies.attestation import VerifiedStatement, sign_statement, verify_statement
from policies.envelopes import PublicKey, Signer, open_envelope, payload_of
from policies.errors import StatementRefused

SEALED = "urn:assay:bundle:2"


def write_seal(folder: Path, signer: Signer, *, made_at: str) -> Path:
    """Signs the bundle in that folder, writes the seal there and returns its path. Raises BundleError for an incomplete
    bundle, OSError."""
    read = read_bundle(folder)
    if not read.intact:
        raise BundleError(f"{folder} is not a complete bundle: {read.wrong[0]}", hint="Write it again.")
    contents = _sealed(read)
    predicate = {**_predicate_of(contents), "madeAt": made_at, "key": signer.public.line}
    subjects = {name: sha256(content) for name, content in contents.items()}
    put_into(folder, SEAL, sign_statement(subjects, SEALED, predicate, signer))
    return folder / SEAL


def seal_of(read: BundleRead, key: PublicKey | None = None) -> VerifiedStatement:
    """Verifies a bundle's seal against exactly its bytes and returns the signed statement. Without `key`, the key named
    in the seal is used. Raises BundleError."""
    envelope = read.contents.get(SEAL)
    if envelope is None:
        raise BundleError("the bundle has no seal", hint="Get the sealed bundle from its source.")
    try:
        if key is not None and key.fingerprint not in (signers := open_envelope(envelope).signers):
            raise BundleError(
                f"it was sealed with another key: {', '.join(printable(one, limit=80) for one in signers)}, and not"
                f" {key.fingerprint}, which was given",
                hint="Give the maker's key from your own records.",
            )
        signed_with = key or _named(envelope)
        found = verify_statement(envelope, signed_with, SEALED)
    except StatementRefused as error:
        raise BundleError(f"invalid seal: {error}", hint=error.hint) from error
    if found.predicate.get("key") != signed_with.line:
        raise BundleError("the seal names another key than its signer's", hint="Get the bundle again.")
    here = {name: sha256(content) for name, content in _sealed(read).items()}
    there = dict(found.subjects)
    if here != there or not read.intact:
        changed = sorted(name for name in here.keys() | there.keys() if here.get(name) != there.get(name))
        raise BundleError(
            f"the seal covers other bytes: {', '.join(map(ascii, changed)) or read.wrong[0]}",
            hint="Get the bundle again.",
        )
    if not _in_one_form(envelope, here):
        raise BundleError("the seal is not in canonical form", hint="Get the bundle again.")
    other = [name for name, value in _predicate_of(_sealed(read)).items() if found.predicate.get(name, "") != value]
    if other:
        raise BundleError(f"the seal contradicts the files: {', '.join(other)}", hint="Get the bundle again.")
    return found


def _predicate_of(contents: Mapping[str, bytes]) -> dict[str, str | dict[str, str]]:
    """Returns the claims that a seal makes about a bundle's files; empty text for facts they lack. Raises BundleError
    for invalid JSON."""
    try:
        verdict, versions, statement = (
            strict_json.read(contents[name], BOUNDS) for name in (VERDICT, VERSIONS, STATEMENT)
        )
    except ValueError as error:
        raise BundleError(f"the files cannot be sealed: {error}", hint="Get the bundle again.") from error
    weights = _in(versions, "weights")
    return {
        "verdict": {name: _text(_in(verdict, name)) for name in ("outcome", "verifier", "version")},
        "solvedBy": _text(_in(statement, "solved_by")),
        "model": _text(_in(weights, "manifest") if isinstance(weights, dict) else weights),
        "policy": _text(_in(versions, "policy")),
        "environment": _text(_in(_in(versions, "environment"), "digest")),
    }


def _in(value: object, name: str) -> object:
    return value.get(name) if isinstance(value, dict) else None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _in_one_form(envelope: bytes, subjects: Mapping[str, str]) -> bool:
    """True if a bundle's seal has one signature and exactly the fields that `write_seal` writes."""
    read = open_envelope(envelope)
    statement = payload_of(read)
    described = [{"digest": {"sha256": subjects[name]}, "name": name} for name in sorted(subjects)]
    fields = {"_type", "subject", "predicateType", "predicate"}
    return len(read.signers) == 1 and statement.keys() == fields and statement["subject"] == described


def sealed_with(found: VerifiedStatement) -> PublicKey:
    """Returns the public key named in a bundle's verified seal; `seal_of` has checked that it signed."""
    return PublicKey.read(str(found.predicate["key"]))


def _sealed(read: BundleRead) -> Mapping[str, bytes]:
    return {name: content for name, content in read.contents.items() if name != SEAL}


def _named(envelope: bytes) -> PublicKey:
    """Returns the public key that a seal names in itself, chosen by its maker."""
    try:
        signed = base64.b64decode(strict_json.read(envelope, BOUNDS)["payload"], validate=True)
        payload = strict_json.read(signed, BOUNDS)
        return PublicKey.read(str(payload["predicate"]["key"]))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BundleError("invalid seal: it names no key", hint="Get the bundle again.") from error
