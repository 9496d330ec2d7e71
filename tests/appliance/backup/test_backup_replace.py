"""`assay backup restore --replace` over the folder that a backup was made of, as it went on since."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from forked_commands import run_forked

from appliance.backup.create import create
from appliance.backup.restore import OtherHistoryError, decided_since, restore
from appliance.backup.store import BackupStore
from appliance.client.signing import admission, revocation
from appliance.config.configuration import Settings
from appliance.daemon.coordination.core import Core
from appliance.gateway.tokens import new_token, read_tokens, revoke_token
from policies.envelopes import PublicKey, Signer, add_signature

ADA, EVE, BOB = (Signer.of(Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32)) for number in range(3))
NOW, STAMP = "2026-11-23T02:00:00.000+00:00", "20261123T020000"


def assay(data: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    places = {name: os.environ[name] for name in ("PATH", "XDG_STATE_HOME")}
    return run_forked(words, places | {"HOME": str(data.parent), "ASSAY_DATA": str(data)})


def digits(refused: subprocess.CompletedProcess[bytes]) -> str:
    """What the refusal of a restore asks for."""
    assert refused.returncode == 4, refused.stderr
    return refused.stderr.decode().rpartition("--undo ")[2][:8]


def asked_for(data: Path, store: Path) -> str:
    return digits(assay(data, "backup", "restore", str(store), "--replace"))


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
    put_back = assay(data, "backup", "restore", str(store), "--replace", "--undo", asked_for(data, store))
    assert put_back.returncode == 0, put_back.stderr
    assert b"no longer valid: 1\n" in put_back.stdout
    assert b"test.entry: text after the backup\n" in put_back.stdout
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
    asked = assay(data, "backup", "restore", str(store.folder), "--replace", "--accept-key", key)
    assert asked.returncode == 4, "another history undoes all of this one"
    named = ("--accept-key", key, "--undo", digits(asked))
    taken = assay(data, "backup", "restore", str(store.folder), "--replace", *named)
    assert taken.returncode == 0, taken.stderr
    assert assay(data, "audit", "verify").returncode == 0


def test_a_log_that_parts_from_the_backups_is_another_history(gone_on: tuple[Path, Path]) -> None:
    data, _ = gone_on
    log = (data / "audit" / "log.jsonl").read_bytes()
    key = (data / "keys" / "daemon.pub").read_text()
    lines = log.splitlines(keepends=True)
    assert decided_since(b"".join(lines[:2]), key, data, (), None)[0] == len(lines) - 2
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
    for wrong in ((), ("--forget", "1")):
        refused = assay(data, "audit", "accept", *wrong)
        assert refused.returncode == 4
        assert b"--forget 2" in refused.stderr
    accepted = assay(data, "audit", "accept", "--forget", "2")
    assert accepted.returncode == 0, accepted.stderr
    assert assay(data, "audit", "verify").returncode == 0


def test_a_folder_is_what_it_was_when_its_log_is_not_accepted(gone_on: tuple[Path, Path]) -> None:
    data, folder = gone_on
    store = BackupStore(folder)
    before = (data / "audit" / "log.jsonl").read_bytes()

    def refuse(made: Path) -> None:
        raise RuntimeError(str(made))

    manifest = store.manifest()[1]
    with pytest.raises(RuntimeError):
        restore(store, manifest, data, stamp=STAMP, replace=True, confirm=lambda acts: None, accept=refuse)
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


def test_what_a_restore_would_undo_is_named_and_undone_only_by_its_digits(tmp_path: Path) -> None:
    data, store = tmp_path / "data", tmp_path / "store"
    with Core(Settings(data=data)) as core:
        core.trust.change_key(admission("ada", ADA))
        core.trust.change_key(add_signature(admission("eve", EVE), ADA))
        create(data, BackupStore(store), stamp=STAMP, now=NOW)
        core.trust.change_key(revocation("eve", EVE.public, "lost", ADA))
        core.trust.change_key(add_signature(admission("bob", BOB), ADA))
        core.ledger.audit.append("aliases", before={}, after={"champion": "a" * 64}, reason="rollback by ada\x1b[2J")
        word = {"person": "ada", "verdict": "reject", "candidate": "b" * 64}
        core.ledger.audit.append("word", word=word)
        core.trust.log("daemon.start", version="any")
        before = (data / "audit" / "log.jsonl").read_bytes()
    named = ["eve was revoked by ada", "bob was admitted by ada", "rollback by ada\\x1b", "ada signed: reject bbbb"]
    for more in ((), ("--undo", "00000000"), ("--json",)):
        refused = assay(data, "backup", "restore", str(store), "--replace", *more)
        said = (refused.stderr + refused.stdout).decode().replace("\\\\", "\\")
        assert refused.returncode == 4
        assert all(one in said for one in named), said
        assert (data / "audit" / "log.jsonl").read_bytes() == before
        assert not list(data.parent.glob("data.*"))
    taken = assay(data, "backup", "restore", str(store), "--replace", "--json", "--undo", asked_for(data, store))
    assert len(json.loads(taken.stdout)["undone"]) == len(named)


def test_entries_that_are_in_no_log_any_more_are_undone_only_by_a_persons_word(gone_on: tuple[Path, Path]) -> None:
    data, store = gone_on
    shutil.rmtree(data)
    refused = assay(data, "backup", "restore", str(store))
    assert b"1 newest entries, which are in no log here" in refused.stderr
    assert not data.exists()
    assert assay(data, "backup", "restore", str(store), "--undo", digits(refused)).returncode == 0
