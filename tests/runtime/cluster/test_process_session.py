"""What one process has started is found and ended, and nothing else is."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from runtime.cluster.folder import BOOT_ID, ProcessSession

FAMILY = "sleep 600 & (sleep 600 & sleep 600) & echo started; wait"


def family() -> subprocess.Popen[bytes]:
    process = subprocess.Popen(["/bin/sh", "-c", FAMILY], stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None
    assert process.stdout.readline() == b"started\n"
    return process


def alive(session: ProcessSession) -> list[int]:
    return [process.pid for process in session.members() if process.state not in "ZX"]


def test_a_recorded_session_is_ended_with_all_its_orphans(tmp_path: Path) -> None:
    process = family()
    session = ProcessSession.of(process.pid)
    session.record(tmp_path / "processes")
    process.kill()
    process.wait()
    deadline = time.monotonic() + 120
    while len(alive(session)) < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(alive(session)) >= 3
    ProcessSession.kill_recorded(tmp_path / "processes")
    assert alive(session) == []


@pytest.mark.parametrize("wrong", ["start", "boot", "nothing", "half"])
def test_a_record_that_means_somebody_else_ends_nobody(tmp_path: Path, wrong: str) -> None:
    process = family()
    session = ProcessSession.of(process.pid)
    record = tmp_path / "processes"
    boot = BOOT_ID.read_text().strip()
    if wrong != "nothing":
        record.write_text(
            {
                "start": f"{session.leader} {session.started - 1} {boot}",
                "boot": f"{session.leader} {session.started} {'0' * len(boot)}",
                "half": f"{session.leader} ",
            }[wrong]
        )
    ProcessSession.kill_recorded(record)
    assert process.poll() is None
    session.kill()
    process.wait()


def test_a_process_that_leads_no_session_has_none() -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        with pytest.raises(ProcessLookupError):
            ProcessSession.of(process.pid)
        process.kill()
