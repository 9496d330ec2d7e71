"""What is said of a name that nothing has: what is missing, and how to name it."""

from __future__ import annotations

from collections.abc import Sequence

from appliance.daemon.errors import NotThereError
from appliance.ledger.prefixes import LEAST, is_prefix, only_one, too_short
from appliance.ledger.sqlite import SqliteLedger
from appliance.ledger.sqlite_jobs import JOB, JobRows
from appliance.records.cycles import Cycle
from appliance.records.jobs import Job

SESSION = "gs-"
"""What the id of every session of the gateway begins with."""


def job_named(ledger: JobRows, name: str) -> Job:
    """The job with this id, or the only one whose id begins so. Raises NotThereError, AmbiguousPrefixError."""
    job = ledger.find_job(name)
    if job is None:
        why = _needs_more(name.removeprefix(JOB))
        raise NotThereError(f"there is no job {name!r}{why}", hint="`assay jobs ls` lists them")
    return job


def cycle_named(ledger: SqliteLedger, name: str) -> Cycle:
    """The cycle with this id, or the only one whose id begins so. Raises NotThereError, AmbiguousPrefixError."""
    cycle = ledger.find_cycle(name)
    if cycle is None:
        why = _needs_more(name.partition("-")[2])
        raise NotThereError(f"there is no cycle {name!r}{why}", hint="`assay cycle ls` lists them")
    return cycle


def session_named(names: Sequence[str], name: str) -> str:
    """Of these sessions the one that is called so, or the only one that begins so; the name itself where none does.
    Raises AmbiguousPrefixError."""
    digits = name.lower().removeprefix(SESSION)
    if not is_prefix(digits):
        return name
    typed = f"{SESSION}{digits}"
    return only_one("session", typed, [one for one in names if one.startswith(typed)]) or name


def no_model(name: str) -> NotThereError:
    return NotThereError(
        f"no model is called {name!r}{_needs_more(name)}",
        hint=f"`assay model ls` shows what there is; give at least {LEAST} digits, or an alias",
    )


def _needs_more(digits: str) -> str:
    count = "1 digit is" if len(digits) == 1 else f"{len(digits)} digits are"
    return f": {count} too few, {LEAST} are needed" if too_short(digits) else ""
