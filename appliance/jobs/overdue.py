"""When a job is given up, worked on or not. Pure."""

from __future__ import annotations

from datetime import datetime

from appliance.records import Job


def overdue(job: Job, now: str) -> str:
    """Why the job is given up, in a sentence; empty while there is time. `now` is UTC in ISO 8601."""
    if job.deadline is not None and datetime.fromisoformat(now) >= datetime.fromisoformat(job.deadline):
        return f"its deadline has passed: {job.deadline}"
    if job.budget_seconds is not None and job.spent_seconds >= job.budget_seconds:
        return f"its budget is used up: {job.budget_seconds:g} s of work"
    return ""
