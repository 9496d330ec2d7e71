"""What the scheduler of rollouts gains.

    python benchmarks/scheduler.py [--engines 1,8,64,512] [--seeds 3] [--arms NAMES] [--ledger FILE] [--json FILE]

A simulation, and only that: engines that evict and compute again as vLLM does when their memory is full, and rollouts
whose lengths nobody knows before they end. Memory is a third of what all rollouts would hold at once. Time goes in
steps of one block of 16 tokens; a running rollout gains a block a step, and one that was evicted has to be read again
at READ_BLOCKS a step before it goes on. A call of a tool keeps a rollout waiting, with its memory.

    free      all at once, spread evenly over the engines; what is evicted comes back at no cost: the measure for others
    static    the same, and an eviction costs what it costs
    strict    floor(memory / longest) at once: nothing is ever evicted
    aimd      prime-rl's controller of concurrency with its own constants (orchestrator/concurrency.py of August 2026:
              polls every 5 s; growth 1.25 a turnover below .6, trims above .8 and .9 to .7, cuts to .8, .9 and .5)
    ours      appliance.scheduling
    reserves  is told every length before, and admits what fits when all have grown to it: nothing is ever evicted
    foresees  is told every length before, and admits what never exceeds memory as all grow, if no call waited

`regenerated` are tokens that were computed again, or thrown away and sampled again, as a share of all that were asked
for. Lengths: lognormal (median 1,500 tokens, sigma .9), with a prompt of 300, cut at 8,192; one rollout in four is of
a group whose tasks are twice as long. `--ledger FILE` takes the lengths of recorded rollouts instead. Bars: makespan
at most 1.1 times `free`, at most 8 % regenerated, and on both no worse than `aimd`. Exit code 1 when one is missed.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from appliance.ledger.sqlite import SqliteLedger
from appliance.records.rollouts import Purpose
from appliance.records.training import RolloutFilter
from appliance.scheduling.lengths import LengthTable
from appliance.scheduling.scheduler import Scheduler, SchedulerState
from benchmarks.record import write_run

BLOCK, LONGEST, PROMPT, READ_BLOCKS = 16, 8192, 300, 64
PER_ENGINE, LEAST, GROUP, BATCHES = 96, 384, 16, 3
"""Rollouts for each engine in a batch, and at least; of one task; batches one after the other, of which the last is
measured: what a scheduler learned of lengths in the first ones is what it knows in a running loop."""
MOST_RECORDED = 100_000
"""The newest ones of a ledger."""
STEP_SECONDS = BLOCK / 50
"""At 50 tokens a second for each rollout."""
POLL_STEPS = round(5.0 / STEP_SECONDS)


Recorded = list[np.ndarray]
"""By task: [rollouts, 2], the tokens of each rollout's prompt, and all of its tokens."""


class Work:
    """Rollouts of one batch, in blocks: final length, prompt, and at which length each calls its tool and for how
    long it waits then."""

    def __init__(self, rng: np.random.Generator, count: int, known: Recorded | None, longest: int = LONGEST) -> None:
        groups = -(-count // GROUP)
        if known is None:
            scale = np.repeat(np.where(rng.random(groups) < 0.25, 2.0, 1.0), GROUP)[:count]
            tokens, prompts = PROMPT + scale * rng.lognormal(math.log(1500), 0.9, count), np.full(count, PROMPT)
        else:
            tasks = [known[rng.integers(len(known))] for _ in range(groups)]
            drawn = np.concatenate([task[rng.integers(len(task), size=GROUP)] for task in tasks])[:count]
            prompts, tokens = drawn.T
        self.prompt = np.clip(np.ceil(prompts / BLOCK), 1, longest // BLOCK - 2).astype(int)
        self.final = np.clip(np.ceil(tokens / BLOCK), self.prompt + 2, longest // BLOCK).astype(int)
        self.group = np.repeat(np.arange(groups), GROUP)[:count]
        calls = rng.integers(0, 5, count)
        self.waits = np.zeros((count, int(self.final.max()) + 1), np.int16)
        """By rollout and length: the steps that its tool takes then."""
        for one, (start, end, n) in enumerate(zip(self.prompt, self.final, calls, strict=True)):
            places = rng.integers(start + 1, max(start + 2, end), n)
            self.waits[one, places] = rng.geometric(0.3, n)

    def __len__(self) -> int:
        return len(self.final)


class Engines:
    """What evicts, reads again and decodes; whoever admits says who is there. `free`: reading costs nothing."""

    def __init__(self, work: Work, engines: int, memory: int, *, free: bool = False) -> None:
        n = len(work)
        self.work, self.memory, self.free = work, memory, free
        self.length = work.prompt.copy()
        self.engine = np.full(n, -1)
        self.active = np.zeros(n, bool)
        """Holds memory and is not evicted."""
        self.done = np.zeros(n, bool)
        self.busy_until = np.zeros(n, int)
        self.waiting: list[list[int]] = [[] for _ in range(engines)]
        """Sent to that engine, and without memory there: FIFO; evicted ones first."""
        self.order = np.zeros(n, int)
        self.arrived = 0
        self.step = 0
        self.regenerated = 0
        self.preempted = 0

    def send(self, one: int, engine: int) -> None:
        self.engine[one] = engine
        self.waiting[engine].append(one)

    def used(self) -> np.ndarray:
        return np.bincount(self.engine[self.active], self.length[self.active], len(self.waiting)).astype(int)

    def advance(self) -> list[int]:
        """One step. Returns who ended."""
        self.step += 1
        used = self.used()
        for number, line in enumerate(self.waiting):
            while line and used[number] + self.length[line[0]] <= self.memory:
                one = line.pop(0)
                self.active[one] = True
                self.arrived += 1
                self.order[one] = self.arrived
                again = (
                    0
                    if self.free
                    else self.length[one] - (self.length[one] == self.work.prompt[one]) * self.length[one]
                )
                self.busy_until[one] = self.step + -(-again // READ_BLOCKS)
                used[number] += self.length[one]
        goes = self.active & (self.busy_until <= self.step)
        grown = np.bincount(self.engine[goes], minlength=len(self.waiting))
        full = np.flatnonzero(used + grown > self.memory)
        there = np.flatnonzero(self.active) if len(full) else full
        there = there[np.lexsort((-self.order[there], self.engine[there]))]
        first, last = (np.searchsorted(self.engine[there], full, side) for side in ("left", "right"))
        for number, start, end in zip(full, first, last, strict=True):
            for one in there[start:end]:
                if used[number] + grown[number] <= self.memory:
                    break
                self.active[one] = False
                used[number] -= self.length[one]
                grown[number] -= bool(goes[one])
                goes[one] = False
                self.preempted += 1
                self.regenerated += 0 if self.free else int(self.length[one])
                self.waiting[number].insert(0, one)
        self.length[goes] += 1
        going = np.flatnonzero(goes)
        waits = self.work.waits[going, self.length[going]]
        self.busy_until[going[waits > 0]] = self.step + waits[waits > 0]
        ended = np.flatnonzero(goes & (self.length >= self.work.final))
        self.active[ended] = False
        self.done[ended] = True
        return ended.tolist()

    def take(self, one: int) -> None:
        """Takes a rollout from its engine; it keeps its tokens, and has to be read again where it goes on."""
        if not self.active[one]:
            self.waiting[self.engine[one]].remove(one)
        else:
            self.regenerated += int(self.length[one])
        self.active[one] = False
        self.engine[one] = -1

    def cancel(self, one: int) -> None:
        """Throws a rollout away: what it had is sampled again from its prompt."""
        if not self.active[one]:
            self.waiting[self.engine[one]].remove(one)
        self.regenerated += int(self.length[one] - self.work.prompt[one])
        self.active[one] = False
        self.length[one] = self.work.prompt[one]
        self.engine[one] = -1


def rollouts_for(engines: int) -> int:
    return max(LEAST, PER_ENGINE * engines)


Arm = Callable[[Engines, dict[str, Any]], None]


def everything(engines: Engines, memory: dict[str, Any]) -> None:
    for one in range(len(engines.work)):
        engines.send(one, one % len(engines.waiting))
    while not engines.done.all():
        engines.advance()


def strict(engines: Engines, memory: dict[str, Any]) -> None:
    room = max(1, engines.memory // (LONGEST // BLOCK))
    there = [0] * len(engines.waiting)
    queue = list(range(len(engines.work)))[::-1]
    while not engines.done.all():
        for number in range(len(there)):
            while queue and there[number] < room:
                engines.send(queue.pop(), number)
                there[number] += 1
        for one in engines.advance():
            there[engines.engine[one]] -= 1


def aimd(engines: Engines, memory: dict[str, Any]) -> None:
    """prime-rl's controller: one cap over all engines, each new rollout to the engine with the fewest."""
    total = engines.memory * len(engines.waiting)
    cap = memory.setdefault("cap", max(1.0, total / (LONGEST // BLOCK)))
    queue = list(range(len(engines.work)))[::-1]
    inflight: list[int] = []
    there = [0] * len(engines.waiting)
    can_grow, draining, escalated, grace, cooldown, overloaded, seen = False, False, False, 0, 0, 0, 0
    waited = np.zeros(len(there), bool)

    def shed(target: float, *, cancel: bool) -> None:
        nonlocal cap
        cap = float(min(int(max(1.0, target)), int(cap)))
        while cancel and len(inflight) > cap:
            youngest = inflight.pop()
            there[engines.engine[youngest]] -= 1
            engines.cancel(youngest)
            queue.append(youngest)

    while not engines.done.all():
        while queue and len(inflight) < int(cap):
            one, number = queue.pop(), int(np.argmin(there))
            engines.send(one, number)
            inflight.append(one)
            there[number] += 1
        for one in engines.advance():
            binds = len(inflight) >= 0.9 * int(cap)
            if can_grow and binds:
                cap *= 1.25 ** (1 / len(inflight))
            inflight.remove(one)
            there[engines.engine[one]] -= 1
        if engines.step % POLL_STEPS:
            continue
        usage = float(engines.used().max()) / engines.memory
        queued = sum(map(len, engines.waiting))
        running = int(engines.active.sum())
        preempted, seen = engines.preempted > seen, engines.preempted
        lines = np.array([bool(line) for line in engines.waiting])
        overloaded = overloaded + 1 if running and queued > 0.5 * running else 0
        overload = overloaded >= 6
        clear = not (preempted or overload or usage > 0.6 or bool((lines & waited).any()))
        waited = lines
        if draining and len(inflight) <= cap and not preempted and not overload:
            draining, grace = False, 6
        if not draining and escalated:
            grace -= 1
            escalated = grace > 0
        cooldown = max(0, cooldown - 1)
        can_grow = clear and not queued and not draining
        if draining:
            continue
        if preempted or overload:
            overloaded = 0 if overload else overloaded
            share = 0.5 if escalated else 0.9 if overload else 0.8
            shed(len(inflight) * share, cancel=True)
            draining = escalated = True
        elif usage > 0.8 and inflight and not cooldown:
            shed(len(inflight) * 0.7 / usage, cancel=usage > 0.9)
            cooldown = 6
    memory["cap"] = cap


def ours(engines: Engines, memory: dict[str, Any]) -> None:
    names = {f"engine-{number}": engines.memory * BLOCK for number in range(len(engines.waiting))}
    number_of = {name: number for number, name in enumerate(names)}
    state = memory.get("state") or SchedulerState(lengths=LengthTable(longest=memory.get("longest", LONGEST)))
    scheduler = Scheduler(names, state)
    for one in range(len(engines.work)):
        scheduler.submit(str(one), str(engines.work.group[one]), int(engines.length[one]) * BLOCK)
    seen = 0
    while not engines.done.all():
        for placed in scheduler.admit():
            engines.send(int(placed.rollout), number_of[placed.engine])
        before = engines.length.copy()
        ended = engines.advance()
        for one in np.flatnonzero(engines.length > before).tolist():
            scheduler.grow(str(one), int(engines.length[one]) * BLOCK)
        for one in ended:
            scheduler.finish(str(one))
        scheduler.note_evictions((engines.regenerated - seen) * BLOCK)
        for rollout in scheduler.set_back(BLOCK):
            engines.take(int(rollout))
        seen = engines.regenerated
    memory["state"] = scheduler.state


def told(fits: Callable[[np.ndarray, np.ndarray, int], bool]) -> Arm:
    """Makes an arm that knows each rollout's length, which no scheduler does: what can be had at all. Of the 16 that
    wait longest it admits to an engine whatever still fits beside those that are there."""

    def arm(engines: Engines, memory: dict[str, Any]) -> None:
        queue = list(range(len(engines.work)))
        there: list[list[int]] = [[] for _ in engines.waiting]
        while not engines.done.all():
            for number, mine in enumerate(there):
                for one in queue[:16]:
                    both = np.array([*mine, one])
                    if fits(engines.length[both], engines.work.final[both], engines.memory):
                        queue.remove(one)
                        engines.send(one, number)
                        mine.append(one)
            for one in engines.advance():
                there[engines.engine[one]].remove(one)

    return arm


def fits_grown(_length: np.ndarray, final: np.ndarray, memory: int) -> bool:
    return int(final.sum()) <= memory


def fits_on_the_way(length: np.ndarray, final: np.ndarray, memory: int) -> bool:
    """Most is held just before one of them ends."""
    left = final - length
    return all(int((length + ahead)[left >= ahead].sum()) <= memory for ahead in np.unique(left))


TOLD: dict[str, Arm] = {"reserves": told(fits_grown), "foresees": told(fits_on_the_way)}
ARMS: dict[str, Arm] = {"free": everything, "static": everything, "strict": strict, "aimd": aimd, "ours": ours, **TOLD}


def measured(arm: str, engines: int, seed: int, known: Recorded | None) -> dict[str, float]:
    memory: dict[str, Any] = {}
    figures: dict[str, float] = {}
    for batch in range(BATCHES):
        work = Work(np.random.default_rng((seed, engines, batch)), rollouts_for(engines), known)
        there = Engines(work, engines, math.ceil(int(work.final.sum()) / 3 / engines), free=arm == "free")
        ARMS[arm](there, memory)
        asked = int((work.final - work.prompt).sum())
        figures = {"steps": there.step, "regenerated": there.regenerated / asked, "evictions": there.preempted}
    return figures


def recorded(path: Path) -> Recorded:
    """Prompts and lengths of a ledger's rollouts of training, stretched. Raises SystemExit where it has none."""
    if not path.is_file():
        raise SystemExit(f"there is no ledger {path}")
    tasks: defaultdict[tuple[str, int, str], list[tuple[int, int]]] = defaultdict(list)
    with SqliteLedger(path) as ledger:
        for one in ledger.rollouts(RolloutFilter(purpose=Purpose.TRAIN), limit=MOST_RECORDED):
            rollout = one.rollout
            if rollout.tokens and rollout.branch_of is None:
                place = (rollout.cycle, rollout.step, rollout.task)
                tasks[place].append((len(rollout.nodes[0].ids), rollout.tokens))
    if not tasks:
        raise SystemExit(f"{path} has no rollouts of training with their tokens")
    longest = max(tokens for rollouts in tasks.values() for _, tokens in rollouts)
    return [np.array(rollouts) * (LONGEST / longest) for rollouts in tasks.values()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engines", default="1,8,64,512")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--arms", default=",".join(ARMS), help="of these, with free, aimd and ours among them")
    parser.add_argument("--ledger", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    arms = options.arms.split(",")
    if set(arms) - ARMS.keys() or {"free", "aimd", "ours"} - set(arms):
        parser.error(f"--arms takes free, aimd, ours and any of {', '.join(ARMS)}, separated by commas")
    known = recorded(options.ledger) if options.ledger else None
    rows, missed = [], []
    for engines in map(int, options.engines.split(",")):
        found = {arm: [measured(arm, engines, seed, known) for seed in range(options.seeds)] for arm in arms}
        free = mean(one["steps"] for one in found["free"])
        print(f"{engines} engines, {rollouts_for(engines)} rollouts, means of {options.seeds} seeds")
        figures = {}
        for arm, seeds in found.items():
            time, again = mean(one["steps"] for one in seeds) / free, mean(one["regenerated"] for one in seeds)
            figures[arm] = (time, again)
            spread = (
                f"[{min(one['steps'] for one in seeds) / free:.2f}, {max(one['steps'] for one in seeds) / free:.2f}]"
            )
            print(f"    {arm:8} makespan {time:5.2f} {spread:14} regenerated {100 * again:6.1f} %", flush=True)
            rows.append({"engines": engines, "arm": arm, "makespan": time, "regenerated": again})
        time, again = figures["ours"]
        if time > 1.1 or again > 0.08 or time > figures["aimd"][0] or again > figures["aimd"][1]:
            missed.append(str(engines))
    print(f"bars missed with so many engines: {', '.join(missed) or 'none'}")
    write_run(rows, options.json)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
