"""Sessions of rollouts, the isolation tiers they move between, and their pool on one host.

What lives here: `session.py` and `placement.py` (one session), `purity.py` (which tier a snippet needs), `worker.py`
(host end of one sandbox), `own_sandbox.py`, and `pool.py` (`Sessions`). No sandbox is started here: the broker does
that. Start with `pool.py`, then `placement.py`.
"""

from runtime.sessions.connection import BrokerConnection
from runtime.sessions.pool import Sessions

__all__ = ["BrokerConnection", "Sessions"]
