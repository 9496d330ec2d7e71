"""Says whether a cluster can be asked for the engines and learners that a configuration names, before anything starts.

What always holds: nothing is asked of the cluster, and nothing heavy is imported; what its hosts have, they say later.
"""

from __future__ import annotations

from appliance.inference.engine import ModelError
from appliance.inference.vllm.placement import VllmSettings
from appliance.placement.settings import PlacementSettings


def require_engines(
    name: str, placement: PlacementSettings, *, clustered: bool, device: str, vllm: VllmSettings | None
) -> None:
    """Raises ModelError unless an engine of this name can be on a host of the cluster; `clustered`: there is one."""
    if not clustered:
        raise ModelError(
            "placement.engines is cluster, and this machine is in none",
            hint="set cluster.address, or placement.engines to here",
        )
    if name not in ("torch", "vllm"):
        raise ModelError(f"the engine {name!r} runs here only", hint="set placement.engines to here")
    if device == "cuda" and not placement.engine_gpus:
        raise ModelError(
            "model.device is cuda, and engines in the cluster get no GPU", hint="set placement.engine_gpus"
        )
    if vllm is not None and vllm.gpus:
        raise ModelError(
            "vllm.gpus names GPUs of this machine, and the cluster chooses those of its hosts",
            hint="remove vllm.gpus; placement.engine_gpus says how many an engine gets",
        )
    if vllm is not None and vllm.transfer != "file":
        raise ModelError(
            f"vllm.transfer is {vllm.transfer}, and weights get to another host as a file",
            hint="set vllm.transfer to file, or placement.engines to here",
        )
    if vllm is not None and vllm.tensor_parallel > max(1, placement.engine_gpus):
        raise ModelError(
            f"vllm.tensor_parallel is {vllm.tensor_parallel}, and an engine gets {placement.engine_gpus} GPUs",
            hint="set placement.engine_gpus to as many",
        )


def require_learners(ranks: int, placement: PlacementSettings, *, clustered: bool) -> None:
    """Raises ModelError unless so many learners can be on a host of the cluster."""
    if (gpus := placement.learner_gpus) and ranks > gpus:
        raise ModelError(
            f"{ranks} learners train on a GPU each, and placement.learner_gpus is {gpus}",
            hint="set placement.learner_gpus to as many, or model.learners lower",
        )
    if not clustered:
        raise ModelError(
            "placement.learners is cluster, and this machine is in none",
            hint="set cluster.address, or placement.learners to here",
        )
