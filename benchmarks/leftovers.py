"""What is left on the host: sessions, branches and a broker that is killed again and again.

`python benchmarks/leftovers.py [--sessions N] [--branches N] [--kills N] [--seed N] [--json FILE]`; a scenario of
`benchmarks/runtime.py` too. Looked at afterwards: processes, mounts, control groups, files and descriptors that carry
the name of this run's state folder, and the broker's memory along the way. Exit code 1 when anything is left.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.record import write_run
from runtime.backends.lease import state_mark, working_folder
from runtime.backends.sweep import sweep
from runtime.errors import BusyError, InfrastructureError
from runtime.sandbox import CallStatus, Limits, Tier
from runtime.sessions import Sessions
from runtime.settings import BrokerSettings, RuntimeSettings


def find_groups(start: str) -> list[Path]:
    """Control groups by the beginning of their names; those of others may vanish while one looks."""
    return [Path(at, name) for at, below, _ in os.walk("/sys/fs/cgroup") for name in below if name.startswith(start)]


def traces(state_dir: Path) -> dict[str, list[str]]:
    """Everything on this host that carries the name of the state folder."""
    mark, places = f"assay-{state_mark(state_dir)}.", (str(state_dir), str(working_folder(state_dir)))
    processes = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue
            if any(place in line for place in places):
                processes.append(f"{entry.name} {line[:120]!r}")
    mounts = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if any(p in line for p in places)]
    groups = [str(found) for found in find_groups(mark)]
    files = [str(path) for place in map(Path, places) if place.is_dir() for path in place.rglob("*")]
    return {"processes": processes, "mounts": mounts, "cgroups": groups, "files": files}


def broker_of(state_dir: Path) -> int | None:
    """The process number of the broker that works on this folder: a child of ours that runs `runtime.broker`."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                line = (entry / "cmdline").read_bytes()
            except (OSError, IndexError, ValueError):
                continue
            if parent == os.getpid() and b"runtime.broker" in line:
                return int(entry.name)
    return None


def rss_mib(pid: int) -> float:
    text = Path(f"/proc/{pid}/status").read_text()
    return round(next(int(line.split()[1]) for line in text.splitlines() if line.startswith("VmRSS:")) / 1024, 1)


def descriptors(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def use_sessions(pool: Sessions, number: int, random_numbers: random.Random) -> None:
    """Sessions of every tier, each used and closed; some closed in the middle of a call."""
    for n in range(number):
        tier = random_numbers.choices([Tier.SHARED, Tier.PROCESS, Tier.SANDBOX], [6, 3, 1])[0]
        session = pool.open(tier=tier)
        result = session.run(f"x = {n}\nprint(x)")
        if result.status is not CallStatus.OK:
            raise RuntimeError(f"a call ended as {result.status}: {result.error}")
        if random_numbers.random() < 0.1:
            session.start("while True: pass")
        session.close()


def use_branches(pool: Sessions, number: int) -> None:
    with pool.sandbox() as box:
        box.run("x = 5")
        kept = box.snapshot()
        for _ in range(number // 4):
            branches = box.fork(kept, 4)
            for branch in branches:
                if branch.run("print(x)").output != "5\n":
                    raise RuntimeError("a branch lost its names")
            for branch in branches:
                branch.close()


def kill_brokers(pool: Sessions, state_dir: Path, kills: int, random_numbers: random.Random) -> dict[str, int]:
    """Work goes on from several threads while the broker is killed with SIGKILL at random moments."""
    counts = {"kills": 0, "answered": 0, "infrastructure": 0, "other": 0}
    stop = threading.Event()

    def work(seed: int) -> None:
        mine = random.Random(seed)
        while not stop.is_set():
            try:
                with pool.open(tier=mine.choice(list(Tier))) as session:
                    for n in range(3):
                        session.run(f"y = {n}\nprint(y)")
                        counts["answered"] += 1
            except (InfrastructureError, BusyError):
                counts["infrastructure"] += 1
                time.sleep(0.05)
            except Exception as error:  # noqa: BLE001 - counted, and fails the run
                counts["other"] += 1
                print(f"    not an infrastructure error: {error!r}", file=sys.stderr)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(kills):
        time.sleep(random_numbers.uniform(0.2, 1.5))
        deadline = time.monotonic() + 20
        while (pid := broker_of(state_dir)) is None and time.monotonic() < deadline:
            time.sleep(0.05)
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
            counts["kills"] += 1
    stop.set()
    for thread in threads:
        thread.join(60)
    return counts


def measure(sessions: int, branches: int, kills: int, seed: int) -> dict[str, Any]:
    figures: dict[str, Any] = {"sessions": sessions, "branches": branches, "seed": seed}
    numbers = random.Random(seed)
    own = len(list(Path("/proc/self/fd").iterdir()))
    with tempfile.TemporaryDirectory(prefix="assay-left-") as folder:
        state = Path(folder) / "state"
        settings = RuntimeSettings(
            own=BrokerSettings(state_dir=state, root_dir=Path(folder) / "roots"), limits=Limits(call_seconds=5.0)
        )
        pool = Sessions(settings)
        use_sessions(pool, min(100, sessions), numbers)
        broker = broker_of(state)
        assert broker is not None
        figures["broker_rss_mib"] = [rss_mib(broker)]
        figures["broker_descriptors"] = [descriptors(broker)]
        for _ in range(4):
            use_sessions(pool, sessions // 4, numbers)
            figures["broker_rss_mib"].append(rss_mib(broker))
            figures["broker_descriptors"].append(descriptors(broker))
        use_branches(pool, branches)
        figures["broker_rss_mib"].append(rss_mib(broker))
        figures["killed"] = kill_brokers(pool, state, kills, numbers)
        pool.close()
        time.sleep(1.0)
        before = traces(state)
        figures["left_before_a_sweep"] = {kind: len(found) for kind, found in before.items()}
        sweep(state)
        left = traces(state)
        figures["left"] = {kind: found[:5] for kind, found in left.items()}
        figures["descriptors_left"] = len(list(Path("/proc/self/fd").iterdir())) - own
    growth = figures["broker_rss_mib"][-1] - figures["broker_rss_mib"][1]
    figures["broker_growth_mib"] = round(growth, 1)
    figures["bar"] = "nothing left; memory of the broker flat (within 5 MiB)"
    figures["met"] = (
        not any(left.values())
        and not before["processes"]
        and figures["descriptors_left"] <= 0
        and growth <= 5
        and figures["killed"]["other"] == 0
        and figures["killed"]["kills"] == kills
    )
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=1_000)
    parser.add_argument("--branches", type=int, default=200)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    figures = measure(options.sessions, options.branches, options.kills, options.seed)
    for name, figure in figures.items():
        print(f"{name:28} {figure}")
    write_run(figures, options.json)
    return 0 if figures["met"] else 1


if __name__ == "__main__":
    raise SystemExit(main())
