"""Applies the policy's rules on sandbox backends and isolation tiers. Pure.

Invariants: the result is never weaker than the rule of the purpose, the rule of the taskset, or the taskset's own
requirement. Names are those of the policy file; the appliance maps them to the runtime's.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Literal, get_args

from policies.contract.rules import Backend, Tier
from policies.errors import require_known

if TYPE_CHECKING:
    from policies.policy import Policy

Use = Literal["training", "evaluation", "jobs"]
Code = Literal["model_code", "tools"]

ORDER: tuple[Tier, ...] = get_args(Tier)


def tier_for(policy: Policy, purpose: Use, family: str, asked: Tier) -> Tier:
    """Returns a session's isolation tier: the strictest of the purpose's rule, the taskset's rule and the request."""
    rules = policy.sandboxes.tiers
    by_purpose: dict[Use, Tier] = {"training": rules.training, "evaluation": rules.evaluation, "jobs": rules.jobs}
    return max(by_purpose[purpose], rules.families.get(family, ORDER[0]), asked, key=ORDER.index)


def backend_for(policy: Policy, what: Code) -> Backend:
    """Returns the only sandbox backend that the policy allows for this kind of code."""
    return policy.sandboxes.model_code if what == "model_code" else policy.sandboxes.tools


def backends_of(policy: Policy) -> tuple[Backend, ...]:
    """Returns every sandbox backend that the policy uses, that of model code first."""
    return tuple(dict.fromkeys((policy.sandboxes.model_code, policy.sandboxes.tools)))


def require_known_families(policy: Policy, known: Collection[str], name: str) -> None:
    """Raises PolicyError if an isolation rule names an unknown taskset. `name` is the file's name in messages."""
    require_known(policy.sandboxes.tiers.families, known, f"{name}: sandboxes.tiers.families", "family")
