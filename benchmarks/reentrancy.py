"""Do two sessions of one interpreter stay apart, whatever changes while it is read? By snippets that know re-entrancy.

`python benchmarks/reentrancy.py [--snippets N] [--first BATCH] [--progress FILE] [--reopen accumulate] [--json FILE]`.
Draws snippets by `reentrancy_grammar.py` and has each decided as a session's would be (`classify`). What is decided
shared runs by the guest's own evaluator of the shared tier, in turn in two sessions of one plain interpreter with
limits and no sandbox. What is decided otherwise counts as drawn and does not run. After each history of 16 snippets:

    - objects in both sessions' namespaces that no snippet can name, and fresh ones made between any two snippets, are
      as they were: identity, type, size, number of references, value;
    - nothing of them is in an output or can be reached from a name; no list or dictionary is reached from both;
    - both sessions printed the same, raised the same, and are left with the same values in the same shape.

After each batch the interpreter's own modules are as they were. A batch is a process: a crash names the batch, the
history and the snippet. Every eighth batch has CPython's debugging allocator, which writes over what is freed. The same
numbers give the same snippets; with `--progress` a batch whose line is in that file is not run again. `--reopen` opens
an old door in the decision, to show that the search finds it. Exit code 1 when anything was found.
"""

from __future__ import annotations

import argparse
import builtins
import cmath
import gc
import itertools
import json
import math
import mmap
import os
import re
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.record import write_run
from benchmarks.reentrancy_grammar import BEGINNING, Writer
from runtime.guest import kinds, ops, shared
from runtime.sessions import purity

BATCH: Final = 20_000
HISTORY: Final = 16
SLICE_SECONDS: Final = 0.005
"""Of processor time, not of the clock as in a guest: the same snippets end on a busy machine as on a quiet one."""
MEMORY_BYTES: Final = 1 << 29
CPU_SECONDS: Final = 600
MARK: Final = "canary~"
DEBUGGING: Final = 8
SHOWN: Final = 5
NODES: Final = 3_000
ENDED: Final = (kinds.SLICE, kinds.OUTPUT, kinds.MEMORY)
POSITION: Final = struct.Struct("<QQ")
SESSIONS: Final = (1, 2)


class Canaries:
    """Holds a session's objects that only a broken interpreter reads or writes."""

    def __init__(self, token: str) -> None:
        self._token = token
        lists: list[Any] = [[token, n] * n for n in (1, 2, 3, 5, 9)]
        self.objects: list[Any] = [
            *lists,
            {token: lists[0], 1: 2},
            (token, lists[1]),
            [[lists[2]], token],
            float("1.5"),
        ]
        self.probes: list[Any] = []
        self._before: list[tuple[object, ...]] = []

    def begin(self) -> None:
        """Takes the first picture, once nobody else refers to anything in it."""
        self._before = self._picture()

    def _picture(self) -> list[tuple[object, ...]]:
        return [(id(o), type(o), sys.getsizeof(o), sys.getrefcount(o), repr(o)) for o in self.objects]

    def take_up(self, step: int) -> None:
        """Makes fresh objects where something may just have been freed."""
        token = self._token
        self.probes += ([token] * (step % 7 + 1), {token: step}, (token, step), [token, [step]])

    def damage(self) -> bool:
        if self._picture() != self._before:
            return True
        token = self._token
        for number in range(0, len(self.probes), 4):
            step = self.probes[number + 1].get(token)
            if self.probes[number : number + 4] != [
                [token] * (step % 7 + 1), {token: step}, (token, step), [token, [step]]
            ]:  # fmt: skip
                return True
        return False


def reached(names: dict[str, Any]) -> tuple[list[Any], set[int]]:
    """Gives the values that a session is left with, flat and in order, and the identities of what can change."""
    flat: list[Any] = []
    seen: dict[int, int] = {}
    mutable: set[int] = set()
    waiting: list[Any] = [value for name, value in names.items() if name not in ("__builtins__", "_canaries")]
    while waiting and len(flat) < NODES:
        value = waiting.pop()
        kind = type(value)
        if kind in (list, dict, tuple):
            known = seen.get(id(value))
            flat.append((kind.__name__, len(value), known))
            if known is not None:
                continue
            seen[id(value)] = len(seen)
            if kind is not tuple:
                mutable.add(id(value))
            waiting += [*value, *value.values()] if kind is dict else value
        elif kind is int or kind is str:
            flat.append(value)
        else:
            flat.append(f"{kind.__name__} {ADDRESSES.sub('', repr(value))}")
    return flat, mutable


ADDRESSES = re.compile("(?!)")
"""What is not compared of outputs and values: nothing. Of an open door, which lets iterators be values, addresses."""


def surroundings() -> list[Any]:
    modules = (builtins, math, cmath, itertools)
    return [
        *(sorted((name, id(value)) for name, value in vars(module).items()) for module in modules),
        sorted(sys.modules), sys.getrecursionlimit(), sys.get_int_max_str_digits(),
        sorted(vars(list)), sorted(vars(dict)), sorted(vars(str)),
    ]  # fmt: skip


class Batch:
    """Draws, decides and runs the snippets of one batch, in this interpreter."""

    def __init__(self, number: int, size: int, where: mmap.mmap) -> None:
        self._number, self._size, self._where = number, size, where
        self._writer = Writer(f"reentrancy {number}")
        self._worker = shared.SharedWorker(slice_seconds=SLICE_SECONDS, output_bytes=1 << 14, memory_bytes=MEMORY_BYTES)
        signal.signal(signal.SIGPROF, self._worker._interrupt)
        self.drawn = self.ran = self.raised = self.ended = 0
        self.findings: list[dict[str, Any]] = []

    def run(self) -> None:
        self._worker._namespace(0)
        before = surroundings()
        for history in range(-(-self._size // HISTORY)):
            self._history(history, min(HISTORY, self._size - self.drawn))
        self._worker._sessions.clear()
        gc.collect()
        if surroundings() != before:
            self.findings.append({"batch": self._number, "what": "the interpreter's own state has changed"})

    def _history(self, history: int, size: int) -> None:
        sources = [self._writer.snippet() for _ in range(size)]
        self.drawn += size
        pure = [source for source in sources if purity.classify(source) is purity.Need.PURE]
        self.ran += len(pure)
        kept: dict[int, Canaries] = {}
        for session in SESSIONS:
            while session not in self._worker._sessions:  # on a full machine its slice may end before it has begun
                self._call(session, BEGINNING)
            kept[session] = Canaries(f"{MARK}{self._number}.{history}.{session}")
            kept[session].begin()
            self._worker._sessions[session]["_canaries"] = kept[session]
        for step, source in enumerate(pure):
            POSITION.pack_into(self._where, 0, history, step + 1)
            answers = []
            for session in SESSIONS:
                answers.append(self._call(session, source))
                kept[session].take_up(step)
            POSITION.pack_into(self._where, 0, history, 0)
            self.raised += answers[0][0] == kinds.EXCEPTION
            what = ""
            if any(MARK.encode() in text for _, *texts in answers for text in texts):
                what = "an output has what no snippet can name"
            elif any(kind in ENDED for kind, *_ in answers):
                self.ended += 1
                pure = pure[: step + 1]
                break
            elif answers[0] != answers[1] and ADDRESSES.sub("", f"{answers[0]}") != ADDRESSES.sub("", f"{answers[1]}"):
                what = f"two sessions with the same history answered {answers!r:.300}"
            if what:
                return self._found(what, history, pure[: step + 1])
        what = self._compare(kept)
        if what:
            self._found(what, history, pure)
        for session in SESSIONS:
            self._worker._sessions.pop(session, None)
        return None

    def _call(self, session: int, source: str) -> tuple[int, bytes, bytes]:
        kind, error = self._worker._call(ops.RUN, session, source.encode("utf-8", "surrogatepass"))
        return kind, error, self._worker._printer.take()

    def _compare(self, kept: dict[int, Canaries]) -> str:
        if any(canaries.damage() for canaries in kept.values()):
            return "what no snippet can name has changed"
        spaces = [self._worker._sessions.get(session) for session in SESSIONS]
        left = [reached(names) for names in spaces if names is not None and "_canaries" in names]
        if any(isinstance(value, str) and MARK in value for flat, _ in left for value in flat):
            return "a name leads to what no snippet can name"
        if len(left) == 2 and left[0][1] & left[1][1]:
            return "both sessions reach one value that can change"
        if len(left) == 2 and all(len(flat) < NODES for flat, _ in left) and left[0][0] != left[1][0]:
            return "two sessions with the same history are left with different values"
        return ""

    def _found(self, what: str, history: int, sources: list[str]) -> None:
        self.findings.append({"batch": self._number, "history": history, "what": what, "snippets": sources})


def reopen_accumulate() -> None:
    """Lets the decision take what an early version took: `itertools.accumulate`, generators and iterators as values,
    methods of `list` as functions."""
    names = frozenset(["accumulate"])
    purity.MODULES["itertools"] = names
    purity.METHODS = purity.METHODS | names  # type: ignore[misc]
    purity.DATA = purity.DATA | {"extend", "append"}  # type: ignore[misc]
    purity.KEYWORDS = purity.KEYWORDS | {"initial"}  # type: ignore[misc]
    purity.CHECKS[purity.ast.GeneratorExp] = lambda _node, _at: True
    checked = purity.CHECKS[purity.ast.Name]
    purity.CHECKS[purity.ast.Name] = lambda node, at: (
        checked(node, at) or (node.id == "list" and id(node) in at.read_from)
    )
    shared.PURE_MODULES["itertools"] = itertools


def one_batch(number: int, size: int, door: str, where: str) -> dict[str, Any]:
    """Runs in a process of its own."""
    warnings.simplefilter("ignore")  # what the snippets deserve
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    own_time: Any = SimpleNamespace(**vars(signal) | {"ITIMER_REAL": signal.ITIMER_PROF})
    shared.signal = own_time
    if door:
        reopen_accumulate()
        globals()["ADDRESSES"] = re.compile(r"0x[0-9a-f]+")
        globals()["BEGINNING"] = f"{BEGINNING}\nimport itertools"
    with Path(where).open("r+b") as file:
        batch = Batch(number, size, mmap.mmap(file.fileno(), POSITION.size))
    gc.freeze()
    batch.run()
    return {
        "batch": number, "drawn": batch.drawn, "ran": batch.ran, "raised": batch.raised, "ended": batch.ended,
        "findings": batch.findings,
    }  # fmt: skip


def in_a_process(number: int, size: int, door: str, where: Path) -> dict[str, Any]:
    """Has a batch run, and says where it crashed if it did."""
    where.write_bytes(bytes(POSITION.size))
    command = [
        sys.executable,
        "-P",
        "-s",
        "-B",
        __file__,
        "--batch",
        str(number),
        "--size",
        str(size),
        "--where",
        str(where),
    ]
    if door:
        command += ["--reopen", door]
    environment = {"PYTHONHASHSEED": "0"}
    if number % DEBUGGING == DEBUGGING - 1:
        environment["PYTHONMALLOC"] = "debug"
    begun = time.monotonic()
    used = os.times()
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, env=environment, check=False)
    now = os.times()
    told: dict[str, Any]
    if ended.returncode == 0:
        told = json.loads(ended.stdout)
    else:
        history, step = POSITION.unpack(where.read_bytes())
        told = {"batch": number, "drawn": history * HISTORY, "ran": 0, "raised": 0, "ended": 0}
        told["findings"] = [crash(number, history, step, ended.returncode, ended.stderr)]
    told["seconds"] = round(time.monotonic() - begun, 3)
    told["cpu_seconds"] = round(now.children_user + now.children_system - used.children_user - used.children_system, 3)
    return told


def crash(number: int, history: int, step: int, code: int, complaint: bytes) -> dict[str, Any]:
    writer = Writer(f"reentrancy {number}")
    for _ in range(history):
        for _ in range(HISTORY):
            writer.snippet()
    how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    return {
        "batch": number, "history": history, "what": f"crash: {how}", "at_shared_snippet": step,
        "snippets": [writer.snippet() for _ in range(HISTORY)], "said": complaint.decode(errors="replace")[-400:],
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--snippets", type=int, default=10_000_000)
    parser.add_argument("--size", type=int, default=BATCH, help="snippets of one process")
    parser.add_argument("--first", type=int, default=0, help="number of the first batch, which is its seed")
    parser.add_argument("--progress", type=Path, help="a line for each batch; those that are there are not run again")
    parser.add_argument("--reopen", choices=["accumulate"], default="")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--batch", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--where", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.batch is not None:
        print(json.dumps(one_batch(args.batch, args.size, args.reopen, args.where)))
        return 0
    done: dict[int, dict[str, Any]] = {}
    if args.progress and args.progress.exists():
        done = {told["batch"]: told for told in map(json.loads, args.progress.read_text().splitlines())}
    numbers = range(args.first, args.first + -(-args.snippets // args.size))
    shown = 0
    with tempfile.TemporaryDirectory() as folder:
        for number in numbers:
            if number in done:
                continue
            left = args.snippets - (number - args.first) * args.size
            told = in_a_process(number, min(args.size, left), args.reopen, Path(folder) / "position")
            done[number] = told
            for finding in told["findings"][: max(0, SHOWN - shown)]:
                print(json.dumps(finding, indent=1), flush=True)
            shown += len(told["findings"])
            if args.progress:
                with args.progress.open("a") as file:
                    file.write(f"{json.dumps(told)}\n")
    return report([done[number] for number in numbers], args)


def report(batches: list[dict[str, Any]], args: argparse.Namespace) -> int:
    keys = ("drawn", "ran", "raised", "ended", "seconds", "cpu_seconds")
    total: dict[str, Any] = {key: round(sum(told[key] for told in batches), 1) for key in keys}
    total["findings"] = sum(len(told["findings"]) for told in batches)
    total["batches"] = [batches[0]["batch"], batches[-1]["batch"]] if batches else []
    drawn, used = max(total["drawn"], 1), max(total["cpu_seconds"], 0.001)
    print(
        f"{total['drawn']:,} snippets drawn (batches {args.first} to {args.first + len(batches) - 1}); "
        f"{total['ran']:,} decided shared ({total['ran'] / drawn:.0%}) and run twice each; "
        f"{total['raised']:,} of them raised, {total['ended']:,} ended by a limit; {total['seconds']:,.0f} s, "
        f"{used:,.0f} s of processor, {drawn / used:,.0f} a processor second; {total['findings']} findings"
    )
    write_run(total, args.json)
    return 1 if total["findings"] else 0


if __name__ == "__main__":
    sys.exit(main())
