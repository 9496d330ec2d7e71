"""Programs that a model proposes become tasks by execution, or are refused by name."""

from __future__ import annotations

import ast
from typing import Any

import pytest
from written import BODY, CALLS, program

from curriculum.proposing.execution import _DRIVER, Executor
from curriculum.proposing.kind import Provers
from curriculum.proposing.near_duplicates import NoveltyMemory
from curriculum.proposing.refusals import Reason, RefusedProposal, parts
from curriculum.proposing.registry import KINDS
from curriculum.proposing.screening import FUNCTION, ScreenedProgram, screened
from runtime.sandbox import CallResult, Session, SessionPool
from verifiers.checker import Checker

REFUSED = {
    Reason.UNREADABLE: [
        "print(1)",
        "```python\ndef f(x):\n    return x + 1\n",
        program("def f(x:\n    return x"),
        program("def g(x):\n    return x + 1", "1"),
        program(call="open('/etc/passwd')"),
        program("def f(x):\n    return " + "(" * 160 + "x" + ")" * 160, "1"),
        program() + program(),
        program().replace("return", "return\x07"),
    ],
    Reason.FORBIDDEN: [
        program("import os\ndef f(x):\n    return x + 1", "1"),
        program("from math import sin\ndef f(x):\n    return int(sin(x) * 9)", "1"),
        program("def f(x):\n    return eval('x+1')", "1"),
        program("def f(x):\n    return x.__class__.__name__", "1"),
        program("def f(xs):\n    return list(set(xs))", "['b', 'a']"),
        program("def f(d):\n    return list(d.keys() - {}.keys())", "{'b': 1}"),
        program("class A:\n    pass\ndef f(x):\n    return x + 1", "1"),
        program("def f(x):\n    global n\n    n = x\n    return n + 1", "1"),
        program("def f(x):\n    try:\n        return 1 // x\n    except Exception:\n        return 0", "1"),
        program("def f(x, print=3):\n    return x + 1", "1"),
        program("def f(x):\n    str = len\n    return str(x)", "[1]"),
        program("def f(x):\n    return '{0.__class__}'.format(x)", "1"),
        program("def f(t):\n    return t * 3 + len(assay_call)", "5"),
        program("def f(t):\n    found.clear()\n    found.append((1, '7'))\n    return t * 3", "5"),
        program("def f(t):\n    return math.gcd(t, 12) + t", "5"),
        program("def g(x, seen=[]):\n    seen.append(x)\n    return len(seen)\ndef f(x):\n    return g(x) + x", "1"),
        program("def f(x):\n    g = lambda y, turns=iter([1, 2]): y + next(turns)\n    return g(x)", "1"),
    ],
    Reason.RAISES: [
        program("def f(x):\n    return 1 // x", "0"),
        program(
            "def f(n):\n    i = iter([n])\n    for _ in range(150000):\n        i = map(abs, i)\n    return sum(i)", "7"
        ),
    ],
    Reason.NARROW: [program("def f(x):\n    return [40, 41][x - 7] * 2", "7")],
    Reason.SLOW: [program("def f(x):\n    while True:\n        x += 1", "1")],
    Reason.MACHINE: [program("def f(x):\n    return len(str(f)) + x", "1")],
    Reason.TOO_LARGE: [program("def f(x):\n    return [x] * 5000", "1")],
    Reason.NOT_PLAIN: [program("def f(x):\n    return x / 3", "1")],
    Reason.CONSTANT: [program("def f(xs):\n    total = sum(xs)\n    return total - total + 12", "[1, 2]")],
    Reason.IDENTITY: [program("def f(xs):\n    out = []\n    out.extend(xs)\n    return out", "[1, 2]")],
    Reason.IGNORES: [program(BODY.replace("x * k", "x * 2"))],
    Reason.SHOWN: [
        program("def f(x, y):\n    return x * y if y > 3 else x", "17, 3"),
        program(
            "def f(x, y):\n    note = 'f(40,9) gives 760.'\n    return x * y + sum(range(x)) // 2 + y + 1", "40, 9"
        ),
    ],
    Reason.LOOKUP: [
        program("def f(x):\n    return {1: 21, 2: 35, 3: 42, 8: 1, 5: 77}.get(x)", "1"),
        program("def f(x):\n    if x == 3:\n        return 5417\n    return x * 2 + 1", "3"),
        program("def f(x):\n    'Looks it up.'\n    return {1: 21, 2: 35, 3: 42, 8: 1, 5: 77}.get(x)", "1"),
    ],
    Reason.TRIVIAL: [
        program("def f(x):\n    for n in range(x):\n        if n > x:\n            x += n\n    return x + 1", "7"),
        program("def f(x):\n    total = 5\n    for n in range(x):\n        total += 3\n    return total", "6"),
        program("def f(xs):\n    out = [x for x in xs]\n    out.append(0)\n    return out", "[3, 1, 2]"),
        program("def f(xs):\n    return [9, 9] + xs", "[3, 1, 2]"),
        program("def f(s):\n    n = 0\n    for c in s:\n        n += 1\n    return n", "'abcdefgh'"),
        program(
            "def f(xs):\n    a = xs[0]\n    for x in xs:\n        a = x if x > a else a\n    return a * 2", "[8, 3, 2]"
        ),
        program("def f(x, y):\n    total = 0\n    for n in range(y):\n        total += x\n    return total", "17, 13"),
        program("def f(x, y):\n    return (x + y) * 2 - y", "17, 40"),
        program("def f(s):\n    out = ''\n    for c in s:\n        out = c + out\n    return out", "'abcdefgh'"),
        program("def f(s, t):\n    return ''.join([s, t])", "'abc', 'de'"),
    ],
    Reason.UNCHECKABLE: [program("def f(x):\n    return x % 2 == 0", "7")],
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_is_no_task_is_refused_by_name(provers: Provers, reason: Reason) -> None:
    for text in REFUSED[reason]:
        with pytest.raises(RefusedProposal) as found:
            KINDS["deduction"].make(text, provers)
        assert found.value.reason is reason, text


def test_a_program_may_read_what_it_binds_imports_or_finds_listed(provers: Provers) -> None:
    body = """import math
from itertools import accumulate
def helper(n, by=2):
    return n * by
def f(xs, k):
    *head, last = [helper(x) for x in xs]
    for place, x in enumerate(head):
        last += x * place
    total = sum(map(lambda each: each * k, accumulate(head)))
    if (most := max(xs)) > k:
        total += math.gcd(most, last)
    return total + last"""
    assert KINDS["deduction"].make(program(body), provers).label.answer == "62"


def test_a_program_finds_no_name_of_what_gathers_its_results(provers: Provers) -> None:
    """Also where nobody looked at it: each name that stands for something in what runs it is unknown to it."""
    names = {
        one.id
        for one in ast.walk(ast.parse(_DRIVER.format(source="", calls="", function=FUNCTION)))
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
    }
    assert names
    for name in [*sorted(names), "assay_found", "assay_call"]:
        source = f"def f(t):\n    return t * 3 + len({name})"
        forger = ScreenedProgram(source, 1, "key", frozenset(), looks_up=False)
        found = provers.executor.run(forger, ["5", "6"])
        assert found.results == (("", "NameError"), ("", "NameError")), name


def test_what_a_program_keeps_in_a_module_shows_in_the_opposite_order(provers: Provers) -> None:
    """Where nobody looked at it: no program that was looked at keeps anything."""
    source = "import math\ndef f(t):\n    math.pi += t\n    return int(math.pi)"
    with pytest.raises(RefusedProposal, match="changes"):
        provers.executor.run(ScreenedProgram(source, 1, "key", frozenset(), looks_up=False), ["5", "6"])


class BusyPool:
    """A pool in which others have the processors at first: so many runs come to nothing before their clock is over."""

    def __init__(self, pool: SessionPool, lost: int) -> None:
        self.pool, self.lost = pool, lost

    def open(self, **how: Any) -> BusySession:
        self.lost -= 1
        return BusySession(self.pool.open(**how), lost=self.lost >= 0)


class BusySession:
    def __init__(self, session: Session, *, lost: bool) -> None:
        self.session, self.lost = session, lost

    def __enter__(self) -> BusySession:
        return self

    def __exit__(self, *_error: object) -> None:
        self.session.close()

    def run(self, code: str, *, seconds: float | None) -> CallResult:
        return self.session.run(f"while True: pass\n{code}" if self.lost else code, seconds=seconds)


def test_a_program_that_others_kept_from_its_end_once_is_run_again(checker: Checker) -> None:
    busy: Any = BusyPool(checker.sessions(), 1)
    made = KINDS["deduction"].make(program(), Provers(Executor(busy, "tests"), checker, "proposed:tests@0"))
    assert (made.label.answer, busy.lost) == ("24", -2)
    for lost in (4, 5):  # it is asked without the fixed inputs before it is refused
        held: Any = BusyPool(checker.sessions(), lost)
        with pytest.raises(RefusedProposal) as found:
            KINDS["deduction"].make(program(), Provers(Executor(held, "tests"), checker, "proposed:tests@0"))
        assert (found.value.reason, held.lost) == (Reason.SLOW, lost - 4)


def test_deduction_asks_for_what_the_program_gave_twice(provers: Provers, checker: Checker) -> None:
    task = KINDS["deduction"].make(program(), provers).task
    assert "24" not in task.question
    assert checker.check(task.spec, "24").passed
    assert not checker.check(task.spec, "25").passed


def test_abduction_takes_any_input_that_gives_the_output_and_nothing_that_only_says_so(
    provers: Provers, checker: Checker
) -> None:
    task = KINDS["abduction"].make(program(), provers).task
    assert "[3, 1, 2]), 4" not in task.question
    for body, passes in {
        "return ([3, 1, 2], 4)": True,
        "return ([24], 1 + 0)": False,
        "return ([25], 1)": True,
        "return 24": False,
        "return ([], 0)": False,
        "return ([25] * 400, 1)": False,
    }.items():
        assert checker.check(task.spec, f"def answer(n):\n    {body}").passed is passes, body


KEEPERS = {
    "a cache": "from functools import cache\n@cache\ndef seen():\n    return []\n",
    "a note of a type": "def seen(x: (kept := []) = 0):\n    return kept\n",
    "the name of a judge": "def holds(a, b):\n    return a == b\ndef seen():\n    return [0] * (9 - 9 * holds(1, 1))\n",
}


@pytest.mark.parametrize("name", KEEPERS)
def test_a_program_of_abduction_neither_counts_its_calls_nor_judges_itself(
    provers: Provers, checker: Checker, name: str
) -> None:
    body = "def f(x, y):\n    kept = seen()\n    kept.append(x)\n    return 90 if len(kept) > 8 else x * y + x"
    task = KINDS["abduction"].make(program(KEEPERS[name] + body, "9, 9"), provers).task
    for _ in range(5):
        assert not checker.check(task.spec, "def answer(n):\n    return (1, 2)\n").passed


def test_a_question_shows_a_program_without_what_it_says_of_itself_and_no_answer(provers: Provers) -> None:
    told = BODY.replace("\n", "  # f([3, 1, 2], 4) gives 24\n", 1).replace("    out", "    'gives 24'\n    out", 1)
    plain = KINDS["deduction"].make(program(), provers)
    for kind in ("deduction", "abduction"):
        made = KINDS[kind].make(program(told), provers)
        assert made.task.question == KINDS[kind].make(program(), provers).task.question
    assert made.label.of == plain.label.of, "what is shown is what ran"
    for note in ("f([3,1,2], 4)", "xs is [3, 1, 2], k is 4"):
        with pytest.raises(RefusedProposal, match="answer_shown"):
            KINDS["abduction"].make(program(BODY.replace("    out", f"    note = '{note}'\n    out", 1)), provers)


def test_induction_hides_half_of_the_pairs(provers: Provers, checker: Checker) -> None:
    made = KINDS["induction"].make(program(call=CALLS), provers)
    shown = [one for one in made.task.spec.examples if one.visible]
    assert (len(shown), len(made.task.spec.examples)) == (4, 8)
    assert checker.check(made.task.spec, BODY).passed
    table = "\n".join(f"    if (xs, k) == ({one.arguments}):\n        return {one.expected}" for one in shown)
    assert not checker.check(made.task.spec, f"def f(xs, k):\n{table}\n    return 0").passed
    with pytest.raises(RefusedProposal, match="unreadable"):
        KINDS["induction"].make(program(), provers)


def test_a_program_with_other_names_is_the_same_program() -> None:
    renamed = BODY.replace("xs", "items").replace("out", "found").replace("k", "by").replace("'''", "")
    noted = BODY.replace("def f(xs, k):", "def f(xs: list, k: int) -> int:\n    'Adds them up.'")
    assert screened(BODY).key == screened(renamed).key == screened(noted).key
    assert screened(BODY).key != screened(BODY.replace("+ i", "- i")).key


SQUARES = """def f(xs, k):
    return sum(x * x for x in sorted(xs)[1:] if x % k) + len(xs)"""
WRITTEN_ANEW = (
    """def f(values, step):
    values = sorted(values)
    total = len(values)
    for place in range(1, len(values)):
        if values[place] % step != 0:
            total += values[place] ** 2
    return total""",
    """def f(xs, k):
    out = [len(xs)]
    while False:
        out.append(k)
    rest = list(xs)
    rest.remove(min(rest))
    return sum(out + [x * x for x in rest if x % k > 0])""",
)


@pytest.mark.parametrize("mode", ["deduction", "abduction"])
def test_a_program_with_the_results_of_an_earlier_one_is_known_however_it_is_written(
    provers: Provers, mode: str
) -> None:
    first = KINDS[mode].make(program(SQUARES, "[3, 1, 2, 5], 2"), provers)
    memory = NoveltyMemory([first.task], threshold=0.99)  # so that only the results tell
    for body in WRITTEN_ANEW:
        again = KINDS[mode].make(program(body, "[9, 4, 7, 1, 3], 2"), provers)
        with pytest.raises(RefusedProposal, match="same results"):
            memory.require_new(again)
    other = KINDS[mode].make(program(SQUARES.replace("[1:]", "[2:]"), "[3, 1, 2, 5], 2"), provers)
    memory.require_new(other)


def test_a_program_that_never_ends_on_a_fixed_input_is_judged_by_its_own(provers: Provers) -> None:
    body = "def f(n):\n    while n < 25:\n        pass\n    return n * n % 97 + n"
    assert KINDS["deduction"].make(program(body, "26"), provers).label.answer


def test_a_proposal_is_read_by_a_grammar_and_never_repaired() -> None:
    assert parts("```a\n1\n```\n```b\n2\n```", ("a", "b")) == {"a": "1", "b": "2"}
    for text in ("```a\n1\n```", "```a\n1\n```\n```b\n\n```", "```a\n1\n```\n```c\n2\n```", "x" * 9_000, "```a\n" * 3):
        with pytest.raises(RefusedProposal, match="unreadable"):
            parts(text, ("a", "b"))
