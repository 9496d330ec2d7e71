"""`assay sandbox selftest` and `bench`: what they print, and that they end with 1 where something does not hold."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from sandbox_commands import here, run

from appliance.cli.sandbox import selftest as sandbox_selftest
from appliance.cli.shell import broker_target
from appliance.cli.shell.options import DATA
from appliance.cli.show.printing import show_lines
from appliance.errors import ExitCode
from runtime.conformance import bench_steps
from runtime.errors import InfrastructureError
from runtime.profile import BackendName


@pytest.fixture
def target(served: Path) -> broker_target.BrokerTarget:
    DATA.set(served)
    return broker_target.find()


def test_every_backend_of_the_policy_is_examined_on_one_screen(served: Path) -> None:
    summary = run(served, "selftest", "--check", "snapshot")
    assert summary.returncode == 0, summary.stdout
    lines = summary.stdout.splitlines()
    assert lines[0].split() == ["area", "gvisor", "nsjail"]
    assert "pass" in next(line for line in lines if line.startswith("snapshots"))
    assert any(line.startswith("refused") and "nsjail" in line for line in lines)
    assert lines[-1] == "all 3 checks passed, and 3 are refused as documented"
    assert len(lines) < 24


def test_json_has_every_check_with_its_sentence(served: Path) -> None:
    summary = here(served, "selftest", "--backend", "gvisor", "--check", "names persist", "--json")
    found = json.loads(summary.stdout)
    assert (summary.returncode, found["conforms"], list(found["backends"])) == (0, True, ["gvisor"])
    [check] = found["backends"]["gvisor"]
    assert check["outcome"] == "pass"
    assert check["asserts"].endswith(".")


@pytest.mark.parametrize("arguments", [("--check", "no such check"), ("--backend", "docker")])
def test_what_there_is_not_ends_with_2(served: Path, arguments: tuple[str, str]) -> None:
    assert here(served, "selftest", *arguments).returncode == 2


class NoSandboxes:
    """A backend that starts nothing."""

    def sandbox(self, *_: Any, **__: Any) -> None:
        raise InfrastructureError("it ended at once: \x1b[2J", hint="Look.")

    open = sandbox


def test_a_machine_where_nothing_holds_ends_with_1_and_says_what_was_seen(
    target: broker_target.BrokerTarget, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sandbox_selftest, "sessions", lambda settings: contextlib.nullcontext(NoSandboxes()))
    found = sandbox_selftest.run_checks(target, "gvisor", quick=True, named="persist")
    show_lines(found.text)
    shown = capsys.readouterr().out
    assert found.code is ExitCode.FAILED_VERDICT
    assert "fail  gvisor: names persist" in shown
    assert "it ended at once: \\x1b[2J (Look.)" in shown
    assert "1 of 1 check failed" in shown


FIGURES = {
    "python_c_ms",
    "call_p50_ms",
    "call_p95_ms",
    "calls_per_second",
    "open_ms",
    "snapshot_ms",
    "snapshot_p95_ms",
    "restore_ms",
    "restore_p95_ms",
    "restore_ready_ms",
    "restore_ready_p95_ms",
    "branch8_ms",
    "idle_mib",
}


def test_every_figure_is_measured(target: broker_target.BrokerTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    few = tuple(step._replace(quick_times=min(step.quick_times, 2)) for step in bench_steps(BackendName.GVISOR))
    monkeypatch.setattr(sandbox_selftest, "bench_steps", lambda _backend: few)
    found = sandbox_selftest.run_bench(target, None, quick=True).document.root
    assert set(found) >= FIGURES
    assert all(found[name] > 0 for name in FIGURES)


def test_nsjail_has_the_figures_that_it_can_have(served: Path) -> None:
    summary = here(served, "bench", "--backend", "nsjail", "--quick", "--json")
    found = json.loads(summary.stdout)
    assert (summary.returncode, found["backend"]) == (0, "nsjail")
    assert "call_p50_ms" in found
    assert "snapshot_ms" not in found
    assert "idle sandboxes" in summary.stderr
