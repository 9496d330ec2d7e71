"""`benchmarks/nightly` lists its proofs, runs all of them whatever fails, and refuses a name that it does not know."""

from __future__ import annotations

import subprocess
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "nightly"


@pytest.fixture
def nightly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script as a module, with its logs in a temporary folder."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    loader = SourceFileLoader("nightly", str(SCRIPT))
    module = module_from_spec(spec_from_loader("nightly", loader))
    monkeypatch.setitem(sys.modules, "nightly", module)
    loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    return module


def test_a_list_names_every_proof_and_starts_none() -> None:
    ended = subprocess.run([str(SCRIPT), "--list"], capture_output=True, text=True, check=True)
    names = [line.split()[0] for line in ended.stdout.splitlines()]
    assert names == ["slow", "vllm", "properties", "kills", "kill-points", "job-kills", "chaos"]
    assert all("--hypothesis-profile=nightly" in line for line in ended.stdout.splitlines()[:3])


def test_an_unknown_name_is_a_usage_error() -> None:
    ended = subprocess.run([str(SCRIPT), "chaos", "havoc"], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "unknown proof 'havoc': use slow" in ended.stderr


def test_a_failure_is_reported_with_its_code_and_does_not_stop_the_next_proof(
    nightly: ModuleType, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = [
        nightly.Proof("first", [sys.executable, "-c", "print('seen'); raise SystemExit(3)"]),
        nightly.Proof("second", ["/nowhere/python"]),
        nightly.Proof("third", [sys.executable, "-c", ""], "no engine"),
        nightly.Proof("fourth", [sys.executable, "-c", ""]),
    ]
    monkeypatch.setattr(nightly, "proofs", lambda seed: made)
    assert nightly.main([]) == 1
    lines = [" ".join(line.split()[:4]) for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        "first failed exit 3",
        "second failed exit 127",
        "third skipped: no engine",
        "fourth passed exit 0",
    ]
    logs = {log.stem: log.read_text() for log in tmp_path.glob("benchmarks/results/nightly-*/*.log")}
    assert logs["first"] == "seen\n"
    assert "cannot be started" in logs["second"]
    assert nightly.main(["third", "fourth"]) == 0
