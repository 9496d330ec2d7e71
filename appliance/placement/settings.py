"""Placement settings of engines and learners. Imports nothing heavy."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from appliance.inference.engine import ModelError
from appliance.inference.vllm.placement import VllmSettings
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


def require_engines(
    name: str, placement: PlacementSettings, *, clustered: bool, device: str, vllm: VllmSettings | None
) -> None:
    """Raises ModelError unless a cluster host can run an engine of this name; `clustered`: a cluster is configured."""
    if not clustered:
        raise ModelError(
            "placement.engines is cluster, but this machine is not in one",
            hint="set cluster.address, or placement.engines to here",
        )
    if name not in ("torch", "vllm"):
        raise ModelError(f"engine {name!r} runs only here", hint="set placement.engines to here")
    if device == "cuda" and not placement.engine_gpus:
        raise ModelError(
            "model.device is cuda, but engines in the cluster get no GPU", hint="set placement.engine_gpus"
        )
    if vllm is not None and vllm.gpus:
        raise ModelError(
            "vllm.gpus names GPUs of this machine, but the cluster chooses its hosts' GPUs",
            hint="remove vllm.gpus and set the number in placement.engine_gpus",
        )
    if vllm is not None and vllm.transfer != "file":
        raise ModelError(
            f"vllm.transfer is {vllm.transfer}, but weights reach another host only as a file",
            hint="set vllm.transfer to file, or placement.engines to here",
        )
    if vllm is not None and vllm.tensor_parallel > max(1, placement.engine_gpus):
        raise ModelError(
            f"vllm.tensor_parallel is {vllm.tensor_parallel}, but an engine gets {placement.engine_gpus} GPUs",
            hint="raise placement.engine_gpus to that number",
        )


def require_learners(ranks: int, placement: PlacementSettings, *, clustered: bool) -> None:
    """Raises ModelError unless a cluster host can run this many learners."""
    if (gpus := placement.learner_gpus) and ranks > gpus:
        raise ModelError(
            f"{ranks} learners need a GPU each, but placement.learner_gpus is {gpus}",
            hint="raise placement.learner_gpus to that number, or lower model.learners",
        )
    if not clustered:
        raise ModelError(
            "placement.learners is cluster, but this machine is not in one",
            hint="set cluster.address, or placement.learners to here",
        )
