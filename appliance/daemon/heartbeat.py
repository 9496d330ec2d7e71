"""Tells the service manager that the daemon works, from the daemon's own loop.

What always holds: a sign of life is sent only after the loop has turned and the ledger was read since the last one, so
a loop that hangs, or a ledger that gives no answer, ends in a restart and not in a daemon that only looks alive. Three
signs fit into the time that the service manager waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from runtime.service_manager import ServiceManager

log = structlog.get_logger("assay")
SHARE = 3.0


async def beat(manager: ServiceManager, look: Callable[[], object]) -> None:
    """Goes on until it is cancelled; returns at once where nobody waits for signs. `look` reads the ledger, in a thread
    of its own; where that fails no sign is sent, and it is tried again."""
    if manager.seconds is None:
        return
    while True:
        try:
            await asyncio.to_thread(look)
        except Exception as error:  # noqa: BLE001 - any failure is no sign of life, and is said
            log.warning("no sign of life is sent: the ledger cannot be read", problem=str(error))
        else:
            manager.alive()
        await asyncio.sleep(manager.seconds / SHARE)
