"""Writes the figures of a cycle's events where TensorBoard reads them: one folder a cycle, one curve a figure.

What always holds: it decides nothing and ends nothing; what cannot be written, as on a full disk, is said once. All is
written by whoever calls: there is no thread or queue that could end without a word and be waited for. After a restart
the steps that are learned again replace those that were written before, and no others: what counts its steps anew, such
as a stage of SFT, has a folder of its own in the cycle's, because TensorBoard drops all later steps of a folder.
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
        """`problem` is told, once, why nothing can be written."""
        self._folder = folder
        self._problem: Callable[[str], None] | None = problem
        self._writers: dict[str, EventsWriter] = {}

    def add(self, kind: str, figures: Mapping[str, float]) -> None:
        """Adds the figures of an event at their `step`; an event without one has no place on a curve."""
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
            problem(f"nothing is written for TensorBoard any more: {error}")

    def _opened(self, kind: str, step: int) -> EventsWriter:
        if kind not in self._writers:
            from tensorboardX.event_file_writer import EventsWriter
            from tensorboardX.proto.event_pb2 import Event, SessionLog

            folder = self._folder / kind
            folder.mkdir(parents=True, exist_ok=True)
            writer = self._writers[kind] = EventsWriter(str(folder / "events"))
            begun = SessionLog(status=SessionLog.START)  # from this step on it replaces what the folder has
            writer.write_event(Event(wall_time=time.time(), step=step, session_log=begun))
        return self._writers[kind]
