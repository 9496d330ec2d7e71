"""`assay sandbox shell`: at a real terminal and from a pipe."""

from __future__ import annotations

import itertools
import os
import pty
import select
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from sandbox_commands import ASSAY, environ, here, run

from appliance.cli.sandbox import repl_session

SCRIPT = """x = 20
x + 1
def f(n):
    a = n

    return a * 2
print(f(4))
for i in range(2):
    print(i)
else:
    print("end")
"\\x1b[2J"
1 / 0
:nonsense
:snapshot first
x = 99
:rollback
x
:undo
:branch 2
:use 1
x = "branch"
:use 0
x
:files
:usage
"""


def test_a_script_from_a_pipe_shows_what_a_prompt_would_and_no_prompt(served: Path) -> None:
    summary = run(served, "shell", typed=SCRIPT)
    lines = summary.stdout.splitlines()
    assert summary.returncode == 0
    assert lines[:6] == ["21", "8", "0", "1", "end", "'\\x1b[2J'"]
    assert lines[6:10] == ["snapshot first; return with `:rollback first`", "back at snapshot first", "20",
                           "undid the last block"]  # fmt: skip
    assert lines[10:13] == ["2 branches, 1 to 2; switch with `:use 1`", "20", "nothing below /work"]
    assert lines[13].startswith("calls  ")
    assert "  line 1, in <module>: 1 / 0\nZeroDivisionError: division by zero\n" in summary.stderr
    assert "unknown command `:nonsense`" in summary.stderr


def test_files_go_in_and_come_out_and_nothing_is_replaced(served: Path, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("inside")
    script = f""":put {tmp_path}/in.txt
:files
open('/work/in.txt').read()
import os; os.makedirs('/work/d/e'); _ = open('/work/d/e/f', 'w').write('deep')
:get /work/in.txt {tmp_path}/out.txt
:get /work/in.txt {tmp_path}/out.txt
:get /work/d {tmp_path}/d
:get /work/none {tmp_path}/none
os.symlink('/etc/passwd', '/work/sly')
:get /work/sly {tmp_path}/sly
:put /no/such
:get
"""
    summary = here(served, "shell", typed=script)
    assert summary.returncode == 0
    assert (tmp_path / "out.txt").read_text() == "inside"
    assert (tmp_path / "d/e/f").read_text() == "deep"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d", "in.txt", "out.txt"]
    assert summary.stderr.count("already exists") == 1
    assert "/no/such does not exist" in summary.stderr


def test_a_state_that_is_kept_is_continued_by_another_shell(served: Path) -> None:
    name = here(served, "shell", typed="kept = 'for tomorrow'\n:keep\n").stdout.strip()
    assert here(served, "shell", "--from", name, typed="kept\n").stdout == "'for tomorrow'\n"
    assert here(served, "rm", name).returncode == 0


def test_a_block_that_a_limit_stops_is_taken_back_whole(served: Path) -> None:
    script = "x = 1\nx = 2; open('/work/f', 'w').close()\nx = 3; exec('while True: pass')\nx\n:files\n"
    summary = here(served, "shell", "--seconds", "2", typed=script)
    assert summary.stdout.splitlines() == ["2", "         0  /work/f"]
    assert "timeout: the call took longer than 2 seconds" in summary.stderr
    assert "restored the state before this block" in summary.stderr


def test_a_state_that_took_seconds_to_keep_as_on_a_busy_machine_is_kept_before_the_next_block_too(
    served: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moments = itertools.count(0.0, 5.0)
    monkeypatch.setattr(repl_session, "time", SimpleNamespace(monotonic=lambda: next(moments)))
    summary = here(served, "shell", typed="x = 1\nx = 2\n:undo\nx\n")
    assert (summary.stdout.splitlines()[-1], summary.stderr) == ("1", "")


class Terminal:
    """A shell at a terminal of its own."""

    def __init__(self, data: Path) -> None:
        self.master, terminal = pty.openpty()
        self.process = subprocess.Popen(
            [*ASSAY, "shell"],
            env=environ(data),
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            start_new_session=True,
            preexec_fn=lambda: _own_terminal(terminal),
        )
        os.close(terminal)
        self.seen = ""

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def until(self, text: str, *, pressing: str = "") -> str:
        """What came up to and with that text, since the last time; meanwhile a key is pressed every few seconds."""
        deadline, again = time.monotonic() + 120, time.monotonic()
        while text not in self.seen:
            assert time.monotonic() < deadline, self.seen
            if pressing and time.monotonic() >= again:
                self.type(pressing)
                again += 5.0
            if select.select([self.master], [], [], 0.2)[0]:
                self.seen += os.read(self.master, 1 << 16).decode(errors="replace")
        before, _, self.seen = self.seen.partition(text)
        return before + text

    def threads(self) -> int:
        return psutil.Process(self.process.pid).num_threads()

    def close(self) -> int:
        try:
            return self.process.wait(timeout=120)
        finally:
            self.process.kill()
            self.process.wait()
            os.close(self.master)


def _own_terminal(terminal: int) -> None:
    import fcntl
    import termios

    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)


def test_at_a_terminal_ctrl_c_stops_the_call_and_not_the_shell(served: Path) -> None:
    shell = Terminal(served)
    try:
        shell.until(">>> ")
        shell.type("x = 5\n")
        shell.until(">>> ")
        idle = shell.threads()
        for _ in range(20):  # that of the call before may just be ending
            idle = min(idle, shell.threads())
            time.sleep(0.05)
        shell.type("x = 6; exec('while True: pass')\n")
        shell.until("pass')")
        deadline = time.monotonic() + 120
        while shell.threads() == idle:  # each call has one of its own
            assert time.monotonic() < deadline
            time.sleep(0.02)
        shell.type("\x03")
        assert "stopped; restored the state before this block" in shell.until(">>> ")
        shell.type("for i in range(2):\n")
        shell.until("... ")
        shell.until(">>> ", pressing="\x03")  # readline misses one that comes between its prompt and its select(2)
        shell.type("print('x is', x)\n")
        assert "x is 5" in shell.until("x is 5")
        shell.until(">>> ")
        shell.type("\x04")
        assert shell.close() == 0
    finally:
        shell.process.kill()
