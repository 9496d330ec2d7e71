"""What every HTTP server of the appliance is: one protocol, no logs or headers of its own, and a bound on a head."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import uvicorn


def http_config(app: Any, **more: Any) -> uvicorn.Config:
    """For an ASGI application; `more` is what this server has beside it."""
    logging.getLogger("uvicorn.error").addFilter(_is_worth_saying)  # once, however often
    return uvicorn.Config(
        app,
        loop="asyncio",
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=3,
        h11_max_incomplete_event_size=65_536,
        **more,
    )


def _is_worth_saying(record: logging.LogRecord) -> bool:
    """Leaves out the traceback of a request that the server gives up at its own end, as that of a slow client."""
    return not (record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError))
