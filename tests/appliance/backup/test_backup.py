"""A backup is whole or not there, holds what a data folder was, and makes another machine go on from it."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from checkpoint_records import checkpoint_record
from forked_commands import ForkedCommand

from appliance.audit.kept_heads import head_files
from appliance.backup import create as creating
from appliance.backup import restore as restoring
from appliance.backup.create import create, cut_log, is_secret
from appliance.backup.restore import check, restore
from appliance.backup.store import LEFT_OUT, BackupError, BackupManifest, BackupStore
from appliance.cli.audit.read import verified
from appliance.cli.audit.renew import accept_restored
from appliance.config.configuration import Settings
from appliance.daemon.coordination.core import Core
from appliance.learning.folders import MANIFEST, write_by_digest
from appliance.ledger.lock import DataLockedError, data_lock
from appliance.records.cycles import Event
from appliance.system.clock import utc_now

SEEDLING = Path(__file__).parents[2] / "fixtures" / "seedling"
NOW, STAMP = "2026-11-23T02:00:00.000+00:00", "20261123T020000"


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with a real model in service and what processes leave beside it; nobody changes it."""
    data = tmp_path_factory.mktemp("backup") / "data"
    with Core(Settings(data=data)) as core:
        files = {path.name: path for path in SEEDLING.iterdir()}
        digest = write_by_digest(data / "models", files)
        core.ledger.put_checkpoint(checkpoint_record(digest))
        core.ledger.set_aliases({"champion": digest}, "first", NOW)
    (data / "artifacts" / "job").mkdir(parents=True)
    (data / "artifacts" / "job" / "answer.txt").write_text("42")
    (data / "engine.key").write_text("a token of a process")
    (data / "logs").mkdir(exist_ok=True)
    (data / "logs" / "worker.log").write_text("what was logged")
    (data / "artifacts" / ".unfinished-1").mkdir()
    (data / "artifacts" / ".unfinished-1" / "draft").write_text("half")
    return data


def backed_up(data: Path, folder: Path, stamp: str = STAMP) -> tuple[BackupStore, str]:
    store = BackupStore(folder)
    return store, create(data, store, stamp=stamp, now=NOW)


def test_a_backup_put_back_elsewhere_holds_its_log_and_its_champion_answers(used, tmp_path) -> None:
    store, name = backed_up(used, tmp_path / "store")
    _, manifest = store.manifest(name)
    check(store, manifest)
    data = tmp_path / "elsewhere" / "data"
    kept = head_files(Settings(data=data), data)
    restore(
        store, manifest, data, stamp=STAMP, replace=False,
        accept=lambda made: accept_restored(made, kept, name, manifest.created),
    )  # fmt: skip
    assert verified(data, None, None, [], kept).holds
    with Core(Settings(data=data)) as core:
        assert core.ledger.alias("champion") == manifest.champion
        assert next(reversed(list(core.ledger.audit.entries()))).kind == "daemon.start"
        assert "data.restored" in [entry.kind for entry in core.ledger.audit.entries()]
    assert (data / "artifacts" / "job" / "answer.txt").read_text() == "42"
    assert stat.S_IMODE((data / "keys" / "daemon.pem").stat().st_mode) == 0o600

    import torch

    from appliance.inference.folder import open_model, read_model

    model = open_model(read_model(data / "models" / manifest.champion))
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([[1, 2, 3]])).logits
    assert bool(logits.isfinite().all())


def test_what_belongs_to_processes_is_left_out_and_keys_are_named_and_private(used, tmp_path) -> None:
    store, name = backed_up(used, tmp_path / "store")
    _, manifest = store.manifest(name)
    assert not [one for one in manifest.files if one.split("/")[0] in LEFT_OUT or ".unfinished" in one]
    assert manifest.secrets == ("keys/daemon.pem", "keys/trainer.pem")
    for path in (tmp_path / "store").rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("keys/daemon.pem", True),
        ("gateway/tokens.json", True),
        ("teacher-secret", True),
        ("models/1/tokenizer.json", False),
        ("cycles/night-1/checkpoints/2/special_tokens_map.json", False),
        ("models/1/added_tokens.json", False),
        ("tokenizer_config.json", False),
    ],
)
def test_only_keys_and_tokens_are_called_secret(name: str, *, secret: bool) -> None:
    assert is_secret(name) is secret


def test_what_is_there_is_not_kept_twice_and_goes_with_the_last_backup_that_names_it(used, tmp_path) -> None:
    store, first = backed_up(used, tmp_path / "store")
    before = {path.name for path in (tmp_path / "store" / "objects").glob("??/*")}
    _, second = backed_up(used, tmp_path / "store")
    assert (first, second) == (STAMP, f"{STAMP}-2")
    assert {path.name for path in (tmp_path / "store" / "objects").glob("??/*")} == before
    with store.writing():
        store.remove(first)
    check(store, store.manifest(second)[1])
    with store.writing():
        assert store.remove(second) > 0
    assert list((tmp_path / "store" / "objects").glob("??/*")) == []


@pytest.mark.parametrize("what", ["changed", "cut", "missing", "log", "manifest"])
def test_a_backup_that_somebody_changed_is_refused_before_anything_is_put_back(used, tmp_path, what) -> None:
    store, name = backed_up(used, tmp_path / "store")
    _, manifest = store.manifest(name)
    path = store.object(manifest.files["keys/daemon.pub" if what != "log" else "audit/log.jsonl"].sha256)
    content = path.read_bytes()
    if what == "missing":
        path.unlink()
    elif what == "manifest":
        (tmp_path / "store" / "backups" / f"{name}.json").write_text('{"files": {"../../x": {}}}')
    else:
        path.write_bytes(content[:-1] if what == "cut" else content[:-2] + b"!\n")
    with pytest.raises(BackupError):
        restore(store, store.manifest(name)[1], tmp_path / "new", stamp=STAMP, replace=False)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "planted",
    [
        "ledger.sqlite3-wal",
        "ledger.sqlite3-journal",
        ".bashrc",
        "a/.b/c",
        "run/broker.sock",
        "engine.key",
        "../x",
        "a/../x",
        "/etc/x",
    ],
)
def test_a_manifest_that_names_what_no_backup_has_is_refused(used, tmp_path, planted) -> None:
    store, name = backed_up(used, tmp_path / "store")
    path = tmp_path / "store" / "backups" / f"{name}.json"
    written = json.loads(path.read_text())
    written["files"][planted] = written["files"]["keys/daemon.pub"]
    path.write_text(json.dumps(written))
    with pytest.raises(BackupError, match="cannot be read"):
        store.manifest(name)


def test_what_is_put_back_is_its_owners_alone_whatever_the_manifest_says(used, tmp_path) -> None:
    store, name = backed_up(used, tmp_path / "store")
    written = json.loads(store.manifest(name)[1].model_dump_json())
    for one in written["files"].values():
        one["mode"] = 0o777
    restore(store, BackupManifest.model_validate(written), tmp_path / "new", stamp=STAMP, replace=False)
    assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "new").rglob("*")} == {0o700}


def test_a_used_folder_is_moved_aside_when_asked_for_and_never_under_a_daemon(used, tmp_path) -> None:
    store, name = backed_up(used, tmp_path / "store")
    _, manifest = store.manifest(name)
    data = tmp_path / "data"
    data.mkdir()
    (data / "mine").write_text("precious")
    with pytest.raises(BackupError, match="is in use"):
        restore(store, manifest, data, stamp=STAMP, replace=False)
    with data_lock(data), pytest.raises(DataLockedError):
        restore(store, manifest, data, stamp=STAMP, replace=True)
    assert (data / "mine").read_text() == "precious"
    aside = restore(store, manifest, data, stamp=STAMP, replace=True).aside
    assert aside is not None
    assert (aside / "mine").read_text() == "precious"
    assert not (data / "mine").exists()
    assert (data / "ledger.sqlite3").exists()


KILLED_BEFORE = """import os, signal, sys
from pathlib import Path
from appliance.backup import restore as restoring
from appliance.backup.store import BackupStore
store, name, data, left = BackupStore(Path(sys.argv[1])), sys.argv[2], Path(sys.argv[3]), int(sys.argv[4])

def counted(call):
    def made(*given):
        global left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1
        return call(*given)
    return made

Path.rename, restoring.exchange = counted(Path.rename), counted(restoring.exchange)
restoring.restore(store, store.manifest(name)[1], data, stamp="S", replace=True)
"""
"""Ends itself before it moves something for the last argument's time."""


def test_a_kill_between_any_two_moves_leaves_one_of_the_two_folders_in_its_place(used, tmp_path) -> None:
    store, name = backed_up(used, tmp_path / "store")
    data, ended = tmp_path / "data", []
    for moves in range(3):
        data.mkdir()
        (data / "mine").write_text("precious")
        arguments = (str(store.folder), name, str(data), str(moves))
        ended.append(ForkedCommand(arguments, dict(os.environ), program=KILLED_BEFORE).wait(120))
        whole = {"mine"} if (data / "mine").exists() else {"ledger.sqlite3", "models", "keys", "audit"}
        assert whole <= {one.name for one in data.iterdir()}
        aside = data.with_name("data.before-restore-S")
        assert any((folder / "mine").exists() for folder in (data, aside))
        shutil.rmtree(aside, ignore_errors=True)
        shutil.rmtree(data)
    assert ended == [-signal.SIGKILL, -signal.SIGKILL, 0]


def test_where_two_names_cannot_be_exchanged_one_is_moved_after_the_other(used, tmp_path, monkeypatch) -> None:
    store, name = backed_up(used, tmp_path / "store")
    data = tmp_path / "data"
    data.mkdir()
    (data / "mine").write_text("precious")

    def cannot(one: Path, other: Path) -> None:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), str(one))

    monkeypatch.setattr(restoring, "exchange", cannot)
    aside = restore(store, store.manifest(name)[1], data, stamp=STAMP, replace=True).aside
    assert aside is not None
    assert (aside / "mine").read_text() == "precious"
    assert (data / "ledger.sqlite3").exists()


def test_a_full_disk_leaves_the_data_folder_and_the_backups_as_they_were(used, tmp_path, monkeypatch) -> None:
    store, name = backed_up(used, tmp_path / "store")
    _, manifest = store.manifest(name)
    data = tmp_path / "data"
    data.mkdir()
    (data / "mine").write_text("precious")
    left = 5

    def full(source: Path, target: Path) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target))
        shutil.copyfile(source, target)

    monkeypatch.setattr("appliance.backup.restore.copy", full)
    with pytest.raises(OSError, match="No space left"):
        restore(store, manifest, data, stamp=STAMP, replace=True)
    assert [path.name for path in tmp_path.glob(".*")] == []
    assert (data / "mine").read_text() == "precious"

    monkeypatch.setattr(creating, "copy", full)
    left = 3
    fresh = BackupStore(tmp_path / "fresh")
    with pytest.raises(OSError, match="No space left"):
        create(used, fresh, stamp=STAMP, now=NOW)
    assert fresh.names() == []
    assert [path.name for path in (tmp_path / "fresh" / "objects").glob(".*")] == []
    monkeypatch.undo()
    check(fresh, fresh.manifest(create(used, fresh, stamp=STAMP, now=NOW))[1])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_stopped_leaves_no_backup_and_the_next_one_goes_on(used, tmp_path, number) -> None:
    program = (
        "import signal, time; from pathlib import Path; from appliance.backup import create as c\n"
        "from appliance.backup.store import BackupStore\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "def said(text):\n"
        "    if text.startswith('models/'): print('now', flush=True)\n"
        "    while text.startswith('models/'): time.sleep(0.05)  # a pause(2) sleeps through a signal just before it\n"
        f"c.create(Path({str(used)!r}), BackupStore(Path({str(tmp_path / 'store')!r})), stamp={STAMP!r}, now={NOW!r},"
        " said=said)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == b"now\n"
        run.send_signal(number)
        assert run.wait(120) != 0
    store = BackupStore(tmp_path / "store")
    assert store.names() == []
    _, name = backed_up(used, tmp_path / "store")
    check(store, store.manifest(name)[1])
    assert list((tmp_path / "store" / "objects").glob(".*")) == []


def test_while_records_are_written_every_backup_is_of_one_moment(tmp_path) -> None:
    data = tmp_path / "data"
    ended = threading.Event()
    with Core(Settings(data=data)) as core:

        def write() -> None:
            while not ended.is_set():
                core.ledger.put_event(Event(kind="test", text="x" * 2000, created=utc_now()))
                core.trust.log("test.entry", text="y" * 500)

        thread = threading.Thread(target=write)
        thread.start()
        try:
            for number in range(5):
                store, name = backed_up(data, tmp_path / "store", f"{STAMP}-{number + 1}")
                check(store, store.manifest(name)[1])
        finally:
            ended.set()
            thread.join()
    heads = [int(store.manifest(name)[1].head.split(":")[0]) for name in store.names()]
    assert heads == sorted(heads)
    assert heads[0] < heads[-1]


def test_a_model_in_service_that_is_damaged_makes_no_backup(used, tmp_path) -> None:
    data = tmp_path / "data"
    shutil.copytree(used, data)
    champion = next((data / "models").iterdir())
    with (champion / MANIFEST).open("ab") as file:
        file.write(b" ")
    with pytest.raises(BackupError, match="champion is damaged"):
        backed_up(data, tmp_path / "store")
    assert BackupStore(tmp_path / "store").names() == []


def test_a_log_is_cut_where_the_copied_ledger_ends_and_completed_where_a_kill_left_it_behind(used) -> None:
    log = (used / "audit" / "log.jsonl").read_bytes()
    lines = log.splitlines(keepends=True)
    assert cut_log(log, lines[1]) == b"".join(lines[:2])
    assert cut_log(b"".join(lines[:2]) + lines[2][:20], lines[2]) == b"".join(lines[:3])
    assert cut_log(b"".join(lines[:2]), lines[2]) == b"".join(lines[:3])
    with pytest.raises(BackupError):
        cut_log(b"".join(lines[:1]), lines[2])
    with pytest.raises(BackupError):
        cut_log(log.replace(lines[1], lines[0]), lines[1])


def test_a_store_is_never_made_of_a_folder_of_something_else_nor_in_the_data_folder(used, tmp_path) -> None:
    (tmp_path / "thesis").write_text("years of work")
    with pytest.raises(BackupError, match="not a backup folder"):
        backed_up(used, tmp_path)
    with pytest.raises(BackupError, match="in the data folder"):
        backed_up(used, used / "backups")
    with pytest.raises(BackupError, match="not a data folder"):
        backed_up(tmp_path, tmp_path / "store")


@pytest.mark.parametrize("name", ["models", "policy.toml", "jobs/job-9"])
def test_a_link_in_the_data_folder_makes_no_backup_for_what_it_leads_to_would_be_missing(used, tmp_path, name) -> None:
    data = shutil.copytree(used, tmp_path / "data")
    path, elsewhere = data / name, tmp_path / "larger disk"
    path.parent.mkdir(exist_ok=True)
    if path.exists():
        path.rename(elsewhere)
    path.symlink_to(elsewhere)
    with pytest.raises(BackupError, match=f"{name} is a link") as caught:
        backed_up(data, tmp_path / "store")
    assert "mount --bind" in caught.value.hint
    assert BackupStore(tmp_path / "store").names() == []


def test_a_ledger_that_is_a_large_file_is_copied_in_steps(tmp_path) -> None:
    source, target = tmp_path / "a", tmp_path / "b"
    with sqlite3.connect(source) as sql:
        sql.execute("PRAGMA journal_mode=WAL")
        sql.execute("CREATE TABLE t (x)")
        sql.executemany("INSERT INTO t VALUES (?)", [(bytes(4000),)] * 5000)
    creating.copy_database(source, target)
    with sqlite3.connect(target) as sql:
        assert sql.execute("SELECT count(*) FROM t").fetchone() == (5000,)


def test_the_manifest_says_what_is_in_it(used, tmp_path) -> None:
    _, name = backed_up(used, tmp_path / "store")
    written = json.loads((tmp_path / "store" / "backups" / f"{name}.json").read_text())
    assert written["format"] == "assay-backup-1"
    assert written["schema_revision"]
    assert written["files"]["ledger.sqlite3"]["mode"] == 0o600


def test_sessions_that_an_owner_may_delete_are_in_no_backup(tmp_path) -> None:
    data = tmp_path / "data"
    with Core(Settings(data=data)):
        pass
    kept = data / "gateway" / "sessions" / "gs-0123456789abcdef.json"
    kept.parent.mkdir(parents=True)
    kept.write_text("words of a session")
    store, name = backed_up(data, tmp_path / "backups")
    assert not any("sessions" in file for file in store.manifest(name)[1].files)
    assert not any(b"words of a session" in one.read_bytes() for one in store.folder.rglob("*") if one.is_file())


@pytest.mark.parametrize("what", ["a link", "a pipe", "a folder", "a file within a file", "a link in the way"])
def test_what_is_planted_in_a_store_or_in_the_way_is_never_followed(used, tmp_path, what) -> None:
    store, name = backed_up(used, tmp_path / "backups")
    manifest = store.manifest(name)[1]
    outside, target = tmp_path / "outside", tmp_path / "restored"
    outside.mkdir()
    (outside / "mine").write_text("mine")
    kept = manifest.files["artifacts/job/answer.txt"]
    path = store.object(kept.sha256)
    if what == "a link":
        (outside / "copy").write_text("42")
        path.unlink()
        path.symlink_to(outside / "copy")
    elif what == "a pipe":
        path.unlink()
        os.mkfifo(path)
    elif what == "a folder":
        path.unlink()
        path.mkdir()
    elif what == "a file within a file":
        files = {**manifest.files, "artifacts/job/answer.txt/below": kept}
        manifest = manifest.model_copy(update={"files": files})
    else:
        (tmp_path / ".restored.restoring").symlink_to(outside)
    with pytest.raises((BackupError, OSError)):
        restore(store, manifest, target, stamp=STAMP, replace=False)
    assert not target.exists()
    assert (outside / "mine").read_text() == "mine"
