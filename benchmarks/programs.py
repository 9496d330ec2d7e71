"""What checking programs costs: `python benchmarks/programs.py [--json FILE] [--quick]`.

Tests of a small function, one submission after another and several at once, beside plain pytest in a subprocess with
the same tests, which shares its process with the program and holds nothing back from it. Exit code 1 when the bar of
100 tests a second is missed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.record import write_run
from runtime.sandbox import Limits
from runtime.sessions import Sessions
from runtime.settings import BrokerSettings, RuntimeSettings
from verifiers.programs.spec import Example, ProgramSpec, Run
from verifiers.programs.verifier import ProgramVerifier

BAR = 100.0
SOLUTION = "def solve(numbers):\n    return sum(n * n for n in numbers)\n"
PROGRAM = "import sys\nprint(sum(map(int, sys.stdin.read().split())))\n"


def function_spec(tests: int) -> ProgramSpec:
    examples = tuple(Example(arguments=f"[{n}, {n + 1}]", expected=str(n * n + (n + 1) ** 2)) for n in range(tests))
    return ProgramSpec(function="solve", examples=examples)


def program_spec(tests: int) -> ProgramSpec:
    return ProgramSpec(runs=tuple(Run(stdin=f"{n} 1", expected=str(n + 1)) for n in range(tests)), seconds=10.0)


def timed(verifier: ProgramVerifier, spec: ProgramSpec, source: str, times: int) -> list[float]:
    taken = []
    for _ in range(times):
        started = time.perf_counter()
        verdict = verifier.verify(spec, source)
        taken.append(time.perf_counter() - started)
        if not verdict.passed:
            raise RuntimeError(verdict.reason)
    return taken


def rate(taken: list[float], tests: int) -> dict[str, float]:
    """Of submissions with so many tests each; `taken` in seconds."""
    return {
        "submission_p50_ms": round(1000 * median(taken), 1),
        "tests_per_second": round(tests / median(taken), 1),
        "submissions": len(taken),
    }


def together(verifier: ProgramVerifier, spec: ProgramSpec, source: str, tests: int, times: int) -> dict[str, float]:
    """Four at once."""
    started = time.perf_counter()
    with ThreadPoolExecutor(4) as threads:
        passed = list(threads.map(lambda _: verifier.verify(spec, source).passed, range(times)))
    wall = time.perf_counter() - started
    if not all(passed):
        raise RuntimeError("a right program failed")
    return {"submissions_per_second": round(times / wall, 1), "tests_per_second": round(times * tests / wall, 1)}


def plain_pytest(folder: Path, tests: int, times: int) -> dict[str, float]:
    (folder / "solution.py").write_text(SOLUTION)
    rows = [f"    ([{n}, {n + 1}], {n * n + (n + 1) ** 2}),\n" for n in range(tests)]
    (folder / "test_solution.py").write_text(
        "import pytest\nfrom solution import solve\n@pytest.mark.parametrize(('numbers', 'expected'), [\n"
        + "".join(rows)
        + "])\ndef test_solve(numbers, expected):\n    assert solve(numbers) == expected\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir", ".", "."]
    taken = []
    for _ in range(times):
        started = time.perf_counter()
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        taken.append(time.perf_counter() - started)
    return rate(taken, tests)


def measure(folder: Path, quick: bool) -> dict[str, Any]:
    own = BrokerSettings(state_dir=folder / "state", root_dir=folder / "roots")
    times = 5 if quick else 20
    with Sessions(RuntimeSettings(own=own, limits=Limits(), shared_workers=1)) as pool:
        verifier = ProgramVerifier(pool)
        try:
            timed(verifier, function_spec(2), SOLUTION, 2)
            figures: dict[str, Any] = {
                "function_500_tests": rate(timed(verifier, function_spec(500), SOLUTION, max(2, times // 5)), 500),
                "function_20_tests": rate(timed(verifier, function_spec(20), SOLUTION, times), 20),
                "function_20_tests_4_at_once": together(verifier, function_spec(20), SOLUTION, 20, 2 * times),
                "function_20_tests_each_fresh": rate(
                    timed(verifier, function_spec(20).model_copy(update={"fresh": True}), SOLUTION, max(2, times // 5)),
                    20,
                ),
            }
            timed(verifier, program_spec(2), PROGRAM, 1)
            figures["program_10_runs"] = rate(timed(verifier, program_spec(10), PROGRAM, max(2, times // 5)), 10)
        finally:
            verifier.close()
    (folder / "pytest").mkdir()
    figures["plain_pytest_20_tests"] = plain_pytest(folder / "pytest", 20, max(2, times // 5))
    figures["bar_tests_per_second"] = BAR
    figures["met"] = figures["function_20_tests"]["tests_per_second"] >= BAR
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--json", type=Path, help="write the figures there as well")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        figures = measure(Path(folder), given.quick)
    print(json.dumps(figures, indent=2))
    write_run(figures, given.json)
    return 0 if figures["met"] else 1


if __name__ == "__main__":
    sys.exit(main())
