"""Does the load of the machine change a verdict? The same submissions alone, and beside busy processes.

    python benchmarks/load.py [--busy 8] [--every 1] [--only KIND,...] [--lean FOLDER] [--json FILE]

What is judged: the canaries of every kind, and the pairs of tests/verifiers/answers/data. First nothing else runs, then
`--busy` processes compute without an end. A verdict is its outcome and its ground; the two may not differ, and none is
an `infra_error`. `--every 5` takes each fifth submission of a kind. Proofs are compiled by the Lean in `--lean`, else
by the one that is made for tests (tests/verifiers/lean/stand_in.py). Exit code 1 when a verdict differs or there is
none, 2 when nothing was judged.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.lean import stand_in
from benchmarks.record import write_run
from verifiers.answers.spec import AnswerSpec
from verifiers.checker import Checker
from verifiers.contract.verdict import Verdict
from verifiers.registry import KINDS
from verifiers.registry.canaries import cases_of
from verifiers.registry.spec import Spec

DATA = Path(__file__).resolve().parents[1] / "tests" / "verifiers" / "answers" / "data"


def submissions(every: int, only: Sequence[str]) -> list[tuple[str, Spec, str]]:
    """Name, spec and text of each."""
    found: list[tuple[str, Spec, str]] = []
    for kind in KINDS.values():
        cases = cases_of(kind)[::every] if not only or kind.name in only else []
        found += [(f"{kind.name} {case.name}", case.spec, case.submission) for case in cases]
    if not only or "answer" in only:
        rows = [json.loads(line) for name in ("ours", "others") for line in (DATA / f"{name}.jsonl").open()][::every]
        found += [(f"answer {row['id']}", AnswerSpec(expected=row["gold"]), row["prediction"]) for row in rows]
    return found


@contextmanager
def busy(processes: int) -> Iterator[None]:
    """So many processes that compute until the block ends, each in a session of its own: a kernel that shares the
    processors among sessions (sched(7), autogroup) gives each as much as one box."""
    command = [sys.executable, "-I", "-S", "-c", "while True: pass"]
    made = [subprocess.Popen(command, start_new_session=True) for _ in range(processes)]
    try:
        yield
    finally:
        for process in made:
            process.kill()
            process.wait()


def judged(asked: Sequence[tuple[str, Spec, str]], lean: Path | None) -> tuple[list[str], float]:
    """The verdict on each, in a few words, and the seconds that all took."""
    started = time.monotonic()
    with Checker(lean=lean) as checker:
        found = checker.check_many([(spec, text) for _, spec, text in asked])
    words = [f"{one.outcome} {one.ground}" if isinstance(one, Verdict) else "refused spec" for one in found]
    return words, time.monotonic() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--busy", type=int, default=8)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--only", default="", help="kinds, apart by commas")
    parser.add_argument("--lean", type=Path, help="folder of a Lean toolchain")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    asked = submissions(args.every, [name for name in args.only.split(",") if name])
    if not asked:
        sys.exit(2)
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="assay-lean-") as name:
        proofs = any(spec.kind == "lean" for _, spec, _ in asked)
        lean = args.lean or (stand_in(Path(name)) if proofs else None)
        alone, quick = judged(asked, lean)
        with busy(args.busy):
            beside, slow = judged(asked, lean)
    differ = [
        {"name": name, "alone": one, "beside": other}
        for (name, *_), one, other in zip(asked, alone, beside, strict=True)
        if one != other
    ]
    broken = [sum(word.startswith("infra_error") for word in words) for words in (alone, beside)]
    report: dict[str, Any] = {
        "judged": dict(Counter(name.split()[0] for name, *_ in asked)),
        "infra_error": broken,
        "differ": differ,
        "seconds": [round(quick, 1), round(slow, 1)],
        "load_before": round(load, 2),
    }
    print(json.dumps(report, indent=2, ensure_ascii=True))
    write_run(report, args.json)
    sys.exit(1 if differ or any(broken) else 0)


if __name__ == "__main__":
    main()
