"""Where limits are set is read from the kernel's own tables, for both versions of its interface."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path, PosixPath

import pytest

from runtime.backends.cgroups import (
    ControlGroup,
    Parents,
    find_parents,
    kill_folders,
    limit_files,
    locate,
    located,
    members,
)
from runtime.backends.reaper import spawn
from runtime.errors import InfrastructureError, RefusedError
from runtime.profile import BoxUsage

V1 = "\n".join(
    f"3{n} 30 0:3{n} / /sys/fs/cgroup/{name} rw,relatime - cgroup cgroup rw,{name}"
    for n, name in enumerate(["cpu", "cpuacct", "memory", "pids"])
)
V2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate"


def test_version_1_has_a_folder_for_each_controller_below_the_process_own() -> None:
    found = locate(V1, "4:memory:/box/a\n3:cpuacct:/\n2:pids:/\n1:cpu:/\n0::/")
    assert found == [
        Parents(
            1,
            {
                "memory": Path("/sys/fs/cgroup/memory/box/a"),
                "pids": Path("/sys/fs/cgroup/pids"),
                "cpu": Path("/sys/fs/cgroup/cpu"),
                "cpuacct": Path("/sys/fs/cgroup/cpuacct"),
            },
        )
    ]


def test_version_2_is_tried_from_the_process_own_group_upwards() -> None:
    found = locate(V2, "0::/system.slice/assay.service")
    assert [parents.folders["cpu"] for parents in found] == [
        Path("/sys/fs/cgroup/system.slice/assay.service"),
        Path("/sys/fs/cgroup/system.slice"),
        Path("/sys/fs/cgroup"),
    ]
    assert {parents.version for parents in found} == {2}


def test_a_mount_that_shows_a_part_of_the_tree_is_read_from_that_part() -> None:
    part = V2.replace(" / /sys", " /docker/abc /sys")
    assert locate(part, "0::/docker/abc/inner")[0].folders["memory"] == Path("/sys/fs/cgroup/inner")
    assert locate(part, "0::/../..")[0].folders["memory"] == Path("/sys/fs/cgroup")


def test_nothing_mounted_is_refused_with_what_to_do() -> None:
    with pytest.raises(RefusedError) as refusal:
        find_parents(locate("", "0::/"), "assay-test")
    assert "Delegate" in refusal.value.hint


def test_limits_are_the_same_in_both_versions() -> None:
    for version, memory, cpu in [(1, "memory.limit_in_bytes", "cpu.cfs_quota_us"), (2, "memory.max", "cpu.max")]:
        files = {file: text for _, file, text, _ in limit_files(version, memory_mib=64, pids=32, cpus=0.5)}
        assert files[memory] == str(64 << 20)
        assert files["pids.max"] == "32"
        assert files[cpu].startswith("50000")


def test_all_of_a_group_goes_together_only_where_that_is_wanted() -> None:
    for together, text in ((True, "1"), (False, "0")):
        files = {file: text for _, file, text, _ in limit_files(2, memory_mib=64, pids=32, cpus=0.5, together=together)}
        assert files["memory.oom.group"] == text


def test_a_group_of_version_2_gets_every_limit_and_one_that_lacks_a_file_is_an_error(tmp_path: Path) -> None:
    """Written to plain folders, because a kernel has these files in one version only."""
    with pytest.raises(OSError, match=r"assay-x"):
        (tmp_path / "assay-x" / "memory.max").write_text("")
    parents = Parents(2, dict.fromkeys(("memory", "pids", "cpu"), tmp_path / "missing"))
    with pytest.raises(InfrastructureError) as failure:
        ControlGroup(parents, "assay-x", memory_mib=64, pids=16, cpus=1.0)
    assert failure.value.hint


def plain(version: int, folder: Path) -> ControlGroup:
    """A group made of plain folders and files, as above."""
    controllers = ("memory", "pids", "cpu") if version == 2 else ("memory", "pids", "cpu", "cpuacct")
    return ControlGroup(Parents(version, dict.fromkeys(controllers, folder)), "g", memory_mib=64, pids=16, cpus=1.0)


def test_usage_is_read_from_the_files_of_version_2(tmp_path: Path) -> None:
    group = plain(2, tmp_path)
    assert group.usage() == BoxUsage()
    for file, text in {
        "cpu.stat": "usage_usec 1500000\nuser_usec 1000000\n",
        "memory.current": f"{10 << 20}\n",
        "memory.stat": f"anon {1 << 20}\nfile {5 << 20}\nshmem {2 << 20}\n",
        "memory.peak": f"{20 << 20}\n",
        "memory.events": "low 0\noom 4\noom_kill 3\noom_group_kill 1\n",
        "pids.events": "max 7\n",
    }.items():
        (tmp_path / "g" / file).write_text(text)
    assert group.usage() == BoxUsage(cpu_seconds=1.5, memory_mib=7, peak_memory_mib=20, oom_kills=3, pids_denied=7)


def test_waits_are_told_by_thread_where_they_are_asked_for(tmp_path: Path) -> None:
    for version, file in ((1, "tasks"), (2, "cgroup.threads")):
        (tmp_path / str(version)).mkdir()
        group = plain(version, tmp_path / str(version))
        (tmp_path / str(version) / "g" / file).write_text(f"{os.getpid()}\n{1 << 29}\n")
        assert group.usage().waits == {}
        assert list(group.usage(waits=True).waits) == [os.getpid()]  # the other is nobody's number


def test_limits_can_be_changed_later_in_version_2(tmp_path: Path) -> None:
    group = plain(2, tmp_path)
    group.limit_cpus(0.5)
    group.limit_memory(128)
    assert (tmp_path / "g/cpu.max").read_text() == "50000 100000"
    assert (tmp_path / "g/memory.max").read_text() == str(128 << 20)
    (tmp_path / "g/memory.max").unlink()
    with pytest.raises(InfrastructureError):
        group.limit_memory(64)


def test_version_2_kills_all_at_once(tmp_path: Path) -> None:
    (tmp_path / "cgroup.procs").write_text(f"{os.getpid()}\n")
    (tmp_path / "cgroup.kill").write_text("")
    kill_folders([tmp_path])
    assert (tmp_path / "cgroup.kill").read_text() == "1"


def here(name: str) -> Parents:
    return find_parents(located(), name)


def test_a_real_group_counts_time_memory_and_refused_processes(tmp_path: Path) -> None:
    name = f"assay-test-usage.{os.getpid()}"
    group = ControlGroup(here(name), name, memory_mib=64, pids=4, cpus=1.0)
    try:
        bomb = "for n in 1 2 3 4 5 6; do sleep 600 & done"
        spawn(
            ["/bin/sh", "-c", bomb],
            entrances=group.entrances,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ).wait(timeout=120)
        group.limit_cpus(0.5)
        for mib in (256, 32):  # up, and down again: with swap counted, the two limits must not cross
            group.limit_memory(mib)
        used = group.usage()
        assert used.cpu_seconds > 0
        assert used.peak_memory_mib > 0
        assert used.pids_denied > 0
        assert group.members()
    finally:
        group.remove()
    assert group.usage() == BoxUsage()


class GoesWhileRead(PosixPath):
    """A group that somebody removes when its file was opened and is not read yet."""

    def read_text(self, encoding: str | None = None, errors: str | None = None) -> str:
        with self.open() as file:
            self.parent.rmdir()
            return file.read()


def test_a_group_that_goes_while_it_is_read_has_nobody_inside() -> None:
    parent = next(iter(here(f"assay-test-goes.{os.getpid()}").folders.values()))
    group = GoesWhileRead(parent / f"assay-test-goes.{os.getpid()}")
    group.mkdir()
    assert members(group) == []
    assert not group.exists()


def test_a_real_group_has_its_limits_before_anybody_is_in_it_and_goes_without_a_trace() -> None:
    name = f"assay-test.{os.getpid()}"
    parents = here(name)
    group = ControlGroup(parents, name, memory_mib=64, pids=16, cpus=1.0)
    try:
        assert group.usage().oom_kills == 0
        assert (parents.folders["pids"] / name / "pids.max").read_text() == "16\n"
        memory = "memory.limit_in_bytes" if parents.version == 1 else "memory.max"
        assert (parents.folders["memory"] / name / memory).read_text() == f"{64 << 20}\n"
    finally:
        group.remove()
    assert not any(folder.exists() for folder in group.folders)
    group.remove()
