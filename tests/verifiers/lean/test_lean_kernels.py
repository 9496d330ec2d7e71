"""The floor of kernels: which versions have known proofs of False, and what a verdict, a policy and a bundle do."""

from __future__ import annotations

from dataclasses import replace

import pytest
from lean_kit import TRUE, Local
from tables import table

from verifiers.contract.verdict import Outcome
from verifiers.lean.explain import parts
from verifiers.lean.kernels import described, doubts
from verifiers.lean.spec import LeanSpec
from verifiers.lean.toolchain import Toolchain
from verifiers.lean.verifier import LeanVerifier

GOOD = "theorem target : 2 + 2 = 4 := rfl"


@table(
    ("version", "named", "unnamed"),
    [
        ("4.24.0", ("#14484", "#14576", "#14613", "#14806"), ()),
        ("4.32.1", ("#14576", "#14806"), ("#14484",)),
        ("4.33.0", ("#14613", "#14807"), ("#14576",)),
        ("v4.34.0-rc2", ("#14838",), ("#14576",)),
        ("4.34.0-nightly-2026-05-01", ("#14838",), ("#14576",)),
        ("4.34.0-pre", ("#14838",), ("#14576",)),
        ("nightly", ("unknown version",), ("#",)),
        ("4.35.0.1", ("unknown version",), ("#",)),
        ("4.35.0 \x1b[2J", ("unknown version",), ("#",)),
    ],
)
def test_a_version_below_the_floor_is_told_with_its_holes(
    version: str, named: tuple[str, ...], unnamed: tuple[str, ...]
) -> None:
    why = doubts(version)
    assert "4.34.0" in why
    assert all(one in why for one in named)
    assert not any(one in why for one in unnamed)


@pytest.mark.parametrize("version", ["4.34.0", "4.35.0", "4.35.0-rc1", "v5.0.0"])
def test_a_version_from_the_floor_on_has_no_doubts(version: str) -> None:
    assert (doubts(version), described(version)) == ("", version)


def test_a_proof_of_an_old_kernel_counts_unless_the_floor_is_required(local: Local, toolchain: Toolchain) -> None:
    old = replace(toolchain, version="4.24.0")
    verdict = LeanVerifier(lambda: local, old).verify(TRUE, GOOD)
    assert verdict.passed
    assert verdict.evidence["kernel"] == described("4.24.0")
    assert "kernel: 4.24.0 (below 4.34.0: #14484" in parts(TRUE, verdict).parts[0].by
    required = LeanVerifier(lambda: local, old, require_kernel_floor=True).verify(TRUE, GOOD)
    assert (required.outcome, required.evidence["kernel"]) == (Outcome.INFRA_ERROR, described("4.24.0"))
    assert "the policy requires a kernel without known holes" in required.reason
    assert "require_kernel_floor" in required.evidence["hint"]
    computing = LeanSpec(statement="run_cmd pure ()\ntheorem target : 2 + 2 = 4 := sorry")
    alone = LeanVerifier(lambda: local, old, require_kernel_floor=True).verify(computing, GOOD)
    assert "the policy requires a kernel without known holes" in alone.reason
    newer = LeanVerifier(lambda: local, toolchain, require_kernel_floor=True).verify(TRUE, GOOD)
    assert (newer.passed, newer.evidence["kernel"]) == (True, "4.35.0")
