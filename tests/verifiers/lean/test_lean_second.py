"""A second kernel: both must accept, a disagreement is never a reward, and nothing else can stand in for it."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import toy_kernel
from lean_kit import Local
from tables import table

from runtime.profile import BackendName
from runtime.settings import BrokerSettings, RuntimeSettings
from verifiers.boxes.box import ToolBoxes
from verifiers.contract.verdict import ALARM, Outcome, Verdict
from verifiers.lean.controls import FORMS
from verifiers.lean.explain import explain, parts
from verifiers.lean.running import KERNEL
from verifiers.lean.second import SecondKernel, command, find_second
from verifiers.lean.spec import LeanSpec
from verifiers.lean.toolchain import Toolchain, program
from verifiers.lean.verifier import LeanVerifier

STATEMENT = "theorem target (a b : Nat) (h : a = b) : b + 2 = a + 2 := sorry"
PROOF = STATEMENT.replace("sorry", "by rw [h]")
WAYS = ("toy-nanoda", "toy")
"""File names of the toy kernel: nanoda's configuration, and the export itself."""
EVERY_FORM = (
    FORMS
    + """
mutual
inductive Even : Nat → Prop where
  | zero : Even 0
  | next (n : Nat) (h : Odd n) : Even (n + 1)
inductive Odd : Nat → Prop where
  | next (n : Nat) (h : Even n) : Odd (n + 1)
end
inductive Rose.{u} (A : Type u) : Type u where
  | leaf (a : A)
  | node (one : probe.Pair.{u + 1, u + 1} A (Rose A))
opaque hidden : Nat := 3
theorem «odd name "in" \\ ∀» (n : Nat) : n = n := rfl
theorem text : "a\\"b∀" = "a\\"b∀" := rfl
theorem large : 12345678901234567890123456789 = 12345678901234567890123456789 := rfl
theorem rests.{u} (A : Type u) (r : Rose A) (p : probe.Pair.{1, 1} Nat Nat) (h : Even 0) : probe.swap Nat Nat p =
    probe.Pair.mk p.2 p.1 ∧ hidden = hidden ∧ r = r ∧ Even 0 :=
  ⟨rfl, rfl, rfl, h⟩
theorem probe.all (n : Nat) (h : Even 0) : True :=
  have _a := «odd name "in" \\ ∀» n
  have _b := And.intro text large
  have _c := @rests.{0} Nat
  True.intro
"""
)


def installed(folder: Path, name: str, text: str = Path(toy_kernel.__file__).read_text("utf-8")) -> SecondKernel:
    """A kernel as its owner has it: one file that runs by itself, also in a box."""
    file = folder / name
    file.write_text(f"#!{Path(sys.executable).resolve()} -IS\n{text}", "utf-8")
    file.chmod(0o755)
    folder.chmod(0o755)
    found = find_second({"LEAN_KERNEL": str(file)})
    assert found is not None
    return found


@pytest.fixture(scope="module", params=WAYS)
def second(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> SecondKernel:
    return installed(tmp_path_factory.mktemp("kernel"), request.param)


def started(toolchain: Toolchain, second: SecondKernel, folder: Path) -> Local:
    return Local(toolchain, folder, environment={KERNEL: str(second.path)})


@pytest.fixture(scope="module")
def server(toolchain: Toolchain, second: SecondKernel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Local]:
    found = started(toolchain, second, tmp_path_factory.mktemp("steps"))
    yield found
    found.kill()


def judged(
    server: Local, toolchain: Toolchain, second: SecondKernel | None, statement: str, proof: str, kernels: Any = 2
) -> Verdict:
    verifier = LeanVerifier(lambda: server, toolchain, second)
    return verifier.verify(LeanSpec(statement=statement, kernels=kernels), proof)


def test_a_proof_passes_that_both_kernels_accept_and_the_verdict_names_them(
    server: Local, toolchain: Toolchain, second: SecondKernel
) -> None:
    verdict = judged(server, toolchain, second, STATEMENT, PROOF)
    assert verdict.passed, verdict
    assert verdict.evidence["second_kernel"] == str(second) == f"{second.path.name} {second.version}"
    assert (verdict.evidence["second_verdict"], verdict.tools["second_kernel"]) == ("accepts", str(second))
    spec = LeanSpec(statement=STATEMENT, kernels=2)
    assert f"second kernel: {second} accepts" in parts(spec, verdict).parts[0].by
    assert any("independent kernel" in line for line in explain(spec))
    one = judged(server, toolchain, second, STATEMENT, PROOF, kernels=1)
    assert one.passed
    assert not any("second" in key for key in (*one.evidence, *one.tools))


@table(
    ("name", "found", "reason"),
    [
        ("Disagree", "refuses", "two kernels disagree: Lean's accepts target, toy"),
        ("Decline", "none", "no verdict of toy"),
    ],
)
def test_a_proof_that_only_one_kernel_accepts_is_an_infrastructure_error(
    server: Local, toolchain: Toolchain, second: SecondKernel, name: str, found: str, reason: str
) -> None:
    lemma = f"theorem {name} (n : Nat) : n = n := rfl\n"
    proof = lemma + STATEMENT.replace("sorry", f"by rw [{name} b, h]")
    for source, warm in ((proof, True), (proof.replace("theorem target", "open Nat\ntheorem target"), False)):
        verdict = judged(server, toolchain, second, STATEMENT, source)
        assert (verdict.outcome, verdict.score) == (Outcome.INFRA_ERROR, 0.0), (verdict, warm)
        assert verdict.evidence["second_verdict"] == found
        assert verdict.reason.startswith(reason)
        assert (ALARM in verdict.evidence) == (found == "refuses")
        assert judged(server, toolchain, second, STATEMENT, source, kernels=1).passed


class Trusting(Local):
    """A server that claims to have no replay and no preimported headers."""

    def ask(self, message: dict[str, Any], seconds: float = 120) -> dict[str, Any]:
        answer = super().ask(message, seconds)
        return answer | {"replay": "", "headers": "off"} if message["do"] == "describe" else answer


def test_a_falsehood_that_no_kernel_saw_is_refused_by_the_second(
    toolchain: Toolchain, second: SecondKernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("verifiers.lean.verifier.screen", lambda *_, **__: [])
    server = Trusting(toolchain, tmp_path, environment={KERNEL: str(second.path)})
    cheat = "set_option debug.skipKernelTC true\ntheorem target : False := by decide +kernel"
    try:
        found = [judged(server, toolchain, second, "theorem target : False := sorry", cheat, k) for k in (1, 2)]
    finally:
        server.kill()
    assert [verdict.outcome for verdict in found] == [Outcome.PASS, Outcome.INFRA_ERROR]
    assert found[1].reason == f"two kernels disagree: Lean's accepts target, {second} refuses it"
    assert "proves False" in found[1].evidence[ALARM]


def test_a_wrong_proof_fails_as_before(server: Local, toolchain: Toolchain, second: SecondKernel) -> None:
    verdict = judged(server, toolchain, second, STATEMENT, STATEMENT.replace("sorry", "rfl"))
    assert (verdict.outcome, "second_verdict" in verdict.evidence) == (Outcome.FAIL, False)


def test_without_a_second_kernel_nothing_is_decided(server: Local, toolchain: Toolchain) -> None:
    verdict = judged(server, toolchain, None, STATEMENT, PROOF)
    assert (verdict.outcome, verdict.reason) == (
        Outcome.INFRA_ERROR,
        "the statement requires a second kernel, and none is installed",
    )
    assert "./install.sh --with kernel=PROGRAM" in verdict.evidence["hint"]


@table(
    ("text", "why"),
    [
        ("", "on a false proof is accepts"),
        ("raise SystemExit(1)", "on a true proof is refuses"),
        ("raise SystemExit(2)", "on a true proof is none"),
        ("import os; os.abort()", "on a true proof is none"),
    ],
)
def test_a_program_that_is_no_kernel_decides_nothing(toolchain: Toolchain, tmp_path: Path, text: str, why: str) -> None:
    second = installed(tmp_path, "broken", text)
    server = started(toolchain, second, tmp_path)
    try:
        verdict = judged(server, toolchain, second, STATEMENT, PROOF)
    finally:
        server.kill()
    assert verdict.outcome is Outcome.INFRA_ERROR
    assert verdict.reason.startswith("a second kernel does not work here: its verdict on a")
    assert why in verdict.reason


def test_a_kernel_that_does_not_end_is_ended(server: Local) -> None:
    asked = {"do": "step", "module": "X", "source": "theorem Endless (n : Nat) : n = n := rfl", "memory_mib": 2048}
    file = server.ask(asked | {"seconds": 20, "keep": True})["file"]
    answer = server.ask(asked | {"seconds": 0.5, "files": {"X.olean": file}, "export": "Endless"})
    assert (answer["ended"], answer["exported"]) == ("timeout", True)
    missing = server.ask(asked | {"seconds": 20, "files": {"X.olean": file}, "export": "Another"})
    assert (missing.get("exported"), "lacks a declaration" in missing["err"]) == (None, True)


def test_every_form_of_a_declaration_is_exported(server: Local) -> None:
    asked = {"do": "step", "module": "X", "source": EVERY_FORM, "seconds": 60, "memory_mib": 2048}
    made = server.ask(asked | {"keep": True})
    assert (made["ended"], made["code"]) == ("exited", 0), made["out"]
    answer = server.ask(asked | {"files": {"X.olean": made["file"]}, "export": "probe.all"})
    assert (answer["code"], answer["err"]) == (0, "")
    assert int(answer["out"].split()[0]) > 30


def test_the_boxes_of_proofs_run_the_second_kernel(
    toolchain: Toolchain, second: SecondKernel, guest_roots: Path, tmp_path: Path
) -> None:
    own = BrokerSettings(
        state_dir=tmp_path / "state",
        root_dir=guest_roots,
        backends=(BackendName.NSJAIL,),
        programs=(program(toolchain, second),),
    )
    with ToolBoxes(RuntimeSettings(own=own), BackendName.NSJAIL) as boxes:
        verifier = LeanVerifier(boxes, toolchain, second, memory_mib=2560, most=1)
        verdict = verifier.verify(LeanSpec(statement=STATEMENT, kernels=2), PROOF)
        verifier.close()
    assert (verdict.outcome, verdict.isolation) == (Outcome.PASS, "nsjail"), verdict.reason


def test_nanoda_gets_a_configuration_with_three_axioms(tmp_path: Path) -> None:
    export = tmp_path / "export.ndjson"
    program_, config = command("/opt/nanoda_bin", export)
    assert program_ == "/opt/nanoda_bin"
    rules = json.loads(Path(config).read_text())
    assert rules["permitted_axioms"] == ["Classical.choice", "Quot.sound", "propext"]
    assert command("/opt/lean4lean", export) == ["/opt/lean4lean", str(export)]


def test_the_owners_program_is_found_and_its_version_is_its_digest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("verifiers.lean.second.OWN", tmp_path / "own")
    assert find_second({}) is None
    (tmp_path / "own" / ".assay").mkdir(parents=True)
    given = installed(tmp_path, "given")
    shutil.copy(given.path, tmp_path / "own" / "nanoda_bin")
    found = find_second({})
    assert found is not None
    assert (found.path.name, found.version) == ("nanoda_bin", given.version)
    assert find_second({"LEAN_KERNEL": str(tmp_path / "none")}) is None, "the one that is named, or none"
