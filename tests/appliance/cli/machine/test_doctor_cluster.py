"""What the doctor says of a cluster, without one and with one whose first host is not there."""

from __future__ import annotations

from pathlib import Path

from appliance.cli.machine.doctor_checks import CheckGrade, DoctorCheck
from appliance.cli.machine.doctor_cluster import cluster, line
from appliance.config.configuration import Settings
from runtime.cluster import HostLine


def lines(folder: Path, **flags: object) -> list[DoctorCheck]:
    settings = Settings.load({"data": folder, **flags}, environ={"HOME": str(folder)}, etc_dir=folder)
    return list(cluster(settings))


def host(name: str, *, alive: bool = True, draining: bool = False) -> HostLine:
    return HostLine(name=name, address="10.0.0.1", alive=alive, head=False, drivers=0, sessions=0, draining=draining)


def test_a_machine_in_no_cluster_has_no_line(tmp_path: Path) -> None:
    assert lines(tmp_path) == []


def test_gpus_that_nobody_gets_are_said(tmp_path: Path) -> None:
    (found,) = lines(tmp_path, **{"placement.engine_gpus": 2, "placement.learner_gpus": 0})
    assert (found.name, found.grade) == ("placement", CheckGrade.WARNING)
    assert found.figure == "placement.engine_gpus = 2 has no effect: placement.engines is here"


def test_without_its_token_a_cluster_cannot_be_asked_and_nothing_would_run(tmp_path: Path) -> None:
    (found,) = lines(tmp_path, **{"cluster.address": "127.0.0.2:26379"})
    assert (found.name, found.grade) == ("cluster", CheckGrade.FAILED)
    assert str(tmp_path / "cluster-token") in found.figure
    assert "copy it to the others" in found.advice


def test_who_is_there_and_who_is_gone_is_said_with_what_runs_there() -> None:
    """Asked of a real cluster by `tests/appliance/worker/nights/test_cluster_night.py`."""
    found = line([host("a"), host("b")], "10.0.0.1:6379", "sandboxes")
    assert (found.grade, found.figure) == (CheckGrade.OK, "at 10.0.0.1:6379: a, b")
    assert found.advice == "sandboxes run there"
    found = line([host("a"), host("b", alive=False), host("a", alive=False)], "10.0.0.1:6379", "sandboxes")
    assert (found.grade, found.figure) == (CheckGrade.WARNING, "at 10.0.0.1:6379: a; gone: b")
    assert found.advice == "sandboxes run on the remaining ones"
    found = line([host("a", draining=True)], "10.0.0.1:6379", "sandboxes")
    assert (found.grade, found.advice) == (CheckGrade.FAILED, "add one with `assay cluster join`")
