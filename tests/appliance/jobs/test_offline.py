"""A bundle of any kind is verified again where nobody knows the daemon: no network, no data folder, nothing at home.

One answer in one file is among the quick tests (`test_bundle.py`); these are all kinds in both forms.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest
from bundle_kit import KINDS, clean, sealed

from appliance.jobs.bundle import pack
from appliance.jobs.statement import statement_of
from verifiers.checker import Checker
from verifiers.lean.spec import LeanSpec
from verifiers.registry.spec import Spec


def made(tmp_path: Path, checker: Checker, spec: Spec, answer: str) -> Path:
    verdict = checker.check(spec, answer, 120)
    assert verdict.passed, verdict
    return sealed(
        tmp_path / "job-1", spec=spec, answer=answer, verdict=verdict, files={}, statement=statement_of(spec, verdict)
    )


@pytest.fixture(scope="module")
def checker() -> Iterator[Checker]:
    with Checker() as opened:
        yield opened


@pytest.mark.slow
@pytest.mark.parametrize("form", ["folder", "file"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_in_both_forms(tmp_path: Path, checker: Checker, kind: str, form: str) -> None:
    path = made(tmp_path, checker, *KINDS[kind])
    if form == "file":
        path = pack(path, tmp_path / "job-1.zip")
    code, report = clean(tmp_path, path)
    assert (code, report["ok"], report["form"]) == (0, True, form), report["reasons"]


@pytest.mark.slow
def test_a_proof_is_verified_where_there_is_a_lean_and_left_open_where_there_is_none(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = Path(__file__).parents[2] / "verifiers" / "lean" / "stand_in.py"
    known = importlib.util.spec_from_file_location("stand_in", file)
    assert known is not None
    assert known.loader is not None
    stand_in = importlib.util.module_from_spec(known)
    known.loader.exec_module(stand_in)
    toolchain = stand_in.make(tmp_path_factory.mktemp("lean"))
    spec = LeanSpec(statement="theorem target : True := sorry")
    with Checker(lean=toolchain) as checker:
        folder = made(tmp_path, checker, spec, "theorem target : True := True.intro")
    (tmp_path / "with").mkdir()
    (tmp_path / "without").mkdir()
    code, report = clean(tmp_path / "with", folder, "--lean", str(toolchain))
    assert (code, report["ok"]) == (0, True), report["reasons"]
    code, report = clean(tmp_path / "without", folder)
    assert (code, report["ok"]) == (5, False)
    assert report["not_checked"][0]["what"] == "the answer"
    assert "Lean" in report["not_checked"][0]["why"]
