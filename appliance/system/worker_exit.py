"""Exit codes of a worker, shared by the core and the worker (`appliance.worker.__main__`)."""

from __future__ import annotations

CANNOT = 2
"""The work is impossible as requested; do not retry."""
LEFT = 3
"""The worker abandoned an ended job whose work did not stop."""
MISCONFIGURED = 4
"""The configuration is unusable; do not retry until it, or what it names, has changed."""
