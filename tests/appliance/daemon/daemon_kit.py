"""How a real daemon is started, and waited for."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

ASSAY = (sys.executable, "-m", "appliance.cli.main")


def clean_environ(data: Path) -> dict[str, str]:
    """This environment without anybody's configuration."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ASSAY_", "XDG_"))}
    return kept | {"ASSAY_DATA": str(data), "XDG_CONFIG_HOME": str(data.parent / "config")}


def until(condition, seconds: float = 30.0) -> None:
    """Waits until it holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came to hold"
        time.sleep(0.02)
