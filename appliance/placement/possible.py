"""Checks that a cluster can run the configured engines and learners, before anything starts.

Invariants: the cluster is not queried, and nothing heavy is imported; its hosts report their resources later.
"""

from __future__ import annotations

from appliance.inference.engine import ModelError
from appliance.inference.vllm.placement import VllmSettings
from appliance.placement.settings import PlacementSettings


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
