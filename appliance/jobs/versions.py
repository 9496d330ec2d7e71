"""Which tools and weights made an artifact: facts for whoever checks it later."""

from __future__ import annotations

import functools
import platform
from collections.abc import Mapping
from importlib import metadata
from typing import Any

from appliance import __version__
from appliance.jobs.layout import canonical, sha256
from appliance.records.checkpoints import Checkpoint

TOOLS = ("sympy", "mpmath", "torch", "transformers", "tokenizers", "pydantic")


def versions(weights: Checkpoint | None, policy: str, sandbox: str) -> dict[str, Any]:
    """JSON only. `policy` is the digest of the policy in force, `sandbox` names the isolation and its version."""
    return {
        "assay": __version__,
        "python": platform.python_version(),
        "tools": tools(),
        "sandbox": sandbox,
        "environment": environment(),
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


@functools.cache
def tools() -> dict[str, str]:
    """The versions of what decides and samples; read once."""
    return {name: metadata.version(name) for name in TOOLS}


@functools.cache
def environment() -> dict[str, Any]:
    """The machine and all that is installed beside this program; `digest` is over the rest of it."""
    found = {
        "architecture": platform.machine(),
        "kernel": platform.release(),
        "libc": " ".join(platform.libc_ver()),
        "packages": {one.name: one.version for one in metadata.distributions()},
    }
    return {**found, "digest": sha256(canonical(found))}


def answered_with(versions: Mapping[str, Any], weights: str) -> dict[str, Any]:
    """The same, with the lineage of the weights that answered: None where no model did, only their digest where
    `versions` is about others."""
    known = versions.get("weights")
    same = isinstance(known, dict) and known.get("manifest") == weights
    return {**versions, "weights": known if same else {"manifest": weights} if weights else None}
