"""Writes the figures of a cycle's events where TensorBoard reads them: one folder a cycle, one curve a figure.

What always holds: it decides nothing and ends nothing; what cannot be written is said once. After a restart the steps
that are learned again replace those that were written before.
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
        self._writer: SummaryWriter | None = None

    def add(self, kind: str, figures: Mapping[str, float]) -> None:
        """Adds the figures of an event at their `step`; an event without one has no place on a curve."""
        if "step" not in figures or self._problem is None:
            return
        step = int(figures["step"])
        try:
            writer = self._opened(step)
            for name, value in figures.items():
                if name not in ("step", "steps"):
                    writer.add_scalar(f"{kind}/{name}", value, step)
            writer.flush()
        except OSError as error:
            problem, self._problem = self._problem, None
            problem(f"nothing is written for TensorBoard any more: {error}")

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _opened(self, step: int) -> SummaryWriter:
        if self._writer is None:
            from tensorboardX import SummaryWriter  # here: it loads torch

            self._folder.mkdir(parents=True, exist_ok=True)
            self._writer = SummaryWriter(str(self._folder), purge_step=step, write_to_disk=True)
        return self._writer
