"""`assay backup restore --replace` over the folder that a backup was made of, as it went on since."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from forked_commands import run_forked

from appliance.backup.create import create
from appliance.backup.restore import OtherHistoryError, decided_since, restore
from appliance.backup.store import BackupStore
from appliance.config.configuration import Settings
from appliance.daemon.coordination.core import Core
from appliance.gateway.tokens import new_token, read_tokens, revoke_token
from policies.envelopes import PublicKey

NOW, STAMP = "2026-11-23T02:00:00.000+00:00", "20261123T020000"


def assay(data: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    places = {name: os.environ[name] for name in ("PATH", "XDG_STATE_HOME")}
    return run_forked(words, places | {"HOME": str(data.parent), "ASSAY_DATA": str(data)})


@pytest.fixture
def gone_on(tmp_path: Path) -> tuple[Path, Path]:
    """A data folder with an entry that is younger than its backup, and the folder of that backup."""
    data, store = tmp_path / "data", tmp_path / "store"
    with Core(Settings(data=data)) as core:
        for name in ("phone", "laptop"):
            new_token(data, name, consent=False, now=NOW)
        (data / "gateway" / "sessions").mkdir()
        (data / "gateway" / "sessions" / "one.json").write_text("{}")
        create(data, BackupStore(store), stamp=STAMP, now=NOW)
        core.trust.log("test.entry", text="after the backup")
        revoke_token(data, "phone", NOW)
    return data, store


def test_each_secret_of_a_new_backup_stands_on_a_line_and_no_more_than_ten(gone_on: tuple[Path, Path]) -> None:
    data, store = gone_on
    lines = assay(data, "backup", "create", str(store)).stdout.decode().splitlines()
    at = lines.index("it contains secret keys; protect it accordingly:")
    assert lines[at + 1 :] == ["  gateway/tokens.json", "  keys/daemon.pem", "  keys/trainer.pem"]
    for number in range(9):
        (data / "keys" / f"{number}.key").write_text("x")
    lines = assay(data, "backup", "create", str(store)).stdout.decode().splitlines()
    assert lines[-1] == "  and 2 more (see --json)"
    assert len(lines) == at + 12


def test_a_folder_that_went_on_is_replaced_by_its_backup_and_its_daemon_starts(gone_on: tuple[Path, Path]) -> None:
    data, store = gone_on
    put_back = assay(data, "backup", "restore", str(store), "--replace")
    assert put_back.returncode == 0, put_back.stderr
    assert b"no longer valid: 1\n" in put_back.stdout
    assert b"laptop" in put_back.stdout
    assert [one.name for one in read_tokens(data) if one.revoked is None] == []
    assert not (data / "gateway" / "sessions").exists()
    checked = assay(data, "audit", "verify")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    with Core(Settings(data=data)) as core:
        kinds = [entry.kind for entry in core.ledger.audit.entries()]
    assert "data.restored" in kinds
    assert "test.entry" not in kinds


def test_a_backup_of_another_history_takes_no_folders_place_before_its_key_is_named(
    gone_on: tuple[Path, Path], tmp_path: Path
) -> None:
    data, _ = gone_on
    store = BackupStore(tmp_path / "evil")
    with Core(Settings(data=tmp_path / "other")):
        create(tmp_path / "other", store, stamp=STAMP, now=NOW)
    before = (data / "audit" / "log.jsonl").read_bytes()
    refused = assay(data, "backup", "restore", str(store.folder), "--replace")
    assert refused.returncode == 1
    assert b"another key" in refused.stderr
    shutil.move(data, data.with_name("gone"))
    refused = assay(data, "backup", "restore", str(store.folder))
    assert refused.returncode == 1
    assert b"the head in" in refused.stderr
    data.with_name("gone").rename(data)
    assert (data / "audit" / "log.jsonl").read_bytes() == before
    key = PublicKey.read((tmp_path / "other" / "keys" / "daemon.pub").read_text()).fingerprint
    wrong = assay(data, "backup", "restore", str(store.folder), "--replace", "--accept-key", "SHA256:other")
    assert wrong.returncode == 1
    taken = assay(data, "backup", "restore", str(store.folder), "--replace", "--accept-key", key)
    assert taken.returncode == 0, taken.stderr
    assert assay(data, "audit", "verify").returncode == 0


def test_a_log_that_parts_from_the_backups_is_another_history(gone_on: tuple[Path, Path]) -> None:
    data, _ = gone_on
    log = (data / "audit" / "log.jsonl").read_bytes()
    key = (data / "keys" / "daemon.pub").read_text()
    lines = log.splitlines(keepends=True)
    assert decided_since(b"".join(lines[:2]), key, data, (), None) == len(lines) - 2
    with pytest.raises(OtherHistoryError):
        decided_since(b"".join([lines[0], lines[2]]), key, data, (), None)
    with pytest.raises(OtherHistoryError):
        decided_since(b"", "", data, (), None)


def test_an_old_copy_of_a_folder_is_accepted_by_a_persons_word(gone_on: tuple[Path, Path]) -> None:
    data, _ = gone_on
    shutil.copytree(data, data.with_name("copy"))
    with Core(Settings(data=data)) as core:
        core.trust.log("test.entry", text="after the copy")
    shutil.rmtree(data)
    data.with_name("copy").rename(data)
    assert assay(data, "audit", "verify").returncode == 1
    accepted = assay(data, "audit", "accept")
    assert accepted.returncode == 0, accepted.stderr
    assert assay(data, "audit", "verify").returncode == 0


def test_a_folder_is_what_it_was_when_its_log_is_not_accepted(gone_on: tuple[Path, Path]) -> None:
    data, folder = gone_on
    store = BackupStore(folder)
    before = (data / "audit" / "log.jsonl").read_bytes()

    def refuse(made: Path) -> None:
        raise RuntimeError(str(made))

    with pytest.raises(RuntimeError):
        restore(store, store.manifest()[1], data, stamp=STAMP, replace=True, accept=refuse)
    assert (data / "audit" / "log.jsonl").read_bytes() == before
    assert sorted(path.name for path in data.parent.iterdir()) == ["data", "store"]


def test_what_is_no_store_is_named_and_sizes_are_not_zero(gone_on: tuple[Path, Path]) -> None:
    data, store = gone_on
    nowhere = assay(data, "backup", "ls", str(data.with_name("nowhere")))
    file = assay(data, "backup", "ls", str(data / "ledger.sqlite3"))
    assert (nowhere.returncode, file.returncode) == (2, 2)
    assert b"does not exist" in nowhere.stderr
    assert b"is not a backup folder" in file.stderr
    size = assay(data, "backup", "ls", str(store)).stdout.splitlines()[-1].split()[4]
    assert float(size) > 0
