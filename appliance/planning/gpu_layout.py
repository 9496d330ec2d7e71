"""Layout of learners and engines on this machine's GPUs, from the configuration.

Invariants: nothing is queried, and nothing heavy is imported.
"""

from __future__ import annotations

from appliance.config.configuration import ModelSettings
from appliance.inference.vllm.placement import VllmSettings
from appliance.learning.learner_devices import learner_devices, sampled_on
from appliance.placement.settings import PlacementSettings
from appliance.planning import VLLM_SHARE, Layout, Vllm


def gpu_layout(
    model: ModelSettings, vllm: VllmSettings, placement: PlacementSettings, gpus: int, visible: str | None
) -> Layout:
    """Assigns learners and engines to `gpus` GPUs among those in CUDA_VISIBLE_DEVICES. Raises ModelError for more
    learners than GPUs, and for engines on missing or invisible GPUs."""
    engines_here = placement.engines == "here"
    there = None
    if model.engine == "vllm" and engines_here:
        share = VLLM_SHARE if vllm.memory_share is None and placement.learners != "here" else vllm.memory_share
        there = Vllm(share, vllm.sleep, vllm.transfer == "file")
    if not gpus:
        return Layout(engines=model.engines if engines_here else 1, vllm=there)
    if there is not None:
        vllm.require_gpus(gpus, visible)
    taken = sampled_on(model.engine, vllm, visible, here=engines_here)
    if placement.learners == "here":
        learner_devices(model.device, model.learners, gpus, taken)
    together = vllm.tensor_parallel if model.engine == "vllm" else 1
    return Layout(model.learners, model.engines, together, len(taken), there)
