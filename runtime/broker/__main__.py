"""Entry point of the broker, which starts sandboxes: `python -m runtime.broker`.

    --settings FILE or -      BrokerSettings as JSON; `-` reads standard input to its end
    --socket PATH             listen there, for the users named by --allow-uid (default: our own)
    --connection FD           serve this one connected socket and end with it
    --log console or json     log format

Exits with 0 after SIGTERM, SIGINT, or the end of its one connection, once nothing is left of its sandboxes; with 2 for
unusable arguments or settings, with 1 if this machine cannot run it now. The last line on standard error gives the
reason.
"""

from __future__ import annotations

import argparse
import sys

from runtime.broker.serve import run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m runtime.broker", description="Starts sandboxes for its clients.")
    parser.add_argument("--settings", required=True)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--socket")
    where.add_argument("--connection", type=int)
    parser.add_argument("--allow-uid", type=int, action="append", default=[])
    parser.add_argument("--log", choices=["console", "json"], default="console")
    options = parser.parse_args()
    return run(options.settings, options.socket, options.connection, options.allow_uid, options.log)


if __name__ == "__main__":
    sys.exit(main())
