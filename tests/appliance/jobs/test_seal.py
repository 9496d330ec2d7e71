"""A seal is about every byte of a bundle; a second checker, written after the documentation, agrees about each."""

from __future__ import annotations

import hashlib
import importlib.util
import random
import shutil
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from appliance.jobs.bundle import write_bundle
from appliance.jobs.check import BundleReport, CheckedFile, FileState
from appliance.jobs.format import BundleError
from appliance.jobs.page import page
from appliance.jobs.seal import check_seal, seal_file, write_seal
from policies.envelopes import Signer
from verifiers.spec import PredicateSpec
from verifiers.verdict import Outcome, Verdict

TINY = Path(__file__).parents[3] / "docs" / "check_bundle.py"
HOSTILE = "<script>alert(1)</script>\x1b[2J\u202e</pre>&amp;"


def signer(name: str) -> Signer:
    return Signer.of(Ed25519PrivateKey.from_private_bytes(hashlib.sha256(name.encode()).digest()))


KEY = signer("trainer")


def tiny(folder: Path, key: Signer = KEY) -> str:
    """What the second checker says."""
    spec = importlib.util.spec_from_file_location("check_bundle", TINY)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return str(module.problem(folder, seal_file(folder).read_bytes(), key.public.line.encode()))


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    folder = tmp_path / "job-1"
    verdict = Verdict(
        outcome=Outcome.PASS, score=1.0, reason="it holds", verifier="predicate", version="1", seconds=0.1
    )
    write_bundle(
        folder,
        answer="6",
        question="find x",
        spec=PredicateSpec(predicate="7*x + 3 == 45"),
        verdict=verdict,
        transcript=[{"parent": None, "role": "user", "text": "find x", "sampled": False}],
        versions={"assay": "0.1.0", "weights": "ab" * 32, "policy": "cd" * 32},
    )
    write_seal(folder, KEY, made_at="2026-01-02T03:04:05+00:00")
    return folder


def test_a_seal_says_who_made_the_bundle_with_which_model_under_which_policy(bundle) -> None:
    found = check_seal(bundle, KEY.public)
    assert (found.predicate["model"], found.predicate["policy"]) == ("ab" * 32, "cd" * 32)
    assert found.predicate["verdict"] == {"outcome": "pass", "verifier": "predicate", "version": "1"}
    assert len(found.subjects) == 7
    assert tiny(bundle) == ""


def test_every_changed_byte_of_a_bundle_and_of_its_seal_is_seen_by_both_checkers(bundle) -> None:
    for file in [*sorted(bundle.iterdir()), seal_file(bundle)]:
        sound = file.read_bytes()
        for place in range(len(sound)):
            changed = bytearray(sound)
            changed[place] ^= 1 << random.Random(place).randrange(8)
            file.write_bytes(changed)
            with pytest.raises(BundleError):
                check_seal(bundle, KEY.public)
            if file.name != "manifest.json":  # read as JSON before it is compared: another kind of no
                assert tiny(bundle), (file.name, place)
        file.write_bytes(sound)
    assert tiny(bundle) == ""


def test_another_key_another_bundle_and_a_file_more_or_less_are_seen(bundle, tmp_path) -> None:
    with pytest.raises(BundleError, match="signature"):
        check_seal(bundle, signer("mallory").public)
    assert "another key" in tiny(bundle, signer("mallory"))
    other = tmp_path / "other"
    shutil.copytree(bundle, other)
    (other / "artifact.txt").write_text("7")
    with pytest.raises(BundleError, match=r"other bytes: artifact\.txt"):
        check_seal(other, KEY.public, seal_file(bundle))
    (bundle / "extra").write_text("x")
    with pytest.raises(BundleError, match="extra"):
        check_seal(bundle, KEY.public)
    assert tiny(bundle)
    (bundle / "extra").unlink()
    (bundle / "spec.json").unlink()
    with pytest.raises(BundleError, match=r"spec\.json"):
        check_seal(bundle, KEY.public)
    assert tiny(bundle)
    seal_file(bundle).unlink()
    with pytest.raises(BundleError, match="no seal"):
        check_seal(bundle, KEY.public)


def test_the_page_shows_hostile_text_and_lets_it_do_nothing() -> None:
    report = BundleReport(
        ok=False,
        manifest="ab" * 32,
        files=(CheckedFile(name=HOSTILE, state=FileState.ADDED, detail=HOSTILE),),
        answer=HOSTILE,
        question=HOSTILE,
        reasons=(HOSTILE,),
    )
    shown = page(report)
    assert "<script" not in shown
    assert shown.count("&lt;script&gt;alert(1)") == 5
    assert shown.count("</pre>") == 2
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "default-src &#x27;none&#x27;" in shown
    assert "src=" not in shown
    assert "href=" not in shown
