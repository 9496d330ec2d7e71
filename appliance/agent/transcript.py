"""A rollout as people read it: the message graph decoded, with each call and how it ended.

The texts are the policy model's and the guest's: data to be escaped wherever they are shown.
"""

from __future__ import annotations

from typing import Any

from appliance.agent.dialect import Codec
from appliance.records import Rollout


def transcript(rollout: Rollout, codec: Codec) -> list[dict[str, Any]]:
    """One entry a node: parent, role, text, and for tool nodes the call with its status. JSON only."""
    return [
        {
            "parent": node.parent,
            "role": node.role.value,
            "text": codec.text(node.ids),
            "sampled": node.sampled,
            **({"call": node.call.model_dump(mode="json")} if node.call else {}),
        }
        for node in rollout.nodes
    ]
