"""Signs a checkpoint's provenance as the trainer: `attestations/<digest>.json` in the data folder.

Invariants: a cycle's checkpoint is attested before it is recorded; an attestation is written atomically and never
changed.
"""

from __future__ import annotations

import hashlib
import json
import platform
from importlib import metadata
from pathlib import Path

from appliance import __version__
from appliance.audit.machine_keys import attestation_file, load_or_make
from appliance.learning.folders import MANIFEST
from appliance.ledger.ledger import Ledger
from appliance.records.cycles import Checkpoint, Cycle
from policies.attestation import Lineage, LineageSource, attest
from policies.envelopes import PublicKey, Signer

PACKAGES = ("appliance", "common", "curriculum", "policies", "runtime", "verifiers")
COMPUTE = ("torch", "transformers", "tokenizers", "safetensors")


def write_attestation(data: Path, ledger: Ledger, cycle: Cycle, made: Checkpoint, *, policy: str, sealed: str) -> Path:
    """Writes a signed attestation of the checkpoint's provenance and returns its path; keeps an existing one. Raises
    AuditError, OSError."""
    path = attestation_file(data, made.manifest)
    if path.exists():
        return path
    listed = json.loads((data / made.folder / MANIFEST).read_bytes())["files"]
    files = {str(name): str(line["sha256"]) for name, line in listed.items()}
    lineage = Lineage(
        stage=made.stage,
        step=made.step,
        cycle=cycle.id,
        seed=cycle.seed,
        sources=_sources(ledger, made, policy=policy, sealed=sealed),
        code=__version__,
        machine=_machine(),
        builder=PublicKey.of(load_or_make(data, "daemon").public_key()).fingerprint,
        started=cycle.created,
        finished=made.created,
    )
    envelope = attest(made.manifest, files, lineage, Signer.of(load_or_make(data, "trainer")))
    path.parent.mkdir(mode=0o700, exist_ok=True)
    beside = path.with_name(f".{path.name}.new")
    beside.write_bytes(envelope)
    beside.replace(path)
    return path


def _sources(ledger: Ledger, made: Checkpoint, *, policy: str, sealed: str) -> tuple[LineageSource, ...]:
    """Lists a checkpoint's inputs by digest: base model, training tasks, sealed set, recipe, source code and policy."""
    tasks = sorted({str(task["id"]) for task in ledger.step_tasks(made.cycle)})
    named = {
        "base-model": made.parent,
        "training-tasks": hashlib.sha256("\n".join(tasks).encode()).hexdigest() if tasks else None,
        "sealed-set": sealed,
        "recipe": made.recipe,
        "policy": policy,
        "source-code": code_digest(),
    }
    return tuple(LineageSource(name=name, sha256=digest) for name, digest in named.items() if digest)


def code_digest() -> str:
    """SHA-256 over the names and contents of this program's installed Python files."""
    root = Path(__file__).parents[3]
    paths = sorted(path for package in PACKAGES for path in (root / package).rglob("*.py"))
    lines = [f"{path.relative_to(root).as_posix()} {hashlib.sha256(path.read_bytes()).hexdigest()}" for path in paths]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _machine() -> dict[str, str]:
    return {
        "architecture": platform.machine(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in COMPUTE},
    }
