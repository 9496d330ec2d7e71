"""What is learned from: the policy's rules on families of tasks, applied. Pure."""

from __future__ import annotations

from collections.abc import Collection

from policies.contract.rules import DataRules
from policies.errors import PolicyError, require_known
from policies.policy import Policy

EVERY = "*"
WHOLE = 100.0
"""Percent."""


def shares_of(rules: DataRules, known: Collection[str]) -> dict[str, float]:
    """Percent of a step's questions that each family may be, by name; a family that is not there is not trained on."""
    allowed = [name for name in known if EVERY in rules.families or name in rules.families]
    shares = {name: min(rules.max_share, rules.shares.get(name, WHOLE)) for name in allowed}
    return {name: share for name, share in shares.items() if share > 0}


def require_trainable(policy: Policy, known: Collection[str], name: str) -> None:
    """Raises PolicyError for rules about families that do not exist, and for shares that leave a step unfilled. `name`
    is what messages call the file."""
    rules = policy.data
    require_known({*rules.families} - {EVERY}, known, f"{name}: data.families", "family")
    require_known(rules.shares, known, f"{name}: data.shares", "family")
    if EVERY in rules.families and len(rules.families) > 1:
        raise PolicyError(
            f"{name}: data.families: {EVERY!r} is every family, and others are named beside it",
            hint=f"write [{EVERY!r}] alone, or the names alone",
        )
    shares = shares_of(rules, known)
    if sum(shares.values()) < WHOLE:
        shares_text = ", ".join(f"{family} {share:g} %" for family, share in shares.items()) or "no family"
        raise PolicyError(
            f"{name}: data: the families that may be trained on are together at most {sum(shares.values()):g} % of a "
            f"step: {shares_text}",
            hint="raise max_share, or the shares, or name more families",
        )
