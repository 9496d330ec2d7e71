"""Holds what a rollout has: sessions, the tiers they move between, and the pool that they come from."""

from runtime.sessions.connection import BrokerConnection
from runtime.sessions.pool import Sessions

__all__ = ["BrokerConnection", "Sessions"]
