"""Versions of the tools and weights that made an artifact, for later checks."""

from __future__ import annotations

import functools
import platform
from collections.abc import Mapping
from importlib import metadata
from typing import Any

from appliance import __version__
from appliance.jobs.layout import canonical, sha256
from appliance.records.cycles import Checkpoint
from common.plugins.allowed import admitted

TOOLS = ("sympy", "mpmath", "torch", "transformers", "tokenizers", "pydantic")


def versions(weights: Checkpoint | None, policy: str, sandbox: str) -> dict[str, Any]:
    """Returns the versions of program, tools and weights for a bundle, as plain JSON. `policy` is the digest of the
    policy in force, `sandbox` names the isolation and its version."""
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
        **(
            {"plugins": plugins}
            if (plugins := {one.pin.distribution: one.pin._asdict() for one in admitted().values()})
            else {}
        ),
    }


@functools.cache
def tools() -> dict[str, str]:
    """Returns the versions of the libraries that verify answers and sample from models; read once."""
    return {name: metadata.version(name) for name in TOOLS}


@functools.cache
def environment() -> dict[str, Any]:
    """Returns facts about machine and installed packages; `digest` covers all the others. Cached."""
    found = {
        "architecture": platform.machine(),
        "kernel": platform.release(),
        "libc": " ".join(platform.libc_ver()),
        "packages": {one.name: one.version for one in metadata.distributions()},
    }
    return {**found, "digest": sha256(canonical(found))}


def answered_with(versions: Mapping[str, Any], weights: str) -> dict[str, Any]:
    """Returns a bundle's `versions` with the lineage of the weights that answered. That is None without a model, and
    only the digest for weights that `versions` does not describe."""
    known = versions.get("weights")
    same = isinstance(known, dict) and known.get("manifest") == weights
    return {**versions, "weights": known if same else {"manifest": weights} if weights else None}
