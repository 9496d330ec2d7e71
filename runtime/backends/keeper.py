"""Kills what a dead broker can no longer kill: a small child that outlives its broker for a moment.

What always holds: however the broker ends, the keeper's pipe ends with it, because nobody else holds the other end;
then the keeper kills every process in the control groups of that owner until none has been there for a while, and
exits. An orderly `close` sends it home before. A keeper that ends otherwise is started again, and that is said. It
removes no folders: the next start's sweep does.
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
"""Before another one is started in the place of one that has ended."""

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
"""Reads a word or the end of its pipe. Then it looks every 20 ms, until it found nobody 20 times in a row; 500 times at
the most."""


class Keeper:
    def __init__(self, prefixes: Iterable[Path]) -> None:
        """Watches over groups whose folders begin so. Raises InfrastructureError when it cannot be started."""
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
        """Sends it home; nothing is killed."""
        with self._lock:
            self._closing.set()
        try:
            self._process.communicate(b"home\n", timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(timeout=5)
