"""Placement settings of engines and learners. Imports nothing heavy."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from runtime.model import FrozenModel, UnitName


class PlacementSettings(FrozenModel):
    engines: Literal["here", "cluster"] = "here"
    """Location of engines: `here`, or the hosts of the cluster in `cluster.address`."""
    learners: Literal["here", "cluster"] = "here"
    """Location of learners: `here`, or together on one host of that cluster."""
    engine_gpus: Annotated[int, UnitName("GPUs")] = Field(0, ge=0, le=64)
    """GPUs reserved for each engine in the cluster; 0: it runs on the CPU."""
    learner_gpus: Annotated[int, UnitName("GPUs")] = Field(0, ge=0, le=64)
    """GPUs reserved for the learners in the cluster; 0: they run on the CPU."""

    @property
    def without_effect(self) -> str:
        """Warning about GPU settings of the placement without effect; else empty."""
        idle = [
            f"placement.{name}_gpus = {gpus} has no effect: placement.{name}s is here"
            for name, where, gpus in (
                ("engine", self.engines, self.engine_gpus),
                ("learner", self.learners, self.learner_gpus),
            )
            if gpus and where == "here"
        ]
        return "; ".join(idle)
