"""Common uvicorn configuration of all HTTP servers: HTTP/1.1, no own logs or headers, bounded request head."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import uvicorn


def http_config(app: Any, **more: Any) -> uvicorn.Config:
    """Returns the HTTP server's configuration for an ASGI application; `more` adds settings."""
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
    """True for a log record worth showing: not the traceback of a request cancelled by the server's shutdown, such as a
    slow client's."""
    return not (record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError))
