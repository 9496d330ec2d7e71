"""Applies the policy's rules on sandboxes, jobs and training data. Pure.

Invariants: an isolation tier is never weaker than the rule of the purpose, the rule of the taskset, or the taskset's
own requirement; jobs that no rule allows are refused. Names are those of the policy file; the appliance maps them to
the runtime's.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Literal, get_args

from policies.contract.rules import Backend, DataRules, JobRules, Tier
from policies.errors import PolicyError, require_known

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


ANY = "any"


def job_refused(names: Sequence[str], attempts: int, queued: int, rules: JobRules) -> str:
    """Returns the reason to refuse a job, given its attempts and the jobs queued before it; empty if admitted.

    `names` are the names a rule may use: first the kind of its check, then its user-visible kinds.
    """
    rule = next((rule for rule in rules.rules if rule.check in (ANY, *names)), None)
    named = " or ".join(dict.fromkeys(map(repr, names)))
    if rule is None:
        return f"no rule covers jobs checked by {named}"
    if rule.then == "deny":
        return f"rule {rules.rules.index(rule) + 1} denies jobs checked by {named}"
    if attempts > rules.max_attempts:
        return f"{attempts} attempts are more than the {rules.max_attempts} allowed"
    if queued >= rules.max_queued:
        return f"{queued} jobs are already queued, the limit is {rules.max_queued}"
    return ""


def require_known_checks(policy: Policy, known: Collection[str], name: str) -> None:
    """Raises PolicyError if a job rule names an unknown check. `name` is the file's name in messages."""
    for number, rule in enumerate(policy.jobs.rules):
        require_known({rule.check} - {ANY}, known, f"{name}: jobs.rules.{number}.check", "check or kind of job")


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
