"""Starts the command `assay`: from its first line to its last, Ctrl-C ends it with 130 and without a traceback."""

import os
import signal
import sys

INTERRUPTED = 130


def leave(*_: object) -> None:
    os._exit(INTERRUPTED)


def open_closed_streams() -> None:
    """Puts /dev/null where whoever started this closed standard input, output or error. A file of ours would otherwise
    get that number, and be written to by whoever prints."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(number, True)
    os.close(number)
    for place, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(place, "w" if place else "r", encoding="utf-8", closefd=False))  # noqa: SIM115


def main() -> None:
    """While modules are loaded and when the interpreter ends, nothing has to be tidied up; between the two, whatever
    runs may catch KeyboardInterrupt. Where SIGINT is ignored, as in a job that a script began in the background, it
    stays so."""
    heard = signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
    if heard:
        signal.signal(signal.SIGINT, leave)
    open_closed_streams()
    from appliance.cli.main import main as run

    if heard:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        run()
    finally:
        if heard:
            signal.signal(signal.SIGINT, leave)
