"""One door for specs of all kinds; what it cannot do it says, and it never does it with less."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.profile import BackendName
from runtime.settings import BrokerSettings, RuntimeSettings
from verifiers import Checker, Ground, Outcome, SpecError
from verifiers.answers.spec import AnswerSpec
from verifiers.contract.verdict import SpecProblem, Verdict
from verifiers.exact.spec import ExactSpec
from verifiers.lean.spec import LeanSpec
from verifiers.predicate.spec import PredicateSpec
from verifiers.programs.spec import Example, ProgramSpec
from verifiers.registry.spec import Spec
from verifiers.smt.spec import SmtSpec
from verifiers.tools import programs

ROOT = Path(__file__).parents[2]
SIX = PredicateSpec(predicate="7*x + 3 == 45")
ONE_DOUBLED = ProgramSpec(
    function="double",
    examples=tuple(Example(arguments=str(number), expected=str(2 * number)) for number in (2, 3, 17, -4)),
)
LEAN = LeanSpec(statement="theorem t : 1 = 1 := sorry")


@pytest.fixture(scope="module")
def checker(guest_roots: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checker]:
    own = BrokerSettings(
        state_dir=tmp_path_factory.mktemp("state"),
        root_dir=guest_roots,
        backends=(BackendName.GVISOR, BackendName.NSJAIL),
        ready=1,
        programs=programs(),
    )
    with Checker(RuntimeSettings(own=own)) as made:
        yield made


def test_texts_are_decided_in_a_jail(checker: Checker) -> None:
    for spec, submission in (
        (SIX, "6"),
        (AnswerSpec(expected="1/2"), "0.5"),
        (AnswerSpec(notation="digits", expected="42"), "42"),
        (ExactSpec(expected="yes"), "yes"),
    ):
        verdict = checker.check(spec, submission, 60)
        assert verdict.passed, verdict
        assert verdict.isolation == "nsjail"
    assert checker.check(SIX, "7", 60).outcome is Outcome.FAIL


def test_a_claim_is_decided_by_a_solver_in_a_jail(checker: Checker) -> None:
    spec = SmtSpec(claim="(declare-const x Int)(assert (and (> x 3) (< x 5)))", question="model")
    right, wrong = checker.check(spec, "((x 4))", 60), checker.check(spec, "((x 3))", 60)
    assert right.passed, right
    assert (wrong.outcome, wrong.isolation) == (Outcome.FAIL, "nsjail")


def test_a_program_runs_in_a_sandbox_of_its_own(checker: Checker) -> None:
    right = checker.check(ONE_DOUBLED, "def double(n):\n    return 2 * n", 120)
    assert right.passed, right
    assert right.isolation == "gvisor"
    wrong = checker.check(ONE_DOUBLED, "def double(n):\n    return n * n * n", 120)
    assert wrong.outcome is Outcome.FAIL


def test_many_of_all_kinds_come_back_in_order(checker: Checker) -> None:
    pairs: list[tuple[Spec, str]] = [
        (SIX, "6"),
        (ONE_DOUBLED, "def double(n): return n + n"),
        (AnswerSpec(notation="digits", expected="1"), "2"),
        (PredicateSpec(predicate="x == x"), "1"),
        (SIX, "6"),
    ]
    found = checker.check_many(pairs, 120)
    outcomes = [one.outcome.value for one in found if isinstance(one, Verdict)]
    assert outcomes == ["pass", "pass", "fail", "pass"]
    assert isinstance(found[3], SpecProblem)
    assert found[3].hint
    assert checker.check_many([]) == []


def test_a_spec_that_decides_nothing_is_an_error_with_a_hint(checker: Checker) -> None:
    for spec in (PredicateSpec(predicate="sin(x)**2 + cos(x)**2 == 1"), ProgramSpec(function="f")):
        with pytest.raises(SpecError) as error:
            checker.check(spec, "1", 60)
        assert error.value.hint


def test_what_hangs_ends_in_time(checker: Checker) -> None:
    started = time.monotonic()
    verdict = checker.check(ONE_DOUBLED, "while True: pass", 0.5)
    assert not verdict.passed
    assert time.monotonic() - started < 240


def test_where_no_sandbox_can_be_had_nothing_is_run_and_texts_are_held_in_a_process(tmp_path: Path) -> None:
    nobody = RuntimeSettings(
        broker=tmp_path / "nobody", own=BrokerSettings(state_dir=tmp_path / "s", root_dir=tmp_path / "r")
    )
    mark = tmp_path / "it-ran"
    with Checker(nobody) as checker:
        assert checker.check(SIX, "6", 60).isolation == "process"
        for spec, submission in ((ONE_DOUBLED, f"open({str(mark)!r}, 'w')"), (LEAN, "theorem t : 1 = 1 := rfl")):
            verdict = checker.check(spec, submission, 30)
            assert (verdict.outcome, verdict.ground) == (Outcome.INFRA_ERROR, Ground.BROKEN), verdict
    assert not mark.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_it_is_three_lines_for_somebody_without_rights(tmp_path: Path) -> None:
    """Who may not start sandboxes; the interpreter of this suite may lie where only root walks, so root gives up its
    rights after its imports."""
    script = (
        "import os, sys\n"
        "from verifiers import AnswerSpec, Checker, ProgramSpec\n"
        "import verifiers.checker\n"
        "os.geteuid = lambda: 1000\n"
        "with Checker() as checker:\n"
        "    print(checker.check(AnswerSpec(notation='digits', expected='7'), '7').model_dump_json())\n"
    )
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd="/", env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    verdict = json.loads(done.stdout)
    assert (verdict["outcome"], verdict["isolation"]) == ("pass", "process")


def test_a_closed_checker_says_so() -> None:
    checker = Checker()
    checker.close()
    checker.close()
    with pytest.raises(ValueError, match="closed"):
        checker.check(SIX, "6")
