"""Planning: computes which trainings fit a machine. Arithmetic only.

`plans` combines the parts, `sizes` has the bytes of each, `phases` their peaks, `search` looks for fitting settings.
`hardware` finds the machine, `model_shape` the model; nothing is measured.
"""

from appliance.planning.plans import Plan, evaluated_items, least, least_of_engine, left_for_engines, plan, share_of
from appliance.planning.recommend import ADVISED, Recommendation, advised, recommend
from appliance.planning.search import (
    CONTEXTS,
    fewest_learners,
    largest,
    largest_context,
    largest_group,
    largest_pass,
    sft_way,
    ways,
    with_pass,
)
from appliance.planning.shapes import GIB, ONE, VLLM_SHARE, Gpu, Hardware, Layout, Shape, Vllm, without_gpus
from appliance.planning.sizes import (
    GPU_USABLE,
    adapter_parameters,
    engine_bytes,
    engine_weight_bytes,
    learner_parts,
    pass_tokens,
)

__all__ = [
    "ADVISED",
    "CONTEXTS",
    "GIB",
    "GPU_USABLE",
    "ONE",
    "VLLM_SHARE",
    "Gpu",
    "Hardware",
    "Layout",
    "Plan",
    "Recommendation",
    "Shape",
    "Vllm",
    "adapter_parameters",
    "advised",
    "engine_bytes",
    "engine_weight_bytes",
    "evaluated_items",
    "fewest_learners",
    "largest",
    "largest_context",
    "largest_group",
    "largest_pass",
    "learner_parts",
    "least",
    "least_of_engine",
    "left_for_engines",
    "pass_tokens",
    "plan",
    "recommend",
    "sft_way",
    "share_of",
    "ways",
    "with_pass",
    "without_gpus",
]
