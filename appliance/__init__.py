"""The machine itself: agent, inference, learning, ledger, jobs, daemon, API and command line."""

from __future__ import annotations

__version__: str


def __getattr__(name: str) -> str:
    """The version is looked up when it is first asked for: what looks it up costs more than most commands."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import version

    found = globals()["__version__"] = version("assay")
    return found
