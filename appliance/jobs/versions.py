"""Which tools and weights made an artifact: facts for whoever checks it later."""

from __future__ import annotations

import platform
from importlib import metadata
from typing import Any

from appliance import __version__
from appliance.records import Checkpoint

TOOLS = ("sympy", "mpmath", "torch", "transformers", "tokenizers", "pydantic")


def versions(weights: Checkpoint | None, policy: str, sandbox: str) -> dict[str, Any]:
    """JSON only. `policy` is the digest of the policy in force, `sandbox` names the isolation and its version."""
    return {
        "assay": __version__,
        "python": platform.python_version(),
        "tools": {name: metadata.version(name) for name in TOOLS},
        "sandbox": sandbox,
        "weights": None
        if weights is None
        else {
            "manifest": weights.manifest,
            "parent": weights.parent,
            "stage": weights.stage,
            "cycle": weights.cycle,
            "step": weights.step,
            "recipe": weights.recipe,
        },
        "policy": policy,
    }
