"""How much a hostile submission delays its neighbours, and when it is answered itself.

    python benchmarks/neighbours.py [--rounds 3] [--seconds 4] [--limit 5] [--at-once 1] [--only WORD] [--lean FOLDER]
                                    [--json FILE]

Ordinary answers are checked through one `Checker`, at a steady rate (single checks, 50 begun a second, timed from the
moment at which each was due) and then as fast as it goes (batches, as `assay check --pairs` has them). In each round
windows without a hostile submission alternate with windows in which one of each sort is in flight, always the next as
soon as one is answered, but no more than one a second. A delay is that of a window against the windows without around
it; told are the median over the rounds of the middle latency, of the 95th percentile, and of the throughput. The bar:
10 % for the middle latency and the throughput, and every hostile submission answered within its limit and a second;
exit code 1 where that is missed. `--at-once 6` has six in flight. All of it takes ten minutes, one sort one.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from check import pairs
from lean import stand_in

from runtime.profile import BackendName
from runtime.settings import BrokerSettings, RuntimeSettings
from verifiers import tools
from verifiers.checker import Checker
from verifiers.lean.toolchain import find
from verifiers.programs.spec import ProgramSpec, Run
from verifiers.smt.spec import SmtSpec
from verifiers.spec import AnswerSpec, ExpressionSpec, LeanSpec, Spec
from verifiers.verdict import Outcome, Verdict

BAR = 0.10
RATE = 50.0
BATCH, THREADS = 16, 4
MOST_RATE = 8_000
"""So many pairs are made for each second of a window in which it goes as fast as it goes. No window has the pairs of
another: a hand that has decided something before is quicker."""
PAUSE = 1.0
"""Between two hostile submissions, at least, from start to start."""
REST = 0.5
"""Between windows."""
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
HOSTILE: dict[str, Sort] = {
    "a product without end": (
        ExpressionSpec(expected="sin(x)", variables=("x", "y", "z", "u", "v")),
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
    "1 GB printed by a program": (
        DOUBLES,
        "import sys\nfor _ in range(1024):\n    sys.stdout.write('x' * (1 << 20))\n",
    ),
    "a program without end": (DOUBLES, "while True: pass"),
}  # fmt: skip


class Window(NamedTuple):
    """Latencies in seconds, and checks a second."""

    middle: float
    high: float
    rate: float


class Answered(NamedTuple):
    seconds: float
    outcome: str
    ground: str


def ordinary() -> Iterator[Sort]:
    return ((AnswerSpec(expected=gold, form="equal"), answer) for gold, answer in pairs(10**9))


def steady(checker: Checker, source: Iterator[Sort], seconds: float) -> Window:
    """One at a time, each due at its moment, whether the one before was late or not."""
    taken: list[float] = []
    given = list(islice(source, int(seconds * RATE)))
    begun = time.monotonic()
    for number, (spec, answer) in enumerate(given):
        due = begun + number / RATE
        time.sleep(max(0.0, due - time.monotonic()))
        _sound(checker.check(spec, answer))
        taken.append(time.monotonic() - due)
    return _window(taken, len(taken) / (time.monotonic() - begun))


def saturated(checker: Checker, source: Iterator[Sort], seconds: float) -> Window:
    given = list(islice(source, int(seconds * MOST_RATE)))
    taken: list[float] = []
    checked = [0]
    lock = threading.Lock()
    begun = time.monotonic()
    places: Iterator[int] = iter(range(0, 10**9, BATCH))

    def work() -> None:
        while (now := time.monotonic()) < begun + seconds:
            with lock:
                place = next(places) % (len(given) - BATCH)
            for verdict in checker.check_many(given[place : place + BATCH]):
                _sound(verdict)
            with lock:
                taken.append(time.monotonic() - now)
                checked[0] += BATCH

    threads = [threading.Thread(target=work) for _ in range(THREADS * len(os.sched_getaffinity(0)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return _window(taken, checked[0] / (time.monotonic() - begun))


def _sound(verdict: Verdict) -> None:
    if verdict.outcome is Outcome.INFRA_ERROR:
        raise RuntimeError(verdict.reason)


def _window(taken: list[float], rate: float) -> Window:
    return Window(median(taken), quantiles(taken, n=20)[-1], rate)


@contextmanager
def in_flight(checker: Checker, sort: Sort, limit: float, at_once: int) -> Iterator[list[Answered]]:
    """So many of this sort at a time until the end of the block, which waits for the last ones."""
    done = threading.Event()
    answered: list[Answered] = []

    def attack() -> None:
        while not done.is_set():
            begun = time.monotonic()
            verdict = checker.check_many([sort], limit)[0]
            answered.append(Answered(time.monotonic() - begun, verdict.outcome.value, str(verdict.ground or "")))
            done.wait(PAUSE - (time.monotonic() - begun))

    threads = [threading.Thread(target=attack) for _ in range(at_once)]
    for thread in threads:
        thread.start()
    try:
        yield answered
    finally:
        done.set()
        for thread in threads:
            thread.join()


Load = Callable[[Checker, Iterator[Sort], float], Window]


def delays(
    checker: Checker, load: Load, sorts: dict[str, Sort], options: argparse.Namespace
) -> tuple[dict[str, Any], Window]:
    """What each sort costs its neighbours, and the middle of the windows without any."""
    source = ordinary()
    load(checker, source, 1.0)
    without: list[Window] = []
    ratios: dict[str, list[Window]] = {name: [] for name in sorts}
    answers: dict[str, list[Answered]] = {name: [] for name in sorts}
    for _ in range(options.rounds):
        for name, sort in sorts.items():
            before = load(checker, source, options.seconds / 2)
            with in_flight(checker, sort, options.limit, options.at_once) as answered:
                held = load(checker, source, options.seconds)
            answers[name] += answered
            time.sleep(REST)
            after = load(checker, source, options.seconds / 2)
            without += [before, after]
            usual = Window(*(sum(both) / 2 for both in zip(before, after, strict=True)))
            ratios[name].append(
                Window(held.middle / usual.middle - 1, held.high / usual.high - 1, usual.rate / held.rate - 1)
            )
    found = {
        name: {
            "latency_median": round(median(ratio.middle for ratio in ratios[name]), 3),
            "latency_p95": round(median(ratio.high for ratio in ratios[name]), 3),
            "throughput": round(median(ratio.rate for ratio in ratios[name]), 3),
            "answered": len(answers[name]),
            "longest_seconds": round(max(one.seconds for one in answers[name]), 2),
            "outcomes": sorted({f"{one.outcome}/{one.ground}" for one in answers[name]}),
        }
        for name in sorts
    }
    return found, Window(*(median(column) for column in zip(*without, strict=True)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4.0, help="of a window")
    parser.add_argument("--limit", type=float, default=5.0, help="seconds of a hostile submission")
    parser.add_argument("--at-once", type=int, default=1)
    parser.add_argument("--only", help="sorts with this in their name")
    parser.add_argument("--load", choices=["steady", "saturated"])
    parser.add_argument("--lean", type=Path, help="a toolchain's folder; else one is found, or the tests' is made")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    figures: dict[str, Any] = {"load": os.getloadavg()[0], "bar": BAR, "limit": options.limit}
    missed: list[str] = []
    sorts = {name: sort for name, sort in HOSTILE.items() if not options.only or options.only in name}
    with tempfile.TemporaryDirectory(prefix="assay-neighbours-") as name:
        folder = Path(name)
        needs_lean = any(isinstance(spec, LeanSpec) for spec, _ in sorts.values())
        lean = options.lean or (stand_in(folder / "lean") if needs_lean and find() is None else None)
        own = BrokerSettings(
            state_dir=folder / "boxes",
            root_dir=folder / "roots",
            backends=(BackendName.GVISOR, BackendName.NSJAIL),
            programs=tools.programs(lean),
        )
        with Checker(RuntimeSettings(own=own), lean=lean) as checker:
            for sort in sorts.values():  # what has to be made for them is made now
                checker.check_many([sort], 0.5)
            for load in (steady, saturated):
                if options.load in (None, load.__name__):
                    found, usual = delays(checker, load, sorts, options)
                    figures[load.__name__] = {"without": usual._asdict(), "with": found}
                    _show(load.__name__, found, usual, options.limit)
                    missed += [name for name, one in found.items() if _is_missed(one, options.limit)]
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")
    sys.exit(1 if missed else 0)


def _is_missed(one: dict[str, Any], limit: float) -> bool:
    slowed = max(one["latency_median"], one["throughput"]) > BAR
    return slowed or one["longest_seconds"] > limit + 1 or any(word.startswith("infra") for word in one["outcomes"])


def _show(load: str, found: dict[str, Any], usual: Window, limit: float) -> None:
    print(f"{load}: {usual.middle * 1000:.2f} ms, p95 {usual.high * 1000:.2f} ms, {usual.rate:.0f} a second without")
    print(f"{'with':36}{'median':>9}{'p95':>9}{'through.':>9}{'longest':>10}")
    for name, one in found.items():
        delay = "".join(f"{one[key]:+9.1%}" for key in ("latency_median", "latency_p95", "throughput"))
        late = "" if one["longest_seconds"] <= limit + 1 else "  late"
        late += "  without a verdict" if any(word.startswith("infra") for word in one["outcomes"]) else ""
        print(f"{name:36}{delay}{one['longest_seconds']:8.2f} s{late}  {', '.join(one['outcomes'])}", flush=True)


if __name__ == "__main__":
    main()
