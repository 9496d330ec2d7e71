"""How the suite is run: every check gives one result whatever happens, and nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from runtime.backends.lease import Owner, state_mark
from runtime.conformance import AREAS, CheckOutcome, ConformanceCheck, Violation, chosen, conform, host
from runtime.conformance.check import Subject, examine
from runtime.conformance.suite import CHECKS, sweep
from runtime.errors import RefusedError
from runtime.profile import BackendName
from runtime.sessions import Sessions

REPOSITORY = Path(__file__).parents[3]
QUICK = [check for check in CHECKS if check.name in ("names persist", "no network", "limit: death")]


def check(raises: Exception | None = None, *, needs_snapshots: bool = False) -> ConformanceCheck:
    def run(_: Subject) -> dict[str, float]:
        if raises is not None:
            raise raises
        return {"answered_ms": 1.23456}

    return ConformanceCheck("a check", "It holds.", run, needs_snapshots=needs_snapshots)


@pytest.fixture
def subject(tmp_path: Path, gvisor: Sessions) -> Subject:
    return Subject(gvisor, tmp_path, "token")


def test_names_of_checks_are_unique_and_each_says_in_a_sentence_what_it_asserts() -> None:
    assert len({each.name for each in CHECKS}) == len(CHECKS)
    for each in CHECKS:
        assert each.asserts[0].isupper()
        assert each.asserts.endswith(".")
    assert all(AREAS.values())


def test_the_quick_form_is_a_part_that_touches_every_area() -> None:
    quick = chosen(quick=True)
    assert set(quick) < set(chosen(quick=False)) == set(CHECKS)
    assert all(set(checks) & set(quick) for checks in AREAS.values())


def test_a_check_that_sees_what_it_asserts_passes_with_its_figures(subject: Subject) -> None:
    result = examine(check(), subject, area="state", snapshots=True)
    assert (result.outcome, result.figures, result.area) == (CheckOutcome.PASS, {"answered_ms": 1.235}, "state")


@pytest.mark.parametrize(
    "error", [Violation("saw two"), KeyError("x"), RefusedError("no", hint="Ask."), OSError(5, "io")]
)
def test_whatever_breaks_a_check_fails_it_and_is_said(subject: Subject, error: Exception) -> None:
    result = examine(check(error), subject, area="state", snapshots=True)
    assert result.outcome is CheckOutcome.FAIL
    assert str(error) in result.detail


def test_a_backend_without_snapshots_has_to_refuse_them_with_a_hint(subject: Subject) -> None:
    for raises, outcome in (
        (RefusedError("no snapshots here", hint="Use another."), CheckOutcome.REFUSED),
        (RefusedError("no snapshots here"), CheckOutcome.FAIL),
        (Violation("half a snapshot"), CheckOutcome.FAIL),
        (None, CheckOutcome.FAIL),
    ):
        result = examine(check(raises, needs_snapshots=True), subject, area="snapshots", snapshots=False)
        assert result.outcome is outcome
    result = examine(check(RefusedError("no", hint="Ask.")), subject, area="state", snapshots=False)
    assert result.outcome is CheckOutcome.FAIL


def test_ctrl_c_passes_through_and_leaves_no_folder(subject: Subject) -> None:
    def interrupted(_: Subject) -> dict[str, float]:
        raise KeyboardInterrupt

    before = set(Path(tempfile.gettempdir()).glob("assay-conformance-*"))
    checks = [ConformanceCheck(QUICK[0].name, "It is interrupted.", interrupted)]
    with pytest.raises(KeyboardInterrupt):
        list(conform(subject.pool, BackendName.GVISOR, checks))
    assert set(Path(tempfile.gettempdir()).glob("assay-conformance-*")) <= before


def test_two_suites_at_once_do_not_meet(gvisor: Sessions) -> None:
    def once(_: int) -> list[CheckOutcome]:
        return [result.outcome for result in conform(gvisor, BackendName.GVISOR, QUICK)]

    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(once, range(2))) == [[CheckOutcome.PASS] * len(QUICK)] * 2


PROGRAM = """import sys
from pathlib import Path
from runtime.conformance.suite import conform
from runtime.profile import BackendName
from runtime.sessions.pool import Sessions
from runtime.settings import BrokerSettings, RuntimeSettings
own = BrokerSettings(state_dir=Path(sys.argv[1]), root_dir=Path(sys.argv[2]), ready=1)
with Sessions(RuntimeSettings(own=own)) as pool:
    for result in conform(pool, BackendName.GVISOR):
        print(result.name, flush=True)
"""


@pytest.fixture
def suite_under_way(root_dir: Path, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "state"), str(root_dir)],
        cwd=REPOSITORY,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert program.stdout is not None
    with program.stdout:
        assert program.stdout.readline()
        yield program
    program.kill()
    program.wait()


def groups_of(state_dir: Path) -> list[Path]:
    start = f"assay-{state_mark(state_dir)}."
    return [Path(at, name) for at, below, _ in os.walk(host.CGROUPS) for name in below if name.startswith(start)]


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_a_suite_that_is_ended_in_the_middle_leaves_no_process(
    suite_under_way: subprocess.Popen[bytes], tmp_path: Path, sent: signal.Signals
) -> None:
    state = tmp_path / "state"
    assert host.becomes_true(lambda: bool(host.processes(groups_of(state))), seconds=120)
    suite_under_way.send_signal(sent)
    suite_under_way.wait(timeout=120)
    assert host.becomes_true(lambda: not host.processes(groups_of(state)), seconds=120)
    sweep(tmp_path)
    assert not list(tmp_path.glob("assay-conformance-*"))


def test_a_sweep_leaves_folders_of_the_living_and_of_nobody(tmp_path: Path) -> None:
    dead, alive = Owner(2**22 + 1, 1, "abcdef"), Owner.current()
    for name in (f"{dead}.x", f"{alive}.x", "else"):
        (tmp_path / f"assay-conformance-{name}").mkdir()
    (tmp_path / f"assay-conformance-{dead}.link").symlink_to(tmp_path)
    sweep(tmp_path)
    left = {path.name.removeprefix("assay-conformance-") for path in tmp_path.iterdir()}
    assert left == {f"{alive}.x", "else", f"{dead}.link"}
