"""The policy file as a document, with the sections of every gate."""

from __future__ import annotations

from policies.gates.registry import GATES
from policies.policy import policy_model

Policy = policy_model(GATES)
