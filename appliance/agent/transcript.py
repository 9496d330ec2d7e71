"""Formats a rollout for people: the decoded message graph, with each call and its status.

The texts come from the policy model and the guest: escape them wherever they are shown.
"""

from __future__ import annotations

from typing import Any

from appliance.records.rollouts import Rollout
from appliance.rendering.renderer import Renderer


def transcript(rollout: Rollout, renderer: Renderer) -> list[dict[str, Any]]:
    """Returns a rollout as JSON, one entry per message: parent, role, text, and for tool results the call with its
    status."""
    return [
        {
            "parent": node.parent,
            "role": node.role.value,
            "text": renderer.text(node.ids),
            "sampled": node.sampled,
            **({"call": node.call.model_dump(mode="json")} if node.call else {}),
        }
        for node in rollout.nodes
    ]
