"""Holds where engines and learners run, as the configuration says it. Nothing heavy is imported."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from runtime.model import FrozenModel, UnitName


class PlacementSettings(FrozenModel):
    engines: Literal["here", "cluster"] = "here"
    """Where engines sample: `here`, or on the hosts of the cluster that `cluster.address` names."""
    learners: Literal["here", "cluster"] = "here"
    """Where the learners train: `here`, or all of them on one host of that cluster."""
    engine_gpus: Annotated[int, UnitName("GPUs")] = Field(0, ge=0, le=64)
    """GPUs of its host that each engine in the cluster has to itself; 0: it computes on the processor."""
    learner_gpus: Annotated[int, UnitName("GPUs")] = Field(0, ge=0, le=64)
    """GPUs of their host that the learners in the cluster have to themselves; 0: they compute on the processor."""

    @property
    def without_effect(self) -> str:
        """Says which GPUs were asked for that nobody gets; empty otherwise."""
        idle = [
            f"placement.{name}_gpus = {gpus} changes nothing: placement.{name}s is here"
            for name, where, gpus in (
                ("engine", self.engines, self.engine_gpus),
                ("learner", self.learners, self.learner_gpus),
            )
            if gpus and where == "here"
        ]
        return "; ".join(idle)
