"""Programs that the supervisor runs for the host: nothing they do makes it wait longer than it was told."""

from __future__ import annotations

import json
import time

import pytest
from guest_kit import Worker, worker

from runtime.guest import wire
from runtime.guest.wire import Op, ReplyKind


def execute(
    guest: Worker, *argv: str, stdin: bytes = b"", seconds: float = 60.0, output_bytes: int = 1_000
) -> tuple[wire.Reply, dict[str, int], float]:
    start = time.monotonic()
    reply = guest.ask(Op.EXEC, 0, wire.exec_body(argv, stdin, seconds=seconds, output_bytes=output_bytes))
    facts = json.loads(reply.report) if reply.kind != ReplyKind.REFUSED else {}
    return reply, facts, time.monotonic() - start


def shell(guest: Worker, line: str, **more: object) -> tuple[wire.Reply, dict[str, int], float]:
    return execute(guest, "/bin/sh", "-c", line, **more)  # type: ignore[arg-type]


def test_both_outputs_the_input_and_the_code_come_through() -> None:
    with worker("sandbox") as guest:
        reply, facts, _ = shell(guest, "cat; echo wrong >&2; exit 7", stdin=b"given\n")
        assert (reply.kind, reply.output) == (ReplyKind.OK, b"given\nwrong\n")
        assert facts == {"exit_code": 7, "stdout_bytes": 6}


def test_a_program_ended_by_a_signal_says_which() -> None:
    with worker("sandbox") as guest:
        assert shell(guest, "kill -15 $$")[1]["exit_code"] == -15


def test_more_input_than_a_pipe_holds_goes_in_and_what_is_not_read_is_no_trouble() -> None:
    data = b"0123456789" * 50_000
    with worker("sandbox") as guest:
        reply, _, _ = execute(guest, "/bin/cat", stdin=data, output_bytes=len(data))
        assert reply.output == data
        assert shell(guest, "exit 3", stdin=data)[1]["exit_code"] == 3


@pytest.mark.parametrize("stream", ["", ">&2"])
def test_a_flood_is_cut_at_the_cap_and_ends_the_program(stream: str) -> None:
    with worker("sandbox") as guest:
        reply, facts, seconds = shell(guest, f"yes {stream}", output_bytes=1_000)
        assert reply.kind == ReplyKind.OUTPUT
        assert len(reply.output) == 1_000
        assert facts["exit_code"] == -9
        assert seconds < 120


@pytest.mark.parametrize(
    "line", ["sleep 600", "exec >&- 2>&-; sleep 600", "trap '' TERM INT; sleep 600", "sleep 600 & wait"]
)
def test_a_program_that_does_not_end_is_ended_with_its_group(line: str) -> None:
    with worker("sandbox") as guest:
        reply, facts, seconds = shell(guest, line, seconds=0.4)
        assert reply.kind == ReplyKind.TIMEOUT
        assert facts["exit_code"] == -9
        assert seconds < 120


def test_a_descendant_that_keeps_the_output_open_is_not_waited_for() -> None:
    with worker("sandbox") as guest:
        reply, facts, seconds = shell(guest, "setsid sleep 200 & echo done", seconds=200)
        assert (reply.kind, reply.output, facts["exit_code"]) == (ReplyKind.OK, b"done\n", 0)
        assert seconds < 120


@pytest.mark.parametrize(
    ("argv", "reason"),
    [
        (["no-such-program"], "on its PATH"),
        (["/no/such/program"], "No such file"),
        (["/etc/passwd"], "Permission denied"),
        ([], "has a name"),
    ],
)
def test_what_cannot_be_started_is_refused_with_a_reason(argv: list[str], reason: str) -> None:
    with worker("sandbox") as guest:
        reply, _, _ = execute(guest, *argv)
        assert reply.kind == ReplyKind.REFUSED
        assert reason in reply.report.decode()


def test_what_a_program_leaves_behind_is_reaped() -> None:
    with worker("sandbox") as guest:
        shell(guest, "(setsid sleep 0.2 &) ; true")
        deadline = time.monotonic() + 120
        while True:
            guest.ask(Op.PING)
            listed = shell(guest, f"ps -o stat= --ppid {guest.process.pid}")[0].output.decode()
            if "Z" not in listed and listed.count("\n") <= 2:
                break
            assert time.monotonic() < deadline, listed
            time.sleep(0.1)


def test_programs_hold_to_the_limit_of_open_files() -> None:
    with worker("sandbox", open_files=48) as guest:
        assert shell(guest, "ulimit -n; ulimit -Hn")[0].output == b"48\n48\n"
        assert guest.says("import resource\nprint(resource.getrlimit(resource.RLIMIT_NOFILE))") == "(48, 48)\n"
