"""A history that is repeated is the history: what could end otherwise runs where nothing is repeated."""

from __future__ import annotations

from pathlib import Path

import pytest
from tables import table

from runtime.errors import InfrastructureError
from runtime.sandbox import CallStatus, Session, Tier
from runtime.sessions import Sessions
from runtime.sessions.purity import Need, classify
from runtime.settings import BrokerSettings, RuntimeSettings

MOVE = "import os"
DEPENDS = [
    "import time\nx = time.time()",
    "import datetime\nx = datetime.datetime.now()",
    "from datetime import date\nx = date.today()",
    "x = [id(n) for n in ([], {})]",
    "x = hash(print)",
    "import random\nx = random.SystemRandom().random()",
    "import random\nx = random.Random().random()",
    "def f(): pass\ndef g(): pass\nx = [h.__name__ for h in {f, g}]",
    "class A: pass\nx = set([A(), A()])",
    "x = {float('nan'), float('nan')}",
    "x = [str(n) for n in {None, 1, 'a'}]",
    "x = object().__hash__()",
    "from math import nan\nx = {nan, -nan, 1}",
    "import math\nx = [f.__name__ for f in {math.sin, math.cos}]",
    "x = list(map(id, [[], {}]))",
    "x = sorted([[], []], key=id)",
    "number = hash\nx = number(print)",
    "import numpy as np\nx = np.empty((7, 3)).tolist()",
    "import numpy as np\nx = np.arange(3).ctypes.data",
    "class A:\n    def __init__(self): self.own = self\n    def __del__(self): pass\nx = 1",
]
SEEN = DEPENDS[::6]
"""Those that a sandbox is taken for in the suite; that the others need one is read in their text."""
HIDDEN = [
    "import enum\nx = enum.sys.modules['posix'].getpid()",
    "import enum\nx = enum.sys.modules['time'].time()",
    "import enum\nt = enum.sys.modules['time']\nx = t.strftime('%H') + t.ctime() + str(t.localtime())",
    "import datetime\nx = getattr(datetime.datetime, 'n' + 'ow')()",
    "import datetime\nx = getattr(datetime.date, 'to' + 'day')()",
    "import random\nx = getattr(random, 'System' + 'Random')().random()",
    "import random\nmake = random.Random\nx = make(*[]).random()",
    "def f(): pass\ndef g(): pass\nx = {}\nx['in'] = list(map(set, [{h: 1 for h in [f, g]}]))",
    "def pair():\n    return 'na' + 'n'\nx = set(map(float, [pair()] * 3))",
    "class A:\n    def __init__(self): self.seen = set(map(type, [1, '']))\nx = [A()]",
    "x = {(n, dict().get(n)) for n in range(3)}",
    "class A: pass\ndef f(): return str(A())\nx = f()",
    "x = repr(lambda: 0)[5:]",
    "import random\nfrom string import Template\nx = repr([random.Random(1), Template('')])",
    "class A: pass\nx = f'{[A()]}'[20:]",
    "class A: pass\ntry: {}[A()]\nexcept KeyError as missing: x = str(missing)",
    "def f(): yield\nx = str([f(), map(f, []), memoryview(b''), f.__code__, [].append])",
    "import operator\nclass A: pass\nx = operator.methodcaller('__ha' + 'sh__')(A())",
    "from dataclasses import dataclass\n@dataclass(eq=False)\nclass A:\n    n: int\nx = len(set(map(A, range(9))))",
    "class A:\n    def __lt__(self, other): return True\nclass B(A): pass\nx = dict.fromkeys([B()]) and 1",
    "from functools import lru_cache\nclass A:\n    @lru_cache\n    def f(self): return 1\nx = A().f()",
]
REPEATS = [
    "import random\nx = random.Random(3).random()",
    "import datetime\nx = datetime.date(2026, 1, 2) + datetime.timedelta(3)",
    "x = {1, 'a', (2, 3)}\ny = {n for n in range(9)} | frozenset('abc')",
    "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass A:\n    n: int\nx = {A(1), A(2)}",
    "class A:\n    def __eq__(self, other): return True\n    def __hash__(self): return 1\nx = {A()}",
    "class A: pass\nx = [A(), A()]\ny = {'a': A()}",
    "def key(n): return -n\nx = sorted(set([3, 1]), key=key)",
    "import enum\nclass A(enum.Flag):\n    ONE = 1\n    TWO = 2\nx = {A.ONE: A.TWO}",
    "import functools\n@functools.singledispatch\ndef f(n): pass\n@f.register\ndef g(n: int): return n\nx = f(3)",
    "from functools import lru_cache\n@lru_cache\ndef f(n): return n\nx = f(n=3)",
    "from typing import Generic, Optional, TypeVar\nT = TypeVar('T')\nclass A(Generic[T]):\n    n: Optional[T]\nx = 1",
    "id = 3\nx = [id for id in range(id)]",
    "import sympy\nn = sympy.Symbol('n')\nx = sympy.integrate(sympy.sin(n) ** 2, n)",
    "import sympy\nx = [sympy.Dummy().dummy_index]",
]


def says(session: Session, code: str) -> str:
    result = session.run(code)
    assert result.status is CallStatus.OK, result
    return result.output


@pytest.mark.parametrize(
    "code", [*SEEN, *HIDDEN, *(pytest.param(code, marks=pytest.mark.slow) for code in DEPENDS if code not in SEEN)]
)
def test_what_depends_on_a_clock_on_chance_or_on_addresses_runs_in_a_sandbox_of_its_own(
    pool: Sessions, code: str
) -> None:
    with pool.open() as session:
        says(session, "kept = 5")
        before = pool.stats()["calls"]
        said = session.run(f"{code}\nprint(kept)")
        assert (said.tier, said.output) == (Tier.SANDBOX, "5\n"), said
        seen = says(session, "print(x)")
        says(session, f"{MOVE}\nopen('/work/file', 'w')")
        assert says(session, "print(x)") == seen
        assert pool.stats()["calls"] == before + 4


@table("code", DEPENDS)
def test_what_can_be_seen_to_depend_on_them_is_not_tried_in_a_process(code: str) -> None:
    assert classify(code) is Need.MACHINE


def test_what_can_be_repeated_stays_in_its_process(pool: Sessions) -> None:
    """All in one session, so that one move repeats them all."""
    with pool.open(tier=Tier.PROCESS) as session:
        for number, code in enumerate(REPEATS):
            said = session.run(f"{code}\nkept_{number} = x")
            assert (said.status, said.tier) == (CallStatus.OK, Tier.PROCESS), (code, said)
        shown = [f"print(str(kept_{number})[:4])" for number in range(len(REPEATS))]
        seen = [says(session, code) for code in shown]
        says(session, MOVE)
        assert dict(zip(REPEATS, (says(session, code) for code in shown), strict=True)) == dict(
            zip(REPEATS, seen, strict=True)
        )
        assert session.tier is Tier.SANDBOX


def test_what_ends_otherwise_all_the_same_is_no_exception_of_the_codes(pool: Sessions) -> None:
    """An address that is asked for in disguise: nobody is shown a fault of his own."""
    with pool.open() as session:
        says(session, "import enum\nprint(vars(enum.sys.modules['builtins'])['i' + 'd']([]))")
        assert session.tier is Tier.PROCESS
        with pytest.raises(InfrastructureError, match="gives different results"):
            session.run(MOVE)
        with pytest.raises(InfrastructureError):
            session.run("1")


PLAIN = [
    "print('result', 2 ** 20000)",
    "print('a', 'b', sep=1)",
    "print(*range(3), end=2)",
    "p = print\np('a', flush=True)",
    "def down(n): return n and down(n - 1)\nprint(down(990))",
    "def down(n): return n and down(n - 1)\ndown(995)",
    "def down(n): return n and down(n - 1)\ndown(996)",
    "x = []\nfor n in range(994): x = [x]\nprint(x)",
    "x = []\nfor n in range(995): x = [x]\nprint('deep', x)",
    "x = []\nfor n in range(996): x = [x]\nprint('deep', x)",
    "print('\\ud800')",
    "print(b'a', {2, 1}, ...)",
    "1 / 0",
    "nothing",
    "print((3-4//2)",
]


AT_THE_LIMIT = [code for code in PLAIN if "99" in code]
"""How deep they may go depends on what was called before, so each has a session of its own."""


@pytest.mark.parametrize(
    "codes", [[code for code in PLAIN if code not in AT_THE_LIMIT], *([one] for one in AT_THE_LIMIT)]
)
def test_plain_code_loses_no_names_when_its_session_moves(pool: Sessions, codes: list[str]) -> None:
    with pool.open() as session:
        says(session, "kept = 5")
        first = {code: session.run(code) for code in codes}
        for further in ("import random", MOVE):
            says(session, further)
            assert says(session, "print(kept)") == "5\n"
        for code, before in first.items():
            again = session.run(code)
            assert (again.status, again.output, again.error) == (before.status, before.output, before.error), code


DRAW = "import random\nx = [random.random(), own.random()]\nprint(x)"


def test_branches_of_a_process_draw_other_numbers_and_the_session_goes_on_with_its_own(pool: Sessions) -> None:
    with pool.open(tier=Tier.PROCESS) as session, pool.open(tier=Tier.PROCESS) as twin:
        for one in (session, twin):
            says(one, "import random\nown = random.Random(5)\nrandom.random()")
        branches = session.fork(3)
        drawn = [says(branch, DRAW) for branch in branches]
        mine = says(session, DRAW)
        assert mine == says(twin, DRAW)
        assert len({*drawn, mine}) == 4
        for position in (0, 1):
            assert len({text.strip("[]\n").split(", ")[position] for text in [*drawn, mine]}) == 4
        assert {branch.tier for branch in branches} == {Tier.PROCESS}
        for branch, text in zip(branches, drawn, strict=True):
            [second] = branch.fork(1)
            assert says(second, "print(x)") == text
            assert says(second, DRAW) not in [*drawn, mine]
            says(branch, MOVE)
            assert says(branch, "print(x)") == text, "what it drew is drawn again where it goes on"
            branch.close()
            second.close()


def test_branches_that_began_among_others_draw_other_numbers_once_they_draw(pool: Sessions) -> None:
    with pool.open() as session:
        says(session, "kept = 5")
        branches = session.fork(3)
        assert [says(branch, "print(kept)") for branch in branches] == ["5\n"] * 3
        drawn = [says(branch, "import random\nprint(random.random())") for branch in branches]
        assert len(set(drawn)) == 3
        for branch in branches:
            branch.close()


def test_generators_of_numpy_draw_other_numbers_in_branches(pool: Sessions) -> None:
    assert "numpy" in pool.ready_modules, "install.sh builds the packages of guests"
    draw = (
        "import numpy as np\nmade = np.random.default_rng()\n"
        "x = [float(one) for one in (np.random.rand(), g.random(), old.rand(), made.random())]\nprint(x)"
    )
    with pool.open() as session:
        says(session, "import numpy as np\ng = np.random.default_rng(1)\nold = np.random.RandomState()")
        assert session.tier is Tier.PROCESS
        branches = session.fork(2)
        drawn = [says(branch, draw) for branch in branches]
        assert says(branches[0], "import numpy.random, os\nprint(x)") == drawn[0]
        assert branches[0].tier is Tier.SANDBOX
        numbers = [text.strip("[]\n").split(", ") for text in [*drawn, says(session, draw)]]
        assert all(len(set(position)) == 3 for position in zip(*numbers, strict=True))
        for branch in branches:
            branch.close()


HOG = """kept = []
try:
    while True: kept.append(bytearray(b'x' * (1 << 20)))
except MemoryError: del kept[-4:]
n = 0
while n < 1_000_000: n += 1
print(len(kept) > 30)
"""


def test_hogs_of_memory_cost_their_own_sessions_and_nobody_elses(root_dir: Path, tmp_path: Path) -> None:
    settings = RuntimeSettings(own=BrokerSettings(state_dir=tmp_path, root_dir=root_dir, ready=0), process_boxes=1)
    settings = settings.model_copy(
        update={"limits": settings.limits.model_copy(update={"memory_mib": 80, "call_seconds": 60.0})}
    )
    with Sessions(settings) as pool:
        quiet = [pool.open(tier=Tier.PROCESS) for _ in range(3)]
        hogs = [pool.open(tier=Tier.PROCESS) for _ in range(6)]
        for number, session in enumerate([*quiet, *hogs]):
            says(session, f"number = {number}")
        home = quiet[0].run("1").sandbox
        under_way = [hog.start(HOG) for hog in hogs]
        working = [session.start("m = 0\nwhile m < 1_000_000: m += 1\nprint(number)") for session in quiet]
        for number, future in enumerate(working):
            result = future.result(timeout=120)
            assert (result.output, result.sandbox) == (f"{number}\n", home)
        for hog in under_way:
            result = hog.result(timeout=120)
            assert (result.output, result.tier, result.sandbox) == ("True\n", Tier.PROCESS, home)
        assert [session.run("print(number)").sandbox for session in quiet] == [home] * 3


def test_a_fault_in_the_c_stack_costs_its_session_a_call_and_others_nothing(pool: Sessions) -> None:
    with pool.open() as session, pool.open() as neighbour:
        says(session, "kept = 3")
        says(neighbour, "kept = 4")
        result = session.run("t = ()\nfor n in range(1_000_000): t = (t,)\nprint({t: 1} == {})")
        assert result.status in (CallStatus.DIED, CallStatus.TIMEOUT, CallStatus.MEMORY)
        assert says(neighbour, "print(kept)") == "4\n"
        assert neighbour.tier is Tier.SHARED
        assert says(session, "print(kept)") == "3\n"
