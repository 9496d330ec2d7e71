"""Applies the policy's ordered rules on jobs. Pure; jobs that no rule allows are refused."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from policies.contract.rules import JobRules
from policies.errors import require_known
from policies.policy import Policy

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
