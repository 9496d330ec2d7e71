"""Tasks of real packages: how many valid ones a repository gives.

    nice -n 19 python benchmarks/repositories.py FOLDER --journal FOLDER [--tasks 40] [--judged 40] [--json FILE]
        [--usage /sys/fs/cgroup/cpuacct/GROUP/cpuacct.usage]

FOLDER has source distributions with tests (`pip download --no-deps --no-binary :all: NAME`). Needs root. For each:
tests, stable ones, faults tried and tasks; then reference and untouched repository are judged in fresh sandboxes (bars:
100 % and 0 % pass), and the cheats of `repository_cheats.py` for its first task (bar: none passes). A second verdict on
the reference that differs counts as flaky (bar: under 1 %). A run that was stopped goes on where it was with the same
`--journal`. With `--usage`, the counter of a control group that holds this script alone, it also gives the processor
seconds of making a task and those of the package's tests (bar: 5 beyond its tests).
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

# A script's own folder comes first on the path, and there is a `runtime` in it.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.record import write_run
from benchmarks.repository_cheats import CHEATS, cheated
from curriculum.contract.errors import CurriculumError
from curriculum.own.containers import install_container
from curriculum.own.harbor import untouched
from curriculum.own.rows import OwnRow
from curriculum.repositories.journal import Journal
from curriculum.repositories.making import Making
from curriculum.repositories.reading import read_repository
from runtime.errors import RefusedError
from runtime.sandbox import Priority, SessionPool
from runtime.sessions import Sessions
from runtime.settings import BrokerSettings, RuntimeSettings
from verifiers.files.spec import FilesSpec
from verifiers.files.verifier import FilesVerifier


def measured(
    place: Path, pool: SessionPool, folder: Path, tasks: int, judged: int, usage: Path | None
) -> dict[str, Any]:
    begun, used = time.monotonic(), _used(usage)
    try:
        repository = read_repository(place)
        digest, lost = install_container(["pytest", *dict.fromkeys(repository.requires)], ())
        journal = Journal.in_file(folder / f"{repository.name}.jsonl")
        making = Making(repository, digest, pool, journal, seed=repository.name, place=place)
        rows = list(making.rows(tasks))
        used = _used(usage) - used
    except (CurriculumError, RefusedError) as error:
        return {"place": place.name, "refused": str(error)}
    found = {
        "place": place.name,
        "tasks": len(rows),
        **making.counts,
        "lost": lost,
        "first failing": making.first_failure,
    }
    if usage is not None:
        own = sum(float(line[6]) for line in making.stable().values())
        found |= {"cpu seconds": round(used, 1), "cpu seconds of its tests": round(own, 1)}
    verdicts = [_verdicts(pool, row) for row in rows[:judged]]
    found |= {
        "lines": sum(repository.files[path].count("\n") for path in repository.sources),
        "bytes a task": sum(len(row.model_dump_json()) for row in rows) // max(1, len(rows)),
        "judged": len(verdicts),
        "reference passes": sum(one[0] for one in verdicts),
        "reference differs": sum(one[0] != one[1] for one in verdicts),
        "untouched passes": sum(one[2] for one in verdicts),
        "cheats that pass": [cheat for row in rows[:1] for cheat in CHEATS if _passes(pool, row, cheated(row, cheat))],
        "seconds": round(time.monotonic() - begun, 1),
    }
    return found


def _used(usage: Path | None) -> float:
    """Returns the processor seconds of a control group; 0 without one."""
    return int(usage.read_text()) / 1e9 if usage is not None else 0.0


def _verdicts(pool: SessionPool, row: OwnRow) -> tuple[bool, bool, bool]:
    return _passes(pool, row, row.answer), _passes(pool, row, row.answer), _passes(pool, row, untouched(row))


def _passes(pool: SessionPool, row: OwnRow, submission: str) -> bool:
    assert isinstance(row.spec, FilesSpec)
    return FilesVerifier(pool, priority=Priority.JOB).verify(row.spec, submission).passed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tasks", type=int, default=40)
    parser.add_argument("--judged", type=int, default=40)
    parser.add_argument("--journal", type=Path, required=True)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--usage", type=Path)
    given = parser.parse_args()
    given.journal.mkdir(parents=True, exist_ok=True)
    state, roots = given.journal / "state", given.journal / "roots"
    found = []
    with Sessions(RuntimeSettings(own=BrokerSettings(state_dir=state, root_dir=roots, ready=0))) as pool:
        for place in sorted(given.folder.iterdir()):
            found.append(measured(place, pool, given.journal, given.tasks, given.judged, given.usage))
            print(found[-1], flush=True)
    names = ("tasks", "judged", "reference passes", "reference differs", "untouched passes")
    total = {name: sum(one.get(name, 0) for one in found) for name in names}
    total["cheats that pass"] = sum(len(one.get("cheats that pass", ())) for one in found)
    print(total)
    if given.json:
        write_run({"repositories": found, "total": total}, given.json)
    holds = total["reference passes"] == total["judged"]
    holds &= not total["untouched passes"] and not total["cheats that pass"]
    return 0 if holds and total["tasks"] else 1


if __name__ == "__main__":
    sys.exit(main())
