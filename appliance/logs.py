"""The log: one line an event on standard error, for people or as JSON.

What always holds: no value can move the cursor, colour the terminal or begin a line of its own, whoever wrote it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, MutableMapping
from typing import Any, Literal, TextIO

import structlog

from appliance.client.printable import printable

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}


def configure(
    level: Literal["debug", "info", "warning", "error"] = "info",
    form: Literal["console", "json"] = "console",
    stream: TextIO | None = None,
) -> None:
    """Sets up structlog for this process; `stream` is standard error when it is None."""
    stream = sys.stderr if stream is None else stream
    renderer = (
        structlog.processors.JSONRenderer(sort_keys=True)
        if form == "json"
        else structlog.dev.ConsoleRenderer(colors=stream.isatty(), pad_event_to=0)
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _made_printable,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        logger_factory=structlog.PrintLoggerFactory(stream),
        cache_logger_on_first_use=False,
    )


def _made_printable(_logger: Any, _method: str, entry: MutableMapping[str, Any]) -> Mapping[str, Any]:
    """A traceback keeps its lines: each is indented behind the event that it belongs to."""
    return {
        printable(key): _indented(str(value)) if key == "exception" else _shown(value) for key, value in entry.items()
    }


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in printable(text, lines=True).split("\n"))


def _shown(value: Any) -> Any:
    if isinstance(value, bool | int | float) or value is None:
        return value
    if isinstance(value, Mapping):
        return {printable(str(key)): _shown(part) for key, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_shown(part) for part in value]
    return printable(str(value))
