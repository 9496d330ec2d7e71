"""Logging in every process of the appliance: one line per event on standard error, for people or as JSON.

Invariants: no value can move the cursor, colour the terminal or begin a line of its own. Records that our packages
write with `logging` get the same format and level; other packages log only warnings. A command loads structlog only
when it logs.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping, MutableMapping
from contextlib import suppress
from typing import Any, Literal, TextIO, cast

from appliance.text.printable import printable

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}
Level = Literal["debug", "info", "warning", "error"]
Form = Literal["console", "json"]
PACKAGES = ("appliance", "common", "curriculum", "policies", "runtime", "tui", "verifiers")


def configure(level: Level = "info", form: Form = "console", stream: TextIO | None = None) -> None:
    """Sets up this process's log, by structlog; `stream` defaults to standard error."""
    import structlog

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
        logger_factory=structlog.PrintLoggerFactory(cast(TextIO, _LosingStream(stream))),
        cache_logger_on_first_use=False,
    )
    _listen(_ToStructlog(), level)


def configure_when_needed(level: Level, form: Form) -> None:
    """Sets up this process's log when its first record arrives, since most commands log nothing."""
    _listen(_OnFirstRecord(level, form), level)


def _listen(handler: logging.Handler, level: Level) -> None:
    root = logging.getLogger()
    root.handlers = [*(one for one in root.handlers if not isinstance(one, _ToStructlog | _OnFirstRecord)), handler]
    for package in PACKAGES:
        logging.getLogger(package).setLevel(LEVELS[level])


class _LosingStream:
    """Stream that drops lines when its reader is gone, so that logging never fails."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        with suppress(OSError, ValueError):
            self._stream.write(text)

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            self._stream.flush()


class _OnFirstRecord(logging.Handler):
    """Sets up the log on the first record and passes the record on."""

    def __init__(self, level: Level, form: Form) -> None:
        super().__init__()
        self._level, self._form = level, form

    def emit(self, record: logging.LogRecord) -> None:
        configure(self._level, self._form)
        _ToStructlog().emit(record)


class _ToStructlog(logging.Handler):
    """Passes `logging` records to structlog."""

    def emit(self, record: logging.LogRecord) -> None:
        import structlog

        values = {"exc_info": record.exc_info} if record.exc_info else {}
        structlog.get_logger().log(record.levelno, record.getMessage(), logger=record.name, **values)


def _made_printable(_logger: Any, _method: str, entry: MutableMapping[str, Any]) -> Mapping[str, Any]:
    """Escapes all values of a log record; a traceback keeps its lines, indented below its event."""
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
