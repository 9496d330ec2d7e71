"""Small claims per second, warm: Z3 alone on its own parser, ours in one process, and ours through the worker service.

    python benchmarks/smt.py [--seconds 4] [--json FILE]

Every claim is another one (other numbers, other names), so that nothing is answered from memory. Z3 alone reads a
script by `Solver.from_string` and answers one `check-sat`: it does not ask whether the assumptions are possible, whose
values these are, what a divisor may be, which assumptions were used, or what cvc5 thinks. Ours does all of that.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import z3

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.record import write_run
from verifiers.checker import Checker
from verifiers.contract.verdict import Verdict
from verifiers.registry.spec import Spec
from verifiers.smt.spec import SmtSpec
from verifiers.smt.verifier import SmtVerifier

BATCH = 400


def entailment(number: int) -> tuple[SmtSpec, str]:
    a, b = number % 97 + 1, number % 89 + 2
    claim = f"""(declare-const x{number} Int)(declare-const y Int)(declare-const z Int)
(assert (> x{number} {a}))(assert (>= y (+ (* {b} x{number}) 1)))(assert (< z (- y)))
(assert (not (< (+ z x{number}) (- {(b - 1) * (a + 1) + 1}))))(check-sat)"""
    return SmtSpec(claim=claim), "entailed"


def functions(number: int) -> tuple[SmtSpec, str]:
    claim = f"""(declare-sort U 0)(declare-fun f{number} (U) U)(declare-const a U)
(assert (= (f{number} (f{number} (f{number} a))) a))
(assert (= (f{number} (f{number} (f{number} (f{number} (f{number} a))))) a))
(assert (not (= (f{number} a) a)))(check-sat)"""
    return SmtSpec(claim=claim), "entailed"


def bits(number: int) -> tuple[SmtSpec, str]:
    mask = number % 251 + 1
    claim = f"""(declare-const b{number} (_ BitVec 8))
(define-fun reference () (_ BitVec 8) (bvsub (bvor b{number} #x{mask:02x}) (bvand b{number} #x{mask:02x})))"""
    return SmtSpec(claim=claim, question="equivalent"), f"(bvxor b{number} #x{mask:02x})"


def model(number: int) -> tuple[SmtSpec, str]:
    x, y = number % 1_009 + 1, number % 503 + 1
    claim = f"""(declare-const x{number} Int)(declare-const y Real)
(assert (= (+ (* x{number} x{number}) y) (+ {x * x} (/ 1 {y}))))(assert (> x{number} 0))(assert (< 0 y 2))"""
    return SmtSpec(claim=claim, question="model"), f"((x{number} {x}) (y (/ 1 {y})))"


KINDS: dict[str, Callable[[int], tuple[SmtSpec, str]]] = {
    "linear entailment": entailment,
    "uninterpreted functions": functions,
    "bit vectors": bits,
    "a model": model,
}


def z3_alone(spec: SmtSpec) -> bool:
    """One check-sat of the script, as Z3's own parser reads it; what is asked by other means is put into words."""
    text = spec.claim
    if spec.question == "equivalent":
        name = text.split()[1]
        text += f"(assert (not (= reference (bvxor {name} {text.split()[-1].rstrip(')')}))))"
    solver = z3.Solver()
    solver.from_string(text)
    return bool(solver.check() != z3.unknown)


def ours(spec: SmtSpec, submission: str) -> bool:
    verifier = SmtVerifier()
    verifier.check(spec, prove=True)
    return verifier.verify(spec, submission).passed


def rate(make: Callable[[int], tuple[SmtSpec, str]], run: Callable[[SmtSpec, str], bool], seconds: float) -> float:
    numbers = itertools.count(1)
    for number in itertools.islice(numbers, 5):
        assert run(*make(number)), "not what it should be"
    started, done = time.perf_counter(), 0
    while time.perf_counter() - started < seconds:
        assert run(*make(next(numbers))), "not what it should be"
        done += 1
    return done / (time.perf_counter() - started)


def pairs(first: int) -> Iterator[tuple[Spec, str]]:
    """A batch of all kinds in turn."""
    makers = list(KINDS.values())
    for number in range(first, first + BATCH):
        yield makers[number % len(makers)](number)


def through_service(seconds: float) -> tuple[float, str]:
    """Claims a second, and what the submissions were held in."""
    with Checker() as checker:
        verdicts: list[Verdict] = list(checker.check_many(list(pairs(1_000_000))))
        started, done = time.perf_counter(), 0
        while time.perf_counter() - started < seconds:
            verdicts = list(checker.check_many(list(pairs(2_000_000 + done))))
            assert all(verdict.passed for verdict in verdicts), next(v.reason for v in verdicts if not v.passed)
            done += len(verdicts)
        return done / (time.perf_counter() - started), verdicts[0].isolation


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=4, help="for each figure")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    figures: dict[str, object] = {"load": os.getloadavg()[0]}
    print(f"load {os.getloadavg()[0]:.1f}; claims a second")
    print(f"{'':26}{'Z3 alone':>10}{'ours':>10}{'no cvc5':>10}")
    for name, make in KINDS.items():
        found = {
            "z3_alone": rate(make, lambda spec, _: z3_alone(spec), arguments.seconds),
            "ours": rate(make, ours, arguments.seconds),
            "without_cvc5": rate(
                make,
                lambda spec, submission: ours(spec.model_copy(update={"second": "none"}), submission),
                arguments.seconds,
            ),
        }
        figures[name] = found
        print(f"{name:26}" + "".join(f"{value:10.0f}" for value in found.values()))
    served, isolation = through_service(arguments.seconds)
    figures["service"] = {"claims_per_second": served, "isolation": isolation}
    print(f"{'all, through the service':26}{'':10}{served:10.0f}          ({isolation})")
    write_run(figures, arguments.json)


if __name__ == "__main__":
    main()
