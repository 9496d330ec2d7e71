"""What is seen of a machine: made of files and of programs' answers, and never of this test's own machine."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from tables import table

from appliance.nights.machine import (
    EnergyMeter,
    MachineEyes,
    MachineSnapshot,
    ask,
    idle_seconds,
    others_on_gpu,
    own_processes,
)

NOW = 1_700_000_000.0
FIRST_NAMESPACE = "pid:[4026531836]"


class Machine:
    """A root of files, the answers of programs by their first word and last argument, and two clocks."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.time = 100.0
        self.answers: dict[str, str] = {}
        self.asked: list[Sequence[str]] = []

    def run(self, command: Sequence[str]) -> str | None:
        self.asked.append(command)
        return self.answers.get(f"{command[0]} {command[1]}", self.answers.get(f"{command[0]} {command[-1]}"))

    def write(self, path: str, text: str) -> Path:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        return place

    def process(self, pid: int, parent: int, name: str = "python") -> None:
        self.write(f"proc/{pid}/stat", f"{pid} ({name}) S {parent} {pid} 0\n")

    def namespace(self, name: str) -> None:
        (self.root / "proc/self/ns").mkdir(parents=True)
        (self.root / "proc/self/ns/pid").symlink_to(name)

    def terminal(self, path: str, used: float) -> None:
        place = self.write(path, "")
        os.utime(place, (used, used))

    def zone(self, name: str, counted: int, *, label: str = "package-0", wraps: int = 1000_000_000) -> None:
        folder = f"sys/class/powercap/{name}"
        self.write(f"{folder}/energy_uj", f"{counted}\n")
        self.write(f"{folder}/max_energy_range_uj", f"{wraps}\n")
        self.write(f"{folder}/name", f"{label}\n")

    def eyes(self, *, gpu: bool = False, typed: bool = False, energy: bool = False) -> MachineEyes:
        return MachineEyes(
            gpu=gpu, typed=typed, energy=energy, clock=lambda: self.time, wall=lambda: NOW, run=self.run, root=self.root
        )

    def look(self, *, gpu: bool = False, typed: bool = False, energy: bool = False) -> MachineSnapshot:
        return self.eyes(gpu=gpu, typed=typed, energy=energy).look()

    def meter(self) -> EnergyMeter:
        return EnergyMeter(lambda: self.time, self.run, self.root)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_bare_machine_shows_nothing_and_only_what_was_asked_for_is_looked_at(machine: Machine) -> None:
    assert machine.look(gpu=True, typed=True, energy=True) == MachineSnapshot()
    machine.asked.clear()
    machine.write("proc/loadavg", "2.50 1.00 0.50 1/100 4242\n")
    machine.terminal("dev/pts/0", NOW - 5)
    assert machine.look() == MachineSnapshot(load=2.5)
    assert machine.asked == []


# who computes on a GPU
def test_ours_are_this_process_and_all_that_it_started_however_they_are_called(machine: Machine) -> None:
    for pid, parent in ((1, 0), (10, 1), (11, 10), (12, 11), (20, 1)):
        machine.process(pid, parent)
    machine.process(13, 12, name="a) S 1 (b")
    machine.write("proc/14/stat", "")  # it ended meanwhile
    assert own_processes(10, machine.root) == {10, 11, 12, 13}


def test_who_computes_on_a_gpu_is_named_without_ours(machine: Machine) -> None:
    machine.namespace(FIRST_NAMESPACE)
    machine.process(os.getpid(), 1)
    machine.process(4_000_001, os.getpid())
    machine.answers["nvidia-smi --query-compute-apps=pid,process_name"] = (
        f"{os.getpid()}, /usr/bin/python3\n4000001, python\n4000002, /opt/games/chess, the game\n"
    )
    assert machine.look(gpu=True).gpu_users == ("chess, the game (process 4000002)",)
    machine.answers["nvidia-smi --query-compute-apps=pid,process_name"] = ""
    assert machine.look(gpu=True).gpu_users == ()


def test_in_a_container_a_process_that_is_not_seen_there_is_nobody_else(machine: Machine) -> None:
    machine.namespace("pid:[4026532999]")
    machine.process(7, 1)
    machine.answers["nvidia-smi --query-compute-apps=pid,process_name"] = "7, render\n90210, python\n"
    assert machine.look(gpu=True).gpu_users == ("render (process 7)",)


def test_a_program_s_name_cannot_write_on_a_terminal_and_other_lines_are_passed_over() -> None:
    listed = "12, \x1b[2J/bin/x\x07\nNo running processes found\n², odd\n[N/A], y\n13\n"
    assert others_on_gpu(listed, frozenset()) == ("x\\x07 (process 12)", " (process 13)")


# who types
def test_the_newest_terminal_counts_and_one_of_root_s_console_does_not(machine: Machine) -> None:
    machine.terminal("dev/pts/0", NOW - 90)
    machine.terminal("dev/pts/3", NOW - 30)
    machine.terminal("dev/pts/ptmx", NOW - 1)
    machine.terminal("dev/tty1", NOW - 2)
    os.chown(machine.root / "dev/tty1", 0, 0)
    assert machine.look(typed=True).typed_seconds == 30
    machine.terminal("dev/pts/4", NOW + 3600)  # the clock was set back
    assert machine.look(typed=True).typed_seconds == 0


GRAPHICAL = "Id=2\nType=wayland\nClass=user\nState=active\n"


@table(
    ("session", "seconds"),
    [
        (f"{GRAPHICAL}IdleHint=no\nIdleSinceHint=0\n", 0.0),
        (f"{GRAPHICAL}IdleHint=yes\nIdleSinceHint={int((NOW - 600) * 1e6)}\n", 600.0),
        (f"{GRAPHICAL}IdleHint=yes\nIdleSinceHint={int((NOW + 600) * 1e6)}\n", 0.0),
        (f"{GRAPHICAL}IdleHint=yes\nIdleSinceHint=\n", 0.0),
        (f"{GRAPHICAL}IdleHint=yes\nIdleSinceHint=²\n", 0.0),
        ("Type=tty\nClass=user\nState=active\nIdleHint=no\n", None),
        ("Type=x11\nClass=greeter\nState=active\nIdleHint=no\n", None),
        ("Type=x11\nClass=user\nState=closing\nIdleHint=no\n", None),
        ("", None),
    ],
)
def test_a_graphical_session_says_since_when_it_is_idle(session: str, seconds: float | None) -> None:
    assert idle_seconds(session, NOW) == seconds


def test_sessions_and_terminals_are_looked_at_together(machine: Machine) -> None:
    machine.answers["loginctl list-sessions"] = "2 1000 ann seat0 tty2\n\n7 1001 bob - -\n"
    machine.answers["loginctl 2"] = f"{GRAPHICAL}IdleHint=yes\nIdleSinceHint={int((NOW - 600) * 1e6)}\n"
    machine.answers["loginctl 7"] = "Type=tty\nClass=user\nState=active\n"
    assert machine.look(typed=True).typed_seconds == 600
    machine.terminal("dev/pts/0", NOW - 30)
    assert machine.look(typed=True).typed_seconds == 30


def test_nobody_is_there_only_where_logind_knows_of_nobody(machine: Machine) -> None:
    machine.answers["loginctl list-sessions"] = ""
    assert machine.look(typed=True).typed_seconds == math.inf
    machine.answers["loginctl list-sessions"] = "1 120 gdm seat0 tty1\n3 1000 ann seat0 tty2\n"
    machine.answers["loginctl 1"] = "Type=wayland\nClass=greeter\nState=active\nIdleHint=no\n"
    machine.answers["loginctl 3"] = "Type=x11\nClass=user\nState=closing\nIdleHint=no\n"
    assert machine.look(typed=True).typed_seconds == math.inf
    # Somebody works at a terminal that is not seen here, as a unit with devices of its own sees none.
    machine.answers["loginctl list-sessions"] = "7 1001 bob - -\n"
    machine.answers["loginctl 7"] = "Type=tty\nClass=user\nState=active\nIdleHint=no\n"
    assert machine.look(typed=True).typed_seconds is None
    del machine.answers["loginctl 7"]  # it does not answer
    assert machine.look(typed=True).typed_seconds is None


# energy
def test_what_processors_take_is_counted_from_the_first_look_and_over_a_wrap(machine: Machine) -> None:
    machine.zone("intel-rapl:0", 990_000_000)
    machine.zone("intel-rapl:1", 5_000_000, label="package-1")
    machine.zone("intel-rapl:0:0", 123, label="core")  # a part of the first
    meter = machine.meter()
    assert meter.joules() == 0
    machine.zone("intel-rapl:0", 995_000_000)
    assert meter.joules() == pytest.approx(5)
    machine.zone("intel-rapl:0", 10_000_000)  # 5 up to the end, 10 from there
    machine.zone("intel-rapl:1", 7_000_000, label="package-1")
    assert meter.joules() == pytest.approx(5 + 15 + 2)


def test_a_count_of_the_whole_platform_is_not_added_to_that_of_its_packages(machine: Machine) -> None:
    machine.zone("intel-rapl:0", 0)
    machine.zone("intel-rapl:1", 0, label="psys")
    meter = machine.meter()
    meter.joules()
    machine.zone("intel-rapl:0", 3_000_000)
    machine.zone("intel-rapl:1", 8_000_000, label="psys")
    assert meter.joules() == pytest.approx(3)


def test_what_gpus_draw_counts_from_look_to_look(machine: Machine) -> None:
    power = "nvidia-smi --query-gpu=power.draw"
    machine.answers[power] = "100.5\n[N/A]\n99.5\n"
    meter = machine.meter()
    machine.time += 50  # nobody has looked yet
    assert meter.joules() == 0
    machine.time += 10
    assert meter.joules() == pytest.approx(2000)
    machine.time -= 1000
    assert meter.joules() == pytest.approx(2000)
    del machine.answers[power]  # it does not answer in time, once
    machine.time += 10
    assert meter.joules() == pytest.approx(4000)
    machine.answers[power] = "[N/A]\n"
    assert meter.joules() is None


def test_a_counter_that_may_not_be_read_is_unknown_and_no_nought(machine: Machine) -> None:
    machine.zone("intel-rapl:0", 0)
    machine.write("sys/class/powercap/intel-rapl:0/energy_uj", "")
    assert machine.look(energy=True).joules is None


# what is asked
def test_a_program_that_fails_or_is_not_there_says_nothing() -> None:
    assert ask(("sh", "-c", "echo yes")) == "yes\n"
    assert ask(("sh", "-c", "echo yes; exit 3")) is None
    assert ask(("no-such-program-anywhere",)) is None
