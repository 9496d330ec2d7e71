"""The doctor says what this machine can check."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

from appliance.cli.machine.doctor import lean, programs, verifiers
from appliance.cli.machine.doctor_checks import CheckGrade, failed, ok
from verifiers.lean.second import SecondKernel
from verifiers.lean.toolchain import Toolchain


def test_each_verifier_has_a_line_with_the_versions_of_its_tools() -> None:
    lines = {check.name: check for check in verifiers()}
    assert {check.grade for check in lines.values()} == {CheckGrade.OK}
    assert f"sympy {importlib.metadata.version('sympy')}" in lines["answers"].figure
    assert f"cvc5 {importlib.metadata.version('cvc5')}" in lines["claims"].figure


def test_a_missing_tool_is_named_and_is_a_warning() -> None:
    def version(package: str) -> str:
        if package == "cvc5":
            raise importlib.metadata.PackageNotFoundError
        return "1"

    lines = {check.name: check for check in verifiers(version)}
    assert lines["claims"].grade is CheckGrade.WARNING
    assert "cvc5 missing" in lines["claims"].figure
    assert lines["claims"].advice
    assert lines["answers"].grade is CheckGrade.OK


def test_programs_can_be_checked_where_a_sandbox_could_be_started() -> None:
    assert programs([ok("broker", "there"), ok("sandbox", "answers")]).grade is CheckGrade.OK
    assert programs([ok("broker", "there"), failed("sandbox", "none", "install")]).grade is CheckGrade.WARNING
    assert programs([]).grade is CheckGrade.WARNING


def test_without_lean_there_is_a_note_and_nothing_more() -> None:
    absent = lean(None)
    assert (absent.grade, absent.figure) == (CheckGrade.OK, "absent")
    assert "elan" in absent.advice


def test_a_lean_is_told_with_its_libraries(tmp_path: Path) -> None:
    compiled = tmp_path / "lib" / "lean"
    compiled.mkdir(parents=True)
    (compiled / "Init.olean").touch()
    (compiled / "Mathlib.olean").touch()
    finding = lean(Toolchain(tmp_path, "elan", "4.35.0"))
    assert (finding.grade, "4.35.0 from elan" in finding.figure) == (CheckGrade.OK, True)
    assert "Init, Mathlib" in finding.figure
    assert "kernel_replayed" in finding.advice
    assert finding.figure.endswith("second kernel: none")
    second = SecondKernel(tmp_path / "nanoda_bin", "sha256:12ab")
    for version in ("4.35.0", "4.24.0"):
        figure = lean(Toolchain(tmp_path, "elan", version), second).figure
        assert figure.endswith("second kernel: nanoda_bin sha256:12ab")


def test_a_lean_whose_kernel_has_known_holes_is_a_warning_that_names_them(tmp_path: Path) -> None:
    old = Toolchain(tmp_path, "elan", "4.24.0")
    finding = lean(old)
    assert finding.grade is CheckGrade.WARNING
    assert "below 4.34.0: #14484, #14576, #14613" in finding.figure
    assert "proofs count, and evidence says so" in finding.advice
    assert "no proof counts" in lean(old, floor=True).advice
