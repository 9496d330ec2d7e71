"""Whose failure it is: no candidate chooses `infra_error`, no property that ends too late refutes, and what is broken
in a spec is the spec's fault."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
from program_kit import NUMBERS, SPECS

from runtime.errors import (
    BrokerLostError,
    BusyError,
    GuestLostError,
    InfrastructureError,
    SandboxError,
    StartError,
    StarvedError,
)
from runtime.sandbox import CallResult, CallStatus
from runtime.sessions.session import LiveSession
from runtime.sessions.starts import SessionStarts
from verifiers.contract.errors import SpecError
from verifiers.contract.verdict import Ground, Outcome, Verdict
from verifiers.programs import judges
from verifiers.programs.clocks import spec_clock
from verifiers.programs.data.generators import Integers
from verifiers.programs.plan import plan, shuffled
from verifiers.programs.spec import Example, ProgramSpec, Run
from verifiers.programs.verifier import ProgramVerifier

SUMS = ProgramSpec(
    runs=tuple(Run(stdin=f"{a} {b}\n", expected=f"{a + b}\n") for a, b in ((1, 2), (2, 9), (5, -5), (30, 4))),
    seconds=3.0,
)
ADDS = "import sys\na, b = map(int, sys.stdin.read().split())\nprint(a + b)\n"
POISONS = {
    "a pipe": "import os\nos.remove('/work/program.py')\nos.mkfifo('/work/program.py')\n",
    "a link": "import os\nos.remove('/work/program.py')\nos.symlink('/etc/passwd', '/work/program.py')\n",
    "a folder": "import os\nos.remove('/work/program.py')\nos.makedirs('/work/program.py/in')\n",
    "a second name": "import os\nos.link('/work/program.py', '/work/other')\n",
    "limits": "import ctypes, os\nbound = (ctypes.c_ulong * 2)(1, 1)\nlibc = ctypes.CDLL(None)\n"
    "for limit in range(16): libc.prlimit(os.getppid(), limit, bound, None)\n",
    "a full folder": "with open('/work/x', 'wb', 0) as file:\n    try:\n        while 1: file.write(bytes(1 << 20))\n"
    "    except OSError: pass\n",
}  # fmt: skip


def several(verifier: ProgramVerifier, spec: ProgramSpec, sources: list[str]) -> list[Verdict]:
    with ThreadPoolExecutor(3) as threads:
        return list(threads.map(lambda source: verifier.verify(spec, source), sources))


def test_what_is_in_the_way_of_the_next_run_costs_the_program_a_fresh_sandbox(verifier: ProgramVerifier) -> None:
    found = several(verifier, SUMS, [ADDS + poison for poison in POISONS.values()])
    assert {name: verdict.outcome for name, verdict in zip(POISONS, found, strict=True)} == dict.fromkeys(
        POISONS, Outcome.PASS
    )


def test_a_wrong_program_gains_nothing_by_it(verifier: ProgramVerifier) -> None:
    wrong = ADDS.replace("a + b", "a + b if a < 5 else 1")
    for verdict in several(verifier, SUMS, [wrong + poison for poison in POISONS.values()]):
        assert verdict.outcome in (Outcome.FAIL, Outcome.HACK_SUSPECTED), verdict


def test_what_breaks_every_sandbox_is_the_programs_failure_and_what_breaks_none_of_its_own_is_ours(
    verifier: ProgramVerifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    from runtime.sessions.own_sandbox import OwnSandbox

    def lost(*_: object, **__: object) -> None:
        raise GuestLostError("the sandbox is gone")

    with monkeypatch.context() as patch:
        patch.setattr(OwnSandbox, "exec", lost)
        verdict = verifier.verify(SUMS, ADDS)
        assert (verdict.outcome, verdict.ground) == (Outcome.FAIL, Ground.REFUTED)
        assert verdict.reason == "it broke its sandbox, twice: the sandbox is gone"
    monkeypatch.setattr(OwnSandbox, "write", lost)
    assert verifier.verify(SUMS, ADDS).outcome is Outcome.INFRA_ERROR


ROOTS_BY_NUMPY = "import numpy as np\ndef root(x):\n    if x < 0: raise ValueError(x)\n    return float(np.sqrt(x))\n"


@pytest.mark.parametrize("fails", ["every sandbox", "every shared one"])
def test_a_sandbox_that_does_not_start_says_nothing_about_the_program(
    verifier: ProgramVerifier, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    """A session that has to move, and finds nowhere to go, is not the doing of the code that moves."""
    whole = SessionStarts.launch

    def launch(self: SessionStarts, wanted: Any, *, on_ready: Any, **given: Any) -> Any:
        if fails == "every sandbox" or wanted.mode != "sandbox" or wanted.preload:
            on_ready(StartError("sandbox b-1 did not become ready: it neither computes nor waits for a CPU"))
            return SimpleNamespace(cancel=lambda: None)
        return whole(self, wanted, on_ready=on_ready, **given)

    monkeypatch.setattr(SessionStarts, "launch", launch)
    verdict = verifier.verify(ROOT, ROOTS_BY_NUMPY)
    assert verdict.outcome is (Outcome.PASS if fails == "every shared one" else Outcome.INFRA_ERROR), verdict
    assert fails == "every shared one" or "did not become ready" in verdict.reason


STOPPED = [
    StarvedError("other work used the CPUs"),
    InfrastructureError("no usage report"),
    StartError("the session must move to another place"),
    BrokerLostError("the broker is gone"),
    BusyError("no sandbox was free"),
]


@pytest.mark.parametrize("error", STOPPED, ids=lambda error: type(error).__name__)
def test_an_error_of_the_machine_is_never_a_verdict_however_often_it_comes(
    verifier: ProgramVerifier, monkeypatch: pytest.MonkeyPatch, error: SandboxError
) -> None:
    from runtime.sessions.own_sandbox import OwnSandbox

    def fails(*_: object, **__: object) -> None:
        raise error

    for name in ("run", "exec"):
        monkeypatch.setattr(OwnSandbox, name, fails)
    monkeypatch.setattr(LiveSession, "run", fails)
    for spec, source in ((SUMS, ADDS), (ROOT, ROOTS)):
        assert verifier.verify(spec, source).outcome is Outcome.INFRA_ERROR


def test_a_sandbox_that_ends_by_its_own_wall_clock_says_nothing_about_the_program(
    verifier: ProgramVerifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    from runtime.sessions.own_sandbox import OwnSandbox

    whole = OwnSandbox.exec

    def expired(self: OwnSandbox, *given: Any, **named: Any) -> Any:
        return whole(self, *given, **named).model_copy(update={"status": CallStatus.EXPIRED, "exit_code": None})

    monkeypatch.setattr(OwnSandbox, "exec", expired)
    assert verifier.verify(SUMS, ADDS).outcome is Outcome.INFRA_ERROR


ROOT = SPECS["root"]
NAMESAKES = {
    "its own": "class ValueError(Exception): pass\n",
    "renamed": "class V(Exception): pass\nV.__name__ = 'ValueError'\nV.__module__ = 'builtins'\nValueError = V\n",
    "put in its place": "import builtins\nclass ValueError(Exception): pass\nbuiltins.ValueError = ValueError\n",
    "a name by a metaclass": "class M(type):\n    __name__ = property(lambda _: 'ValueError')\n"
    "class ValueError(Exception, metaclass=M): pass\n",
    "bases by a metaclass": "import builtins\nclass M(type):\n    __mro__ = (builtins.ValueError,)\n"
    "class ValueError(Exception, metaclass=M): pass\n",
}  # fmt: skip
ROOTS = "def root(x):\n    if x < 0: raise ValueError(x)\n    return x ** 0.5\n"


@pytest.mark.parametrize("name", NAMESAKES)
def test_a_class_that_is_called_like_a_built_in_exception_is_none(verifier: ProgramVerifier, name: str) -> None:
    verdict = verifier.verify(ROOT, NAMESAKES[name] + ROOTS)
    assert not verdict.passed
    assert verdict.outcome is not Outcome.INFRA_ERROR


def test_a_class_that_derives_from_it_or_another_name_of_it_is_one(verifier: ProgramVerifier) -> None:
    derived = "import builtins\nclass ValueError(builtins.ValueError): pass\n"
    assert verifier.verify(ROOT, derived + ROOTS).passed
    squares = (Example(arguments="2", expected="4"), Example(arguments="3", expected="9"))
    for raised, raises in (("IOError", "OSError"), ("OSError", "IOError"), ("TooSmall", "TooSmall")):
        own = "class TooSmall(Exception): pass\ndef f(n):\n"
        spec = ProgramSpec(function="f", examples=(*squares, Example(arguments="-1", raises=raises)))
        assert verifier.verify(spec, f"{own}    if n < 0: raise {raised}\n    return n * n\n").passed
        assert not verifier.verify(spec, f"{own}    if n < 0: raise RuntimeError\n    return n * n\n").passed


def test_what_hangs_when_it_is_asked_again_fails(verifier: ProgramVerifier) -> None:
    spec = SPECS["squares"].model_copy(update={"seconds": 0.35})
    asked_first, then = (shuffled(spec, plan(spec), turn)[0].arguments.positional[0] for turn in (0, 1))
    assert asked_first != then
    hangs = f"first = []\ndef solve(xs):\n    first.append(xs)\n    while first[0] != {asked_first}: pass\n"
    verdict = verifier.verify(spec, f"{hangs}    return sum(x * x for x in xs)\n")
    assert (verdict.outcome, verdict.ground) == (Outcome.FAIL, Ground.TIMEOUT)
    assert verdict.reason.startswith("it gives different results for the same input")


def test_chance_needs_no_word_for_it(verifier: ProgramVerifier) -> None:
    draws = "draw = getattr(__import__('ran' + 'dom'), 'ran' + 'dom')\n"
    spec = ProgramSpec(function="f", inputs=(Integers(),), generate=60, reference="def f(n):\n    return n * n\n")
    verdict = verifier.verify(spec, f"{draws}def f(n):\n    return n * n if draw() < 0.99 else 0\n")
    assert verdict.outcome is Outcome.FAIL, verdict


def test_sets_of_text_have_one_order_in_every_run(verifier: ProgramVerifier) -> None:
    reason = verifier.verify(SUMS, "print(*{'a', 'b', 'c', 'd', 'e', 'f'})").reason
    assert reason.startswith("the program printed"), reason


def holds(body: str, **fields: object) -> ProgramSpec:
    source = f"def holds(result, xs):\n    {body}\n"
    return ProgramSpec.model_validate(
        {"function": "order", "inputs": (NUMBERS,), "generate": 12, "properties": (source,), **fields}
    )


def test_a_property_that_comes_to_no_end_refutes_nothing_and_has_one_clock(
    verifier: ProgramVerifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("verifiers.programs.clocks.LEAST_SPEC_SECONDS", 0.5)
    monkeypatch.setattr("verifiers.programs.verifier.IDLE_SECONDS", 0.01)
    assert spec_clock(0.1).left == 0.5
    spec = holds("while result != sorted(xs): pass\n    return True", total_seconds=0.5)
    verdict = verifier.verify(spec, "def order(xs):\n    return xs + [0]\n")
    assert (verdict.outcome, verdict.ground) == (Outcome.FAIL, Ground.UNKNOWN), verdict
    assert "property 1 is undecided" in verdict.reason


def test_a_property_that_a_result_exhausts_refutes_nothing(verifier: ProgramVerifier) -> None:
    spec = holds("return result == sorted(xs) if result != [7] else bool(bytes(1 << 40))")
    verdict = verifier.verify(spec, "def order(xs):\n    return [7]\n")
    assert (verdict.outcome, verdict.ground) == (Outcome.FAIL, Ground.UNKNOWN), verdict


def test_a_broken_property_is_the_specs_fault(verifier: ProgramVerifier) -> None:
    right = "def order(xs):\n    return sorted(xs)\n"
    reference = {"reference": right}
    for spec, why in (
        (holds("return result == xs", **reference), "does not hold: for what the reference gives"),
        (holds("return result.itmes == xs", **reference), "AttributeError.*for what the reference gives"),
        (holds("import nowhere\n    return result == nowhere.order(xs)"), "property 1 is broken"),
        (
            holds("return result.itmes == xs", examples=({"arguments": "[2, 1]", "expected": "[1, 2]"},)),
            "for every example",
        ),
    ):
        with pytest.raises(SpecError, match=why):
            verifier.verify(spec, right)


def test_what_a_candidate_makes_a_property_evaluate_is_not_the_specs_fault(verifier: ProgramVerifier) -> None:
    source = "def holds(result, n):\n    return '+' in result and eval(result) == n\n"
    spec = ProgramSpec(function="f", inputs=(Integers(low=2, high=99),), generate=9, properties=(source,))
    assert verifier.verify(spec, "def f(n):\n    return f'1 + {n - 1}'\n").passed
    for wrong in ("nowhere +", "1 + nowhere", "0 + 0"):
        verdict = verifier.verify(spec, f"def f(n):\n    return {wrong!r}\n")
        assert (verdict.outcome, verdict.ground) == (Outcome.FAIL, Ground.REFUTED), verdict


def test_a_large_honest_result_is_judged(verifier: ProgramVerifier) -> None:
    source = "def holds(result, n):\n    return result == [[i, (i,)] for i in range(n)]\n"
    spec = ProgramSpec(
        function="f",
        inputs=(Integers(low=20_000, high=40_000),),
        generate=2,
        properties=(source,),
        output_bytes=8 << 20,
        seconds=20.0,
    )
    verdict = verifier.verify(spec, "def f(n):\n    return [[i, (i,)] for i in range(n)]\n")
    assert verdict.passed, verdict


def test_a_reference_whose_results_would_fill_the_judge_is_refused(
    verifier: ProgramVerifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judges, "MOST_CHARS", 1_000)
    spec = ProgramSpec(
        function="f", inputs=(Integers(low=100, high=200),), generate=9, reference="def f(n):\n    return 'x' * n\n"
    )
    with pytest.raises(SpecError, match="results are more than"):
        verifier.verify(spec, "def f(n):\n    return 'x' * n\n")


def test_a_function_that_starts_processes_has_semaphores(verifier: ProgramVerifier) -> None:
    squares = tuple(Example(arguments=f"{n}", expected=f"{n * n}") for n in (2, 3))
    pool = "from multiprocessing import Lock, Pool\ndef s(n):\n    return n * n\n"
    source = f"{pool}def f(n):\n    with Lock(), Pool(1) as pool:\n        return pool.map(s, [n])[0]\n"
    verdict = verifier.verify(ProgramSpec(function="f", examples=squares, seconds=10.0), source)
    assert verdict.passed, verdict


@pytest.mark.parametrize("ended", [1, 2])
def test_an_interpreter_that_ended_once_is_asked_again_elsewhere_and_twice_it_is_the_program(
    verifier: ProgramVerifier, monkeypatch: pytest.MonkeyPatch, ended: int
) -> None:
    whole, left = LiveSession.run, [ended]

    def run(self: LiveSession, source: str, **given: Any) -> CallResult:
        result = whole(self, source, **given)
        if not (left[0] and "def root" in source):
            return result
        left[0] -= 1
        return result.model_copy(update={"status": CallStatus.DIED, "error": "the interpreter ended during the call"})

    monkeypatch.setattr(LiveSession, "run", run)
    verdict = verifier.verify(ROOT, ROOTS)
    assert left == [0]
    assert verdict.outcome is (Outcome.PASS if ended == 1 else Outcome.FAIL), verdict
    assert ended == 1 or "the interpreter ended" in verdict.reason
