"""What people may ask for: the policy's ordered rules on jobs, applied. Pure; what no rule allows is refused."""

from __future__ import annotations

from policies.rules import JobRules


def job_refused(check: str, attempts: int, queued: int, rules: JobRules, *, kind: str = "") -> str:
    """Why a job that is checked in this way, with so many attempts and so many jobs before it, is not admitted; empty
    when it is. `kind` is what people know it as: a rule may name either."""
    rule = next((rule for rule in rules.rules if rule.check in ("any", check, kind)), None)
    named = f"{check!r}" if kind in ("", check) else f"{check!r} ({kind})"
    if rule is None:
        return f"no rule says anything about jobs that are checked by {named}"
    if rule.then == "deny":
        return f"rule {rules.rules.index(rule) + 1} denies jobs that are checked by {named}"
    if attempts > rules.max_attempts:
        return f"{attempts} attempts are more than the {rules.max_attempts} allowed"
    if queued >= rules.max_queued:
        return f"{queued} jobs wait already; {rules.max_queued} may"
    return ""
