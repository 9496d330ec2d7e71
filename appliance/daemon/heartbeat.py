"""Reports to the service manager, from the daemon's own event loop, that the daemon is alive.

Invariants: a heartbeat is sent only after the loop has turned and the ledger was read since the last one; so a hanging
loop or ledger ends in a restart, not in a daemon that only looks alive. Three heartbeats fit into the service manager's
timeout.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from runtime.service_manager import ServiceManager

log = structlog.get_logger("assay")
SHARE = 3.0


async def beat(manager: ServiceManager, look: Callable[[], object]) -> None:
    """Tells the service manager until cancelled that the daemon is alive; returns immediately without a watchdog.
    `look` reads the ledger in its own thread; if it fails, no heartbeat is sent and it is retried."""
    if manager.seconds is None:
        return
    while True:
        try:
            await asyncio.to_thread(look)
        except Exception as error:  # noqa: BLE001 - any failure is no sign of life, and is said
            log.warning("no heartbeat is sent: the ledger cannot be read", problem=str(error))
        else:
            manager.alive()
        await asyncio.sleep(manager.seconds / SHARE)
