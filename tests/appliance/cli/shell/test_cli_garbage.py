"""How often a command looks for garbage."""

from __future__ import annotations

import subprocess
import sys

from appliance.cli.main import COLLECT_AFTER


def test_a_command_looks_for_garbage_seldom() -> None:
    script = (
        "import atexit, gc, sys\n"
        "atexit.register(lambda: print(gc.isenabled(), gc.get_threshold()[0]))\n"
        "sys.argv = ['assay', '--help']\n"
        "from appliance.cli.main import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.endswith(f"True {COLLECT_AFTER}\n")
