"""What is said of GPUs is what the driver's tool says; nobody's process is touched, and nothing waits for ever."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from appliance.cli.machine.doctor_checks import CheckGrade
from appliance.cli.machine.doctor_gpus import Probed, ask, gpus, others, peers, probe, ptrace, shared_memory
from appliance.planning.hardware import read_gpus

TWO = read_gpus("NVIDIA H100 80GB HBM3, 81559, 81000\nNVIDIA H100 80GB HBM3, 81559, 500\n")


def test_a_machine_without_a_gpu_has_one_line() -> None:
    [line] = gpus((), 0, shown=0, learners=1, engine="torch")
    assert (line.grade, line.name) == (CheckGrade.OK, "gpus")
    assert "CPU" in line.advice


def test_more_learners_than_gpus_are_pointed_out() -> None:
    asked = lambda: Probed(usable=1)  # noqa: E731
    lines = {line.name: line for line in gpus(TWO[:1], 2, shown=1, learners=4, engine="torch", ask_torch=asked)}
    assert lines["learners"].grade is CheckGrade.WARNING
    assert "H100" in lines["gpus"].figure
    assert "peer access" not in lines


def test_whoever_computes_on_a_gpu_is_named_without_what_he_could_do_to_a_terminal() -> None:
    found = others("77, /usr/bin/other\x1b[31m, 4096\n12, python, 100\nnonsense\n1, 2\n", own={12})
    assert found.grade is CheckGrade.WARNING
    assert "process 77, 4,096 MiB" in found.figure
    assert "\x1b" not in found.figure
    assert "12," not in found.figure
    assert others("12, python, 100\n", own={12}).grade is CheckGrade.OK


def test_a_tool_that_does_not_answer_is_no_machine_without_gpus_and_none_whose_gpus_are_free() -> None:
    lines = {line.name: line for line in gpus((), 2, shown=0, learners=1, engine="torch")}
    assert lines["gpus"].grade is CheckGrade.WARNING
    assert lines["gpus"].figure == "the driver lists 2, but nvidia-smi finds none or does not answer"
    assert "shared memory" in lines
    for program in ("a tool that is not there", "false"):
        found = others(ask("--query-compute-apps=pid", program), own={12})
        assert found.grade is CheckGrade.WARNING
        assert "did not list" in found.figure
    assert others(ask("--query-compute-apps=pid", "true"), own={12}).grade is CheckGrade.OK


def test_whoever_computes_with_memory_that_the_driver_does_not_know_is_named() -> None:
    found = others("77, /usr/bin/python a,b, [N/A]\n", own={12})
    assert found.grade is CheckGrade.WARNING
    assert found.figure == "/usr/bin/python a,b (process 77, memory unknown)"


def test_shared_memory_and_ptrace_are_read_where_they_are(tmp_path: Path) -> None:
    assert "GiB free" in shared_memory(tmp_path).figure
    assert shared_memory(tmp_path / "nothing").grade is CheckGrade.WARNING
    free = os.statvfs(tmp_path).f_bavail * os.statvfs(tmp_path).f_frsize
    tight = shared_memory(tmp_path, weights=free)
    assert (tight.grade, "passing the configured model's weights takes" in tight.figure) == (CheckGrade.WARNING, True)
    assert shared_memory(tmp_path, weights=1).grade is CheckGrade.OK
    (tmp_path / "scope").write_text("1\n")
    assert "ptrace_scope is 1" in ptrace(tmp_path / "scope").figure
    assert "no Yama" in ptrace(tmp_path / "nothing").figure


def python(program: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", "-c", program)


def test_a_copy_between_gpus_that_hangs_is_ended_and_one_that_fails_says_why() -> None:
    hung = probe(("sh", "-c", "echo 2 12.8; exec sleep 600"), seconds=2.0)
    assert (hung.usable, peers(hung).grade) == (2, CheckGrade.WARNING)
    assert "Environment=NCCL_P2P_DISABLE=1" in peers(hung).advice
    fails = probe(python("print('2 12.8', flush=True); raise ValueError('no device')"))
    assert peers(fails).figure == "the test failed: ValueError: no device"
    wrong = peers(probe(python("print('2 12.8\\n0 to 1: wrong bytes')")))
    assert (wrong.grade, wrong.figure) == (CheckGrade.WARNING, "0 to 1: wrong bytes")
    assert peers(probe(python("print('2 12.8\\n')"))).figure == "each GPU reads each other one"


OLD_DRIVER = "print('0 12.8'); import warnings; warnings.warn('CUDA: the driver is too old')"


@pytest.mark.parametrize(
    ("program", "found", "advice"),
    [
        (OLD_DRIVER, "torch can use none", "torch says: CUDA: the driver is too old"),
        ("print('0 None')", "torch can use none", "CPU-only build: run install.sh again"),
        ("print('1 12.8')", "torch can use 1", "built for CUDA 12.8, which needs a matching driver"),
        ("raise ValueError('no libcuda')", "the torch test failed: ValueError: no libcuda", "check the driver"),
    ],
)
def test_gpus_that_torch_cannot_use_are_a_warning_and_nothing_is_said_of_what_they_reach(
    program: str, found: str, advice: str
) -> None:
    asked = lambda: probe(python(program))  # noqa: E731
    lines = {line.name: line for line in gpus(TWO, 2, shown=2, learners=1, engine="torch", ask_torch=asked)}
    assert (lines["gpus"].grade, "peer access" in lines) == (CheckGrade.WARNING, False)
    assert lines["gpus"].figure.endswith(found)
    assert advice in lines["gpus"].advice


@pytest.mark.parametrize(("usable", "grade"), [(0, CheckGrade.WARNING), (1, CheckGrade.OK)])
def test_torch_is_asked_of_a_single_gpu_too_unless_another_line_says_why_it_has_none(
    usable: int, grade: CheckGrade
) -> None:
    asked = lambda: Probed(usable=usable, cuda="12.8")  # noqa: E731
    first, *_ = gpus(TWO[:1], 1, shown=1, learners=1, engine="torch", ask_torch=asked)
    assert first.grade is grade
    first, *_ = gpus(TWO[:1], 1, shown=1, learners=1, engine="torch", ask_torch=None)
    assert first.grade is CheckGrade.OK


def test_gpus_that_cuda_does_not_show_are_not_expected_of_torch() -> None:
    asked = lambda: Probed(usable=1, cuda="12.8")  # noqa: E731
    lines = {line.name: line for line in gpus(TWO, 2, shown=1, learners=2, engine="torch", ask_torch=asked)}
    assert lines["gpus"].grade is CheckGrade.OK
    assert lines["gpus"].figure.endswith("CUDA_VISIBLE_DEVICES shows 1")
    assert (lines["learners"].figure, "peer access" in lines) == ("2 on 1 GPUs", False)
