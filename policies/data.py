"""Applies the policy's training-data rules on tasksets. Pure."""

from __future__ import annotations

from collections.abc import Collection

from policies.contract.rules import DataRules
from policies.errors import PolicyError, require_known
from policies.policy import Policy

EVERY = "*"
WHOLE = 100.0
"""A full step, in percent."""


def shares_of(rules: DataRules, known: Collection[str]) -> dict[str, float]:
    """Returns, by taskset, the largest share of a training step in percent; absent tasksets are not trained on."""
    allowed = [name for name in known if EVERY in rules.families or name in rules.families]
    shares = {name: min(rules.max_share, rules.shares.get(name, WHOLE)) for name in allowed}
    return {name: share for name, share in shares.items() if share > 0}


def require_trainable(policy: Policy, known: Collection[str], name: str) -> None:
    """Raises PolicyError if the policy's data rules name unknown tasksets, or their shares cannot fill a training step.
    `name` is the file's name in messages."""
    rules = policy.data
    require_known({*rules.families} - {EVERY}, known, f"{name}: data.families", "family")
    require_known(rules.shares, known, f"{name}: data.shares", "family")
    if EVERY in rules.families and len(rules.families) > 1:
        raise PolicyError(
            f"{name}: data.families: {EVERY!r} already means every family, but others are named too",
            hint=f"write only [{EVERY!r}], or only the names",
        )
    shares = shares_of(rules, known)
    if sum(shares.values()) < WHOLE:
        shares_text = ", ".join(f"{family} {share:g} %" for family, share in shares.items()) or "no family"
        raise PolicyError(
            f"{name}: data: the allowed families fill at most {sum(shares.values()):g} % of a step: {shares_text}",
            hint="raise max_share, or the shares, or name more families",
        )
