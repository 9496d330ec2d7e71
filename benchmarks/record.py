"""Writes a benchmark's run as JSON: its figures, and what a reader needs to compare them with another run.

The file is `benchmarks/results/NAME-DATE.json` unless the caller names another one. Git ignores `results/`: add a run
that the table cites with `git add -f`.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
LOAD_BEFORE = os.getloadavg()[0]
"""Load average of one minute when the script began."""


def write_run(figures: Any, file: Path | None = None) -> None:
    """Writes one run and names its file on standard error; prints the run there if it cannot be written."""
    now, script = datetime.now(UTC), Path(sys.argv[0]).stem
    run = {
        "benchmark": script,
        "arguments": sys.argv[1:],
        "commit": commit(),
        "date": now.isoformat(timespec="seconds"),
        "machine": machine(),
        "load": {"before": LOAD_BEFORE, "after": os.getloadavg()[0]},
        "figures": figures,
    }
    text = json.dumps(run, indent=1, default=str) + "\n"
    path = file or RESULTS / f"{script}-{now:%Y-%m-%dT%H%M%SZ}.json"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        print(f"run written to {path}", file=sys.stderr)
    except OSError as error:
        print(f"{text}{path}: not written ({error.strerror}). Pass --json FILE.", file=sys.stderr)


def commit() -> str:
    """Returns the checkout's commit, with `-dirty` if files differ from it, or an empty string outside git."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=12"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def machine() -> dict[str, Any]:
    """Returns cores, memory in GiB, kernel and Python; torch and its GPU if the script has loaded torch."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    found: dict[str, Any] = {"cores": len(os.sched_getaffinity(0)), "memory_gib": round(memory, 1)}
    found |= {"system": platform.platform(), "python": platform.python_version()}
    if torch := sys.modules.get("torch"):
        found |= {"torch": torch.__version__, "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else ""}
    return found
