"""What only the screens ask: how busy the machine is, and lines of a file from its end."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from appliance.client.screen import GpuUse
from appliance.daemon.api.read_models import CHUNK, lines_from_the_end
from appliance.daemon.views.machine_usage import MachineWatch, cpu_ticks, gpu_uses, memory_bytes


def test_waiting_for_a_disk_is_not_busy() -> None:
    assert cpu_ticks("cpu  10 1 4 80 5 0 0 0 7 0\ncpu0 1 1 1 1\n") == (15.0, 100.0)


def test_memory_is_read_in_bytes() -> None:
    assert memory_bytes("MemTotal:  2048 kB\nHugePages_Total:  0\nMemAvailable:  512 kB\n")["MemTotal"] == 2 << 20


def test_a_gpu_that_does_not_say_how_busy_it_is_is_shown_without_that() -> None:
    table = "NVIDIA H200, 37, 1024, 141000\nNVIDIA A2, [N/A], 5, 10\nno such line\n"
    assert gpu_uses(table) == (
        GpuUse(name="NVIDIA H200", busy=0.37, used_bytes=1 << 30, total_bytes=141_000 << 20),
        GpuUse(name="NVIDIA A2", busy=None, used_bytes=5 << 20, total_bytes=10 << 20),
    )


def test_this_machine_says_what_it_has_and_a_process_that_ended_is_left_out(tmp_path: Path) -> None:
    machine = MachineWatch(tmp_path, tmp_path / "no-broker.sock")
    first = machine.view({"core": 1, "gone": 2**22 + 1})
    assert first.cpu is None
    assert 0 < first.memory_available <= first.memory_total
    assert 0 < first.disk_free <= first.disk_total
    assert [one.name for one in first.processes] == ["core"]
    assert first.sandboxes is None


@given(st.lists(st.binary(min_size=1, max_size=80).filter(lambda line: b"\n" not in line), max_size=40), st.booleans())
def test_lines_come_from_the_end_whole_and_in_order(tmp_path_factory, lines: list[bytes], long: bool) -> None:
    wanted = [line * (CHUNK // 40 if long else 1) for line in lines]
    path = tmp_path_factory.mktemp("log") / "log"
    path.write_bytes(b"".join(line + b"\n" for line in wanted) + b"half a line")
    assert list(lines_from_the_end(path)) == wanted[::-1]
