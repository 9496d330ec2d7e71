"""Uses more than one host: sessions go where there is room and stay there; a lost host ends its own sessions only."""

from runtime.cluster.cluster_sessions import ClusterSessions
from runtime.cluster.folder import leave, node_settings
from runtime.cluster.node import READY, NodeSettings, run_node
from runtime.cluster.placed import PlacedChannel, PlacementRequest
from runtime.cluster.placed_actor import PLAIN
from runtime.cluster.status import HostLine, hosts

__all__ = [
    "PLAIN",
    "READY",
    "ClusterSessions",
    "HostLine",
    "NodeSettings",
    "PlacedChannel",
    "PlacementRequest",
    "hosts",
    "leave",
    "node_settings",
    "run_node",
]
