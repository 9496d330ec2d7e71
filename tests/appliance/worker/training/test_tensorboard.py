"""Curves are written where TensorBoard reads them, and training never ends for their sake."""

from __future__ import annotations

import multiprocessing
import resource
from multiprocessing.connection import Connection
from pathlib import Path

from tensorboardX.proto.event_pb2 import Event, SessionLog

from appliance.worker.tasks import TensorBoard


def written(folder: Path) -> list[tuple[str, int, float]]:
    """Tag, step and value of each scalar, as TensorBoard has them: what begins anew at a step replaces all of its
    folder from there on. A record: its length in 8 bytes, 4 of a checksum, it, 4 of a checksum."""
    if any(entry.is_dir() for entry in folder.iterdir()):
        return [one for entry in sorted(folder.iterdir()) for one in written(entry)]
    found: list[tuple[str, int, float]] = []
    for file in sorted(folder.iterdir()):
        content = file.read_bytes()
        while content:
            size = int.from_bytes(content[:8], "little")
            event = Event.FromString(content[12 : 12 + size])
            if event.session_log.status == SessionLog.START:
                found = [one for one in found if one[1] < event.step]
            found += [(one.tag, event.step, round(one.simple_value, 4)) for one in event.summary.value]
            content = content[16 + size :]
    return found


def test_each_figure_of_a_step_is_a_point_on_a_curve_of_its_name(tmp_path: Path) -> None:
    board = TensorBoard(tmp_path / "curves" / "night-1", problem=lambda text: None)
    board.add("step", {"success": 0.25, "step": 1.0, "steps": 70.0})
    board.add("watch", {"success": 0.5, "step": 1.0})
    board.add("phase", {"seconds": 3.0})  # at no step: on no curve
    board.close()
    assert written(tmp_path / "curves" / "night-1") == [("step/success", 1, 0.25), ("watch/success", 1, 0.5)]


def test_a_restart_replaces_the_steps_that_are_learned_again_and_nothing_of_a_stage_before(tmp_path: Path) -> None:
    for begins in (0, 1):
        board = TensorBoard(tmp_path / "night-1", problem=lambda text: None)
        if not begins:
            board.add("warm_start", {"loss": 0.5, "step": 50.0})
        board.add("resume", {"step": float(begins)})
        for step in range(begins, 3):
            board.add("step", {"success": 0.25 + begins, "step": float(step)})
        board.close()
        for file in [*tmp_path.rglob("events.*")]:
            file.rename(file.with_name(f"{begins}"))  # their names are of the second in which they were begun
    assert written(tmp_path / "night-1") == [
        ("step/success", 0, 0.25),
        ("step/success", 1, 1.25),
        ("step/success", 2, 1.25),
        ("warm_start/loss", 50, 0.5),
    ]


def test_what_cannot_be_written_is_said_once_and_ends_nothing(tmp_path: Path) -> None:
    (tmp_path / "curves").write_text("a file, where a folder was asked for")
    problems: list[str] = []
    board = TensorBoard(tmp_path / "curves" / "night-1", problem=problems.append)
    for step in range(3):
        board.add("step", {"success": 0.25, "step": float(step)})
    board.close()
    assert len(problems) == 1
    assert "writing for TensorBoard stopped" in problems[0]


def on_a_full_disk(folder: Path, said: Connection) -> None:
    """A limit on the size of files is what a full disk is to whoever writes: an OSError, after some writes or all."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
    problems: list[str] = []
    board = TensorBoard(folder, problem=problems.append)
    for step in range(50):
        board.add("step", {f"figure_{number}": 0.25 for number in range(20)} | {"step": float(step)})
    board.close()
    said.send(problems)


def test_a_full_disk_is_said_once_and_neither_the_steps_nor_the_end_wait_or_fail(tmp_path: Path) -> None:
    fork = multiprocessing.get_context("fork")
    here, there = fork.Pipe(duplex=False)
    working = fork.Process(target=on_a_full_disk, args=(tmp_path / "night-1", there))
    working.start()
    there.close()
    try:
        assert here.poll(120), "it hangs"
        problems = here.recv()
    finally:
        working.kill()
        working.join()
    assert len(problems) == 1
    assert "File too large" in problems[0]
