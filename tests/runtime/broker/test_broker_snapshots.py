"""Snapshots: the whole state comes back, as often as wanted, for those whose it is, as long as they want it."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from broker_kit import JAIL, BrokerProbe, Settings, call, child_broker, hear, opened, profile, python, result

from runtime.broker import content
from runtime.broker_api import Handle
from runtime.errors import BadRequestError, InfrastructureError, LimitError, RefusedError
from runtime.guest.wire import Op, ReplyKind
from runtime.profile import Cause
from runtime.sandbox import SnapshotId

STATE = "open('/work/file', 'w').write('kept')\nimport threading\nlocked = threading.Lock()\nx = 41"
ASK = "x += 1\nprint(x, open('/work/file').read(), locked.locked())"


def with_state(probe: BrokerProbe) -> Handle:
    handle = opened(probe.launch(profile()))
    python(handle, STATE)
    return handle


@pytest.fixture(scope="module")
def snapshot(probe: BrokerProbe) -> SnapshotId:
    handle = with_state(probe)
    taken = probe.snapshot(handle, label="of the tests")
    assert python(handle, ASK) == "42 kept False\n"
    probe.end(handle)
    return taken


def test_a_restored_sandbox_goes_on_from_there_and_the_snapshot_stays(probe: BrokerProbe, snapshot: SnapshotId) -> None:
    for _ in range(2):
        handle = probe.restore(snapshot)
        assert python(handle, ASK) == "42 kept False\n"
        assert python(handle, ASK) == "43 kept False\n"
        probe.end(handle)


def test_branches_draw_other_random_numbers_and_a_rollback_draws_the_same(probe: BrokerProbe) -> None:
    draw = "print(random.random())"
    handle = opened(probe.launch(profile()))
    python(handle, "import random")
    taken = probe.snapshot(handle)
    first = python(handle, draw)
    probe.end(handle)
    again = probe.restore(taken)
    assert python(again, draw) == first
    branches: list[Handle] = [result(answer) for answer in [probe.begin_restore(taken, reseed=True) for _ in "123"]]
    assert len({python(branch, draw) for branch in branches} | {first}) == 4
    for handle in [again, *branches]:
        probe.end(handle)


def test_prepared_copies_are_taken_and_restored_again_until_nobody_wants_them(make_settings: Settings) -> None:
    with BrokerProbe.own(make_settings(ready=0)) as probe:
        handle = with_state(probe)
        taken = probe.snapshot(handle)
        probe.end(handle)
        probe.prepare(taken, 2)
        probe.until(lambda figures: figures["ready_copies"] == 2)
        handles = [probe.restore(taken), probe.restore(taken, reseed=True)]
        assert probe.stats()["ready_hits"] == 2
        for handle in handles:
            assert python(handle, ASK) == "42 kept False\n"
            probe.end(handle)
        probe.until(lambda figures: figures["ready_copies"] == 2)
        probe.prepare(taken, 0)
        probe.until(lambda figures: figures["boxes"] == 0)


def test_lineage_is_told(probe: BrokerProbe, snapshot: SnapshotId) -> None:
    handle = probe.restore(snapshot)
    first = probe.snapshot(handle, label="first")
    second = probe.snapshot(handle, label="second")
    lines = {line.snapshot: line for line in probe.listing().snapshots}
    assert lines[first].parent == snapshot
    assert lines[second].parent == first
    assert (lines[first].label, lines[snapshot].label) == ("first", "of the tests")
    assert not lines[snapshot].durable
    assert lines[snapshot].bytes > 1 << 20
    assert lines[snapshot].references == 1
    probe.end(handle)
    for one in (first, second):
        probe.forget(one)
    assert first not in {line.snapshot for line in probe.listing().snapshots}
    with pytest.raises(BadRequestError, match="unknown snapshot"):
        probe.restore(first)
    with pytest.raises(BadRequestError, match="unknown snapshot"):
        probe.forget(first)


def test_a_sandbox_that_ends_while_it_is_frozen_answers_with_an_error(probe: BrokerProbe) -> None:
    handle = with_state(probe)
    taking = probe.begin(lambda done: probe.client.snapshot(handle, durable=False, label="", done=done))
    with pytest.raises(BadRequestError, match="being taken"):
        probe.snapshot(handle)
    probe.end(handle)
    assert isinstance(taking.result(120), InfrastructureError | str)
    probe.until(lambda figures: figures["boxes_ending"] == 0)


def test_a_sandbox_that_keeps_the_room_of_its_image_ends_and_the_others_clocks_go_on(make_settings: Settings) -> None:
    """Its image lies in memory here, so the kernel goes on counting it to the sandbox."""
    with (
        tempfile.TemporaryDirectory(dir="/dev/shm") as memory,
        BrokerProbe.own(make_settings(ready=0).model_copy(update={"snapshot_dir": Path(memory) / "kept"})) as probe,
    ):
        handle = opened(probe.launch(profile(memory_mib=96)))
        python(handle, "kept = bytearray(50 << 20)\nkept[::4096] = b'x' * len(kept[::4096])")
        probe.snapshot(handle)
        with pytest.raises(EOFError):
            hear(handle, b"")
        assert probe.end(handle).cause is Cause.MEMORY
        later = opened(probe.launch(profile(life_seconds=5.0)))
        probe.until(lambda figures: figures["boxes_held"] == 0)
        assert probe.end(later).cause is Cause.EXPIRED


def test_a_backend_without_snapshots_says_so(probe: BrokerProbe) -> None:
    handle = probe.launch(JAIL)
    with pytest.raises(RefusedError):
        probe.snapshot(handle)
    assert call(handle, Op.PING).kind == ReplyKind.READY
    probe.end(handle)


def test_the_quota_and_free_space_are_kept(make_settings: Settings) -> None:
    with BrokerProbe.own(make_settings(snapshots_mib=64)) as probe:
        handle = opened(probe.launch(profile()))
        taken = [probe.snapshot(handle)]
        with pytest.raises(LimitError, match="snapshots"):
            taken += [probe.snapshot(handle) for _ in range(12)]
        for line in probe.listing().snapshots[1:]:
            probe.forget(line.snapshot)
        for one in taken:
            probe.forget(one)
        assert probe.stats()["snapshot_bytes"] == 0
        probe.forget(probe.snapshot(handle))
    with BrokerProbe.own(make_settings(free_mib=1 << 30)) as probe:
        handle = probe.launch(profile())
        with pytest.raises(LimitError, match="disk space"):
            probe.snapshot(handle)


def test_what_is_not_durable_goes_with_the_last_who_referred_to_it(make_settings: Settings, tmp_path: Path) -> None:
    settings = make_settings()
    process = child_broker(settings, tmp_path / "b")
    try:
        with BrokerProbe.at(tmp_path / "b") as watcher:
            with BrokerProbe.at(tmp_path / "b") as taker:
                handle = with_state(taker)
                taken, durable = taker.snapshot(handle), taker.snapshot(handle, durable=True)
                restored = watcher.restore(taken)
            assert python(restored, ASK) == "42 kept False\n"
            watcher.until(lambda figures: figures["snapshots"] == 1 and figures["boxes_held"] == 1)
            with pytest.raises(BadRequestError, match="unknown snapshot"):
                watcher.restore(taken)
            with pytest.raises(BadRequestError, match="no such sandbox"):
                watcher.usage(handle)
            assert watcher.restore(durable).profile == handle.profile
    finally:
        process.terminate()
        assert process.wait(120) == 0
    assert settings.snapshot_dir is not None
    assert list((settings.snapshot_dir / "live").iterdir()) == []
    assert [entry.name for entry in (settings.snapshot_dir / "durable").iterdir()] == [durable]


def test_a_durable_snapshot_is_found_after_a_restart_and_checked_before_its_use(
    make_settings: Settings, tmp_path: Path
) -> None:
    settings = make_settings()
    assert settings.snapshot_dir is not None
    with BrokerProbe.own(settings) as probe:
        handle = with_state(probe)
        good, changed, linked = (probe.snapshot(handle, durable=True, label=text) for text in ("a", "b", "c"))
    durable = settings.snapshot_dir / "durable"
    pages = max((durable / changed / "image").iterdir(), key=lambda path: path.stat().st_size)
    with pages.open("r+b") as file:
        file.seek(pages.stat().st_size // 2)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 1]))
    image = max((durable / linked / "image").iterdir(), key=lambda path: path.stat().st_size)
    image.rename(tmp_path / "elsewhere")
    image.symlink_to(tmp_path / "elsewhere")
    renamed = durable / ("0" * 64)
    subprocess.run(["cp", "-a", durable / good, renamed], check=True)
    with BrokerProbe.own(settings) as probe:
        restored = [probe.begin_restore(good) for _ in range(3)]
        for answer in restored:
            assert python(result(answer), ASK) == "42 kept False\n"
        with pytest.raises(RefusedError, match="changed on disk"):
            probe.restore(changed)
        with pytest.raises(RefusedError, match="has a foreign file"):
            probe.restore(linked)
        with pytest.raises(BadRequestError, match="unknown snapshot"):
            probe.restore(renamed.name)
        assert {line.label for line in probe.listing().snapshots} == {"a", "b", "c"}
        probe.forget(good)
        probe.until(lambda figures: figures["snapshots"] == 2)
    assert not (durable / good).exists()


def test_a_snapshot_of_another_version_is_refused(make_settings: Settings) -> None:
    settings = make_settings()
    assert settings.snapshot_dir is not None
    with BrokerProbe.own(settings) as probe:
        taken = probe.snapshot(with_state(probe), durable=True)
    folder = settings.snapshot_dir / "durable" / taken
    found = content.load(folder)
    assert found is not None
    other = found.model_copy(update={"parts": (*found.parts[:1], "0" * 64, *found.parts[2:])})
    (folder / content.NAME).write_text(other.model_dump_json())
    with BrokerProbe.own(settings) as probe:
        with pytest.raises(BadRequestError, match="unknown snapshot"):  # its name is another's
            probe.restore(taken)
        folder.rename(folder.with_name(other.key))
        with pytest.raises(RefusedError, match="other sandbox programs"):
            probe.restore(other.key)


def test_what_two_wanted_ready_of_a_snapshot_that_is_gone_is_not_made_again(
    make_settings: Settings, tmp_path: Path
) -> None:
    process = child_broker(make_settings(ready=0), tmp_path / "sock")
    try:
        with BrokerProbe.at(tmp_path / "sock") as one, BrokerProbe.at(tmp_path / "sock") as other:
            with BrokerProbe.at(tmp_path / "sock") as leaving:
                handle = with_state(other)
                taken = other.snapshot(handle)
                leaving.prepare(taken, 1)
                one.prepare(taken, 1)
                other.until(lambda figures: figures["ready_copies"] == 2)
                other.forget(taken)
                other.until(lambda figures: figures["boxes"] == 1)
            second = other.snapshot(handle)
            other.prepare(second, 1)  # what is kept ready of others goes on
            other.until(lambda figures: figures["ready_copies"] == 1)
            assert other.stats()["failed_starts"] == 0
            assert python(other.restore(second), ASK) == "42 kept False\n"
    finally:
        process.kill()
        process.wait()
