"""Bundles for tests: small sealed ones, what two checkers say of their bytes, and the command where nothing else is."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from printed_json import check_printed

from appliance.cli.jobs.verify import verify as verified
from appliance.cli.show.printing import show_json, show_lines
from appliance.jobs.attestation import seal_of, write_seal
from appliance.jobs.bundle import write_bundle
from appliance.jobs.layout import BundleError
from appliance.jobs.reading import read_bundle
from policies.envelopes import PublicKey, Signer
from verifiers.checklists.spec import ChecklistSpec, CountItem, WordsItem
from verifiers.contract.statement import Assurance, StatementPart
from verifiers.contract.verdict import Ground, Outcome, Verdict
from verifiers.predicate.spec import PredicateSpec
from verifiers.programs.spec import Example, ProgramSpec
from verifiers.registry.spec import Spec
from verifiers.smt.spec import SmtSpec

SPEC = PredicateSpec(predicate="7*x + 3 == 45")
QUESTION = "find x with 7x+3=45"
TRANSCRIPT: list[dict[str, Any]] = [
    {"parent": None, "role": "user", "text": QUESTION, "sampled": False},
    {"parent": 0, "role": "assistant", "text": "print((45-3)//7)", "sampled": True},
    {
        "parent": 1,
        "role": "tool",
        "text": "6\x1b[31m",
        "sampled": False,
        "call": {"code": "print((45-3)//7)", "status": "ok", "output": "6\n", "tier": "shared", "sandbox": "s1"},
    },
    {"parent": 2, "role": "assistant", "text": "\\boxed{6}", "sampled": True},
]
VERSIONS = {
    "assay": "0.1.0",
    "python": "3.11.7",
    "tools": {"sympy": "1.13"},
    "sandbox": "runsc",
    "weights": {"manifest": "ab" * 32, "parent": "ef" * 32, "stage": "training", "step": 7},
    "policy": "cd" * 32,
}
VERDICT = Verdict(
    outcome=Outcome.PASS,
    score=1.0,
    reason="it holds",
    ground=Ground.PROVED,
    verifier="predicate",
    version="1",
    seconds=0.1,
)
CLAIM = StatementPart(part="the answer fulfils the predicate", standing=Assurance.PROVED, by="predicate 1")
KINDS: dict[str, tuple[Spec, str]] = {
    "an answer": (SPEC, "6"),
    "a claim": (SmtSpec(claim="(declare-const x Int)(assert (and (> x 3) (< x 5)))", question="model"), "((x 4))"),
    "a program": (
        ProgramSpec(
            function="double", examples=tuple(Example(arguments=str(n), expected=str(2 * n)) for n in (2, 3, 17, -4))
        ),
        "def double(n):\n    return 2 * n",
    ),
    "a text": (
        ChecklistSpec(
            items=(
                WordsItem(name="water", required=("evaporation", "rain")),
                CountItem(name="length", of="words", least=12),
            )
        ),
        "The sun drives evaporation from the sea; clouds form where the air cools, and rain falls on the land.",
    ),
}
AT = "2026-01-02T03:04:05+00:00"
TINY = Path(__file__).parents[3] / "docs" / "check_bundle.py"


def signer(name: str) -> Signer:
    return Signer.of(Ed25519PrivateKey.from_private_bytes(hashlib.sha256(name.encode()).digest()))


KEY = signer("trainer")


def sealed(
    folder: Path,
    *,
    answer: str = "6",
    spec: Spec = SPEC,
    verdict: Verdict = VERDICT,
    files: Mapping[str, bytes] | None = None,
    **more: Any,
) -> Path:
    write_bundle(
        folder,
        answer=answer,
        question=QUESTION,
        spec=spec,
        verdict=verdict,
        transcript=more.pop("transcript", TRANSCRIPT),
        versions=more.pop("versions", VERSIONS),
        files={"data.csv": b"7,45\n"} if files is None else files,
        statement=more.pop("statement", [CLAIM]),
        solved_by="policy model",
        meaning=more.pop("meaning", None),
        **more,
    )
    write_seal(folder, KEY, made_at=AT)
    return folder


@functools.cache
def tiny_checker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_bundle", TINY)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def tiny(path: Path, key: PublicKey = KEY.public) -> str:
    """What the second checker says; empty where it holds."""
    return str(tiny_checker().problem(path, key.line.encode()))


def ours(path: Path, key: PublicKey | None = KEY.public) -> str:
    """What the first one says about the bytes; empty where they hold."""
    try:
        read = read_bundle(path)
        if not read.intact:
            return "; ".join(read.wrong)
        seal_of(read, key)
    except BundleError as error:
        return str(error)
    return ""


def clean(tmp_path: Path, bundle: Path, *options: str) -> tuple[int, dict[str, Any]]:
    """`assay verify` in a fresh process with an empty home, an empty working folder, hardly a PATH and no network."""
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    (tmp_path / "trainer.pub").write_text(KEY.public.line + "\n")
    verify = [sys.executable, "-I", "-m", "appliance.cli.main", "verify", "--json"]
    alone = ["unshare", "--net"] if os.geteuid() == 0 else []
    ended = subprocess.run(
        [*alone, *verify, str(bundle), "--key", str(tmp_path / "trainer.pub"), *options],
        env={"HOME": str(home), "PATH": "/usr/bin:/bin"},
        cwd=work,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ended.stderr == ""
    check_printed(("verify", "--json"), ended.stdout)
    assert list(work.iterdir()) == []
    assert {path.name for path in home.iterdir()} <= {".cache"}
    return ended.returncode, json.loads(ended.stdout)


def verify(path: Path, *, json_out: bool, **options: Any) -> int:
    """Prints what `assay verify` says of a bundle, and returns its exit code."""
    found = verified(path, **options)
    show_json(found.document) if json_out else show_lines(found.text)
    return found.code
