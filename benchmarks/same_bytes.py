"""Whether each taskset makes the same bytes of the same seeds in another process and in another Python.

    python benchmarks/same_bytes.py [--interpreter PATH ...] [--seeds 4] [--only NAME ...] [--json FILE]

Each interpreter (this one, unless others are named) makes the tasks of the first seeds of each level twice, each time
in a process of its own with another PYTHONHASHSEED, time zone and locale; digests are compared with those that this
process makes. An interpreter needs what making tasks imports: `PATH -m pip install pydantic sentencex text2num`. Exit
code 1 where one differs, 2 where one cannot make tasks.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.record import write_run
from curriculum.certification.certificate import EACH, made_by
from curriculum.registry import BUILT_IN, TASKSETS

SURROUNDINGS = (
    {"PYTHONHASHSEED": "7", "TZ": "Pacific/Kiritimati", "LC_ALL": "C"},
    {"PYTHONHASHSEED": "4242", "TZ": "America/St_Johns", "LC_ALL": "C.UTF-8"},
)
SECONDS = 3_600.0


def digests(names: Sequence[str], seeds: int) -> dict[str, str]:
    """What this process makes, by taskset."""
    return {name: made_by(BUILT_IN, name, each=seeds) for name in names}


def elsewhere(interpreter: str, names: Sequence[str], seeds: int, surroundings: dict[str, str]) -> dict[str, str]:
    """What a process of that interpreter makes. Raises CalledProcessError where it cannot."""
    command = [interpreter, "-W", "ignore", __file__, "--print", "--seeds", str(seeds), "--only", *names]
    run = subprocess.run(command, env=os.environ | surroundings, stdout=subprocess.PIPE, timeout=SECONDS, check=True)
    found: dict[str, str] = json.loads(run.stdout)
    return found


def different(interpreters: Sequence[str], names: Sequence[str], seeds: int) -> dict[str, list[str]]:
    """The tasksets that another process makes otherwise, by interpreter and what is around it."""
    ours, found = digests(names, seeds), {}
    for interpreter in interpreters:
        for surroundings in SURROUNDINGS:
            theirs = elsewhere(interpreter, names, seeds, surroundings)
            where = f"{theirs.pop('python')}, hash seed {surroundings['PYTHONHASHSEED']}"
            found[where] = [name for name in names if theirs[name] != ours[name]]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--interpreter", nargs="+", default=[sys.executable], metavar="PATH")
    parser.add_argument("--seeds", type=int, default=EACH)
    parser.add_argument("--only", nargs="+", choices=sorted(TASKSETS), default=list(TASKSETS), metavar="NAME")
    parser.add_argument("--print", action="store_true", help="print what this process makes, and compare nothing")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    if asked.print:
        print(json.dumps({"python": platform.python_version(), **digests(asked.only, asked.seeds)}))
        return 0
    try:
        found = different(asked.interpreter, asked.only, asked.seeds)
    except (OSError, subprocess.SubprocessError) as error:
        parser.error(f"an interpreter cannot make tasks, install what it needs: {str(error)[:200]}")
    for where, names in found.items():
        same = len(asked.only) - len(names)
        print(f"{where}: {same} of {len(asked.only)} the same{'; not ' if names else ''}{', '.join(names)}")
    write_run(found, asked.json)
    return int(any(found.values()))


if __name__ == "__main__":
    sys.exit(main())
