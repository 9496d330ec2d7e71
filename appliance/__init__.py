"""The machine itself: agent, inference, learning, ledger, jobs, daemon, API and command line."""

from importlib.metadata import version

__version__ = version("assay")
