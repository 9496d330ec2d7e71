"""Starts, calls and ends the vLLM process.

Invariants: the process is reached over one inherited socket without a name, which nobody else can open. It leads its
own process group and dies with the thread that started it; only this group is killed. Every wait is bounded: a process
that neither answers nor works, or works far too long on one answer, is given up, and the error names the request.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, Protocol

from appliance.inference.engine import ModelError
from appliance.inference.gpu_numbers import ORDER, VISIBLE
from appliance.inference.vllm.placement import INSTALL, VllmEnvironment
from appliance.inference.vllm.server.wire import JsonFrames, WireError, packed
from appliance.inference.vllm.transfers.folders import make_folder, remove_folder
from appliance.system.patience import Patience, Wait, effort_of
from appliance.system.process_state import MemoryKills

ROOT = Path(__file__).resolve().parents[3]
START = "import sys; sys.path += {paths!r}; from {module} import main; main()"
PASSED_ON = ("PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "TMPDIR", "LANG", VISIBLE, "NVIDIA_VISIBLE_DEVICES")


class EngineFault(Exception):
    """An engine died, hangs, or failed a proof: it is replaced, and its results are dropped."""


class DivergedError(Exception):
    """The weights give no finite probabilities: replacing the engine would not help."""


class EngineProcess(Protocol):
    """Process with one engine, on this or another host."""

    cache_tokens: int | None
    """Tokens in its KV cache; None if it manages the limit itself."""
    block: int
    """Tokens per KV block."""
    preempted: int
    """Preempted requests, as last reported."""

    @property
    def pid(self) -> int:
        """Process id of the engine process, which leads its group."""

    def ask(self, kind: str, **message: Any) -> dict[str, Any]:
        """Sends a request to the engine process and returns its answer. Raises EngineFault, ModelError for a permanent
        problem, and DivergedError."""

    def begin(self, kind: str, **message: Any) -> None:
        """Sends a request to the engine process without waiting. Raises EngineFault."""

    def answer(self) -> dict[str, Any]:
        """Waits for the engine process's answer to the begun request; nothing else may be requested before. Raises as
        `ask`."""

    def count_preemptions(self) -> int:
        """Returns the number of requests preempted since the engine process started."""

    def kill(self) -> None:
        """Ends the engine process. Ending it again does nothing."""


class VllmProcess:
    """`EngineProcess` on this machine. Not thread-safe."""

    def __init__(
        self,
        environment: VllmEnvironment,
        settings: dict[str, Any],
        *,
        threads: int | None,
        patience: Patience,
        gpus: tuple[int, ...] = (),
        network: Literal["own", "shared"] = "own",
        module: str = "appliance.inference.vllm.server.serve",
        paths: tuple[Path, ...] = (ROOT,),
    ) -> None:
        """Starts a vLLM process with one engine. `settings` are those of `server.core.VllmCore`; `gpus` are its visible
        GPUs by `nvidia-smi` numbers, by default ours. `network` is "shared" if a weight broadcast needs this machine's
        network. Raises ModelError for a permanent problem, EngineFault."""
        self.patience = patience
        self.folder = make_folder("assay-vllm-")
        """Folder of its log and caches; mode 0700."""
        self._frames = JsonFrames()
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        self._socket = ours
        self._kind, self._unsent = "", memoryview(b"")
        """Kind of the last request, and its unsent bytes."""
        program = START.format(paths=[str(path) for path in paths], module=module)
        try:
            with theirs, (self.folder / "log").open("wb") as log:
                self._process = subprocess.Popen(
                    [str(environment.python), "-I", "-c", program, str(theirs.fileno()), str(os.getpid()), network],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=_variables(self.folder, environment.python.parent.parent, threads, gpus),
                    pass_fds=(theirs.fileno(),),
                    start_new_session=True,
                    cwd=self.folder,
                )
        except OSError as error:
            ours.close()
            remove_folder(self.folder)
            raise EngineFault(f"the engine process does not start: {error}") from error
        self._pid = self._process.pid
        self._memory = MemoryKills.seen_from(self._pid)
        try:
            opened = self.ask("open", **settings)
            self.version = str(opened["version"])
            self.own_network = opened["network"] == "own"
            """True if it has only a loopback network of its own; else it listens on this machine's."""
            self.cache_tokens: int | None = opened["tokens"]
            self.block = int(opened["block"])
            self.preempted = 0
            """Preempted requests, as last reported."""
        except BaseException:
            self.kill()
            raise

    @property
    def pid(self) -> int:
        return self._pid

    def ask(self, kind: str, **message: Any) -> dict[str, Any]:
        """Sends a request to the engine process and returns its answer; see `EngineProcess`."""
        self.begin(kind, **message)
        return self.answer()

    def begin(self, kind: str, **message: Any) -> None:
        self._kind = kind
        with self._ending():
            self._unsent = memoryview(packed({"ask": kind, **message}))
            with suppress(BlockingIOError):  # the rest is sent while waiting for the answer
                self._unsent = self._unsent[self._socket.send(self._unsent) :]

    def answer(self) -> dict[str, Any]:
        with self._ending():
            answer = self._exchange()
        return answered(self._kind, answer)

    @contextmanager
    def _ending(self) -> Iterator[None]:
        try:
            yield
        except (WireError, OSError, ValueError) as error:  # a ValueError is a closed socket
            raise EngineFault(f"the engine ended during {self._kind}: {error}{self._last_words()}") from error

    def count_preemptions(self) -> int:
        """Returns the number of requests preempted since the process started. Ignores failures and divergence, which
        the next real request reports."""
        with suppress(EngineFault, DivergedError):
            self.preempted = int(self.ask("figures")["preemptions"])
        return self.preempted

    def _exchange(self) -> dict[str, Any]:
        wait: Wait | None = None  # inspecting processes takes longer than most answers
        while True:
            if (message := self._frames.next()) is not None:
                return message
            come, goes, _ = select.select([self._socket], [self._socket] if self._unsent else [], [], 0.5)
            if come:
                self._frames.read(self._socket)
            elif goes:
                self._unsent = self._unsent[self._socket.send(self._unsent) :]
            elif os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
                # Reaped only in `kill`: until then its process group id cannot be reused.
                raise WireError("its process is gone")
            elif wait is None:
                wait = Wait(lambda: effort_of({self.pid}), self.patience)
            elif reason := wait.over():
                raise EngineFault(f"the engine (process {self.pid}) does not answer {self._kind}: {reason}")

    def _last_words(self) -> str:
        if self._memory.more:
            return " (memory ran out, and the kernel killed it)"
        with suppress(OSError):
            lines = (self.folder / "log").read_text(errors="replace").strip().splitlines()
            if lines:
                return f" ({lines[-1].strip()[:300]})"
        return ""

    def kill(self) -> None:
        """Kills the engine's process group, waits for it, and removes its files. Ending it again does nothing."""
        self._socket.close()
        if self._process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
            self._process.wait()
        remove_folder(self.folder)


def answered(kind: str, answer: dict[str, Any]) -> dict[str, Any]:
    """Returns the answer of an engine process, or raises its error as `VllmProcess.ask`."""
    if "error" not in answer:
        return answer
    said = str(answer["error"])
    if answer.get("kind") == "unfit":
        raise ModelError(
            f"the engine cannot be used here: {said}",
            hint=f"build the tested vLLM with {INSTALL}, or set model.engine to torch",
        )
    if answer.get("kind") == "model":
        raise ModelError(said, hint=str(answer.get("hint", "")))
    if answer.get("kind") == "diverged":
        raise DivergedError(said)
    raise EngineFault(f"the engine failed during {kind}: {said}")


def _variables(folder: Path, home: Path, threads: int | None, gpus: tuple[int, ...]) -> dict[str, str]:
    """Environment variables of a vLLM process: only those a library needs."""
    kept = home / "cache"  # vLLM's class registry: rebuilding it takes another process and 10 s
    known = {name: value for name, value in os.environ.items() if name in PASSED_ON or name.startswith("NCCL_")}
    return known | {
        "HOME": str(folder),
        "VLLM_CACHE_ROOT": str(kept if os.access(home, os.W_OK) else folder / "cache"),
        "VLLM_CONFIG_ROOT": str(folder / "config"),
        "HF_HOME": str(folder / "hub"),
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "VLLM_PLUGINS": "",
        "VLLM_LOGGING_LEVEL": "WARNING",
        "VLLM_LOGGING_COLOR": "0",
        # The engine's core runs in this process; its own sockets stay on this machine.
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_HOST_IP": "127.0.0.1",
        "GLOO_SOCKET_IFNAME": "lo",
        "NCCL_SOCKET_IFNAME": "lo",
        # A conversation may fill the model's positions, and a score samples one more token.
        "VLLM_ALLOW_LONG_MAX_MODEL_LEN": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "OMP_WAIT_POLICY": "PASSIVE",
        **({"OMP_NUM_THREADS": str(threads)} if threads is not None else {}),
        **ORDER,
        **({VISIBLE: ",".join(map(str, gpus))} if gpus else {}),
    }
