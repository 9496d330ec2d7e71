"""Starts the rank processes that train one model together, and sends them requests.

Invariants: a request goes to all ranks and completes when all have answered. A rank that exits, is stopped by a signal
or reports a fatal error ends the whole group, because the others may wait for it; so do hanging ranks. They rendezvous
through a file in a folder of mode 0700 and talk over loopback: torchrun's rendezvous listens on every address and
unpickles its input.
"""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection, Listener, wait
from pathlib import Path
from typing import Any, Protocol, Self

from appliance.inference.gpu_numbers import ORDER
from appliance.inference.vllm.transfers.folders import make_folder, remove_folder
from appliance.learning.errors import CheckpointError, LearningError, NotFiniteError
from appliance.system.patience import Patience, Wait, effort_of
from appliance.system.process_state import MemoryKills, is_stopped
from common.errors import HintedError
from runtime.errors import InfrastructureError

LOOK_SECONDS = 0.5
"""Seconds between two checks that the ranks are alive."""
END_SECONDS = 5.0
"""Seconds for the ranks to exit after a request."""
LEFT_SECONDS = 60.0
"""Seconds for the others to answer after one rank failed; if it failed alone, they wait for it."""
STOPPED_SECONDS = 10.0
"""Seconds that a signal may stop one rank while the others wait."""
PATIENCE = Patience(busy_seconds=math.inf, idle_share=0.01)
"""Patience with each rank. Gloo's thread wakes up a hundred times a second, using some 0.25 % of a CPU. A step has no
known duration; torch times out a busy wait for another rank (`rank.COLLECTIVE_SECONDS`)."""
WORDS = 20_000
"""Bytes of a log searched for the error."""
GO_ON = "restart the worker: it resumes from the last checkpoint"
ERRORS: dict[str, type[HintedError]] = {one.__name__: one for one in (CheckpointError, LearningError, NotFiniteError)}


OnPass = Callable[[int, int], None]
"""Called after each forward pass of an update, with its number and their count."""


class RankGroup(Protocol):
    """Processes that train one model together, on any machine."""

    on_pass: OnPass | None
    """Called during `ask` with the first rank's progress, if it reports any."""

    def ask(self, what: str, **message: Any) -> dict[str, Any]:
        """Sends a request to all training processes and returns the first rank's answer once all have answered. Raises
        CheckpointError or LearningError from a rank, InfrastructureError if one exited."""

    def close(self) -> None:
        """Ends the training processes. Closing again does nothing."""


class RankProcesses:
    """Training processes on this machine, as `RankGroup` and context manager; `close` ends them. Not thread-safe."""

    def __init__(
        self,
        devices: Sequence[str],
        *,
        threads: int | None = None,
        patience: Patience = PATIENCE,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        """Starts one training process per device, dividing `threads` among them, with `variables` added to the
        environment. Raises InfrastructureError if they cannot start."""
        ranks = len(devices)
        self.patience = patience
        self.folder = make_folder("assay-ranks-", _memory())
        """Folder of socket and log, mode 0700, in memory if possible. Leftovers of killed processes are removed."""
        self._memory: list[MemoryKills] = []
        self._connections: list[Connection] = []
        self.on_pass: OnPass | None = None
        self._processes: list[subprocess.Popen[bytes]] = []
        address = str(self.folder / "socket")
        each = max(1, (threads or len(os.sched_getaffinity(0))) // ranks)
        known = {**os.environ, "OMP_NUM_THREADS": str(each), "GLOO_SOCKET_IFNAME": "lo", "NCCL_SOCKET_IFNAME": "lo"}
        known |= {**ORDER, **(variables or {})}
        try:
            with Listener(address, "AF_UNIX", backlog=ranks) as listener, (self.folder / "log").open("wb") as log:
                for number, device in enumerate(devices):
                    self._processes.append(
                        subprocess.Popen(
                            [
                                sys.executable,
                                "-I",
                                "-u",
                                "-m",
                                "appliance.learning.training.rank",
                                address,
                                str(number),
                                str(ranks),
                                device,
                                str(os.getpid()),
                            ],
                            stdin=subprocess.DEVNULL,
                            stdout=log,
                            stderr=log,
                            env=known,
                            start_new_session=True,
                            cwd=self.folder,
                        )
                    )
                self._memory = [MemoryKills.seen_from(one.pid) for one in self._processes]
                self._connections = self._welcomed(listener, ranks)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    @property
    def pids(self) -> list[int]:
        """Process ids of the training processes, in rank order."""
        return list(self._pids)

    def ask(self, what: str, **message: Any) -> dict[str, Any]:
        """Sends a request to all training processes; see `RankGroup`."""
        if not self._connections:
            raise InfrastructureError(f"the learner processes ended before the request to {what}", hint=GO_ON)
        text = json.dumps({"ask": what, **message}).encode()
        answers: dict[Connection, dict[str, Any]] = {}
        failed: dict[str, Any] = {}
        until, moved = float("inf"), time.monotonic()
        try:
            for connection in self._connections:
                threading.Thread(target=_send, args=(connection, text), name="rank", daemon=True).start()
            waits = self._wait()
            while (left := [one for one in self._connections if one not in answers]) and time.monotonic() < until:
                if reason := waits.over():
                    hang = self._given_up(f"{len(left)} of them, asked to {what}", reason)
                    self.close(seconds=0.0)
                    raise hang
                if not any(is_stopped(one.pid) for one in self._processes):
                    moved = time.monotonic()
                elif time.monotonic() - moved > STOPPED_SECONDS:
                    self.close(seconds=0.0)
                    held = f"a learner process was stopped by a signal and did not continue when asked to {what}"
                    raise InfrastructureError(held, hint=GO_ON)
                for ready in wait(left, LOOK_SECONDS):
                    assert isinstance(ready, Connection)
                    answer = json.loads(ready.recv_bytes())
                    if "passes" in answer:
                        if self.on_pass is not None:
                            self.on_pass(*answer["passes"])
                        continue
                    answers[ready] = answer
                    if "error" in answer and not failed:
                        failed, until = answer, time.monotonic() + LEFT_SECONDS
        except (EOFError, OSError) as error:
            ended = self._ended(f"during the request to {what}")
            self.close()
            raise ended from error
        if not failed:
            return answers[self._connections[0]]
        if left or failed["kind"] not in ERRORS:
            self.close()
        if failed["kind"] in ERRORS:
            raise ERRORS[failed["kind"]](failed["error"], hint=failed["hint"])
        raise InfrastructureError(f"a learner process failed to {what}: {failed['error']}", hint=GO_ON)

    def close(self, seconds: float = END_SECONDS) -> None:
        """Ends the training processes and kills the rest after `seconds`. Closing again does nothing."""
        for connection in self._connections:
            connection.close()
        self._connections = []
        until = time.monotonic() + seconds
        for process in self._processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, until - time.monotonic()))
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self._processes = []  # their process ids may be reused from now on
        remove_folder(self.folder)

    def _welcomed(self, listener: Listener, ranks: int) -> list[Connection]:
        """Waits for all training processes to connect; returns their connections in rank order."""
        found: dict[int, tuple[Connection, int]] = {}
        waits = self._wait()
        while len(found) < ranks:
            if wait([listener._listener._socket], LOOK_SECONDS):  # type: ignore[attr-defined]
                connection = listener.accept()
                said = json.loads(connection.recv_bytes())
                found[int(said["rank"])] = connection, int(said["pid"])
            elif any(process.poll() is not None for process in self._processes):
                raise self._ended("during startup")
            elif reason := waits.over():
                raise self._given_up(f"{ranks - len(found)} of them, which started", reason)
        self._pids = [found[number][1] for number in range(ranks)]
        return [found[number][0] for number in range(ranks)]

    def _wait(self) -> Wait:
        """Returns a wait that ends when no training process works: a single idle one may be waiting for others."""
        groups = {one.pid for one in self._processes}
        share = self.patience.idle_share * len(groups)
        return Wait(lambda: effort_of(groups), replace(self.patience, idle_share=share))

    def _given_up(self, who: str, reason: str) -> InfrastructureError:
        text = f"{len(self._processes)} learner processes hang ({who}, did not answer): {reason}"
        return InfrastructureError(text, hint=GO_ON)

    def _ended(self, when: str) -> InfrastructureError:
        text = (self.folder / "log").read_bytes()[-WORDS:].decode(errors="replace")
        said = [line.strip() for line in text.splitlines() if "Error" in line]
        starved = any(seen.more for seen in self._memory)
        reason = f": {ascii(said[0])[1:-1][:200]}" if said else ""
        if starved:
            reason = ": memory ran out, and the kernel killed it"
        return InfrastructureError(f"a learner process ended {when}{reason}", hint=GO_ON)


def _send(connection: Connection, text: bytes) -> None:
    """Sends a request to a training process and ignores failures, which the waiting caller notices. Called in a
    separate thread, since a rank that reads nothing would block its sender forever."""
    with suppress(OSError, TypeError):  # a TypeError is a connection closed during the send
        connection.send_bytes(text)


def _memory() -> Path | None:
    shared = Path("/dev/shm")  # noqa: S108 - a folder of mode 0700 is made in it
    return shared if os.access(shared, os.W_OK) else None
