"""The document that a policy file is: with the sections of every gate there is."""

from __future__ import annotations

from policies.gates.registry import GATES
from policies.policy import policy_model

Policy = policy_model(GATES)
