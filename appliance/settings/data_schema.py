"""Tells data folders from before schema 1, the first schema that later versions carry over."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from policies.errors import PolicyError
from policies.policy import VERSION, version_of

OLDEST = "1000"
"""First ledger revision of schema 1. Ledgers of development versions before it are not carried over."""
START_FRESH = (
    "start fresh with another data folder (--data DIR, or move this one away); "
    "models and own tasksets can be imported again"
)
"""Hint for a data folder from before schema 1."""


def ledger_fault(revision: str) -> str:
    """Returns the reason why a ledger of that revision is not carried over; empty if it is."""
    return f"written before schema 1 (revision {revision}) and is not carried over" if revision < OLDEST else ""


def revision_of(ledger: Path) -> str:
    """Returns the ledger file's revision; empty without a readable one."""
    if not ledger.exists():
        return ""
    try:
        with closing(sqlite3.connect(f"{ledger.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    except sqlite3.Error:
        return ""
    return str(row[0]) if row else ""


def require_current_policy(content: bytes, path: Path) -> None:
    """Raises PolicyError if the policy in force is of another version: it is not carried over."""
    version = version_of(content)
    if version is not None and version != VERSION:
        raise PolicyError(
            f"{path}: the policy in force has version {version}, which is not carried over (this program reads version "
            f"{VERSION})",
            hint=START_FRESH,
        )
