"""Keeper process that kills a dead broker's sandboxes: a small child that briefly outlives its broker.

Invariants: however the broker ends, the keeper's pipe closes, because nobody else holds the other end; the keeper then
kills every process in that owner's control groups until none has appeared for a while, and exits. An orderly `close`
dismisses it first. A keeper that ends unexpectedly is restarted, which is logged. Folders are left to the next sweep.
"""

from __future__ import annotations

import logging
import subprocess
import threading
from collections.abc import Iterable
from pathlib import Path

from runtime.errors import InfrastructureError

log = logging.getLogger("runtime.broker")
PAUSE_SECONDS = 1.0
"""Delay before a keeper that ended is restarted, in seconds."""

WATCH = """trap '' HUP INT TERM
read -r word && exit 0
quiet=0; round=0
while [ $quiet -lt 20 ] && [ $round -lt 500 ]; do
  quiet=$((quiet + 1)); round=$((round + 1))
  for prefix; do
    for group in "$prefix"*/cgroup.procs; do
      [ -e "$group" ] || continue
      while read -r pid; do kill -9 "$pid" && quiet=0; done < "$group"
    done
  done 2> /dev/null
  sleep 0.02
done"""
"""Shell script of the keeper. It waits for a word or the end of its pipe, then checks every 20 ms until 20 checks in a
row find no process; at most 500 times."""


class Keeper:
    def __init__(self, prefixes: Iterable[Path]) -> None:
        """Starts the keeper, a process that kills the sandboxes if this process dies: the control groups whose folders
        start with these prefixes. Raises InfrastructureError if it cannot start."""
        self._command = ["/bin/sh", "-c", WATCH, "assay-keeper", *map(str, prefixes)]
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._process = self._started()
        threading.Thread(target=self._watch, name="keeper-watch", daemon=True).start()

    def _started(self) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
                process_group=0,
            )
        except OSError as error:
            raise InfrastructureError(f"the keeper of sandboxes could not be started: {error}") from error

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def _watch(self) -> None:
        while True:
            self._process.wait()
            if self._closing.wait(PAUSE_SECONDS):
                return
            with self._lock:
                if self._closing.is_set():
                    return
                try:
                    self._process = self._started()
                except InfrastructureError as error:
                    log.error("news: %s", error)
                else:
                    log.warning("news: the keeper of sandboxes had ended and was started again")

    def close(self) -> None:
        """Ends the keeper process without killing any sandbox."""
        with self._lock:
            self._closing.set()
        try:
            self._process.communicate(b"home\n", timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(timeout=5)
