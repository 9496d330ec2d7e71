"""The zygote as a plain process, used without a broker: no box surrounds it, so it confines itself.

Invariants: it dies with the thread that started it; its workers can read files and compute, and nothing else
(`verifiers.workers.worker_process`); when `kill` returns, none of them runs or uses memory. Verdicts from it say
`process`, because the host's kernel and files are visible.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO

from common.plugins.allowed import NO_PLUGINS, VARIABLE, listed

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "PYTHONNOUSERSITE": "1", "PYTHONHASHSEED": "0"}
ENVIRONMENT |= NO_PLUGINS
"""Complete environment of the zygote, except for PYTHONPATH and the allow-list of plug-ins."""
EXIT_SECONDS = 10.0
"""Maximum wait for killed processes to disappear, in seconds."""
COMMAND = ("-B", "-P", "-s", "-W", "ignore", "-m", "verifiers.workers.zygote")


class ConfinedProcess:
    """A zygote process without a box. Started here; dies with the constructing thread (PDEATHSIG). Raises OSError."""

    isolation = "process"

    def __init__(self, memory_mib: int) -> None:
        request_end, self._requests = os.pipe()
        self._replies, reply_end = os.pipe()
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed in `kill`
        try:
            self._process = subprocess.Popen(
                [sys.executable, *COMMAND, str(memory_mib), str(os.getpid())],
                stdin=request_end,
                stdout=reply_end,
                stderr=self._errors,
                cwd="/",
                env={**ENVIRONMENT, VARIABLE: listed(), "PYTHONPATH": str(ROOT)},
                start_new_session=True,
            )
        except OSError:
            os.close(self._requests)
            os.close(self._replies)
            self._errors.close()
            raise
        finally:
            os.close(request_end)
            os.close(reply_end)
        os.set_blocking(self._requests, False)
        os.set_blocking(self._replies, False)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def descriptors(self) -> tuple[int, int]:
        return self._requests, self._replies

    def out_of_memory(self) -> int:
        """Returns 0: kills for lack of memory are not counted here."""
        return 0

    def give_way(self, others_first: bool) -> None:
        """Leaves the CPU priority unchanged: lowering it needs cgroups, which only root has. Slow workers are niced."""

    def kill(self) -> str:
        """Kills zygote and workers immediately. Returns why the zygote had ended. Killing twice is fine."""
        if self._errors.closed:
            return "it was ended"
        code = self._process.poll()
        if code is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        deadline = time.monotonic() + EXIT_SECONDS
        while is_running(self._process.pid) and time.monotonic() < deadline:
            time.sleep(0.005)
        last = self._last_words()
        os.close(self._requests)
        os.close(self._replies)
        self._errors.close()
        if code is None:
            return "it was ended"
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        return ": ".join(["it died with " + how, *last])

    def _last_words(self) -> list[str]:
        self._errors.seek(0)
        return self._errors.read()[-300:].decode(errors="replace").strip().splitlines()[-1:]


def is_running(group: int) -> bool:
    """True if a process of this group runs, zombies aside (proc(5), stat)."""
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                stat = Path(entry.path, "stat").read_bytes().rpartition(b")")[2].split()
                if int(stat[2]) == group and stat[0] not in (b"Z", b"X"):
                    return True
    return False
