"""What a verdict about a program says, and that it depends on the program alone."""

from __future__ import annotations

import json
import re
import resource
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from program_kit import NUMBERS, SOLVE, SORTED, SPECS
from property_budget import examples

from runtime.sandbox import Limits
from runtime.sessions import Sessions
from runtime.settings import RuntimeSettings
from verifiers.contract.errors import SpecError
from verifiers.contract.verdict import Ground, Outcome, Verdict
from verifiers.programs.data.compare import CompareRule, agree
from verifiers.programs.data.generators import Integers, Lists
from verifiers.programs.data.values import MOST_DEPTH, Arguments, Value, of_native
from verifiers.programs.guests import Guest, opening
from verifiers.programs.spec import Example, MetamorphicRelation, ProgramSpec, Run, Tool
from verifiers.programs.verifier import ProgramVerifier

SQUARES = SPECS["squares"]
BRIEF = SQUARES.model_copy(update={"seconds": 0.5})
"""For programs that hang: they compute for the whole of it, several times."""
keys = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5), st.binary(max_size=5))
natives = st.recursive(
    st.one_of(keys, st.floats(), st.complex_numbers(), st.integers(-(1 << 9_000), 1 << 9_000)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.tuples(inner, inner), st.dictionaries(keys, inner, max_size=4), st.sets(keys)
    ),
    max_leaves=12,
)
WRONG = "def solve(numbers):\n    return sum(n * n for n in numbers if n > -5)\n"


def test_a_pass_is_tested_and_says_where(verifier: ProgramVerifier) -> None:
    verdict = verifier.verify(SQUARES, SOLVE)
    assert (verdict.outcome, verdict.ground, verdict.score) == (Outcome.PASS, Ground.TESTED, 1.0)
    assert verdict.isolation == "gvisor"
    assert verdict.tools["gvisor"]
    assert verdict.evidence == {"tests": 5, "visible": 2}
    assert verdict.seconds > 0


def test_a_result_of_more_values_than_the_output_has_bytes_is_not_written_down(verifier: ProgramVerifier) -> None:
    source = "def solve(numbers):\n    return [numbers] * 10_000_000\n"
    verdict = verifier.verify(SQUARES, source)
    assert (verdict.outcome, verdict.ground) == (Outcome.FAIL, Ground.REFUTED)
    assert "more than fits into" in verdict.reason


def test_a_failure_names_input_result_and_expectation(verifier: ProgramVerifier) -> None:
    verdict = verifier.verify(SQUARES, WRONG)
    assert verdict.reason == "solve([7, -7, 7]) gave 98, not 147"
    assert verdict.ground is Ground.REFUTED
    assert verdict.evidence["failed"] == {
        "test": 5, "kind": "example", "visible": False, "arguments": "[7, -7, 7]", "expected": "147", "got": "98",
    }  # fmt: skip
    assert verdict.evidence["visible_passed"] == "2 of 2"


@pytest.mark.parametrize("spec", ["squares", "squares-generated", "order"])
def test_the_same_program_gets_the_same_verdict(verifier: ProgramVerifier, spec: str) -> None:
    source = "def order(xs):\n    return sorted(set(xs))\n" if spec == "order" else WRONG
    first, second = (verifier.verify(SPECS[spec], source) for _ in range(2))
    assert _timeless(first) == _timeless(second)


def _timeless(verdict: Verdict) -> Verdict:
    return verdict.model_copy(update={"seconds": 0.0})


def test_a_generated_failure_is_made_small(verifier: ProgramVerifier) -> None:
    wrong = "def solve(numbers):\n    return sum(n * n for n in numbers if n != 7 or len(numbers) < 2)\n"
    spec = ProgramSpec(
        function="solve", inputs=(Lists(of=Integers(low=0, high=9), most=30),), generate=60, reference=SOLVE
    )
    verdict = verifier.verify(spec, wrong)
    assert verdict.reason in ("solve([0, 7]) gave 0, not 49", "solve([7, 0]) gave 0, not 49")
    sorts = ProgramSpec(function="order", inputs=(NUMBERS,), generate=60, properties=(SORTED,))
    verdict = verifier.verify(sorts, "def order(xs):\n    return sorted(set(xs))\n")
    assert re.match(r"order\(\[(\S+), \1\]\) gave \[\1\]: property 1 does not hold", verdict.reason)


def test_each_failure_has_a_ground_of_its_own(verifier: ProgramVerifier) -> None:
    grounds = {
        "def solve(n):\n    while True: pass\n": Ground.TIMEOUT,
        "def solve(n):\n    return bytes(1 << 34)\n": Ground.MEMORY,
        "def solve(n:\n": Ground.UNREADABLE,
        "solution = 1\n": Ground.UNREADABLE,
        "def solve(n):\n    return None\n": Ground.REFUTED,
        "": Ground.UNREADABLE,
        "x = 1\0": Ground.UNREADABLE,
        "#" * 300_000: Ground.UNREADABLE,
    }
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda source: verifier.verify(BRIEF, source), grounds))
    assert [verdict.ground for verdict in found] == list(grounds.values())
    assert all(verdict.outcome is Outcome.FAIL for verdict in found)


def test_chance_and_clocks_are_found_out(verifier: ProgramVerifier) -> None:
    spec = ProgramSpec(
        function="draw", examples=tuple(Example(arguments=str(n), expected=str(n % 2)) for n in range(2, 40))
    )
    verdict = verifier.verify(spec, "import random\ndef draw(n):\n    return n % 2 if random.random() < 0.97 else 2\n")
    assert verdict.outcome is Outcome.FAIL
    assert "different results for the same input" in verdict.reason
    always = "import random\ndef draw(n):\n    random.seed(n)\n    return (random.random() < 2) * (n % 2)\n"
    assert verifier.verify(spec, always).outcome is Outcome.PASS


def test_a_program_that_remembers_wrongly_fails(verifier: ProgramVerifier) -> None:
    source = "last = [0]\ndef solve(xs):\n    last[0] += sum(x * x for x in xs)\n    return last[0]\n"
    assert verifier.verify(SQUARES, source).outcome is Outcome.FAIL
    fresh = SQUARES.model_copy(update={"fresh": True})
    assert verifier.verify(fresh, source).outcome is Outcome.PASS


def test_a_share_is_given_only_where_it_is_asked_for(verifier: ProgramVerifier) -> None:
    assert verifier.verify(SQUARES, WRONG).score == 0.0
    partial = SQUARES.model_copy(update={"partial": True})
    verdict = verifier.verify(partial, WRONG)
    assert (verdict.outcome, verdict.score) == (Outcome.FAIL, 0.8)
    stuck = "def solve(xs):\n    while len(xs) == 2: pass\n    return sum(x * x for x in xs)\n"
    assert verifier.verify(partial.model_copy(update={"seconds": BRIEF.seconds}), stuck).score == 0.8
    hack = "import sys\ndef solve(xs):\n    return sys._getframe(1).f_locals.get('expected', 14)\n"
    verdict = verifier.verify(partial, hack)
    assert (verdict.outcome, verdict.score) == (Outcome.HACK_SUSPECTED, 0.0)
    assert verifier.verify(partial, SOLVE).score == 1.0


def test_a_program_that_ends_its_place_is_not_asked_for_ever(
    verifier: ProgramVerifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("verifiers.programs.verifier.MOST_LOST", 3)
    examples = tuple(Example(arguments=str(number), expected=str(number + 1)) for number in range(20))
    spec = ProgramSpec(function="after", examples=examples, partial=True)
    ends = "import signal\ndef after(n):\n    signal.raise_signal(signal.SIGKILL)\n"
    assert verifier.verify(spec, ends).evidence["passed"] == 0
    sometimes = "import signal\ndef after(n):\n    return n + 1 if n % 10 else signal.raise_signal(signal.SIGKILL)\n"
    assert verifier.verify(spec, sometimes).evidence["passed"] == 18


def test_all_tests_together_have_a_limit(verifier: ProgramVerifier) -> None:
    spec = SQUARES.model_copy(update={"total_seconds": 1.0})
    started = time.monotonic()
    verdict = verifier.verify(
        spec, "import time\ndef solve(xs):\n    time.sleep(0.4)\n    return sum(x * x for x in xs)\n"
    )
    assert time.monotonic() - started < 240
    assert (verdict.outcome, verdict.ground) == (Outcome.FAIL, Ground.TIMEOUT)
    assert verifier.verify(SQUARES, "def solve(xs):\n    while 1: pass\n", seconds=0.3).ground is Ground.TIMEOUT


def test_what_takes_long_among_others_is_done_in_a_sandbox_of_its_own(verifier: ProgramVerifier) -> None:
    source = "import time\ndef solve(xs):\n    time.sleep(0.6)\n    return sum(x * x for x in xs)\n"
    assert verifier.verify(SQUARES.model_copy(update={"twice": "never"}), source).passed


def test_the_reason_says_whether_it_computed_or_rested(verifier: ProgramVerifier) -> None:
    spec = ProgramSpec(runs=(Run(stdin="", expected="1"), Run(stdin="a", expected="2")), seconds=1.0)
    computes = verifier.verify(spec, "while True: pass")
    assert computes.ground is Ground.TIMEOUT
    assert computes.reason == "the program computed for more than 1 s"
    rests = verifier.verify(spec, "import time\ntime.sleep(1000)")
    assert rests.ground is Ground.TIMEOUT
    assert rests.reason == "the program took more than 1 s, partly idle"
    assert rests.seconds < 120


def test_limits_beyond_the_pools_take_a_sandbox_of_its_own(verifier: ProgramVerifier) -> None:
    slow = ProgramSpec(
        function="solve",
        examples=(Example(arguments="1", expected="1"), Example(arguments="2", expected="2")),
        seconds=6.0,
        twice="never",
    )
    assert verifier.verify(
        slow, "import time\ndef solve(n):\n    time.sleep(2.2 if n == 2 else 0)\n    return n\n"
    ).passed


def test_a_file_and_a_thread_are_no_trouble(verifier: ProgramVerifier) -> None:
    source = (
        "import threading\ndef solve(xs):\n    found = []\n"
        "    def work():\n        with open('/tmp/numbers', 'w') as out: out.write(repr(xs))\n"
        "        found.append(sum(x * x for x in xs))\n"
        "    worker = threading.Thread(target=work)\n    worker.start()\n    worker.join()\n    return found[0]\n"
    )
    assert verifier.verify(SQUARES, source).passed


def test_relations_are_broken_with_two_results(verifier: ProgramVerifier) -> None:
    spec = ProgramSpec(
        function="solve",
        examples=(Example(arguments="[1, 2]", expected="3"), Example(arguments="[5]", expected="5")),
        inputs=(Lists(of=Integers(low=1, high=9), least=2, most=6),),
        relations=(MetamorphicRelation(kind="permutation"),),
    )
    verdict = verifier.verify(spec, "def solve(xs):\n    return xs[0] + (2 if xs == [1, 2] else 0)\n")
    assert verdict.outcome is Outcome.FAIL
    assert "permutation" in verdict.reason
    assert verdict.evidence["failed"]["relation"] == "permutation"
    assert verifier.verify(spec, "def solve(xs):\n    return sum(xs)\n").passed


def test_a_program_in_a_language_that_is_not_there_is_refused(verifier: ProgramVerifier) -> None:
    runs = (Run(stdin="1", expected="1"), Run(stdin="2", expected="2"))
    verdict = verifier.verify(ProgramSpec(language="perl", runs=runs), "print <STDIN>;")
    assert verdict.outcome is Outcome.INFRA_ERROR
    assert "/usr/bin/perl" in verdict.reason


def test_a_tool_that_is_there_is_used(verifier: ProgramVerifier) -> None:
    tool = Tool(
        file="program.txt",
        build=("/usr/bin/python3", "-c", "open('/work/built', 'w').write(open('/work/program.txt').read().upper())"),
        run=(
            "/usr/bin/python3",
            "-c",
            "import sys; print(open('/work/built').read() + sys.stdin.read() + sys.argv[1])",
        ),
    )
    spec = ProgramSpec(
        language="shouting",
        tool=tool,
        runs=(Run(stdin="1", arguments=("x",), expected="ABC1x"), Run(stdin="2", arguments=("y",), expected="ABC2y")),
        seconds=10.0,
    )
    assert verifier.verify(spec, "abc").passed
    assert verifier.verify(spec, "abd").outcome is Outcome.FAIL
    broken = spec.model_copy(update={"tool": tool.model_copy(update={"build": ("/usr/bin/python3", "-c", "1/0")})})
    verdict = verifier.verify(broken, "abc")
    assert verdict.ground is Ground.UNREADABLE
    assert "ZeroDivisionError" in verdict.reason


def test_exit_codes_are_asked_for(verifier: ProgramVerifier) -> None:
    spec = ProgramSpec(
        runs=(Run(stdin="good", expected="yes"), Run(stdin="bad", expected="no", exit_code=3)), seconds=10.0
    )
    honest = "import sys\nif input() == 'good':\n    print('yes')\nelse:\n    print('no')\n    sys.exit(3)\n"
    assert verifier.verify(spec, honest).passed
    verdict = verifier.verify(spec, honest.replace("(3)", "(0)"))
    assert verdict.reason == "the program ended with 0, not 3"


def test_a_broken_reference_or_property_is_the_specs_fault(verifier: ProgramVerifier) -> None:
    wrong = SPECS["squares-generated"].model_copy(update={"reference": "def solve(xs):\n    return sum(xs)\n"})
    with pytest.raises(SpecError, match="disagrees with example 1"):
        verifier.verify(wrong, SOLVE)
    with pytest.raises(SpecError, match="disagrees"):
        verifier.check(wrong, prove=True)
    constant = wrong.model_copy(update={"reference": "def solve(xs):\n    return 1\n", "examples": ()})
    with pytest.raises(SpecError, match="same result for every input"):
        verifier.verify(constant, SOLVE)
    picky = constant.model_copy(update={"reference": "def solve(xs):\n    raise ValueError\n"})
    with pytest.raises(SpecError, match="accepts only 0 of"):
        verifier.verify(picky, SOLVE)
    odd = SPECS["order"].model_copy(update={"properties": ("def holds(result, xs):\n    return 'yes', result\n",)})
    with pytest.raises(SpecError, match="returned \\('yes', "):
        verifier.verify(odd, "def order(xs):\n    return sorted(xs)\n")


def test_a_property_that_a_result_makes_say_nothing_does_not_hold(verifier: ProgramVerifier) -> None:
    loose = "def holds(result, xs):\n    return result and result == sorted(xs)\n"
    spec = ProgramSpec(function="order", inputs=(NUMBERS,), generate=5, properties=(loose,))
    verdict = verifier.verify(spec, "def order(xs):\n    return None\n")
    assert (verdict.outcome, verdict.ground) == (Outcome.FAIL, Ground.REFUTED), verdict


def test_evidence_is_small_and_json(verifier: ProgramVerifier) -> None:
    noisy = "def solve(xs):\n    return 'x' * 15_000 + '\\x1b[2J'\n"
    verdict = verifier.verify(SQUARES, noisy)
    assert len(json.dumps(verdict.evidence)) < 20_000
    assert len(verdict.reason) < 1_000
    raising = "def solve(xs):\n    raise ValueError('\\x1b[2J' + 'y' * 100_000)\n"
    raised = verifier.verify(SQUARES, raising)
    assert "\x1b" not in raised.reason + json.dumps(raised.evidence)
    assert len(raised.reason) < 1_000


def test_many_programs_are_judged_at_once(verifier: ProgramVerifier) -> None:
    sources = [SOLVE, WRONG] * 8
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda source: verifier.verify(SQUARES, source).passed, sources))
    assert found == [True, False] * 8


def test_a_pool_with_small_limits_is_not_trusted_with_more(sessions: Sessions) -> None:
    """A session's limits are the pool's: a spec that asks for more gets a sandbox with its own."""
    assert sessions.limits == Limits()
    assert not opening(sessions, SQUARES).own
    for change in ({"seconds": 3.0}, {"memory_mib": 512}, {"output_bytes": 20_000}):
        assert opening(sessions, SQUARES.model_copy(update=change)).own


def test_whole_programs_are_compared_with_a_reference(verifier: ProgramVerifier) -> None:
    spec = ProgramSpec(
        inputs=(Integers(low=1, high=9), Lists(of=Integers(low=-9, high=9), least=1, most=6)),
        generate=8,
        reference="n = int(input())\nassert n > 0\nprint(n * sum(map(int, input().split())))\n",
        seconds=10.0,
    )
    assert verifier.verify(spec, "import sys\nn, *xs = map(int, sys.stdin.read().split())\nprint(n * sum(xs))\n").passed
    verdict = verifier.verify(spec, "n = int(input())\nprint(n * sum(map(abs, map(int, input().split()))))\n")
    assert verdict.outcome is Outcome.FAIL
    assert verdict.evidence["failed"]["kind"] == "reference"
    wrong = spec.model_copy(update={"runs": (Run(stdin="2\n3 4\n", expected="15"),)})
    with pytest.raises(SpecError, match="disagrees with run 1"):
        verifier.verify(wrong, "print(1)")
    with pytest.raises(SpecError, match="prints the same"):
        verifier.verify(spec.model_copy(update={"reference": "print(1)"}), "print(1)")


def test_a_pool_that_is_closed_says_nothing_of_a_program(sessions: Sessions, tmp_path: Path) -> None:
    own = sessions.settings.own.model_copy(update={"state_dir": tmp_path / "state"})
    with Sessions(RuntimeSettings(own=own)) as pool:
        pass
    verdict = ProgramVerifier(pool).verify(SQUARES, SOLVE)
    assert (verdict.outcome, verdict.ground, verdict.score) == (Outcome.INFRA_ERROR, Ground.BROKEN, 0.0)
    assert "closed" in verdict.reason


def test_a_relation_is_asked_of_two_processes(verifier: ProgramVerifier) -> None:
    """What decodes by remembering what was encoded is found out."""
    spec = SPECS["codec"]
    remembering = (
        "last = ['']\ndef encode(text):\n    last[0] = text\n"
        "    return {'aab': [('a', 2), ('b', 1)], '': [], 'abbb': [('a', 1), ('b', 3)]}.get(text, [])\n"
        "def decode(pairs):\n    return last[0]\n"
    )
    verdict = verifier.verify(spec, remembering)
    assert verdict.outcome is Outcome.FAIL
    assert verdict.evidence["failed"]["relation"] == "inverse"


def test_a_source_may_begin_with_a_mark_of_its_encoding(verifier: ProgramVerifier) -> None:
    assert verifier.verify(SQUARES, "\ufeff" + SOLVE.replace("\n", "\r\n")).passed


def test_a_spec_may_refuse_what_looks_like_an_attempt(verifier: ProgramVerifier) -> None:
    odd = "import sys\nkept = sys._getframe()\n" + SOLVE
    verdict = verifier.verify(SQUARES, odd)
    assert verdict.passed
    assert "the name _getframe" in verdict.evidence["signals"]
    strict = SQUARES.model_copy(update={"suspicion": "refuses"})
    assert verifier.verify(strict, odd).outcome is Outcome.HACK_SUSPECTED
    assert verifier.verify(strict, "import gc, inspect\n" + SOLVE).passed


@given(natives)
@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_value_comes_back_from_a_sandbox_as_it_went_in(sessions: Sessions, echo: Guest, native: object) -> None:
    value = of_native(native)
    reply = echo.call("echo", Arguments((value,)), 2.0)
    assert reply.kind == "value"
    assert agree(value, reply.value, CompareRule())


@pytest.fixture(scope="module")
def echo(sessions: Sessions) -> Iterator[Guest]:
    with Guest(opening(sessions, SQUARES), "def echo(value):\n    return value\n", wanted="echo") as guest:
        yield guest


ODDLY_TYPED = """
import numpy as np
from collections import Counter, OrderedDict, deque, namedtuple
from decimal import Decimal
from enum import IntEnum
Point, Kind = namedtuple("Point", "x y"), IntEnum("Kind", "ONE TWO")
class Name(str): pass
class Same(int):
    def __eq__(self, other): return True
    __hash__ = int.__hash__
values = {
    "whole": np.int64(3), "real": np.float64(0.5), "truth": np.bool_(True), "complex": np.complex128(1 + 2j),
    "list of scalars": [np.int64(1), (np.float64(2.5), np.bool_(False))], "keys": {np.int64(1): np.str_("a")},
    "array": np.array([1, 2]), "table": np.array([[1.5, 2], [3, 4]]), "no dimension": np.array(7), "empty": np.zeros(0),
    "truths": np.array([1, 2]) > 1, "point": Point(1, Point(2, 3)), "member": [Kind.TWO], "name": Name("x"),
    "counts": Counter("aab"), "ordered": OrderedDict(a=1), "same": Same(4),
    "decimal": Decimal(1), "queue": deque([1]), "range": range(2), "long": np.longdouble(1),
    "things": np.array([object]),
}
def value(name):
    return values[name]
"""


def test_what_derives_from_plain_data_and_what_numpy_gives_is_plain_data(sessions: Sessions) -> None:
    plain = {
        "whole": 3, "real": 0.5, "truth": True, "complex": 1 + 2j, "list of scalars": [1, (2.5, False)],
        "keys": {1: "a"}, "array": [1, 2], "table": [[1.5, 2.0], [3.0, 4.0]], "no dimension": 7, "empty": [],
        "truths": [False, True], "point": (1, (2, 3)), "member": [2], "name": "x", "counts": {"a": 2, "b": 1},
        "ordered": {"a": 1}, "same": 4,
    }  # fmt: skip
    with Guest(opening(sessions, SQUARES), ODDLY_TYPED, wanted="value") as guest:
        for name, expected in plain.items():
            reply = guest.call("value", Arguments((name,)), 5.0)
            assert (reply.kind, reply.text) == ("value", ""), name
            assert agree(of_native(expected), reply.value, CompareRule()), name
        assert set(guest.signals) == {"a value that equals anything"}
        for name in ("decimal", "queue", "range", "long", "things"):
            assert guest.call("value", Arguments((name,)), 5.0).kind == "odd", name


def test_an_honest_answer_of_numpy_passes_without_suspicion(verifier: ProgramVerifier) -> None:
    spec = ProgramSpec(
        function="running",
        examples=(Example(arguments="[1, 2]", expected="[1, 3]"), Example(arguments="[]", expected="[]")),
        suspicion="refuses",
    )
    verdict = verifier.verify(spec, "import numpy as np\ndef running(xs):\n    return np.cumsum(np.array(xs, int))\n")
    assert verdict.passed
    assert "signals" not in verdict.evidence
    wrong = verifier.verify(spec, "import numpy as np\ndef running(xs):\n    return np.array(xs, int) + 1\n")
    assert (wrong.outcome, wrong.ground) == (Outcome.FAIL, Ground.REFUTED)


def test_a_reference_that_says_something_else_the_next_time_is_no_reference(verifier: ProgramVerifier) -> None:
    drawn = "import random\ndef f(n):\n    return [n, random.randrange(1000)]\n"
    shuffled = "import random\ndef f(n):\n    random.shuffle(digits := list(range(n % 7)))\n    return sorted(digits)\n"
    spec = ProgramSpec(function="f", inputs=(Integers(low=0, high=50),), generate=8, reference=drawn)
    with pytest.raises(SpecError, match=r"another result for .* when run again"):
        verifier.check(spec, prove=True)
    verifier.check(spec.model_copy(update={"reference": shuffled}), prove=True)


FLOOD = "import sys\nfor _ in range(1024):\n    sys.stdout.write('x' * (1 << 20))\n"


@pytest.mark.parametrize(
    ("whole", "source"),
    [
        (True, FLOOD),
        (False, "def f(n):\n    import sys\n    while True: sys.stdout.write('x' * (1 << 20))\n"),
        (False, "def f(n):\n    return 'x' * (1 << 30)\n"),
    ],
    ids=["printed by a program", "printed by a function", "returned"],
)
def test_a_gigabyte_of_output_ends_at_the_limit_and_not_in_the_judges_memory(
    verifier: ProgramVerifier, whole: bool, source: str
) -> None:
    runs = tuple(Run(stdin=f"{n}", expected=f"{n}") for n in range(2))
    examples = tuple(Example(arguments=f"{n}", expected=f"{n}") for n in range(2))
    spec = ProgramSpec(runs=runs) if whole else ProgramSpec(function="f", examples=examples)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    verdict = verifier.verify(spec, source)
    assert verdict.outcome is Outcome.FAIL, verdict.reason
    assert verdict.seconds < 60
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 << 10


def test_arguments_may_have_any_name(verifier: ProgramVerifier) -> None:
    examples = tuple(Example(arguments=f"nonce={n}, name='x', function=2", expected=f"'{n}x2'") for n in range(2))
    source = "def show(nonce, name, function):\n    return f'{nonce}{name}{function}'\n"
    verdict = verifier.verify(ProgramSpec(function="show", examples=examples), source)
    assert verdict.passed, verdict.reason


def test_more_tests_than_a_session_has_calls_are_all_run(verifier: ProgramVerifier) -> None:
    spec = ProgramSpec(
        function="f", examples=tuple(Example(arguments=str(n), expected=str(n * n)) for n in range(900)), seconds=1.0
    )
    verdict = verifier.verify(spec, "def f(n):\n    return n * n\n")
    assert verdict.passed
    assert verdict.evidence["tests"] == 900
    assert not verifier.verify(spec, "def f(n):\n    return n * n if n != 899 else 0\n").passed


def test_reading_a_large_input_is_not_the_programs_time(verifier: ProgramVerifier) -> None:
    numbers = list(range(40_000))
    spec = ProgramSpec(
        function="f",
        examples=(
            Example(arguments=f"{numbers}, start=1", expected=str(sum(numbers) + 1)),
            Example(arguments="[1]", expected="1"),
        ),
        seconds=1.0,
    )
    assert verifier.verify(spec, "def f(xs, start=0):\n    return sum(xs, start)\n").passed


def test_a_result_may_be_as_deep_and_as_large_as_the_caps_say(echo: Guest, verifier: ProgramVerifier) -> None:
    deep: Value = []
    for _ in range(MOST_DEPTH):
        deep = [deep]
    reply = echo.call("echo", Arguments((deep,)), 2.0)
    assert (reply.kind, reply.value) == ("value", deep)
    spec = ProgramSpec(
        function="f",
        examples=(Example(arguments="0", expected="0"), Example(arguments="1", expected="1")),
        output_bytes=1 << 20,
        seconds=20.0,
    )
    verdict = verifier.verify(spec, "def f(n):\n    return [1 << 3_000_000] if n else [0] * 300_000\n")
    assert verdict.outcome is Outcome.FAIL
