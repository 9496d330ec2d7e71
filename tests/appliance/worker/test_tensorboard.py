"""Curves are written where TensorBoard reads them, and training never ends for their sake."""

from __future__ import annotations

from pathlib import Path

from tensorboardX.proto.event_pb2 import Event

from appliance.worker.tensorboard import TensorBoard


def written(folder: Path) -> list[tuple[str, int, float]]:
    """Tag, step and value of each scalar. A record: its length in 8 bytes, 4 of a checksum, it, 4 of a checksum."""
    found = []
    for file in sorted(folder.iterdir()):
        content = file.read_bytes()
        while content:
            size = int.from_bytes(content[:8], "little")
            event = Event.FromString(content[12 : 12 + size])
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


def test_what_cannot_be_written_is_said_once_and_ends_nothing(tmp_path: Path) -> None:
    (tmp_path / "curves").write_text("a file, where a folder was asked for")
    problems: list[str] = []
    board = TensorBoard(tmp_path / "curves" / "night-1", problem=problems.append)
    for step in range(3):
        board.add("step", {"success": 0.25, "step": float(step)})
    board.close()
    assert len(problems) == 1
    assert "nothing is written for TensorBoard" in problems[0]
