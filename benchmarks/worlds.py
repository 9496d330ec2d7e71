"""Worlds a second for the rollouts of a task: prepared once, beside worlds that are started anew, in one run.

    python benchmarks/worlds.py [--only NAME] [--rounds 5] [--group 8] [--messages N] [--ready 0] [--json FILE]

Real sandboxes under gVisor, a task of the hardest level of each environment's taskset. In each round a group of
worlds is made in turn: *anew*, which makes and sends the files, starts the program and what belongs to it; and as the
appliance makes them of one world that was prepared for the task: *forks*, or, where a world is shareable, *views* of
it, and a digest at the end of each shows that it is as it was. A world counts once it has answered a call. What
preparing took is told beside it, and the whole with it. `--ready` is how many sandboxes the broker may keep ready:
those that it starts again after one way are paid for by the next, so by default there are none. Bar: at least 3 times
as many a second as anew, in the median of the rounds.
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
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from curriculum.contract.environment import Environment
from curriculum.environments import ENVIRONMENTS
from curriculum.registry import TASKSETS, make_draft
from curriculum.worlds.world import World, WorldReply
from runtime.sandbox import Limits, SessionPool
from runtime.sessions import Sessions
from runtime.settings import BrokerSettings, RuntimeSettings

BAR = 3.0
ASKED: dict[str, tuple[str, tuple[str, dict[str, Any]]]] = {
    "mail": ("mail_search", ("search_inbox", {"keywords": "invoice", "limit": 1})),
    "research": ("research", ("search", {"query": "town"})),
    "orchestration": ("orchestration", ("list_tools", {"server": "?"})),
    "games": ("hidden_rules", ("look", {})),
    "terminal": ("terminal_repairs", ("run_command", {"command": "true"})),
}


class Round(NamedTuple):
    """Holds worlds a second, and seconds."""

    anew: float
    forked: float
    preparing: float


class Asked(NamedTuple):
    environment: Environment
    setup: dict[str, Any]
    call: tuple[str, dict[str, Any]]

    def require_answers(self, worlds: list[World]) -> None:
        """Calls them all at once, and waits until each has answered."""
        replies: list[Future[WorldReply]] = [world.start(*self.call) for world in worlds]
        assert all(not reply.result().failed for reply in replies)

    def anew(self, pool: SessionPool, group: int) -> float:
        begun = time.perf_counter()
        with ExitStack() as held:
            self.require_answers(
                [held.enter_context(World.open(pool, self.environment, self.setup)) for _ in range(group)]
            )
            return group / (time.perf_counter() - begun)

    def forked(self, prepared: World, group: int) -> float:
        shareable = self.environment.shareable
        digest, begun = prepared.digest() if shareable else "", time.perf_counter()
        with ExitStack() as held:
            worlds = [held.enter_context(world) for world in prepared.fork(group)]
            self.require_answers(worlds)
            after = [world.start_digest() for world in worlds if shareable]
            assert {one.result() for one in after} <= {digest}
            return group / (time.perf_counter() - begun)

    def round(self, pool: SessionPool, group: int) -> Round:
        anew, begun = self.anew(pool, group), time.perf_counter()
        with World.open(pool, self.environment, self.setup) as prepared:
            prepared.begun.result()
            took = time.perf_counter() - begun
            return Round(anew, self.forked(prepared, group), took)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", choices=sorted(ASKED))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--group", type=int, default=8)
    parser.add_argument("--messages", type=int, help="In the mailbox, in place of the task's own number.")
    parser.add_argument("--roots", type=Path)
    parser.add_argument("--ready", type=int, default=0)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    rows, missed = {}, []
    with tempfile.TemporaryDirectory() as folder:
        roots = given.roots or Path(folder) / "roots"
        own = BrokerSettings(state_dir=Path(folder) / "state", root_dir=roots, ready=given.ready)
        with Sessions(RuntimeSettings(own=own, limits=Limits(call_seconds=60))) as pool:
            for name in [given.only] if given.only else ASKED:
                environment, (taskset, call) = ENVIRONMENTS[name], ASKED[name]
                if why := environment.missing():
                    print(f"{name}: left out: {why}")
                    continue
                setup = dict(make_draft(taskset, TASKSETS[taskset].level_count - 1, 0).world)
                if name == "mail" and given.messages:
                    setup["messages"] = given.messages
                if name == "orchestration":
                    call = ("list_tools", {"server": setup["servers"][0]})
                asked = Asked(environment, setup, call)
                asked.anew(pool, 1)
                rounds = [asked.round(pool, given.group) for _ in range(given.rounds)]
                rows[name] = rounds
                made = statistics.median(one.forked for one in rounds)
                ratio = statistics.median(one.forked / one.anew for one in rounds)
                whole = statistics.median(
                    given.group / (given.group / one.forked + one.preparing) / one.anew for one in rounds
                )
                anew = statistics.median(one.anew for one in rounds)
                way = "views" if environment.shareable else "forks"
                print(
                    f"{name}: anew {anew:.2f}/s, {way} {made:.2f}/s: {ratio:.2f} times as many, "
                    f"{whole:.2f} with preparing ({statistics.median(one.preparing for one in rounds):.2f} s); "
                    f"{'met' if ratio >= BAR else 'missed'}",
                    flush=True,
                )
                if ratio < BAR:
                    missed.append(name)
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
