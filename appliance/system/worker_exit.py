"""What the exit status of a worker means, as the core and the worker agree on it (`appliance.worker.__main__`)."""

from __future__ import annotations

CANNOT = 2
"""The work cannot be done as asked: trying again is useless."""
LEFT = 3
"""The worker left a job which has ended, because its work did not stop."""
MISCONFIGURED = 4
"""The configuration cannot be used: trying again is useless until somebody has changed it, or what it names."""
