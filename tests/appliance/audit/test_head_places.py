"""Where the audit log's head is kept: daemon and commands name one place, whatever `HOME` is."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from forked_commands import run_forked

from appliance.audit.kept_heads import head_files, head_name, in_state_folders
from appliance.backup.create import create
from appliance.backup.store import BackupStore
from appliance.config.configuration import Settings
from appliance.daemon.coordination.core import Core
from appliance.settings.client_config import ClientSettings

NOW, STAMP = "2026-11-23T02:00:00.000+00:00", "20261123T020000"
NOBODY = 65534
ROOT_ONLY = pytest.mark.skipif(os.getuid() != 0, reason="another user's folder is root's to give")


def places(data: Path) -> tuple[Path, ...]:
    return head_files(ClientSettings(data=data), data)


def assay(data: Path, home: Path, *words: str, **environ: str) -> str:
    done = run_forked(words, {"PATH": os.environ["PATH"], "HOME": str(home), "ASSAY_DATA": str(data), **environ})
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


@pytest.fixture
def restored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for a backup to be put back into, whose head goes where it goes without any variable; it is removed."""
    with Core(Settings(data=tmp_path / "data")):
        create(tmp_path / "data", BackupStore(tmp_path / "store"), stamp=STAMP, now=NOW)
    monkeypatch.delenv("XDG_STATE_HOME")
    with TemporaryDirectory() as reachable:  # for every user, which pytest's folders are not
        Path(reachable).chmod(0o755)
        yield Path(reachable, "data2")
        for file in places(Path(reachable, "data2")):
            file.unlink(missing_ok=True)


def test_the_place_is_in_the_users_home_whatever_is_exported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_STATE_HOME")
    usual = Path(pwd.getpwuid(os.getuid()).pw_dir, ".local/state/assay/heads", head_name(tmp_path / "data"))
    assert places(tmp_path / "data") == (usual,)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert places(tmp_path / "data") == (usual,)


def test_a_variable_moves_the_head_and_never_leaves_out_the_one_in_the_home(tmp_path: Path) -> None:
    below, home, named = Path("assay/heads/0"), tmp_path / "home", tmp_path / "named"
    assert in_state_folders(below, str(named), home) == (named / below,)
    assert in_state_folders(below, "relative", home) == (home / below,)
    (home / below).parent.mkdir(parents=True)
    (home / below).touch()
    assert in_state_folders(below, str(named), home) == (named / below, home / below)


@ROOT_ONLY
def test_roots_commands_name_the_place_of_the_user_that_the_folder_belongs_to(tmp_path: Path) -> None:
    os.chown(tmp_path, NOBODY, NOBODY)
    home = Path(pwd.getpwuid(NOBODY).pw_dir)
    state = home / ".local/state" if home.is_dir() and home.stat().st_uid == NOBODY else Path("/var/tmp/assay-65534")
    assert places(tmp_path) == (state / "assay" / "heads" / head_name(tmp_path),)


def test_a_folder_restored_under_another_home_is_one_that_its_daemon_starts_on(restored: Path, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    said = assay(restored, tmp_path / "home", "backup", "restore", str(tmp_path / "store"))
    assert f"the head of its audit log is kept in {places(restored)[0]}" in said
    assert not (tmp_path / "home" / ".local").exists()
    assert f"head kept in  {places(restored)[0]}" in assay(restored, tmp_path / "home", "audit", "verify")
    with Core(Settings(data=restored)) as core:
        assert core.ledger.audit.entries()


@ROOT_ONLY
def test_what_root_puts_back_for_another_user_is_that_users_with_the_head(restored: Path, tmp_path: Path) -> None:
    restored.mkdir()
    os.chown(restored, NOBODY, NOBODY)
    assay(restored, tmp_path, "backup", "restore", str(tmp_path / "store"))
    head = places(restored)[0]
    assert {one.stat().st_uid for one in (restored, *restored.rglob("*"), head)} == {NOBODY}


def test_a_head_that_cannot_be_written_puts_nothing_back_and_says_what_to_do(restored: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    environ = {"ASSAY_AUDIT__HEAD": str(tmp_path / "file" / "head"), "ASSAY_DATA": str(restored)}
    words = ("backup", "restore", str(tmp_path / "store"))
    refused = run_forked(words, {"PATH": os.environ["PATH"], "HOME": str(tmp_path), **environ})
    assert refused.returncode == 5
    assert b"nothing was restored" in refused.stderr
    assert b"ASSAY_AUDIT__HEAD" in refused.stderr
    assert not restored.exists()
