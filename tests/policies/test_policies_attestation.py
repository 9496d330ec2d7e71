"""An attestation says what a checkpoint was made of, and not one byte of it can be changed unseen."""

from __future__ import annotations

import json
import random

import pytest
from signing_kit import digest, signer

from policies.approvals import APPROVAL_TYPE
from policies.attestation import IN_TOTO_TYPE, Lineage, LineageSource, attest, verify_attestation
from policies.envelopes import open_envelope, payload_of, sign_envelope
from policies.errors import Refusal, StatementRefused

KEY = signer("trainer")
LINEAGE = Lineage(
    stage="training",
    step=60,
    cycle="night-1",
    seed=7,
    sources=(
        LineageSource(name="base-model", sha256=digest("base")),
        LineageSource(name="recipe", sha256=digest("recipe")),
    ),
    code="0.1.0",
    machine={"architecture": "x86_64", "torch": "2.6"},
    builder="SHA256:abc",
    started="2026-01-02T02:00:00+00:00",
    finished="2026-01-02T04:00:00+00:00",
)
FILES = {"model.safetensors": digest("weights"), "config.json": digest("config")}
SOUND = attest(digest("manifest"), FILES, LINEAGE, KEY)


def test_it_is_an_in_toto_statement_with_slsa_provenance_and_says_what_went_in() -> None:
    statement = payload_of(open_envelope(SOUND, IN_TOTO_TYPE))
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicateType"] == "https://slsa.dev/provenance/v1"
    found = verify_attestation(SOUND, KEY.public, manifest=digest("manifest"))
    assert found.subjects == {"manifest.json": digest("manifest"), **FILES}
    build = found.predicate["buildDefinition"]
    assert build["resolvedDependencies"][0] == {"name": "base-model", "digest": {"sha256": digest("base")}}
    assert (build["externalParameters"], build["internalParameters"]["step"]) == (
        {"cycle": "night-1", "seed": "7"},
        "60",
    )
    assert found.predicate["runDetails"]["builder"]["version"]["torch"] == "2.6"


def test_another_key_another_model_or_another_statement_is_refused() -> None:
    for envelope, key, manifest, name in (
        (SOUND, signer("mallory").public, digest("manifest"), Refusal.SIGNATURE),
        (SOUND, KEY.public, digest("swapped"), Refusal.CANDIDATE),
        (sign_envelope(open_envelope(SOUND).payload, APPROVAL_TYPE, KEY), KEY.public, None, Refusal.SHAPE),
        (sign_envelope(b"{}", IN_TOTO_TYPE, KEY), KEY.public, None, Refusal.SHAPE),
        (sign_envelope(b'{"_type":"x"}', IN_TOTO_TYPE, KEY), KEY.public, None, Refusal.SHAPE),
        (sign_envelope(b'{"surprise":1}', IN_TOTO_TYPE, KEY), KEY.public, None, Refusal.SHAPE),
    ):
        with pytest.raises(StatementRefused) as met:
            verify_attestation(envelope, key, manifest=manifest)
        assert met.value.name is name


def test_every_changed_byte_is_seen() -> None:
    for place in range(len(SOUND)):
        changed = bytearray(SOUND)
        changed[place] ^= 1 << random.Random(place).randrange(8)
        with pytest.raises(StatementRefused):
            verify_attestation(bytes(changed), KEY.public)


def test_the_libraries_of_others_read_it_too() -> None:
    """securesystemslib alone, as somebody would who has never seen this program."""
    from securesystemslib.dsse import Envelope
    from securesystemslib.signer import SSlibKey

    key = SSlibKey.from_crypto(KEY.public.key(), keyid=KEY.public.fingerprint)
    assert list(Envelope.from_dict(json.loads(SOUND)).verify([key], 1)) == [KEY.public.fingerprint]
