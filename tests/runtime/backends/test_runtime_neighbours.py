"""What one session does to the place it shares, the others do not notice: not its crashes, its hoards, its silence."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from property_budget import examples

from runtime.conformance import host
from runtime.sandbox import CallStatus, Limits, Session, Tier
from runtime.sessions import Sessions
from runtime.sessions.purity import Need, classify
from runtime.sessions.session import LiveSession
from runtime.settings import BrokerSettings, RuntimeSettings

STUBBORN = "x = max(range(10 ** 10))"
"""One call of C that no timer can interrupt: the interpreter has to be killed."""
PATIENT = 60.0
"""Seconds for a call that is about something else than time; half a gigabyte takes long on a busy machine."""


def says(session: Session, code: str) -> str:
    result = session.run(code)
    assert result.status is CallStatus.OK, result
    return result.output


def test_a_call_that_waits_behind_many_that_must_be_killed_is_answered(pool: Sessions) -> None:
    stubborn, neighbour = [pool.open() for _ in range(3)], pool.open()
    says(neighbour, "x = 4")
    futures = [session.start(STUBBORN, seconds=0.2) for session in stubborn]
    assert neighbour.run("print(x)").output == "4\n"
    assert {future.result().status for future in futures} == {CallStatus.TIMEOUT}
    for session in [*stubborn, neighbour]:
        session.close()


def test_what_others_keep_does_not_drive_everybody_out_of_the_shared_interpreter(pool: Sessions) -> None:
    hoarders, neighbours = [pool.open() for _ in range(4)], [pool.open() for _ in range(6)]
    for session in hoarders:
        says(session, f"kept = 'a' * {30 << 20}")
    for session in neighbours:
        assert says(session, f"n = len('b' * {8 << 20})\nprint(n)") == f"{8 << 20}\n"
    assert sum(session.tier is Tier.SHARED for session in neighbours) >= 3
    assert [says(session, "print(len(kept))") for session in hoarders] == [f"{30 << 20}\n"] * 4
    for session in [*hoarders, *neighbours]:
        session.close()


def test_sessions_that_fill_a_common_sandbox_together_cost_the_others_no_answer(pool: Sessions) -> None:
    hoard = "kept = bytearray(85 << 20)\nfor n in range(0, len(kept), 4096): kept[n] = 1"
    hoarders, others = ([pool.open(tier=Tier.PROCESS) for _ in range(count)] for count in (6, 12))
    hoards = [session.start(hoard, seconds=PATIENT) for session in hoarders]
    answers = [session.start(f"print({n})", seconds=PATIENT) for n, session in enumerate(others)]
    assert [answer.result().output for answer in answers] == [f"{n}\n" for n in range(12)]
    assert {future.result().status for future in hoards} == {CallStatus.OK}
    for session in [*hoarders, *others]:
        session.close()


FILLING = "kept = bytearray(85 << 20)\nfor n in range(0, len(kept), 4096): kept[n] = 1\n"
PASSING = f"{FILLING}for n in range(5_000_000): pass\nkept = None\n"


def test_sessions_that_fill_a_common_sandbox_while_their_histories_are_repeated_lose_no_names(
    root_dir: Path, tmp_path: Path
) -> None:
    own = BrokerSettings(state_dir=tmp_path, root_dir=root_dir, ready=0)
    limits = Limits(memory_mib=128, call_seconds=PATIENT)
    with Sessions(RuntimeSettings(own=own, limits=limits, process_boxes=1)) as pool:
        sessions = [pool.open(tier=Tier.PROCESS) for _ in range(6)]
        keepers, others = sessions[:4], sessions[4:]
        for n, session in enumerate(sessions):
            says(session, f"{FILLING if session in keepers else PASSING}x = {n}")
            assert session.tier is Tier.PROCESS
            lose_the_place_of(pool, session)
        assert [says(session, "print(x)") for session in keepers] == [f"{n}\n" for n in range(4)]
        answers = [session.start("print(x)") for session in others]
        assert [answer.result().output for answer in answers] == ["4\n", "5\n"]


def lose_the_place_of(pool: Sessions, session: Session) -> None:
    """As when the sandbox that it shares ends through others."""
    assert isinstance(session, LiveSession)
    place = session._placement._port
    assert place is not None
    pool._reactor.here(place.worker.retire)


SILENT = """import enum
os = enum.sys.modules['os']
def spin(*_):
    while True: pass
os.read = spin
"""


def test_who_kills_the_parent_of_its_process_harms_itself_alone(pool: Sessions) -> None:
    with pool.open(tier=Tier.SANDBOX) as killer, pool.open(tier=Tier.SANDBOX) as neighbour:
        says(neighbour, "x = 1")
        killer.run("import os\nos.kill(os.getppid(), 9)")
        assert killer.run("while True: print('x' * 999)").status in (CallStatus.OUTPUT, CallStatus.DIED)
        assert says(killer, "print(2)") == "2\n"
        assert says(neighbour, "print(x)") == "1\n"


def test_a_process_that_exchanges_what_reads_goes_on_reading_and_delays_nobody(pool: Sessions) -> None:
    with pool.open(tier=Tier.PROCESS) as silent, pool.open(tier=Tier.PROCESS) as neighbour:
        says(neighbour, "x = 1")
        says(silent, SILENT)
        long = silent.start("#" + "x" * 90_000)
        assert [says(neighbour, "print(x)") for _ in range(5)] == ["1\n"] * 5
        assert long.result().status is CallStatus.OK
        assert neighbour.tier is Tier.PROCESS


CLOSING = "import enum\nposix = enum.sys.modules['posix']\nposix.close(1)\nposix.close(2)"


def test_a_process_that_closes_its_output_never_gets_that_of_another(pool: Sessions) -> None:
    with pool.open(tier=Tier.PROCESS) as closing:
        assert closing.run(CLOSING).status is CallStatus.OK
        others = [pool.open(tier=Tier.PROCESS) for _ in range(6)]
        for _ in range(3):
            futures = [session.start(f"print('of {n}')") for n, session in enumerate(others)]
            mine = closing.run("x = 1")
            assert (mine.status, mine.output) == (CallStatus.OK, "")
            assert [future.result().output for future in futures] == [f"of {n}\n" for n in range(6)]
        for session in others:
            session.close()


REMEMBERING = """import enum
sys = enum.sys
names = set()
frame = sys._getframe()
while frame:
    names.update(type(value).__name__ for value in frame.f_locals.values())
    frame = frame.f_back
names.update(type(thing).__name__ for thing in sys.modules['gc'].get_objects())
print(names & {'Process', 'Supervisor', 'Request', 'Requests'})
"""


def test_no_process_is_forked_from_memory_that_held_what_another_session_said(pool: Sessions) -> None:
    with pool.open(tier=Tier.PROCESS) as busy:
        for n in range(3):
            says(busy, f"print({n})")
            with pool.open(tier=Tier.PROCESS) as later:
                assert says(later, REMEMBERING) == "set()\n"


@pytest.mark.parametrize("tier", [Tier.SHARED, Tier.PROCESS])
def test_an_error_that_no_file_could_hold_comes_out_escaped(pool: Sessions, tier: Tier) -> None:
    with pool.open(tier=tier) as session:
        result = session.run("assert 0, '\\ud800'")
        assert result.error == "AssertionError: \\ud800"
        result.model_dump_json()


def open_things() -> tuple[int, int]:
    return len(list(Path("/proc/self/fd").iterdir())), len(list(Path("/proc/self/task").iterdir()))


def test_two_hundred_sessions_leave_no_descriptor_and_no_thread_behind(pool: Sessions) -> None:
    def use(count: int) -> None:
        sessions = [pool.open(tier=Tier.SHARED if n % 10 else Tier.PROCESS) for n in range(count)]
        for future in [session.start("print(1)") for session in sessions]:
            assert future.result().output == "1\n"
        for session in sessions:
            session.close()

    use(50)
    before = open_things()
    for _ in range(4):
        use(50)
    # Sandboxes that stand ready come and go with what the pool expects: a few of them, and never one for each session.
    some = 10
    assert host.becomes_true(
        lambda: all(now <= then + some for now, then in zip(open_things(), before, strict=True)), seconds=120
    ), (before, open_things())


ATOM_WORDS = "x y f math 0 1 -2 'ab' [] [1,2] {} (1,) None True print len map sorted sum int"
CALLED_WORDS = "f len map sorted sum print int x"
METHOD_WORDS = "append clear copy get items join pop sort update values pi gcd sin"
ATOMS = st.sampled_from(ATOM_WORDS.split())
EXPRESSIONS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "*", "%", "|", "and", "==", "<", "in"]), inner).map(" ".join),
        st.tuples(st.sampled_from(CALLED_WORDS.split()), inner).map(lambda p: f"{p[0]}({p[1]})"),
        st.tuples(inner, st.sampled_from(METHOD_WORDS.split()), inner).map(lambda p: f"({p[0]}).{p[1]}({p[2]})"),
        st.tuples(inner, inner).map(lambda p: f"({p[0]})[{p[1]}]"),
        inner.map(lambda body: f"[{body} for x in (1, 2)]"),
        inner.map(lambda body: f"sorted({body} for y in (2, 1))"),
        inner.map(lambda body: "f'{" + body.replace("'", '"') + "!r:>9}'"),
    ),
    max_leaves=6,
)
STATEMENTS = st.one_of(
    EXPRESSIONS,
    EXPRESSIONS.map(lambda value: f"x = {value}"),
    EXPRESSIONS.map(lambda value: f"print = {value}"),
    EXPRESSIONS.map(lambda value: f"f = {{1: [{value}]}}"),
    EXPRESSIONS.map(lambda value: f"for len in {value}: pass"),
    st.sampled_from(["import math", "import math as len", "from math import pi as y", "x.append(x)", "del x"]),
)


LOOKING = "print(x, f, len('abc'), sum([1, 5]), math.gcd(12, 18), math.pi, int('7'), sorted('ba'))"


@settings(max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(STATEMENTS, min_size=1, max_size=6))
def test_whatever_pure_code_does_the_next_session_finds_a_clean_interpreter(
    pool: Sessions, statements: list[str]
) -> None:
    with pool.open() as session, pool.open() as neighbour:
        says(neighbour, "import math\nx = [5]\nf = {1: x}")
        for statement in statements:
            if classify(statement) is Need.PURE:
                session.run(statement)
        seen = says(neighbour, LOOKING)
        assert seen == "[5] {1: [5]} 3 6 6 3.141592653589793 7 ['a', 'b']\n"
