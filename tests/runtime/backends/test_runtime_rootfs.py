"""The guest's root is small, complete, made once, and holds nothing that could give rights."""

from __future__ import annotations

import stat
import threading
from pathlib import Path

import pytest

from runtime.backends import rootfs
from runtime.backends.packages import find_packages
from runtime.backends.rootfs import digest, ensure_root, inspect_python
from runtime.errors import RefusedError


def test_a_root_is_made_once_even_by_many_at_a_time(tmp_path: Path) -> None:
    found: list[Path] = []
    threads = [threading.Thread(target=lambda: found.append(ensure_root(tmp_path))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [tmp_path / f"root-{digest(inspect_python(None), find_packages())}"] * 2
    assert list(tmp_path.iterdir()) == found[:1]


def test_a_root_has_no_setuid_file_no_shell_and_no_packages_of_the_host(root_dir: Path) -> None:
    root = ensure_root(root_dir)
    names = {path.name for path in root.rglob("*")}
    assert not names & {"sh", "bash", "dist-packages", "site-packages", "sitecustomize.py", "ensurepip", "idlelib"}
    for path in root.rglob("*"):
        mode = path.lstat().st_mode
        assert stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)
        assert not mode & (stat.S_ISUID | stat.S_ISGID)
        assert stat.S_ISLNK(mode) or not mode & stat.S_IWOTH


def test_a_root_with_a_userland_has_programs_of_this_host_and_no_more_of_it(full_roots: Path) -> None:
    root, plain = ensure_root(full_roots, programs=True), ensure_root(full_roots)
    assert root != plain
    programs = {path.name for path in (root / "usr/bin").iterdir()}
    assert {"sh", "bash", "cat", "env", "adduser", "python3"} <= programs
    assert not programs & {"su", "sudo", "mount", "passwd", "chsh", "newgrp"}
    assert (root / "bin").readlink() == Path("usr/bin")
    assert sorted(path.name for path in (root / "etc").iterdir()) == ["group", "passwd"]
    for path in root.rglob("*"):
        mode = path.lstat().st_mode
        assert stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)
        assert not mode & (stat.S_ISUID | stat.S_ISGID)
        assert stat.S_ISLNK(mode) or not mode & stat.S_IWOTH


def test_a_host_without_a_shell_has_no_userland(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(rootfs, "FOLDERS", str(tmp_path))
    with pytest.raises(RefusedError, match="no sh, cat"):
        ensure_root(tmp_path, programs=True)


def test_another_worker_gives_another_root(root_dir: Path) -> None:
    python = inspect_python(None)
    assert digest(python) == digest(python)
    assert digest(python) != digest(python._replace(version=python.version + "x"))
