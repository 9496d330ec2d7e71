"""What people may ask for: the policy's ordered rules on jobs, applied. Pure; what no rule allows is refused."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from policies.contract.rules import JobRules
from policies.errors import require_known
from policies.policy import Policy

ANY = "any"


def job_refused(names: Sequence[str], attempts: int, queued: int, rules: JobRules) -> str:
    """Why a job with so many attempts and so many jobs before it is not admitted; empty when it is.

    `names` are what a rule may call it: first the kind of its check, then what people know it as.
    """
    rule = next((rule for rule in rules.rules if rule.check in (ANY, *names)), None)
    named = " or ".join(dict.fromkeys(map(repr, names)))
    if rule is None:
        return f"no rule says anything about jobs that are checked by {named}"
    if rule.then == "deny":
        return f"rule {rules.rules.index(rule) + 1} denies jobs that are checked by {named}"
    if attempts > rules.max_attempts:
        return f"{attempts} attempts are more than the {rules.max_attempts} allowed"
    if queued >= rules.max_queued:
        return f"{queued} jobs wait already; {rules.max_queued} may"
    return ""


def require_known_checks(policy: Policy, known: Collection[str], name: str) -> None:
    """Raises PolicyError for a rule about a check that does not exist. `name` is what messages call the file."""
    for number, rule in enumerate(policy.jobs.rules):
        require_known({rule.check} - {ANY}, known, f"{name}: jobs.rules.{number}.check", "check or kind of job")
