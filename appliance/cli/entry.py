"""Entry point of the command `assay`: Ctrl-C exits with 130 and without a traceback, from the first line to the
last."""

import os
import signal
import sys

INTERRUPTED = 130


def leave(*_: object) -> None:
    os._exit(INTERRUPTED)


def open_closed_streams() -> None:
    """Opens /dev/null in place of closed standard streams. A file of ours would otherwise get their number, and output
    would go into it."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(number, True)
    os.close(number)
    for place, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(place, "w" if place else "r", encoding="utf-8", closefd=False))  # noqa: SIM115


def main() -> None:
    """Runs the `assay` command. While modules load and at interpreter exit Ctrl-C exits immediately; in between it
    raises KeyboardInterrupt. An ignored SIGINT, as in background jobs, stays ignored."""
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
