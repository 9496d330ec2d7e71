"""Files of images: their digests, their manifests, and everything that is none of ours."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from runtime.backends.lease import Owner
from runtime.broker import content
from runtime.broker.content import SnapshotManifest
from runtime.broker.store import Store, StoredSnapshot, sweep
from runtime.errors import BadRequestError, LimitError, RefusedError, SandboxError
from runtime.profile import Profile

PROFILE = Profile(
    mode="sandbox", memory_mib=64, process_memory_mib=64, pids=8, cpus=1, tmp_mib=1, work_mib=1, output_bytes=64
)
Answer = StoredSnapshot | SandboxError | None


def described(uid: int = 7, parent: str = "") -> SnapshotManifest:
    return SnapshotManifest(parts=("runsc", "flags"), profile=PROFILE, parent=parent, files=(), uid=uid)


class Shelf:
    """A store whose background work is waited for."""

    def __init__(self, folder: Path, owner: Owner, **other: int) -> None:
        self._threads = ThreadPoolExecutor(2)
        self._pending: list[tuple[Future[Any], Callable[[Future[Any]], None]]] = []
        limits = {"most_mib": 64, "free_mib": 0} | other
        self.store = Store(folder, owner, self._background, **limits)

    def _background(self, job: Callable[[], Any], done: Callable[[Future[Any]], None]) -> None:
        self._pending.append((self._threads.submit(job), done))

    def settle(self) -> None:
        while self._pending:
            future, done = self._pending.pop(0)
            future.exception(10)
            done(future)

    def keep(self, text: bytes, *, holder: int = 1, uid: int = 7, durable: bool = False, parent: str = "") -> Answer:
        wanted = self.store.begin(described(uid, parent), durable=durable, expected=1 << 20)
        (wanted.image / "pages.img").write_bytes(text)
        answers: list[Answer] = []
        self.store.finish(wanted, holder, answers.append)
        self.settle()
        assert len(answers) == 1
        return answers[0]

    def stored(self, text: bytes, **other: Any) -> StoredSnapshot:
        found = self.keep(text, **other)
        assert isinstance(found, StoredSnapshot), found
        return found

    def checked(self, snapshot: StoredSnapshot) -> Answer:
        answers: list[Answer] = []
        self.store.check(snapshot, answers.append)
        self.settle()
        return answers[0]


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    found = Shelf(tmp_path / "store", Owner.current())
    yield found
    found.settle()


def test_a_digest_is_the_same_however_it_is_read_and_sees_every_byte(tmp_path: Path) -> None:
    folder = content.own_folder(tmp_path / "image")
    data = os.urandom(3 * content.BLOCK_BYTES + 5)
    (folder / "large").write_bytes(data)
    (folder / "empty").write_bytes(b"")
    first = content.read(folder)
    assert [(file.name, file.size) for file in first] == [("empty", 0), ("large", len(data))]
    assert content.read(folder) == first
    with (folder / "large").open("r+b") as file:
        file.seek(2 * content.BLOCK_BYTES)
        file.write(bytes([data[2 * content.BLOCK_BYTES] ^ 128]))
    assert content.tree_digest(content.read(folder)) != content.tree_digest(first)


@pytest.mark.parametrize("what", ["symlink", "hard link", "folder", "pipe", "foreign", "writable"])
def test_anything_but_a_plain_file_of_ours_is_refused(tmp_path: Path, what: str) -> None:
    folder = content.own_folder(tmp_path / "image")
    path, outside = folder / "pages.img", tmp_path / "outside"
    outside.write_bytes(b"secret")
    match what:
        case "symlink":
            path.symlink_to(outside)
        case "hard link":
            path.hardlink_to(outside)
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case "foreign":
            path.write_bytes(b"x")
            os.chown(path, 12_345, 0)
        case _:
            path.write_bytes(b"x")
            path.chmod(0o666)
    with pytest.raises(RefusedError, match="has a foreign file"):
        content.read(folder)


def test_a_folder_that_others_may_write_to_is_refused(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "link").symlink_to(tmp_path)
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", 12_345, 0)
    for name, why in (
        ("open", "is writable by other users"),
        ("link", "is writable by other users"),
        ("theirs", "is writable by other users"),
        ("theirs/below", "other users may change"),
        ("open/below/it", "other users may change"),
    ):
        with pytest.raises(RefusedError, match=why):
            Store(tmp_path / name, Owner.current(), lambda _job, _done: None, most_mib=1, free_mib=0)


def test_equal_content_of_equal_descent_has_one_name_and_other_descent_another(shelf: Shelf) -> None:
    one = shelf.stored(b"state")
    assert shelf.stored(b"state") is one
    assert one.holders == {1: 2}
    other = shelf.stored(b"state", parent=one.key)
    assert other.key != one.key
    assert len(shelf.store) == 2


def test_a_snapshot_is_seen_by_its_own_user_only(shelf: Shelf) -> None:
    one = shelf.stored(b"state", uid=7)
    assert shelf.store.get(one.key, 7, 1) is one
    for key, uid in ((one.key, 8), ("f" * 64, 7), ("../../etc", 7), (one.key[:12], 7)):
        with pytest.raises(BadRequestError, match="unknown snapshot"):
            shelf.store.get(key, uid, 1)
    assert shelf.store.seen_by(8) == []


def test_references_are_counted_by_connection(shelf: Shelf) -> None:
    gone: list[str] = []
    shelf.store.removed = gone.append
    one = shelf.stored(b"state", holder=1)
    shelf.store.refer(one, 2)
    shelf.store.hung_up(1)
    assert gone == []
    shelf.store.refer(one, 2)
    shelf.store.release(one, 2)
    assert gone == []
    shelf.store.release(one, 2)
    assert gone == [one.key]
    shelf.settle()
    assert not one.folder.exists()
    assert shelf.store.bytes == 0


def test_what_is_forgotten_stays_for_those_who_still_use_it(shelf: Shelf) -> None:
    one = shelf.stored(b"state", holder=1, durable=True)
    shelf.store.hung_up(1)
    assert one.folder.exists()
    shelf.store.refer(one, 2)
    shelf.store.forget(one, 3)
    assert one.image.exists()
    shelf.store.release(one, 2)
    shelf.settle()
    assert not one.folder.exists()


def test_what_is_forgotten_is_had_by_nobody_else_and_not_again(shelf: Shelf) -> None:
    one = shelf.stored(b"state", holder=1, durable=True)
    shelf.store.refer(one, 2)
    shelf.store.forget(one, 1)
    assert shelf.store.get(one.key, 7, 2) is one, "who refers to it still has it"
    for holder in (1, 3):
        with pytest.raises(BadRequestError, match="unknown snapshot"):
            shelf.store.get(one.key, 7, holder)


def test_what_was_forgotten_while_somebody_used_it_does_not_come_back_with_the_next_broker(tmp_path: Path) -> None:
    dead = Owner(2**22 + 1, 1, "abcdef")
    before = Shelf(tmp_path / "store", dead)
    one, other = before.stored(b"state", holder=1, durable=True), before.stored(b"other", holder=1, durable=True)
    before.store.forget(one, 2)  # and it is killed before 1 hangs up
    after = Shelf(tmp_path / "store", Owner.current())
    after.settle()
    assert [snapshot.key for snapshot in after.store.all()] == [other.key]
    with pytest.raises(BadRequestError):
        after.store.get(one.key, 7, 1)
    assert not one.folder.exists()


def test_another_broker_neither_has_nor_removes_what_was_forgotten_and_is_used(shelf: Shelf, tmp_path: Path) -> None:
    one = shelf.stored(b"state", holder=1, durable=True)
    shelf.store.forget(one, 2)
    other = Shelf(tmp_path / "store", Owner.current())
    with pytest.raises(BadRequestError):
        other.store.get(one.key, 7, 1)
    other.settle()
    assert one.image.exists()


def test_the_same_state_that_is_kept_for_good_again_is_no_longer_forgotten(shelf: Shelf, tmp_path: Path) -> None:
    one = shelf.stored(b"state", holder=1, durable=True)
    shelf.store.forget(one, 2)
    assert shelf.stored(b"state", holder=3, durable=True) is one
    for holder in (1, 3):
        shelf.store.hung_up(holder)
    assert shelf.store.get(one.key, 7, 4) is one
    assert Shelf(tmp_path / "store", Owner.current()).store.get(one.key, 7, 1).durable


def test_the_quota_counts_what_is_being_taken(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "store", Owner.current(), most_mib=3)
    wanted = shelf.store.begin(described(), durable=False, expected=2 << 20)
    shelf.stored(b"x")
    with pytest.raises(LimitError):
        shelf.keep(b"y")
    shelf.store.abandon(wanted)
    shelf.settle()
    answer = shelf.keep(b"z" * (4 << 20))  # larger than expected
    assert isinstance(answer, LimitError)
    shelf.settle()
    assert shelf.store.bytes <= 2 << 20
    assert len(list((tmp_path / "store/live").rglob("pages.img"))) == len(shelf.store)


def test_a_next_broker_finds_the_durable_ones_and_sweeps_the_rest(tmp_path: Path) -> None:
    dead = Owner(2**22 + 1, 1, "abcdef")
    before = Shelf(tmp_path / "store", dead)
    durable, passing = before.stored(b"durable", durable=True), before.stored(b"passing")
    before.store.begin(described(), durable=True, expected=1)  # killed meanwhile
    after = Shelf(tmp_path / "store", Owner.current())
    assert [snapshot.key for snapshot in after.store.seen_by(7)] == [durable.key]
    assert not passing.folder.exists()
    assert sweep(tmp_path / "store") == 0
    found = after.store.get(durable.key, 7, 1)
    assert not found.verified
    assert after.checked(found) is None
    assert found.verified


def test_a_durable_one_that_another_broker_took_is_found(shelf: Shelf, tmp_path: Path) -> None:
    other = Shelf(tmp_path / "store", Owner.current())
    assert shelf.store.get(other.stored(b"state", durable=True).key, 7, 1).durable


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format": 2}', "\x00" * 100, "{" * 5_000, '{"parts":["' + "x" * 70_000 + '"]}']
)
def test_a_manifest_that_is_none_is_refused_and_the_snapshot_left_alone(shelf: Shelf, text: str) -> None:
    one = shelf.stored(b"state", durable=True)
    (one.folder / content.NAME).write_text(text)
    with pytest.raises(RefusedError):
        content.load(one.folder)
    again = Shelf(one.folder.parents[1], Owner.current())
    assert len(again.store) == 0
    assert one.image.exists()


def test_the_name_covers_all_that_a_snapshot_depends_on() -> None:
    files = (content.File("pages.img", 1, "0" * 64),)
    one = SnapshotManifest(parts=("a", "b"), profile=PROFILE, files=files, uid=0)
    changes: list[dict[str, Any]] = [
        {"parts": ("ab",)},
        {"parent": "1" * 64},
        {"profile": PROFILE.model_copy(update={"pids": 9})},
        {"files": (content.File("pages.img", 2, "0" * 64),)},
        {"files": (content.File("pages.img", 1, "1" * 64),)},
        {"files": ()},
    ]
    keys = {one.key} | {one.model_copy(update=change).key for change in changes}
    assert len(keys) == len(changes) + 1
    assert one.model_copy(update={"label": "another", "uid": 5, "created": "now"}).key == one.key
    older = json.loads(one.model_dump_json())
    del older["profile"]["open_files"]  # as a version wrote it that did not know it yet
    assert SnapshotManifest.model_validate(older).key == one.key


def test_a_folder_in_memory_is_known(tmp_path: Path) -> None:
    device = tmp_path.stat().st_dev
    line = f"36 25 {os.major(device)}:{os.minor(device)} / /somewhere rw,nosuid shared:7 - KIND none rw\n"
    other = "37 25 999:999 / /elsewhere rw - tmpfs none rw\n"
    assert content.is_in_memory(tmp_path, other + line.replace("KIND", "tmpfs"))
    assert not content.is_in_memory(tmp_path, other + line.replace("KIND", "ext4"))


def test_sixty_megabytes_are_read_quickly(tmp_path: Path) -> None:
    folder = content.own_folder(tmp_path / "image")
    (folder / "pages.img").write_bytes(os.urandom(1 << 20) * 60)
    begun = time.process_time()
    content.read(folder)
    assert time.process_time() - begun < 10
