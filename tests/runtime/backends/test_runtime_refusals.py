"""Without isolation nothing runs: the runtime says what is missing and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from box_kit import Bench, groups_of

from runtime.backends import describe
from runtime.backends.gvisor import GVisor
from runtime.backends.locate import find_runsc
from runtime.errors import InfrastructureError, RefusedError
from runtime.profile import BackendName
from runtime.sandbox import Limits
from runtime.sessions import Sessions
from runtime.settings import BrokerSettings, RuntimeSettings


def test_a_missing_runsc_is_refused_with_what_to_do(tmp_path: Path) -> None:
    settings = BrokerSettings(state_dir=tmp_path / "state", root_dir=tmp_path, runsc=str(tmp_path / "runsc"))
    with pytest.raises(RefusedError) as refusal:
        Bench(settings, GVisor)
    assert "install" in refusal.value.hint
    assert list((tmp_path / "state").iterdir()) == []
    assert groups_of(tmp_path / "state") == []
    with pytest.raises(RefusedError, match="runsc"):
        Sessions(RuntimeSettings(own=settings))


def test_the_doctor_tells_what_works_and_what_does_not(tmp_path: Path) -> None:
    settings = BrokerSettings(state_dir=tmp_path, root_dir=tmp_path)
    here = describe(BackendName.GVISOR, settings)
    assert here.works, here.problem
    assert here.version
    elsewhere = describe(BackendName.GVISOR, settings.model_copy(update={"runsc": str(tmp_path / "runsc")}))
    assert not elsewhere.works
    assert elsewhere.problem
    assert elsewhere.hint


def broken_runsc(folder: Path, words: str = "") -> Path:
    """A runsc that starts nothing; it tells a version if there are words for it."""
    broken = folder / "runsc"
    told = f'[ "$*" = --version ] && echo "{words}" && exit 0\n' if words else ""
    broken.write_text(f"#!/bin/sh\n{told}echo 'no such platform' >&2\nexit 1\n")
    broken.chmod(0o755)
    return broken


def test_a_runsc_that_does_not_work_is_an_infrastructure_error_with_its_own_words(
    tmp_path: Path, root_dir: Path
) -> None:
    runsc = str(broken_runsc(tmp_path, "runsc version broken"))
    settings = BrokerSettings(state_dir=tmp_path / "state", root_dir=root_dir, runsc=runsc)
    bench = Bench(settings, GVisor)
    try:
        with pytest.raises(InfrastructureError, match="no such platform") as failure:
            bench.start()
        assert failure.value.hint
        assert (bench.groups(), bench.folders()) == ([], [])
    finally:
        bench.close()
    with Sessions(RuntimeSettings(own=settings)) as pool:
        with pytest.raises(InfrastructureError, match="no such platform"):
            pool.open().run("print(1)")
        with pytest.raises(InfrastructureError):
            pool.sandbox()


def test_a_broker_whose_only_backend_tells_no_version_serves_nobody(tmp_path: Path, root_dir: Path) -> None:
    settings = BrokerSettings(state_dir=tmp_path / "state", root_dir=root_dir, runsc=str(broken_runsc(tmp_path)))
    with pytest.raises(RefusedError, match="does not report its version: no such platform") as refused:
        Sessions(RuntimeSettings(own=settings))
    assert refused.value.hint


def test_a_program_that_is_no_python_is_refused(tmp_path: Path) -> None:
    settings = BrokerSettings(state_dir=tmp_path / "state", root_dir=tmp_path / "roots", python="/bin/true")
    with pytest.raises(RefusedError, match="/bin/true"):
        Bench(settings, GVisor)


def test_a_found_runsc_is_a_program() -> None:
    assert find_runsc().is_file()


@pytest.mark.parametrize(
    "bad", [{"call_seconds": 0}, {"memory_mib": 1}, {"pids": 0}, {"output_bytes": -1}, {"cpus": 0}]
)
def test_limits_that_cannot_be_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(bad))):
        Limits.model_validate(bad)
