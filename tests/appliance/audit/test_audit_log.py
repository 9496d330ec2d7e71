"""The audit log on a real disk and a real ledger: what was logged is there after any kill, what could not be is not."""

from __future__ import annotations

import errno
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from forked_commands import ForkedCommand

from appliance.audit.log import AuditBroken, AuditError, AuditLog, log_file
from appliance.audit.machine_keys import load_or_make, public_file
from appliance.cli.audit.read import verified, write_export
from appliance.ledger.audited import AuditedLedger
from appliance.ledger.ledger import LedgerError
from appliance.ledger.sqlite import SqliteLedger
from appliance.records.jobs import Job, JobState
from policies.audit import check_export
from verifiers.answers.spec import AnswerSpec

AT = "2026-01-02T03:04:05.000+00:00"
HERE = (str(Path(__file__).parent), *sys.path)


@contextmanager
def opened(data: Path) -> Iterator[AuditLog]:
    with SqliteLedger(data / "ledger.sqlite3") as ledger:
        log = AuditLog(log_file(data), load_or_make(data, "daemon"), ledger, lambda: AT)
        try:
            yield log
        finally:
            log.close()


def kinds(log: AuditLog) -> list[str]:
    return [entry.kind for entry in log.entries()]


def holds(data: Path) -> bool:
    return verified(data, None, None, []).found.holds


def three(data: Path) -> Path:
    with opened(data) as log:
        for kind in ("one", "two", "three"):
            log.append(kind, said="x" * 50)
    return log_file(data)


def test_what_was_logged_is_there_at_the_next_start(tmp_path) -> None:
    path = three(tmp_path)
    with opened(tmp_path) as log:
        log.append("four")
        assert kinds(log) == ["one", "two", "three", "four"]
        assert holds(tmp_path)
        assert log.latest == AT
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("name", ["a#b", "50%41", "x?mode=rwc"])
def test_a_log_is_verified_in_a_folder_with_any_name(tmp_path: Path, name: str) -> None:
    three(tmp_path / name)
    with AuditedLedger(
        tmp_path / name / "ledger.sqlite3",
        log_file(tmp_path / name),
        load_or_make(tmp_path / name, "daemon"),
        lambda: AT,
    ):
        pass
    assert holds(tmp_path / name)
    assert [one.name for one in tmp_path.iterdir()] == [name]


def test_a_line_that_a_kill_cut_anywhere_is_completed(tmp_path) -> None:
    path = three(tmp_path)
    whole = path.read_bytes()
    last = whole.splitlines(keepends=True)[-1]
    for left in (0, 1, len(last) // 2, len(last) - 1):
        path.write_bytes(whole[: len(whole) - len(last) + left])
        with opened(tmp_path) as log:
            assert kinds(log)[-2:] == ["three", "audit.completed"]
            assert holds(tmp_path)
        with SqliteLedger(tmp_path / "ledger.sqlite3") as ledger:
            ledger.put_audit_head(last)


def test_the_very_first_line_is_completed_too(tmp_path) -> None:
    with opened(tmp_path) as log:
        log.append("one")
    log_file(tmp_path).write_bytes(b"")
    with opened(tmp_path) as log:
        assert kinds(log) == ["one", "audit.completed"]


def harm(content: bytes, how: str) -> bytes:
    lines = content.splitlines(keepends=True)
    return {
        "an entry changed": content.replace(b"two", b"too"),
        "an entry deleted": b"".join([lines[0], lines[2]]),
        "two cut off": lines[0],
        "something appended": content + lines[2],
        "half a line of somebody else's": content + b'{"entry":',
        "the end changed": content[:-3] + b"0" + content[-2:],
        "reordered": b"".join([lines[0], lines[2], lines[1]]),
        "emptied": b"",
    }[how]


@pytest.mark.parametrize(
    ("how", "number"),
    [
        ("an entry changed", 1),
        ("an entry deleted", 1),
        ("two cut off", 1),
        ("something appended", 3),
        ("half a line of somebody else's", 3),
        ("the end changed", 2),
        ("reordered", 1),
        ("emptied", 0),
    ],
)
def test_a_log_that_somebody_changed_is_refused_with_its_first_bad_entry_and_kept(tmp_path, how, number) -> None:
    path = three(tmp_path)
    path.write_bytes(harmed := harm(path.read_bytes(), how))
    with pytest.raises(AuditBroken) as met, opened(tmp_path):
        pass
    assert met.value.number == number
    assert "assay audit" in met.value.hint
    assert path.read_bytes() == harmed


def test_an_exchanged_ledger_or_key_is_found(tmp_path) -> None:
    three(tmp_path)
    (tmp_path / "ledger.sqlite3").rename(tmp_path / "aside")
    with pytest.raises(AuditBroken, match="the ledger knows of no entry"), opened(tmp_path):
        pass
    (tmp_path / "ledger.sqlite3").unlink()
    (tmp_path / "aside").rename(tmp_path / "ledger.sqlite3")
    (tmp_path / "keys" / "daemon.pem").unlink()
    with pytest.raises(AuditBroken, match="signature"), opened(tmp_path):
        pass


def test_a_line_of_the_ledgers_that_somebody_wrote_is_not_taken_into_the_file(tmp_path) -> None:
    path = three(tmp_path)
    before = path.read_bytes()
    stranger = Ed25519PrivateKey.generate()
    with SqliteLedger(tmp_path / "ledger.sqlite3") as ledger:
        own = AuditLog(log_file(tmp_path / "other"), stranger, ledger_of(tmp_path / "other"), lambda: AT)
        for kind in ("one", "two", "three", "forged"):
            own.append(kind)
        ledger.put_audit_head(list(own.path.open("rb"))[-1])
        own.close()
    with pytest.raises(AuditBroken), opened(tmp_path):
        pass
    assert path.read_bytes() == before


def ledger_of(data: Path) -> SqliteLedger:
    return SqliteLedger(data / "ledger.sqlite3")


class FullDisk:
    """`os.write` of a disk that has room for `room` bytes more."""

    def __init__(self, room: int) -> None:
        self.room = room
        self._write = os.write

    def __call__(self, descriptor: int, content: bytes | memoryview) -> int:
        if self.room <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        taken = self._write(descriptor, content[: self.room])
        self.room -= taken
        return taken


@pytest.mark.parametrize("room", [0, 1, 40])
def test_on_a_full_disk_nothing_is_logged_and_the_log_goes_on_when_there_is_room(tmp_path, monkeypatch, room) -> None:
    path = three(tmp_path)
    before = path.read_bytes()
    with opened(tmp_path) as log:
        monkeypatch.setattr("appliance.audit.log.os.write", FullDisk(room))
        with pytest.raises(AuditError, match="No space left") as met:
            log.append("four")
        assert "does not happen" in met.value.hint
        assert path.read_bytes() == before
        monkeypatch.undo()
        log.append("five")
        assert kinds(log) == ["one", "two", "three", "five"]
        assert holds(tmp_path)
    with opened(tmp_path):
        assert holds(tmp_path)


def test_on_a_disk_that_is_really_full_nothing_is_logged(tmp_path) -> None:
    """The limit is the kernel's, on the size of a file; SQLite meets it in its own file first, or the log in its."""
    code = (
        "import resource, signal, sys; from pathlib import Path; sys.path[:0] = sys.argv[2:]\n"
        "from test_audit_log import opened\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "data = Path(sys.argv[1]); done = 0\n"
        "with opened(data) as log:\n"
        "    size = log.path.stat().st_size\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 1500, size + 1500))\n"
        "    try:\n"
        "        while True: log.append('more', said='x' * 100); done += 1\n"
        "    except Exception as error: print(type(error).__name__, done)\n"
    )
    three(tmp_path)
    writer = ForkedCommand((str(tmp_path), *HERE), dict(os.environ), program=code)
    output = writer.communicate(120)[0].decode().split()
    assert writer.wait() == 0
    assert output[0] in (AuditError.__name__, LedgerError.__name__)
    with opened(tmp_path) as log:
        assert kinds(log).count("more") == int(output[1])
        assert holds(tmp_path)


def test_a_writer_that_is_killed_at_any_moment_leaves_a_log_that_goes_on(tmp_path) -> None:
    code = (
        "import sys; from pathlib import Path; sys.path[:0] = sys.argv[2:]\n"
        "from test_audit_log import opened\n"
        "with opened(Path(sys.argv[1])) as log:\n"
        "    while True: print(log.append('more', said='x' * 5000).number, flush=True)\n"
    )
    for lines in (1, 7):
        writer = ForkedCommand((str(tmp_path), *HERE), dict(os.environ), program=code)
        while writer.written().count("\n") < lines and writer.poll() is None:
            time.sleep(0.002)
        writer.kill()
        assert writer.wait(120) == -signal.SIGKILL
        numbers = [int(line) for line in writer.written().split()]
        assert len(numbers) >= lines
        with opened(tmp_path) as log:
            assert holds(tmp_path)
            assert {entry.number for entry in log.entries()} >= set(numbers)


def test_an_export_is_checked_by_somebody_who_has_only_the_public_key(tmp_path) -> None:
    three(tmp_path)
    public = load_or_make(tmp_path, "daemon").public_key()
    write_export(tmp_path, tmp_path / "export.jsonl")
    lines = (tmp_path / "export.jsonl").read_bytes().splitlines(keepends=True)
    assert check_export(lines, public).holds
    assert not check_export(lines[:-2] + lines[-1:], public).holds


def test_keys_of_the_machine_are_for_its_user_alone(tmp_path) -> None:
    made = load_or_make(tmp_path, "daemon")
    assert load_or_make(tmp_path, "daemon").private_bytes_raw() == made.private_bytes_raw()
    assert load_or_make(tmp_path, "trainer").private_bytes_raw() != made.private_bytes_raw()
    path = tmp_path / "keys" / "daemon.pem"
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_bytes(b"-----BEGIN PRIVATE KEY-----\n")
    with pytest.raises(AuditError, match="is not a key of this program"):
        load_or_make(tmp_path, "daemon")


def test_a_public_file_that_a_kill_kept_from_being_written_is_written_at_the_next_start(tmp_path) -> None:
    made = load_or_make(tmp_path, "daemon")
    public = public_file(tmp_path, "daemon")
    whole = public.read_text()
    for left in (None, "", whole[:20]):
        public.unlink() if left is None else public.write_text(left)
        assert load_or_make(tmp_path, "daemon").private_bytes_raw() == made.private_bytes_raw()
        assert public.read_text() == whole


def job(name: str, state: JobState = JobState.QUEUED) -> Job:
    spec = AnswerSpec(notation="digits", expected="6")
    return Job(id=name, question="6?", spec=spec, state=state, created=AT, updated=AT)


def test_a_job_ends_together_with_its_one_entry(tmp_path) -> None:
    path, key = tmp_path / "ledger.sqlite3", load_or_make(tmp_path, "daemon")
    with AuditedLedger(path, log_file(tmp_path), key, lambda: AT) as ledger:
        ledger.put_job(job("a"))
        ledger.put_job(job("a", JobState.RUNNING))
        for state in (JobState.CANCELLED, JobState.SOLVED, JobState.CANCELLED):
            assert ledger.put_job(job("a", state)).state is JobState.CANCELLED
        (ended,) = ledger.audit.entries()
        assert (ended.kind, ended.what["job"], ended.what["state"]) == ("job.ended", "a", "cancelled")
        assert holds(tmp_path)
        content = log_file(tmp_path).read_bytes()
    # A kill after the transaction and before the file was written.
    log_file(tmp_path).write_bytes(content[:20])
    with AuditedLedger(path, log_file(tmp_path), key, lambda: AT) as ledger:
        assert kinds(ledger.audit) == ["job.ended", "audit.completed"]
        assert ledger.job("a").state is JobState.CANCELLED


def test_a_job_whose_end_cannot_be_logged_has_not_ended(tmp_path, monkeypatch) -> None:
    path, key = tmp_path / "ledger.sqlite3", load_or_make(tmp_path, "daemon")
    with AuditedLedger(path, log_file(tmp_path), key, lambda: AT) as ledger:
        ledger.audit.append("one")
        ledger.put_job(job("a"))

        def full(*_: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as disk:
            disk.setattr(ledger.audit, "_write", full)
            with pytest.raises(AuditError):
                ledger.put_job(job("a", JobState.SOLVED))
        assert ledger.job("a").state is JobState.QUEUED
        assert holds(tmp_path)
