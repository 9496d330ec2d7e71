"""The appliance: agent, inference, learning, ledger, jobs, daemon, API and command line.

Nothing here decides what a correct answer is (`verifiers`), what a task is (`curriculum`), how untrusted code is
confined (`runtime`) or which model may be promoted (`policies`): these packages never import this one.

Start with `cli/main.py` (commands), `daemon/api/serve.py` (the process that owns a data folder), `worker/cycle.py` (one
training cycle), `agent/loop.py` (rollouts), `ledger/ledger.py` (what is on record) and `records/` (the shape of each
record). Of the modules in this folder itself, `errors.py` has the exit codes.
"""

from __future__ import annotations

__version__: str


def __getattr__(name: str) -> str:
    """Looks up the version on first use: importing importlib.metadata costs more than most commands."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import version

    found = globals()["__version__"] = version("assay")
    return found
