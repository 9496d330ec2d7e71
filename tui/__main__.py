"""`python -m tui --socket PATH`: the screen of a running daemon. `assay tui` passes the right path."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from pathlib import Path

from appliance.client import printable
from tui.app import AssayApp
from tui.views import SCREENS


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tui", description=__doc__)
    parser.add_argument("--socket", type=Path, required=True, help="the daemon's control socket")
    parser.add_argument("--as", dest="name", help="person whose key signs (default: the only key)")
    parser.add_argument("--key", type=Path, help="file of the signing key")
    parser.add_argument("--read-only", action="store_true", help="disable approving, submitting and cancelling")
    parser.add_argument("--screen", default="", help="screen to open first")
    parser.add_argument("--light", action="store_true", help="light colours")
    parser.add_argument("--web", action="store_true", help="serve to a browser on this machine")
    parser.add_argument("--port", type=int, default=0, help="port for --web; 0 takes a free one")
    arguments = parser.parse_args(argv)
    names = list(SCREENS)
    if arguments.screen and arguments.screen not in names:
        sys.stderr.write(f"--screen: unknown screen {printable(arguments.screen)!r}; use one of {', '.join(names)}\n")
        return 2
    if arguments.web:
        from tui.web import serve

        own = [one for one in argv if one != "--web"]
        return serve([sys.executable, "-I", "-m", "tui", *own], arguments.port)
    if os.environ.get("TEXTUAL_DRIVER") is None and not (sys.stdin.isatty() and sys.stdout.isatty()):
        sys.stderr.write("assay tui needs a terminal; programs use `assay status --json`\n")
        return 2
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup or not: a screen without its terminal would only spin
    app = AssayApp(
        arguments.socket,
        name=arguments.name,
        key=arguments.key,
        read_only=arguments.read_only,
        first=arguments.screen,
        light=arguments.light,
    )
    asyncio.run(_run(app))
    return app.return_code or 0


async def _run(app: AssayApp) -> None:
    """Runs the Textual program until it exits; SIGTERM ends it with the terminal restored."""
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, app.exit, None, 128 + signal.SIGTERM)
    await app.run_async()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
