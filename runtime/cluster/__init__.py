"""Pool over more than one host: sessions go where there is room and stay there; a lost host ends only its own sessions.

What lives here: the driver's side (`cluster_sessions.py`, `roster.py`, `placement.py`, `link.py`), the host's side
(`host_actor.py`, `node.py`), and the only modules that import Ray (`gateway.py`, `placed_gateway.py`), which run as
separate processes. Names are imported on first use, so asking whether there is a cluster loads nothing of it. Start
with `cluster_sessions.py`, then `messages.py`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runtime.cluster.cluster_sessions import ClusterSessions as ClusterSessions
    from runtime.cluster.folder import leave as leave
    from runtime.cluster.folder import node_settings as node_settings
    from runtime.cluster.node import READY as READY
    from runtime.cluster.node import NodeSettings as NodeSettings
    from runtime.cluster.node import run_node as run_node
    from runtime.cluster.placed import PlacedChannel as PlacedChannel
    from runtime.cluster.placed import PlacementRequest as PlacementRequest
    from runtime.cluster.placed_actor import PLAIN as PLAIN
    from runtime.cluster.status import HostLine as HostLine
    from runtime.cluster.status import hosts as hosts

_HOMES = {
    "PLAIN": "placed_actor",
    "READY": "node",
    "ClusterSessions": "cluster_sessions",
    "HostLine": "status",
    "NodeSettings": "node",
    "PlacedChannel": "placed",
    "PlacementRequest": "placed",
    "hosts": "status",
    "leave": "folder",
    "node_settings": "folder",
    "run_node": "node",
}
__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
