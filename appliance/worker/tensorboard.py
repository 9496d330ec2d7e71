"""Writes the figures of a cycle's events where TensorBoard reads them: one folder a cycle, one curve a figure.

What always holds: it decides nothing and ends nothing; what cannot be written is said once. After a restart the steps
that are learned again replace those that were written before, and no others: what counts its steps anew, such as a
stage of SFT, has a folder of its own in the cycle's, because TensorBoard drops all later steps of a folder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tensorboardX import SummaryWriter


class TensorBoard:
    def __init__(self, folder: Path, problem: Callable[[str], None]) -> None:
        """`problem` is told, once, why nothing can be written."""
        self._folder = folder
        self._problem: Callable[[str], None] | None = problem
        self._writers: dict[str, SummaryWriter] = {}

    def add(self, kind: str, figures: Mapping[str, float]) -> None:
        """Adds the figures of an event at their `step`; an event without one has no place on a curve."""
        drawn = {name: value for name, value in figures.items() if name not in ("step", "steps")}
        if "step" not in figures or not drawn or self._problem is None:
            return
        step = int(figures["step"])
        try:
            writer = self._opened(kind, step)
            for name, value in drawn.items():
                writer.add_scalar(f"{kind}/{name}", value, step)
            writer.flush()
        except OSError as error:
            problem, self._problem = self._problem, None
            problem(f"nothing is written for TensorBoard any more: {error}")

    def close(self) -> None:
        for writer in self._writers.values():
            writer.close()
        self._writers.clear()

    def _opened(self, kind: str, step: int) -> SummaryWriter:
        if kind not in self._writers:
            from tensorboardX import SummaryWriter  # here: it loads torch

            folder = self._folder / kind
            folder.mkdir(parents=True, exist_ok=True)
            self._writers[kind] = SummaryWriter(str(folder), purge_step=step, write_to_disk=True)
        return self._writers[kind]
