"""Proofs checked in a second: warm boxes beside a process of Lean's own for each step, in one run.

    python benchmarks/lean.py [--lean FOLDER] [--compiled FOLDER --imports NAME ...] [--seconds 8] [--json FILE]

Without a folder the toolchain for tests is made (tests/verifiers/lean/stand_in.py). Four small theorems take turns,
with a header of the modules that --imports names, from --compiled beside the toolchain's own. A check of ours is a
screening, a compilation in one box, the check and the kernel's second look in another; "cold" is the same without
headers that are imported beforehand. "Fresh" runs two compilations as `python -c` processes that load Lean's library,
one after the other on each core, without a box: the least that a checker does that starts Lean for every step. The bar:
20 checks a second on 2 cores. "Late" is how many seconds after its limit of 1 s an answer came, for what never ends,
takes all memory or writes without end; the bar is 1.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.record import write_run
from runtime.profile import BackendName
from runtime.settings import BrokerSettings, RuntimeSettings
from verifiers.boxes.box import ToolBox, ToolBoxes
from verifiers.lean.kind import LEAN
from verifiers.lean.spec import LeanSpec
from verifiers.lean.toolchain import Toolchain, find, program
from verifiers.lean.verifier import LeanVerifier
from verifiers.registry.canaries import Case, cases_of

BAR = 20.0
PROOFS = (
    ("theorem target : 2 + 2 = 4", "rfl"),
    ("theorem target (p q : Prop) (hp : p) (hq : q) : p ∧ q", "by\n  constructor\n  · exact hp\n  · exact hq"),
    (
        "theorem target (p q : Prop) (h : p ∨ q) : q ∨ p",
        "by\n  cases h with\n  | inl a => exact Or.inr a\n  | inr b => exact Or.inl b",
    ),
    (
        "theorem target (n : Nat) : 0 + n = n",
        "by\n  induction n with\n  | zero => rfl\n  | succ n ih => exact congrArg Nat.succ ih",
    ),
)  # fmt: skip
CHECK = "import Submission\ntheorem check : type_of% @target := @target\n#print axioms check\n"
FRESH = (
    "import ctypes, sys\n"
    "lean = ctypes.CDLL(sys.argv[1])\n"
    "words = [b'lean', *(word.encode() for word in sys.argv[2:])]\n"
    "sys.exit(lean.lean_main(len(words), (ctypes.c_char_p * (len(words) + 1))(*words, None)) & 0xFF)\n"
)


def stand_in(folder: Path) -> Path:
    """The toolchain for tests."""
    source = Path(__file__).resolve().parent.parent / "tests" / "verifiers" / "lean" / "stand_in.py"
    spec = importlib.util.spec_from_file_location("stand_in", source)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made: Path = module.make(folder)
    return made


def repeated(once: Callable[[int], None], seconds: float, threads: int) -> dict[str, float]:
    """How often a second, by several threads at once, and what one takes."""
    took: list[float] = []
    end = time.monotonic() + seconds
    began = time.monotonic()

    def loop(number: int) -> None:
        while time.monotonic() < end:
            start = time.monotonic()
            once(number)
            took.append(time.monotonic() - start)

    workers = [threading.Thread(target=loop, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    passed = time.monotonic() - began
    ordered = sorted(took)
    return {
        "per_second": round(len(took) / passed, 1),
        "median_ms": round(1000 * statistics.median(took), 1),
        "p95_ms": round(1000 * ordered[int(len(ordered) * 0.95)], 1),
        "checks": len(took),
    }


def ours(toolchain: Toolchain, folder: Path, header: str, seconds: float, threads: int) -> dict[str, Any]:
    own = BrokerSettings(
        state_dir=folder / "state",
        root_dir=folder / "roots",
        backends=(BackendName.NSJAIL,),
        programs=(program(toolchain),),
    )
    cases = [(LeanSpec(statement=f"{header}{says} := sorry"), f"{header}{says} := {proof}") for says, proof in PROOFS]
    with ToolBoxes(RuntimeSettings(own=own), BackendName.NSJAIL) as boxes:
        verifier = LeanVerifier(boxes, toolchain, memory_mib=2048, most=threads)
        counters = [0] * threads
        told: set[str] = set()

        def once(number: int) -> None:
            counters[number] += 1
            spec, submission = cases[counters[number] % len(cases)]
            verdict = verifier.verify(spec, submission)
            assert verdict.passed, verdict
            told.add(verdict.evidence["headers"])

        repeated(once, 3.0, threads)
        told.clear()
        found: dict[str, Any] = {"warm": with_processor(verifier, once, seconds, threads), "headers": sorted(told)}
        found["late"] = {case.name: late(verifier, case) for case in cases_of_row(42) if case.spec.seconds == 1}
        verifier._boxes.headers = "switched off"
        found["cold"] = with_processor(verifier, once, seconds, threads)
        verifier.close()
    return found


def with_processor(
    verifier: LeanVerifier, once: Callable[[int], None], seconds: float, threads: int
) -> dict[str, float]:
    """The same, and the milliseconds of processor of a check inside its boxes: what a busy machine leaves true."""

    def used() -> float:
        boxes = [box for free in verifier._boxes._free.values() for box, _ in free]
        return sum(box.usage().cpu_seconds for box in boxes if isinstance(box, ToolBox))

    before = used()
    found = repeated(once, seconds, threads)
    return found | {"processor_ms": round(1000 * (used() - before) / found["checks"], 1)}


def late(verifier: LeanVerifier, case: Case) -> float:
    """Seconds after the limit, of one that is not the first."""
    began = time.monotonic()
    verdict = verifier.verify(case.spec, case.submission)
    assert not verdict.passed
    return round(max(0.0, time.monotonic() - began - case.spec.seconds), 2)


def cases_of_row(row: int) -> list[Case]:
    return [case for case in cases_of(LEAN) if row in case.rows]


def fresh(toolchain: Toolchain, folder: Path, header: str, seconds: float, threads: int) -> dict[str, float]:
    counters = [0] * threads
    for number in range(threads):
        (folder / f"own{number}").mkdir()

    def once(number: int) -> None:
        counters[number] += 1
        says, proof = PROOFS[counters[number] % len(PROOFS)]
        own = folder / f"own{number}"
        (own / "Submission.lean").write_text(f"{header}{says} := {proof}\n")
        (own / "Check.lean").write_text(CHECK)
        path = ":".join(map(str, (toolchain.compiled, *toolchain.projects, own)))
        environment = {"LEAN_PATH": path, "PATH": os.environ["PATH"]}
        for arguments in (["-o", "Submission.olean", "Submission.lean"], ["Check.lean"]):
            command = [sys.executable, "-I", "-S", "-c", FRESH, str(toolchain.library), *arguments]
            subprocess.run(command, cwd=own, env=environment, check=True, capture_output=True)

    return repeated(once, seconds, threads)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lean", type=Path)
    parser.add_argument("--compiled", type=Path, action="append", default=[])
    parser.add_argument("--imports", nargs="*", default=[])
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    threads = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory(prefix="assay-lean-") as name:
        folder = Path(name)
        projects = tuple(path.absolute() for path in options.compiled)
        toolchain = find(options.lean or stand_in(folder / "toolchain"), projects=projects)
        header = "".join(f"import {name}\n" for name in options.imports)
        if toolchain is None:
            sys.exit(f"{options.lean} is no Lean toolchain")
        figures: dict[str, Any] = {
            "lean": toolchain.version,
            "at_once": threads,
            "load": round(os.getloadavg()[0], 1),
            "imports": options.imports,
            "ours": ours(toolchain, folder, header, options.seconds, threads),
            "fresh": fresh(toolchain, folder, header, options.seconds, threads),
            "bar_per_second": BAR,
        }
    figures["ratio"] = round(figures["ours"]["warm"]["per_second"] / figures["fresh"]["per_second"], 2)
    print(json.dumps(figures, indent=2))
    write_run(figures, options.json)


if __name__ == "__main__":
    main()
