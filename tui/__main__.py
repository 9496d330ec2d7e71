"""python -m tui --socket PATH: the screen of a running daemon. `assay tui` starts it with the right path."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tui.app import AssayApp


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tui", description=__doc__)
    parser.add_argument("--socket", type=Path, required=True, help="the daemon's control socket")
    parser.add_argument("--as", dest="name", help="whose key signs; otherwise the only one there is")
    parser.add_argument("--key", type=Path, help="the key that signs, wherever it lies")
    arguments = parser.parse_args(argv)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        sys.stderr.write("assay tui needs a terminal; for programs there is `assay status --json`\n")
        return 2
    app = AssayApp(arguments.socket, name=arguments.name, key=arguments.key)
    app.run()
    return app.return_code or 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
