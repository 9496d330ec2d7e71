"""Starts the command `assay`: from its first line to its last, Ctrl-C ends it with 130 and without a traceback."""

import os
import signal

INTERRUPTED = 130


def leave(*_: object) -> None:
    os._exit(INTERRUPTED)


def main() -> None:
    """While modules are loaded and when the interpreter ends, nothing has to be tidied up; between the two, whatever
    runs may catch KeyboardInterrupt."""
    signal.signal(signal.SIGINT, leave)
    from appliance.cli.main import main as run

    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        run()
    finally:
        signal.signal(signal.SIGINT, leave)
