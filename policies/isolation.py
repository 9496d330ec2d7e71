"""Who runs where: the policy's rules on backends and tiers, applied. Pure.

What always holds: the answer is never weaker than the rule of the purpose, the rule of the family, or what the family
itself asks for. Names are those of the policy file; the appliance turns them into the runtime's own.
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
    """The least isolation of a session: the strictest of the purpose's rule, the family's, and what is asked for."""
    rules = policy.sandboxes.tiers
    by_purpose: dict[Use, Tier] = {"training": rules.training, "evaluation": rules.evaluation, "jobs": rules.jobs}
    return max(by_purpose[purpose], rules.families.get(family, ORDER[0]), asked, key=ORDER.index)


def backend_for(policy: Policy, what: Code) -> Backend:
    """What may run this kind of code, and nothing else may."""
    return policy.sandboxes.model_code if what == "model_code" else policy.sandboxes.tools


def backends_of(policy: Policy) -> tuple[Backend, ...]:
    """Every backend that the policy gives something to run, that of model code first."""
    return tuple(dict.fromkeys((policy.sandboxes.model_code, policy.sandboxes.tools)))


def require_known_families(policy: Policy, known: Collection[str], name: str) -> None:
    """Raises PolicyError for a rule about a family that does not exist. `name` is what messages call the file."""
    require_known(policy.sandboxes.tiers.families, known, f"{name}: sandboxes.tiers.families", "family")
