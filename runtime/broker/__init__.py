"""Is the one process with the right to start sandboxes, and how others ask it."""

from runtime.broker.client import BrokerClient, ask, connect
from runtime.broker.messages import BoxLine, BrokerWelcome, SnapshotLine

__all__ = ["BoxLine", "BrokerClient", "BrokerWelcome", "SnapshotLine", "ask", "connect"]
