"""Without isolation nothing runs: the runtime says what is missing and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.backends.gvisor import describe, find_runsc
from runtime.errors import InfrastructureError, RefusedError
from runtime.sandbox import Limits
from runtime.sessions.pool import GVisorSessions
from runtime.settings import RuntimeSettings


def test_a_missing_runsc_is_refused_with_what_to_do(tmp_path: Path) -> None:
    settings = RuntimeSettings(state_dir=tmp_path / "state", root_dir=tmp_path, runsc=str(tmp_path / "runsc"))
    with pytest.raises(RefusedError) as refusal:
        GVisorSessions(settings)
    assert "install" in refusal.value.hint
    assert not (tmp_path / "state").exists()


def test_the_doctor_tells_what_works_and_what_does_not(tmp_path: Path) -> None:
    here = describe()
    assert here.works, here.problem
    assert here.version
    assert here.cgroup_version in (1, 2)
    elsewhere = describe(str(tmp_path / "runsc"))
    assert not elsewhere.works
    assert elsewhere.problem
    assert elsewhere.hint


def test_a_runsc_that_does_not_work_is_an_infrastructure_error_with_its_own_words(
    tmp_path: Path, root_dir: Path
) -> None:
    broken = tmp_path / "runsc"
    broken.write_text("#!/bin/sh\necho 'no such platform' >&2\nexit 1\n")
    broken.chmod(0o755)
    settings = RuntimeSettings(state_dir=tmp_path / "state", root_dir=root_dir, runsc=str(broken))
    with GVisorSessions(settings) as pool:
        with pytest.raises(InfrastructureError, match="no such platform") as failure:
            pool.open().run("print(1)")
        assert failure.value.hint
        with pytest.raises(InfrastructureError):
            pool.sandbox()


def test_a_program_that_is_no_python_is_refused(tmp_path: Path) -> None:
    settings = RuntimeSettings(state_dir=tmp_path / "state", root_dir=tmp_path / "roots", python="/bin/true")
    with GVisorSessions(settings) as pool, pytest.raises(RefusedError, match="/bin/true"):
        pool.open().run("print(1)")


def test_a_found_runsc_is_a_program() -> None:
    assert find_runsc().is_file()


@pytest.mark.parametrize(
    "bad", [{"call_seconds": 0}, {"memory_mib": 1}, {"pids": 0}, {"output_bytes": -1}, {"cpus": 0}]
)
def test_limits_that_cannot_be_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(bad))):
        Limits.model_validate(bad)
