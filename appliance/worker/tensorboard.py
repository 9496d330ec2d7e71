"""Writes the figures of a cycle's events for TensorBoard: one folder per cycle, one curve per figure.

Invariants: it decides and ends nothing; a write failure, as on a full disk, is reported once. Writes happen in the
caller's thread: no background thread or queue can die silently. After a restart, repeated steps replace their earlier
values and no others. Anything that restarts its step count, such as an SFT stage, has a subfolder of its own, because
TensorBoard drops all later steps of a folder.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tensorboardX.event_file_writer import EventsWriter


class TensorBoard:
    def __init__(self, folder: Path, problem: Callable[[str], None]) -> None:
        """Prepares to write curves to a TensorBoard folder. `problem` is called once, with the reason that nothing can
        be written."""
        self._folder = folder
        self._problem: Callable[[str], None] | None = problem
        self._writers: dict[str, EventsWriter] = {}

    def add(self, kind: str, figures: Mapping[str, float]) -> None:
        """Adds an event's figures to the TensorBoard curves at their `step`; ignores events without one."""
        drawn = {f"{kind}/{name}": value for name, value in figures.items() if name not in ("step", "steps")}
        if "step" not in figures or not drawn or self._problem is None:
            return
        from tensorboardX.proto.event_pb2 import Event  # here: it loads torch
        from tensorboardX.summary import scalar

        step = int(figures["step"])
        try:
            writer = self._opened(kind, step)
            for name, value in drawn.items():
                writer.write_event(Event(wall_time=time.time(), step=step, summary=scalar(name, value)))
            writer.flush()
        except OSError as error:
            self._say(error)

    def close(self) -> None:
        for writer in self._writers.values():
            try:
                writer.close()
            except OSError as error:
                self._say(error)
        self._writers.clear()

    def _say(self, error: OSError) -> None:
        problem, self._problem = self._problem, None
        if problem is not None:
            problem(f"writing for TensorBoard stopped: {error}")

    def _opened(self, kind: str, step: int) -> EventsWriter:
        if kind not in self._writers:
            from tensorboardX.event_file_writer import EventsWriter
            from tensorboardX.proto.event_pb2 import Event, SessionLog

            folder = self._folder / kind
            folder.mkdir(parents=True, exist_ok=True)
            writer = self._writers[kind] = EventsWriter(str(folder / "events"))
            begun = SessionLog(status=SessionLog.START)  # replaces the folder's steps from here on
            writer.write_event(Event(wall_time=time.time(), step=step, session_log=begun))
        return self._writers[kind]
