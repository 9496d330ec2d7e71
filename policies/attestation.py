"""Provenance of a checkpoint: in-toto Statement v1 with a SLSA Provenance v1 predicate in a DSSE envelope. Pure.

Invariants: the statement covers the model's manifest and every file in it by SHA-256; the trainer's key signs it; it is
checked offline with that key's public half alone. It proves only that the key's holder made these claims and that
nobody changed them since. docs/keys.md states the SLSA level.

Formats: in-toto Attestation Framework v1 (statement.md), SLSA Provenance v1 (slsa.dev/spec/v1.0/provenance), DSSE v1.0.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from google.protobuf.json_format import MessageToDict, Parse, ParseError
from in_toto_attestation.v1.resource_descriptor import ResourceDescriptor
from in_toto_attestation.v1.statement import Statement
from in_toto_attestation.v1.statement_pb2 import Statement as StatementMessage

from policies.contract.decision import PolicyRecord
from policies.envelopes import (
    PublicKey,
    Signer,
    canonical,
    open_envelope,
    payload_of,
    require_signatures,
    sign_envelope,
)
from policies.errors import Refusal, StatementRefused

IN_TOTO_TYPE = "application/vnd.in-toto+json"
PROVENANCE = "https://slsa.dev/provenance/v1"
BUILD_TYPE = "urn:assay:night:1"
"""Build type of the predicate; docs/keys.md defines its parameters."""
MANIFEST = "manifest.json"


class LineageSource(PolicyRecord):
    """Input of a checkpoint: the base model, tasks, the recipe, the code or the policy."""

    name: str
    sha256: str


class Lineage(PolicyRecord):
    """Provenance of one checkpoint, as the trainer states it."""

    stage: str
    step: int
    cycle: str
    seed: int
    sources: tuple[LineageSource, ...]
    code: str
    """Version of this program; its source digest is among the sources."""
    machine: dict[str, str]
    """Architecture, kernel, Python and numeric libraries of the machine."""
    builder: str
    """Fingerprint of the daemon's key, which identifies the installation."""
    started: str
    finished: str
    """UTC, ISO 8601."""


@dataclass(frozen=True)
class VerifiedStatement:
    """In-toto statement with a verified signature."""

    subjects: Mapping[str, str]
    """SHA-256 by file name."""
    predicate: Mapping[str, Any]


def attest(manifest: str, files: Mapping[str, str], lineage: Lineage, signer: Signer) -> bytes:
    """Returns the signed envelope for a model folder: digests of its manifest and of its files by name."""
    return sign_statement({MANIFEST: manifest, **files}, PROVENANCE, _predicate(lineage), signer)


def verify_attestation(envelope: bytes, key: PublicKey, *, manifest: str | None = None) -> VerifiedStatement:
    """Returns the attested statement about a model folder if the key signed it and, if given, it covers that manifest.
    Raises StatementRefused."""
    found = verify_statement(envelope, key, PROVENANCE)
    if manifest is not None and found.subjects.get(MANIFEST) != manifest:
        raise StatementRefused(
            Refusal.CANDIDATE,
            f"the attestation is about model {found.subjects.get(MANIFEST, '')[:12]}, not {manifest[:12]}",
            hint="name the attestation of this model",
        )
    return found


def sign_statement(
    subjects: Mapping[str, str], predicate_type: str, predicate: Mapping[str, Any], signer: Signer
) -> bytes:
    """Returns the envelope of an in-toto statement about files by name and SHA-256. Raises ValueError if invalid."""
    described = [ResourceDescriptor(name=name, digest={"sha256": subjects[name]}).pb for name in sorted(subjects)]
    statement = Statement(described, predicate_type, dict(predicate))
    statement.validate()
    return sign_envelope(canonical(MessageToDict(statement.pb)), IN_TOTO_TYPE, signer)


def verify_statement(envelope: bytes, key: PublicKey, predicate_type: str) -> VerifiedStatement:
    """Returns the in-toto statement in an envelope if the key signed it and the type fits. Raises StatementRefused."""
    read = open_envelope(envelope, IN_TOTO_TYPE)
    require_signatures(read, [key])
    try:
        message = Parse(json.dumps(payload_of(read)), StatementMessage())
        statement = Statement.copy_from_pb(message)
        statement.validate()
    except (ParseError, ValueError) as error:
        raise StatementRefused(
            Refusal.SHAPE, f"not an in-toto statement: {error}", hint="name an attestation"
        ) from error
    if statement.pb.predicate_type != predicate_type:
        raise StatementRefused(Refusal.SHAPE, f"predicate type is not {predicate_type}", hint="name another file")
    subjects = {one.name: one.digest.get("sha256", "") for one in statement.pb.subject}
    return VerifiedStatement(subjects, MessageToDict(statement.pb.predicate))


def _predicate(lineage: Lineage) -> dict[str, Any]:
    return {
        "buildDefinition": {
            "buildType": BUILD_TYPE,
            "externalParameters": {"cycle": lineage.cycle, "seed": str(lineage.seed)},
            "internalParameters": {"stage": lineage.stage, "step": str(lineage.step)},
            "resolvedDependencies": [{"name": one.name, "digest": {"sha256": one.sha256}} for one in lineage.sources],
        },
        "runDetails": {
            "builder": {
                "id": f"urn:assay:daemon:{lineage.builder}",
                "version": {"assay": lineage.code, **lineage.machine},
            },
            "metadata": {"invocationId": lineage.cycle, "startedOn": lineage.started, "finishedOn": lineage.finished},
        },
    }
