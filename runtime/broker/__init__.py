"""Broker: the only process with the right to start sandboxes, and its client.

What lives here: the protocol (`messages.py`), the server side (`server.py`, `warm_pool.py`, `boxes.py`,
snapshots and golden images), and `client.py`. Nothing here isolates: `runtime.backends` does. Start with `messages.py`,
then `server.py`.
"""

from runtime.broker.client import BrokerClient, ask, connect
from runtime.broker.messages import BoxLine, BrokerWelcome, SnapshotLine

__all__ = ["BoxLine", "BrokerClient", "BrokerWelcome", "SnapshotLine", "ask", "connect"]
