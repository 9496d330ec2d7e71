"""The filters, run by an interpreter of ours over the numbers of all calls: who is allowed, refused, ended for what."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from runtime.guest import filters
from runtime.guest.filters import ALLOW, KILL_PROCESS, NOT_THERE, PERMISSION

ROOT = Path(__file__).parents[3]
MACHINES = sorted(filters.AUDIT)
NUMBERS = range(1_024)
CLONE_VM, CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWCGROUP = 0x100, 0x10000000, 0x20000, 0x02000000
PR_SET_NAME = 15


def verdict(program: bytes, machine: str, number: int, *arguments: int, audit: int | None = None) -> int:
    """What the kernel would make of one call."""
    architecture = filters.AUDIT[machine] if audit is None else audit
    data = struct.pack("<IIQ6Q", number, architecture, 0, *arguments, *[0] * (6 - len(arguments)))
    code = list(struct.iter_unpack("<HBBI", program))
    word = position = 0
    while True:
        instruction, if_true, if_false, value = code[position]
        position += 1
        match instruction:
            case filters.LOAD_WORD:
                (word,) = struct.unpack_from("<I", data, value)
            case filters.JUMP_IF_EQUAL:
                position += if_true if word == value else if_false
            case filters.JUMP_IF_AT_LEAST:
                position += if_true if word >= value else if_false
            case filters.JUMP_IF_ANY_BIT:
                position += if_true if word & value else if_false
            case filters.RETURN:
                return int(value)
            case _:
                pytest.fail(f"instruction {instruction:#x}")


@pytest.mark.parametrize("machine", MACHINES)
def test_who_may_only_compute_has_the_listed_calls_and_no_other(machine: str) -> None:
    program = filters.compute_only(machine)
    listed = set(filters.COMPUTE[machine].values())
    for number in [*NUMBERS, filters.OTHER_ABI + 1, 0xFFFFFFFF]:
        assert verdict(program, machine, number) == (ALLOW if number in listed else KILL_PROCESS), number


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("may_filter", [False, True])
def test_all_others_are_refused_what_is_listed_and_nothing_else(machine: str, may_filter: bool) -> None:
    program = filters.one_world(machine, filters=may_filter)
    refused = set(filters.REFUSED[machine].values())
    for number in NUMBERS:
        wanted = PERMISSION if number in refused else NOT_THERE if number == filters.CLONE3 else ALLOW
        assert verdict(program, machine, number) == wanted, number
    for number in (filters.OTHER_ABI, filters.OTHER_ABI + 165, 0xFFFFFFFF):
        assert verdict(program, machine, number) == PERMISSION


@pytest.mark.parametrize("machine", MACHINES)
def test_threads_and_processes_can_be_made_but_no_namespaces(machine: str) -> None:
    program = filters.one_world(machine, filters=False)
    for flags, wanted in (
        (17, ALLOW),
        (CLONE_VM | 17, ALLOW),
        (CLONE_NEWUSER | 17, PERMISSION),
        (CLONE_NEWNS, PERMISSION),
        (CLONE_NEWCGROUP | CLONE_VM, PERMISSION),
        ((1 << 32) | 17, ALLOW),
    ):
        assert verdict(program, machine, filters.CLONE[machine], flags) == wanted


@pytest.mark.parametrize("machine", MACHINES)
def test_a_filter_of_one_s_own_is_refused_where_the_worker_installs_no_more(machine: str) -> None:
    for may_filter, wanted in ((False, PERMISSION), (True, ALLOW)):
        program = filters.one_world(machine, filters=may_filter)
        assert verdict(program, machine, filters.PRCTL[machine], filters.PR_SET_SECCOMP) == wanted
        assert verdict(program, machine, filters.PRCTL[machine], PR_SET_NAME) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
def test_who_reads_and_decides_has_the_listed_calls_and_the_harmless_half_of_some(machine: str) -> None:
    program = filters.reading_only(machine)
    listed = filters.COMPUTE[machine] | filters.READING[machine]
    numbers = set(listed.values())
    for number in [*NUMBERS, filters.OTHER_ABI + 1, 0xFFFFFFFF]:
        harmless = (0, 0, 0)
        wanted = ALLOW if number in numbers else PERMISSION
        if number == listed["clone"]:
            wanted = PERMISSION
        elif number == filters.CLONE3:
            wanted = NOT_THERE
        assert verdict(program, machine, number, *harmless) == wanted, number
    thread = CLONE_VM | filters.NEW_THREAD
    assert verdict(program, machine, listed["clone"], thread) == ALLOW
    assert verdict(program, machine, listed["clone"], CLONE_VM | 17) == PERMISSION
    assert verdict(program, machine, listed["prlimit64"], 1) == PERMISSION
    assert verdict(program, machine, listed["fcntl"], 0, filters.SET_FLAGS) == PERMISSION
    for flag in (os.O_WRONLY, os.O_RDWR, os.O_CREAT, os.O_TRUNC, os.O_APPEND):
        assert verdict(program, machine, listed["openat"], 0, 0, flag) == PERMISSION
        if "open" in listed:
            assert verdict(program, machine, listed["open"], 0, flag) == PERMISSION
    assert verdict(program, machine, listed["openat"], 0, 0, os.O_RDONLY | os.O_CLOEXEC) == ALLOW


TRIED = {
    "to write a file": "open('/tmp/filters-were-here', 'w')",
    "to start a process": "os.fork()",
    "to start a program": "os.execv('/bin/true', ['true'])",
    "a socket": "socket.socket()",
    "a pair of sockets": "socket.socketpair()",
    "to signal its parent": "os.kill(os.getppid(), 0)",
    "to give a file another mode": "os.chmod('/tmp', 0o777)",
    "to remove a file": "os.unlink('/tmp/filters-were-here')",
    "to limit its parent": "resource.prlimit(os.getppid(), resource.RLIMIT_CPU, (1, 1))",
    "the memory of its parent": "open(f'/proc/{os.getppid()}/mem', 'r+b')",
}
ALLOWED = {
    "to read a file": "open('/etc/passwd').read(1)",
    "to load a module": "__import__('decimal')",
    "a thread": "[thread := threading.Thread(target=int), thread.start(), thread.join()]",
    "to sleep": "time.sleep(0.001)",
    "to limit itself": "resource.setrlimit(resource.RLIMIT_CPU, (1000, resource.RLIM_INFINITY))",
    "to look at the time": "time.process_time()",
}


@pytest.mark.parametrize(("expression", "fails"), [*((one, True) for one in TRIED.values()),
    *((one, False) for one in ALLOWED.values())], ids=[*TRIED, *ALLOWED])  # fmt: skip
def test_the_kernel_agrees_about_who_reads_and_decides(expression: str, fails: bool) -> None:
    """As root, whom only the filter stops."""
    script = (
        "import os, resource, socket, sys, threading, time\n"
        "from runtime.guest import confine, filters\n"
        "confine.begin()\n"
        "confine.Filter(filters.reading_only(os.uname().machine)).install()\n"
        "try:\n    eval(sys.argv[1])\nexcept OSError as error:\n    os._exit(10 + error.errno)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, expression], cwd=ROOT, timeout=240)
    assert done.returncode == (11 if fails else 0)


@pytest.mark.parametrize("machine", MACHINES)
def test_a_call_of_another_architecture_ends_the_process(machine: str) -> None:
    for program in (
        filters.compute_only(machine),
        filters.reading_only(machine),
        filters.one_world(machine, filters=True),
    ):
        assert verdict(program, machine, 39, audit=0x40000003) == KILL_PROCESS


def test_a_machine_without_a_table_has_no_filter() -> None:
    with pytest.raises(KeyError):
        filters.compute_only("riscv64")
    with pytest.raises(KeyError):
        filters.one_world("riscv64", filters=False)


@pytest.mark.parametrize("machine", MACHINES)
def test_no_number_is_looked_for_longer_than_by_halves(machine: str) -> None:
    assert len(filters.compute_only(machine)) // 8 < 2 * len(filters.COMPUTE[machine]) + 8
    assert len(filters.one_world(machine, filters=False)) // 8 < 2 * (len(filters.REFUSED[machine]) + 4) + 14
