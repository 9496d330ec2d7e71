"""What is said of GPUs is what the driver's tool says; nobody's process is touched, and nothing waits for ever."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from appliance.cli.doctor_gpus import ask, gpus, others, peers, ptrace, shared_memory
from appliance.cli.documents.doctor_checks import CheckGrade
from appliance.hardware import read_gpus

TWO = read_gpus("NVIDIA H100 80GB HBM3, 81559, 81000\nNVIDIA H100 80GB HBM3, 81559, 500\n")


def test_a_machine_without_a_gpu_has_one_line() -> None:
    [line] = gpus((), 0, learners=1, engine="torch")
    assert (line.grade, line.name) == (CheckGrade.OK, "gpus")
    assert "processor" in line.advice


def test_more_learners_than_gpus_are_pointed_out() -> None:
    lines = {line.name: line for line in gpus(TWO[:1], 2, learners=4, engine="torch")}
    assert lines["learners"].grade is CheckGrade.WARNING
    assert "H100" in lines["gpus"].figure
    assert "peer access" not in lines


def test_whoever_computes_on_a_gpu_is_named_without_what_he_could_do_to_a_terminal() -> None:
    found = others("77, /usr/bin/other\x1b[31m, 4096\n12, python, 100\nnonsense\n1, 2\n", own=12)
    assert found.grade is CheckGrade.WARNING
    assert "process 77, 4,096 MiB" in found.figure
    assert "\x1b" not in found.figure
    assert "12," not in found.figure
    assert others("12, python, 100\n", own=12).grade is CheckGrade.OK


def test_a_tool_that_does_not_answer_is_no_machine_without_gpus_and_none_whose_gpus_are_free() -> None:
    lines = {line.name: line for line in gpus((), 2, learners=1, engine="torch")}
    assert lines["gpus"].grade is CheckGrade.WARNING
    assert lines["gpus"].figure == "the driver lists 2, and nvidia-smi finds none or does not answer"
    assert "shared memory" in lines
    for program in ("a tool that is not there", "false"):
        found = others(ask("--query-compute-apps=pid", program), own=12)
        assert found.grade is CheckGrade.WARNING
        assert "could not be asked" in found.figure
    assert others(ask("--query-compute-apps=pid", "true"), own=12).grade is CheckGrade.OK


def test_whoever_computes_with_memory_that_the_driver_does_not_know_is_named() -> None:
    found = others("77, /usr/bin/python a,b, [N/A]\n", own=12)
    assert found.grade is CheckGrade.WARNING
    assert found.figure == "/usr/bin/python a,b (process 77, memory not known)"


def test_shared_memory_and_ptrace_are_read_where_they_are(tmp_path: Path) -> None:
    assert "GiB free" in shared_memory(tmp_path).figure
    assert shared_memory(tmp_path / "nothing").grade is CheckGrade.WARNING
    free = os.statvfs(tmp_path).f_bavail * os.statvfs(tmp_path).f_frsize
    tight = shared_memory(tmp_path, weights=free)
    assert (tight.grade, "hand over the configured model takes" in tight.figure) == (CheckGrade.WARNING, True)
    assert shared_memory(tmp_path, weights=1).grade is CheckGrade.OK
    (tmp_path / "scope").write_text("1\n")
    assert "ptrace_scope is 1" in ptrace(tmp_path / "scope").figure
    assert "no Yama" in ptrace(tmp_path / "nothing").figure


def test_a_copy_between_gpus_that_hangs_is_ended_and_one_that_fails_says_why() -> None:
    hangs = peers((sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)"), seconds=0.5)
    assert hangs.grade is CheckGrade.WARNING
    assert "NCCL_P2P_DISABLE" in hangs.advice
    fails = peers((sys.executable, "-I", "-S", "-c", "raise ValueError('no device')"))
    assert fails.figure == "it could not be tried: ValueError: no device"
    wrong = peers((sys.executable, "-I", "-S", "-c", "print('0 to 1: wrong bytes')"))
    assert wrong.grade is CheckGrade.WARNING
    assert peers((sys.executable, "-I", "-S", "-c", "print()")).grade is CheckGrade.OK
