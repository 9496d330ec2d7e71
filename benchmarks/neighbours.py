"""How much a hostile submission delays its neighbours, and when it is answered itself.

    python benchmarks/neighbours.py [--minutes 10.5] [--limit 3] [--at-once 1] [--only WORD] [--load steady|saturated]
                                    [--lean FOLDER] [--json FILE]

Ordinary answers are checked through one `Checker`: by a caller who thinks between checks (one every 20 ms, timed from
the moment at which it was due), which tells how much a check is delayed, and then as fast as it goes (batches, as
`assay check --pairs` has them), which tells what of the throughput is lost. Windows with a hostile submission and
without take turns, in the order with, without, without, with, and so on; one with it begins when that is sent and ends
when it is answered, after a second at least, and the one without it that it is compared with has its length. Told are
the median over the pairs of the ratio of the two, less one, and the interval in which that median lies with 95 %
(bootstrap over the pairs, percentiles). `nothing` compares windows without anything: what it shows is noise. The five
sorts that are answered at once take turns in one row.

On a machine that is full, any check takes its share from the others. A program costs a sandbox, and one that is
answered at once comes every second: so at saturation the gigabyte is also compared with a program of the usual kind in
its place (`instead of an ordinary one`), which tells what its hostility costs. The row before it shows what the check
costs at all, and counts for the bar only in the latency.

The bar is 10 % for the middle latency and for the throughput, and an answer within the limit and a second. `holds`:
the whole interval is below the bar; `missed`: all of it is above; `open`: it cannot be told from so few pairs. Exit
code 1 where a median is above the bar or an answer late. With `--at-once 6` six are in flight.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle, islice
from pathlib import Path
from random import Random
from statistics import fmean, median, quantiles
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from check import pairs
from lean import stand_in

from benchmarks.record import write_run
from runtime.profile import BackendName
from runtime.settings import BrokerSettings, RuntimeSettings
from verifiers import tools
from verifiers.answers.spec import AnswerSpec
from verifiers.checker import Checker
from verifiers.contract.verdict import Outcome, Verdict
from verifiers.lean.spec import LeanSpec
from verifiers.lean.toolchain import find
from verifiers.programs.spec import ProgramSpec, Run
from verifiers.registry.spec import Spec
from verifiers.smt.spec import SmtSpec

BAR = 0.10
RATE = 50.0
BATCH, THREADS = 16, 4
PERIOD = 1.0
"""Seconds of a window, at least."""
REST = 0.15
"""Between windows: what was ended is gone by then."""
LEAST = 5
"""Latencies of a window: on a machine that is full it lasts until there are so many."""
SAMPLES = 2_000
LEAST_PAIRS = 5
"""With fewer nothing is said of the bar."""
QUICK = "answered at once"
NOTHING = "nothing"
SHORT_WEIGHT = 0.5
FACTORS = (
    "(declare-const x (_ BitVec 64))(declare-const y (_ BitVec 64))(assert (bvugt x #x0000000000000001))"
    "(assert (bvult x #x0000000100000000))(assert (bvult y #x0000000100000000))(assert (bvugt y #x0000000000000001))"
    "(assert (not (distinct (bvmul x y) #x3fffffea00000059)))"
)
DOUBLES = ProgramSpec(runs=(Run(stdin="1", expected="2"), Run(stdin="2", expected="4")))
DEEP = "(declare-const x Int)(assert (= x 3))"
DOUBLED = "(let ((x (+ x x))) " * 2_000 + "x" + ")" * 2_000
RUNAWAY = (
    "theorem target : 2 + 2 = 5 :=\n  have : @Nat.rec (fun _ => Nat) 0 (fun _ x => x) "
    "100000000000000000000 = 0 := by decide +kernel\n  absurd this this"
)
"""The kernel counts to 10^20, and heartbeats do not stop it."""
SUM, DIFFERENCE = "(x+y+z+u+v)^60", "(x-y+z-u+v)^60"
Sort = tuple[Spec, str]
FLOOD, INSTEAD = "1 GB printed by a program", "instead of an ordinary one"
ORDINARY: dict[str, Sort] = {INSTEAD: (DOUBLES, "print(2 * int(input()))")}
"""What has the place of a row's sorts in the windows that it is compared with; nothing where there is no such row. It
has two runs, as few as a spec may have; a flood ends with its first."""
SHORT = (NOTHING, QUICK, FLOOD, INSTEAD)
"""Rows whose windows take a second only, and so need less time for as many pairs."""
HOSTILE: dict[str, Sort] = {
    "a product without end": (
        AnswerSpec(notation="plain", expected="sin(x)", variables=("x", "y", "z", "u", "v")),
        f"{SUM} * {DIFFERENCE} - ((x+z+v)^2 - (y+u)^2)^60 + sin(x)",
    ),
    "a power tower": (AnswerSpec(expected="9^{9^{9^{9^{9}}}}+1"), "9^{9^{9^{9^{9}}}}"),
    "(10^8)!": (AnswerSpec(expected="(10^{8})!+1"), "(10^{8})!"),
    "10^6 brackets": (AnswerSpec(expected="1"), "(" * 10**6),
    "terms that grow when they are read": (
        SmtSpec(claim="(declare-const x Int)(define-fun reference () Int (* 2 x))", question="equivalent"),
        DOUBLED,
    ),
    "brackets in a model": (SmtSpec(claim=DEEP, question="model"), "(" * 60_000),
    "a claim without end": (SmtSpec(claim=FACTORS), "entailed"),
    "a proof without end": (
        LeanSpec(statement="theorem target : 2 + 2 = 5 := sorry"),
        RUNAWAY,
    ),
    FLOOD: (
        DOUBLES,
        "import sys\nfor _ in range(1024):\n    sys.stdout.write('x' * (1 << 20))\n",
    ),
    "a program without end": (DOUBLES, "while True: pass"),
}  # fmt: skip
AT_ONCE = ("a power tower", "(10^8)!", "10^6 brackets", "terms that grow when they are read", "brackets in a model")


class Window(NamedTuple):
    """Latencies in seconds, and checks a second."""

    middle: float
    mean: float
    high: float
    rate: float
    seconds: float


class Answered(NamedTuple):
    seconds: float
    outcome: str
    ground: str


class Row(NamedTuple):
    """Ratios of windows with and without, less one: a delay is above zero."""

    pairs: list[tuple[Window, Window]]
    answered: list[Answered]

    def ratios(self, column: str) -> list[float]:
        if column == "rate":
            return [without.rate / held.rate - 1 for held, without in self.pairs]
        return [getattr(held, column) / getattr(without, column) - 1 for held, without in self.pairs]


def ordinary() -> Iterator[Sort]:
    return ((AnswerSpec(expected=gold, form="equal"), answer) for gold, answer in pairs(10**9))


def steady(checker: Checker, source: Iterator[Sort], over: threading.Event) -> Window:
    """One at a time, each due at its moment, whether the one before was late or not."""
    taken: list[float] = []
    begun = time.monotonic()
    while True:
        due = begun + len(taken) / RATE
        if over.wait(max(0.0, due - time.monotonic())) and len(taken) >= LEAST:
            break
        _sound(checker.check(*next(source)))
        taken.append(time.monotonic() - due)
    return _window(taken, len(taken), time.monotonic() - begun)


def saturated(checker: Checker, source: Iterator[Sort], over: threading.Event) -> Window:
    taken: list[float] = []
    lasted = [0.0]
    lock = threading.Lock()
    begun = time.monotonic()

    def work() -> None:
        while not (over.is_set() and len(taken) >= LEAST):
            with lock:
                given = list(islice(source, BATCH))
            now = time.monotonic()
            for verdict in checker.check_many(given):
                _sound(verdict)
            with lock:
                if not (over.is_set() and len(taken) >= LEAST):
                    taken.append(time.monotonic() - now)
                    lasted[0] = time.monotonic() - begun

    threads = [threading.Thread(target=work) for _ in range(THREADS * len(os.sched_getaffinity(0)))]
    for thread in threads:
        thread.start()
    over.wait()
    for thread in threads:
        thread.join()
    return _window(taken, BATCH * len(taken), lasted[0])


def _sound(verdict: Verdict) -> None:
    if verdict.outcome is Outcome.INFRA_ERROR:
        raise RuntimeError(verdict.reason)


def _window(taken: list[float], checked: int, seconds: float) -> Window:
    return Window(median(taken), fmean(taken), quantiles(taken, n=20)[-1], checked / seconds, seconds)


Load = Callable[[Checker, Iterator[Sort], threading.Event], Window]


class Bench:
    def __init__(self, checker: Checker, load: Load, limit: float, at_once: int) -> None:
        self._checker, self._load, self._limit, self._at_once = checker, load, limit, at_once
        self._source = ordinary()

    def without(self, seconds: float) -> Window:
        over = threading.Event()
        timer = threading.Timer(seconds, over.set)
        timer.start()
        try:
            return self._load(self._checker, self._source, over)
        finally:
            timer.join()

    def held(self, sort: Sort, answered: list[Answered]) -> Window:
        """From the sending of this sort to the last answer."""
        over = threading.Event()
        begun = time.monotonic()

        def attack() -> None:
            verdict = self._checker.check_many([sort], self._limit)[0]
            answered.append(Answered(time.monotonic() - begun, verdict.outcome.value, str(verdict.ground or "")))

        def attacks() -> None:
            threads = [threading.Thread(target=attack) for _ in range(self._at_once)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            time.sleep(max(0.0, begun + PERIOD - time.monotonic()))
            over.set()

        sending = threading.Thread(target=attacks)
        sending.start()
        try:
            return self._load(self._checker, self._source, over)
        finally:
            sending.join()

    def row(self, sorts: Sequence[Sort], seconds: float, instead: Sort | None = None) -> Row:
        """For so many seconds; `sorts` take turns. Without sorts nothing is compared with nothing; `instead` is what
        has their place in the windows without them."""
        until = time.monotonic() + seconds
        turns: Iterator[Sort | None] = cycle(sorts or [None])
        row = Row([], [])
        length = PERIOD
        while len(row.pairs) < 2 or time.monotonic() < until:
            sort, first = next(turns), len(row.pairs) % 2 == 0
            if not first:
                before = self._before(length, instead)
                time.sleep(REST)
            held = self.without(PERIOD) if sort is None else self.held(sort, row.answered)
            length = held.seconds
            time.sleep(REST)
            if first:
                before = self._before(length, instead)
                time.sleep(REST)
            row.pairs.append((held, before))
        return row

    def _before(self, seconds: float, instead: Sort | None) -> Window:
        return self.without(seconds) if instead is None else self.held(instead, [])


def interval(ratios: Sequence[float]) -> tuple[float, float, float]:
    """The median, and where it lies with 95 % (Efron, bootstrap percentiles)."""
    rng = Random(0)
    found = sorted(median(rng.choices(ratios, k=len(ratios))) for _ in range(SAMPLES))
    return median(ratios), found[int(0.025 * SAMPLES)], found[int(0.975 * SAMPLES) - 1]


def word(pairs: int, low: float, high: float) -> str:
    if pairs < LEAST_PAIRS:
        return "open"
    return "holds" if high <= BAR else "missed" if low > BAR else "open"


def rows_of(sorts: dict[str, Sort], load: Load) -> dict[str, list[Sort]]:
    """Those that are answered at once share a row."""
    found: dict[str, list[Sort]] = {NOTHING: []}
    for name, sort in sorts.items():
        found.setdefault(QUICK if name in AT_ONCE else name, []).append(sort)
        if name == FLOOD and load is saturated:
            found[INSTEAD] = [sort]
    return found


def counts(name: str, load: Load) -> bool:
    """Whether a row is judged: not noise, nor what a check of a program costs at all."""
    return name != NOTHING and not (name == FLOOD and load is saturated)


def told(row: Row, column: str, limit: float) -> dict[str, Any]:
    middle, low, high = interval(row.ratios(column))
    longest = max((one.seconds for one in row.answered), default=0.0)
    outcomes = sorted({f"{one.outcome}/{one.ground}" for one in row.answered})
    late = longest > limit + 1 or any(outcome.startswith("infra") for outcome in outcomes)
    return {
        "pairs": len(row.pairs),
        "delay": round(middle, 3),
        "interval": [round(low, 3), round(high, 3)],
        "mean": round(median(row.ratios("mean")), 3),
        "p95": round(median(row.ratios("high")), 3),
        "bar": word(len(row.pairs), low, high),
        "answered": len(row.answered),
        "longest_seconds": round(longest, 2),
        "late": late,
        "outcomes": outcomes,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.5, help="of all of it, but for its start")
    parser.add_argument("--limit", type=float, default=3.0, help="seconds of a hostile submission")
    parser.add_argument("--at-once", type=int, default=1)
    parser.add_argument("--only", help="sorts with this in their name")
    parser.add_argument("--load", choices=["steady", "saturated"])
    parser.add_argument("--lean", type=Path, help="a toolchain's folder; else one is found, or the tests' is made")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    figures: dict[str, Any] = {"machine_load": os.getloadavg()[0], "bar": BAR, "limit": options.limit}
    missed = False
    sorts = {name: sort for name, sort in HOSTILE.items() if not options.only or options.only in name}
    loads = [load for load in (steady, saturated) if options.load in (None, load.__name__)]
    rows = {load.__name__: rows_of(sorts, load) for load in loads}
    weights = {name: SHORT_WEIGHT if name in SHORT else 1.0 for found in rows.values() for name in found}
    seconds = options.minutes * 60 / sum(weights[name] for found in rows.values() for name in found)
    with tempfile.TemporaryDirectory(prefix="assay-neighbours-") as place:
        folder = Path(place)
        needs_lean = any(isinstance(spec, LeanSpec) for spec, _ in sorts.values())
        lean = options.lean or (stand_in(folder / "lean") if needs_lean and find() is None else None)
        own = BrokerSettings(
            state_dir=folder / "boxes",
            root_dir=folder / "roots",
            backends=(BackendName.GVISOR, BackendName.NSJAIL),
            programs=tools.programs(lean),
        )
        with Checker(RuntimeSettings(own=own), lean=lean) as checker:
            # what has to be made for them is made now
            for sort in [next(ordinary()), *ORDINARY.values(), *sorts.values()]:
                checker.check_many([sort], 0.5)
            for load in loads:
                bench = Bench(checker, load, options.limit, options.at_once)
                bench.without(PERIOD)
                figures[load.__name__] = {}
                for name, group in rows[load.__name__].items():
                    row = bench.row(group, seconds * weights[name], ORDINARY.get(name))
                    usual = Window(*(median(column) for column in zip(*(pair[1] for pair in row.pairs), strict=True)))
                    if name == NOTHING:
                        _head(load.__name__, usual)
                    found = told(row, "middle" if load is steady else "rate", options.limit)
                    figures[load.__name__][name] = {"without": usual._asdict(), **found}
                    _show(name, found)
                    missed = missed or (counts(name, load) and found["delay"] > BAR) or found["late"]
    write_run(figures, options.json)
    sys.exit(1 if missed else 0)


def _head(load: str, usual: Window) -> None:
    shown = f"{usual.middle * 1000:.2f} ms, p95 {usual.high * 1000:.2f} ms, {usual.rate:.0f} a second without"
    print(f"\n{load}: {shown}; load {os.getloadavg()[0]:.1f}")
    kind = "middle latency" if load == "steady" else "throughput"
    print(f"{'with':30}{kind:>16}{'(95 %)':>18}{'mean':>8}{'p95':>8}{'pairs':>7}{'longest':>10}  bar")


def _show(name: str, found: dict[str, Any]) -> None:
    low, high = found["interval"]
    figures = f"{found['delay']:+16.1%}{f'{low:+.1%} .. {high:+.1%}':>18}{found['mean']:+8.0%}{found['p95']:+8.0%}"
    late = "  LATE" if found["late"] else ""
    shown = f"{found['longest_seconds']:8.2f} s" if found["answered"] else f"{'':10}"
    print(
        f"{name:30}{figures}{found['pairs']:7}{shown}  {found['bar']}{late}  {', '.join(found['outcomes'])}", flush=True
    )


if __name__ == "__main__":
    main()
