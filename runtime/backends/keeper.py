"""Kills what a dead broker can no longer kill: a small child that outlives its broker for a moment.

What always holds: however the broker ends, the keeper's pipe ends with it, because nobody else holds the other end;
then the keeper kills every process in the control groups of that owner until none has been there for a while, and
exits. An orderly `close` sends it home before. It removes no folders: the next start's sweep does.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path

from runtime.errors import InfrastructureError

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
        try:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", WATCH, "assay-keeper", *map(str, prefixes)],
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

    def close(self) -> None:
        """Sends it home; nothing is killed."""
        try:
            self._process.communicate(b"home\n", timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(timeout=5)
