"""The worker of every mode: how it begins, what it answers, what it never lets its processes know."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from guest_kit import children, worker

from runtime.backends.lease import start_ticks
from runtime.guest import wire
from runtime.guest.wire import Op, ReplyKind
from runtime.profile import Mode

MODES: list[Mode] = ["shared", "process", "sandbox"]


@pytest.mark.parametrize("mode", MODES)
def test_a_ping_is_answered_at_once(mode: Mode) -> None:
    with worker(mode) as guest:
        assert guest.ask(Op.PING).kind == ReplyKind.READY


@pytest.mark.parametrize("mode", MODES)
def test_a_worker_ends_when_the_host_closes_its_pipe(mode: Mode) -> None:
    with worker(mode) as guest:
        below = children(guest.process.pid)
    assert guest.process.returncode == 0
    deadline = time.monotonic() + 120
    while any(start_ticks(pid) is not None for pid in below):  # a zombie has ended: who reaps it is another matter
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_sandbox_of_one_session_has_two_processes() -> None:
    with worker("sandbox", opened=False) as guest:
        assert len(children(guest.process.pid)) == 1


def test_a_worker_is_ready_once_its_processes_are_forked() -> None:
    with worker("process", opened=False, ahead=3) as guest:
        zygote, *idle = children(guest.process.pid)
        assert len(idle) == 3
        assert zygote not in idle


def test_more_processes_are_forked_ahead_once_they_turned_out_to_be_too_few() -> None:
    with worker("process", opened=False, ahead=1, most_ahead=4) as guest:
        guest.write(b"".join(wire.pack_request(os.urandom(16), Op.OPEN, session) for session in range(3)))
        assert [guest.next().kind for _ in range(3)] == [ReplyKind.READY] * 3
        deadline = time.monotonic() + 120
        while len(children(guest.process.pid)) != 1 + 3 + 4:
            assert time.monotonic() < deadline, children(guest.process.pid)
            time.sleep(0.02)


def test_no_process_serves_two_sessions() -> None:
    with worker("process", opened=False, ahead=2) as guest:
        pids = []
        for session in range(8):
            assert guest.ask(Op.OPEN, session).kind == ReplyKind.READY
            pids.append(guest.says("import random\nx = globals().get('x', 0) + 1\nprint(x)", session))
            guest.send(Op.DROP, session)
        assert pids == ["1\n"] * 8


def descriptors_of(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def test_what_is_dropped_leaves_no_process_and_no_descriptor() -> None:
    with worker("process", opened=False, ahead=1, open_files=64) as guest:
        before = descriptors_of(guest.process.pid)
        for session in range(50):
            assert guest.ask(Op.OPEN, session).kind == ReplyKind.READY
            guest.send(Op.DROP, session)
        deadline = time.monotonic() + 120
        while len(children(guest.process.pid)) != 2 or descriptors_of(guest.process.pid) != before:
            assert time.monotonic() < deadline
            time.sleep(0.02)


def test_sessions_are_served_while_others_wait_for_a_process() -> None:
    with worker("process", ahead=0) as guest:
        opened = {guest.send(Op.OPEN, session) for session in range(1, 6)}
        call = guest.send(Op.RUN, 0, b"print('here')")
        answers = {reply.nonce: reply for reply in (guest.next() for _ in range(6))}
        assert answers[call].output == b"here\n"
        assert all(answers[nonce].kind == ReplyKind.READY for nonce in opened)


def test_a_session_that_is_dropped_before_it_has_a_process_gets_none() -> None:
    with worker("process", opened=False, ahead=0) as guest:
        nonce = guest.send(Op.OPEN, 1)
        guest.send(Op.DROP, 1)
        reply = guest.next()
        assert (reply.nonce, reply.kind) in {(nonce, ReplyKind.KILLED), (nonce, ReplyKind.READY)}
        assert guest.ask(Op.RUN, 1, b"1").kind == ReplyKind.DIED


def test_the_one_session_of_a_sandbox_is_open_from_the_start() -> None:
    with worker("sandbox", opened=False) as guest:
        assert guest.run("print(1)").output == b"1\n"
        assert guest.ask(Op.OPEN).kind == ReplyKind.READY
        assert guest.ask(Op.OPEN, 1).kind == ReplyKind.DIED


def test_the_one_process_of_a_sandbox_is_never_replaced() -> None:
    with worker("sandbox") as guest:
        assert guest.run("import os\nos._exit(0)").kind == ReplyKind.DIED
        assert guest.run("1").kind == ReplyKind.DIED
        assert guest.ask(Op.OPEN).kind == ReplyKind.DIED
        assert guest.ask(Op.PING).kind == ReplyKind.READY


def computed(pid: int) -> bool:
    """Whether it has used a fifth of a second of processor time (proc(5), utime)."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11]) >= 0.2 * os.sysconf("SC_CLK_TCK")


def test_a_call_in_progress_is_answered_when_its_session_is_killed() -> None:
    with worker("process") as guest:
        call = guest.send(Op.RUN, 0, b"print('so far', flush=True)\nwhile True: pass")
        deadline = time.monotonic() + 120
        while not any(computed(pid) for pid in children(guest.process.pid)):  # it has printed by then
            assert time.monotonic() < deadline
            time.sleep(0.01)
        guest.send(Op.KILL, 0)
        reply = guest.next()
        assert (reply.nonce, reply.kind, reply.output) == (call, ReplyKind.KILLED, b"so far\n")


@pytest.mark.parametrize("mode", ["process", "sandbox"])
def test_no_process_with_user_code_ever_held_what_it_was_not_given(mode: Mode) -> None:
    """Requests that came before, nonces and bodies, are for the supervisor alone. Looked for from outside."""
    session = 0 if mode == "sandbox" else 5
    with worker(mode, opened=False, ahead=0) as guest:
        secrets = [guest.send(Op.PING, 0, body := os.urandom(24)), body, guest.send(Op.OPEN, session)]
        assert [guest.next().kind for _ in range(2)] == [ReplyKind.READY, ReplyKind.READY]
        mark = os.urandom(12).hex()
        guest.says(f"mark = '{mark}'", session)
        memories = [memory_of(pid) for pid in children(guest.process.pid)]
        assert any(mark.encode() in memory for memory in memories)
        assert not any(secret in memory for memory in memories for secret in secrets)


def memory_of(pid: int) -> bytes:
    pieces = []
    process = Path(f"/proc/{pid}")
    with (process / "maps").open() as maps, (process / "mem").open("rb", 0) as memory:
        for line in maps:
            where, rights, *_ = line.split()
            if "r" in rights and "[v" not in line:
                start, end = (int(part, 16) for part in where.split("-"))
                memory.seek(start)
                pieces.append(memory.read(end - start))
    return b"".join(pieces)


@pytest.mark.parametrize("mode", ["process", "sandbox"])
def test_every_session_draws_the_same_numbers_until_it_is_told_otherwise(mode: Mode) -> None:
    draw = "import random\nprint(random.random())"
    with worker(mode) as one, worker(mode) as other:
        assert one.says(draw) == other.says(draw)
        for guest, seed in ((one, b"1" * 32), (other, b"2" * 32)):
            assert guest.ask(Op.RESEED, 0, seed).kind == ReplyKind.READY
        assert one.says(draw) != other.says(draw)


@pytest.mark.parametrize("mode", ["process", "sandbox"])
def test_a_session_that_is_seeded_draws_the_same_after_the_same_calls(mode: Mode) -> None:
    draw = "print(random.random(), own.random())"
    with worker(mode) as one, worker(mode) as other:
        for guest in (one, other):
            guest.says("import random\nown = random.Random(3)")
        plain = one.says(draw)
        assert other.says(draw) == plain
        for guest in (one, other):
            assert guest.ask(Op.SEED, 0, b"1" * 32).kind == ReplyKind.READY
        drawn = one.says(draw)
        assert other.says(draw) == drawn
        assert not set(drawn.split()) & set(plain.split())


def test_processes_forked_later_draw_other_numbers_too() -> None:
    draw = "import random\nprint(random.random())"
    with worker("process", ahead=1) as guest:
        first = guest.says(draw)
        guest.ask(Op.RESEED, 0, b"1" * 32)
        drawn = [first]
        for session in (1, 2, 3):  # one that was idle then, two that were not there yet
            guest.ask(Op.OPEN, session)
            drawn.append(guest.says(draw, session))
        assert len(set(drawn)) == 4
