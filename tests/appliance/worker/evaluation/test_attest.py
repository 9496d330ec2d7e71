"""A checkpoint's attestation is about the folder on disk, and is checked with the trainer's public key alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from checkpoint_records import checkpoint_record
from typer.testing import CliRunner

from appliance.audit.machine_keys import attestation_file, load_or_make, public_file
from appliance.cli.main import app
from appliance.errors import AssayError
from appliance.learning.folders import write_by_digest
from appliance.ledger.sqlite import SqliteLedger
from appliance.records.cycles import Checkpoint, Cycle, CycleState
from appliance.worker.evaluation.attest import code_digest, write_attestation
from policies.attestation import verify_attestation
from policies.envelopes import PublicKey

AT = "2026-01-02T03:04:05+00:00"


@pytest.fixture
def made(tmp_path: Path) -> Checkpoint:
    """A trained model, published and attested."""
    digest = write_by_digest(tmp_path / "models", {"model.safetensors": b"weights", "config.json": b"{}"})
    checkpoint = checkpoint_record(digest, parent="ab" * 32, cycle="night-1", step=60, recipe="cd" * 32)
    cycle = Cycle(
        id="night-1", kind="night", seed=7, plan={}, phase="training", state=CycleState.RUNNING, created=AT, updated=AT
    )
    with SqliteLedger(tmp_path / "ledger.sqlite3") as ledger:
        path = write_attestation(tmp_path, ledger, cycle, checkpoint, policy="ef" * 32, sealed="01" * 32)
        before = path.read_bytes()
        assert write_attestation(tmp_path, ledger, cycle, checkpoint, policy="00" * 32, sealed="") == path
        assert path.read_bytes() == before
    return checkpoint


def test_it_names_base_model_recipe_policy_sealed_set_and_code(made, tmp_path) -> None:
    key = PublicKey.of(load_or_make(tmp_path, "trainer").public_key())
    found = verify_attestation(attestation_file(tmp_path, made.manifest).read_bytes(), key, manifest=made.manifest)
    assert set(found.subjects) == {"manifest.json", "model.safetensors", "config.json"}
    sources = {
        one["name"]: one["digest"]["sha256"] for one in found.predicate["buildDefinition"]["resolvedDependencies"]
    }
    assert sources == {
        "base-model": "ab" * 32,
        "recipe": "cd" * 32,
        "policy": "ef" * 32,
        "sealed-set": "01" * 32,
        "source-code": code_digest(),
    }


def test_it_is_shown_and_checked_at_the_command_line(made, tmp_path) -> None:
    def run(*arguments: str):
        return CliRunner().invoke(app, ["model", "provenance", *arguments, "--data", str(tmp_path)])

    folder = tmp_path / "models" / made.manifest
    shown = run(made.manifest[:8], "--model", str(folder))
    assert (shown.exit_code, "every byte of the folder" in shown.stdout) == (0, True), shown.exception
    report = json.loads(run(made.manifest[:8], "--json").stdout)
    assert report["predicate"]["buildDefinition"]["externalParameters"] == {"cycle": "night-1", "seed": "7"}
    missing = run("champion")
    with SqliteLedger(tmp_path / "ledger.sqlite3") as ledger:
        ledger.put_checkpoint(made)
        ledger.set_aliases({"champion": made.manifest}, "first", AT)
    assert (missing.exit_code, "no champion here" in str(missing.exception)) == (1, True)
    named = run("champion")
    assert (named.exit_code, made.manifest in named.stdout) == (0, True), named.exception
    (folder / "config.json").write_bytes(b"[]")
    changed = run(made.manifest[:8], "--model", str(folder))
    load_or_make(tmp_path, "daemon")
    other = run(made.manifest[:8], "--key", str(public_file(tmp_path, "daemon")))
    for failed, message in ((changed, "is invalid"), (other, "signature"), (run("feedbeef"), "0 attestations")):
        assert isinstance(failed.exception, AssayError)
        assert message in str(failed.exception)
