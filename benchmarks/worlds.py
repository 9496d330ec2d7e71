"""Worlds a second for the rollouts of a task: forks of a prepared world, beside worlds that are started anew.

    python benchmarks/worlds.py [--rounds 5] [--group 8] [--messages 20000] [--ready 0] [--roots FOLDER] [--json FILE]

Real sandboxes under gVisor. In each round a group of worlds is made in both ways, in turn, of the same mailbox
(`curriculum.environments.mail`): anew, which makes and sends the mailbox, starts the program and builds its index; and
as forks of one world that was prepared for the task. A world counts once it has answered a call. What preparing took is
told beside it, and the whole with it. `--ready` is how many sandboxes the broker may keep ready: those that it starts
again after one way are paid for by the next, so by default there are none. Bar: at least 3 times as many a second by
forks, in the median of the rounds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from concurrent.futures import Future
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from curriculum.environments.mail.environment import MAIL
from curriculum.registry import make_draft
from curriculum.worlds.world import World, WorldReply
from runtime.sandbox import Limits, SessionPool
from runtime.sessions import Sessions
from runtime.settings import BrokerSettings, RuntimeSettings

BAR = 3.0
CALL = ("search_inbox", {"keywords": "invoice", "limit": 1})


def answered(worlds: list[World]) -> None:
    """Calls them all at once, and waits until each has answered."""
    replies: list[Future[WorldReply]] = [world.start(*CALL) for world in worlds]
    assert all(not reply.result().failed for reply in replies)


def anew(pool: SessionPool, setup: dict[str, object], group: int) -> float:
    """Seconds for a group that is started anew."""
    begun = time.perf_counter()
    with ExitStack() as held:
        worlds = [held.enter_context(World.open(pool, MAIL, setup)) for _ in range(group)]
        answered(worlds)
        return time.perf_counter() - begun


def forked(prepared: World, group: int) -> float:
    """Seconds for a group of forks."""
    begun = time.perf_counter()
    with ExitStack() as held:
        worlds = [held.enter_context(world) for world in prepared.fork(group)]
        answered(worlds)
        return time.perf_counter() - begun


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--group", type=int, default=8)
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--roots", type=Path)
    parser.add_argument("--ready", type=int, default=0)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    setup = {**make_draft("mail_search", 0, 0).world, "messages": given.messages}
    rounds = []
    with tempfile.TemporaryDirectory() as folder:
        roots = given.roots or Path(folder) / "roots"
        own = BrokerSettings(state_dir=Path(folder) / "state", root_dir=roots, ready=given.ready)
        with Sessions(RuntimeSettings(own=own, limits=Limits(call_seconds=60))) as pool:
            anew(pool, setup, 1)
            for _ in range(given.rounds):
                fresh = anew(pool, setup, given.group)
                begun = time.perf_counter()
                with World.open(pool, MAIL, setup) as prepared:
                    prepared.begun.result()
                    took = time.perf_counter() - begun
                    rounds.append((given.group / fresh, given.group / forked(prepared, given.group), took))
                print(f"anew {rounds[-1][0]:.2f}/s, forks {rounds[-1][1]:.2f}/s, preparing {took:.2f} s", flush=True)
    ratios = [forks / fresh for fresh, forks, _ in rounds]
    whole = [(given.group / (given.group / forks + took)) / fresh for fresh, forks, took in rounds]
    ratio = statistics.median(ratios)
    print(f"forks {ratio:.2f} times as many, {statistics.median(whole):.2f} with preparing; bar {BAR:g}")
    if given.json:
        given.json.write_text(
            json.dumps({"rounds": rounds, "ratio": ratio, "whole": statistics.median(whole)}, indent=1)
        )
    return 0 if ratio >= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
