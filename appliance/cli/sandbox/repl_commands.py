"""Commands of the sandbox shell: lines that begin with a colon.

Invariants: names and contents from inside are hostile text, shown with visible control characters. A downloaded file
gets a name that the person gave, or its own plain name, and replaces nothing.
"""

from __future__ import annotations

import inspect
import shlex
import sys
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from appliance.cli.sandbox.options import copy_in
from appliance.cli.sandbox.repl_session import ReplSession
from appliance.cli.shell.live_line import columns_of
from appliance.cli.shell.wrapping import wrapped
from appliance.system.durable_file import expanded
from appliance.text.printable import printable
from common.counting import counted
from runtime.errors import BadRequestError
from runtime.sandbox import FileKind, Limits, SnapshotId

if TYPE_CHECKING:
    from runtime.sandbox import SessionPool

Say = Callable[[str], None]
READ_BYTES = 8 << 20
MOST_BRANCHES = 64
HELP_INDENT = 24
"""Indent of the description column."""
HELP = """\
  :snapshot [NAME]      keep this state until the shell ends
  :rollback [NAME]      return to a kept state (default: the newest)
  :undo                 undo the last block
  :keep                 keep this state permanently, for `assay sandbox shell --from`
  :branch N             make N sandboxes from here; switch with `:use K`, back with `:use 0`
  :files [FOLDER]       list files below /work, or another folder
  :put HOST [GUEST]     copy a file or folder in
  :get GUEST [HOST]     copy a file or folder out
  :usage                show this sandbox's use and limits
  :quit                 leave (or Ctrl-D); Ctrl-C stops the running code
"""


def help_lines(text: str) -> str:
    """Wraps a table of commands to the terminal; descriptions continue in their column."""
    return wrapped(text.rstrip("\n"), columns_of(sys.stdout), indent=HELP_INDENT)


class ReplCommands:
    """Colon commands of the sandbox shell, with its sandboxes and the current one."""

    def __init__(self, pool: SessionPool, limits: Limits, first: ReplSession, write: Say) -> None:
        self._pool, self._limits, self._write = pool, limits, write
        self.sessions = [first]
        self.at = 0
        self._snapshots: dict[str, SnapshotId] = {}

    @property
    def now(self) -> ReplSession:
        return self.sessions[self.at]

    @property
    def number(self) -> int:
        return self.at

    @property
    def several(self) -> bool:
        return len(self.sessions) > 1

    def do(self, line: str) -> bool:
        """Runs a colon command of the shell; returns False to leave the shell. Raises SandboxError and OSError on
        failure."""
        try:
            name, *arguments = shlex.split(line.removeprefix(":"))
        except ValueError as error:
            raise BadRequestError(f"{line!r} cannot be read: {error}", hint="`:help` lists the commands.") from error
        if name in ("quit", "q", "exit") and not arguments:
            return False
        action: Callable[..., None] | None = getattr(self, f"do_{name}", None)
        if action is None:
            raise BadRequestError(f"unknown command `:{name}`", hint="List the commands with `:help`.")
        try:
            inspect.signature(action).bind(*arguments)
        except TypeError:
            raise BadRequestError(f"`:{name}` does not take {len(arguments)} arguments", hint="See `:help`.") from None
        action(*arguments)
        return True

    def do_help(self) -> None:
        self._write(help_lines(HELP))

    def close(self) -> None:
        for session in self.sessions:
            session.close()

    # states

    def do_snapshot(self, name: str = "") -> None:
        name = name or str(len(self._snapshots) + 1)
        if name in self._snapshots:
            raise BadRequestError(f"snapshot {name!r} already exists", hint="Give another name.")
        self._snapshots[name] = self.now.box.snapshot()
        self._write(f"snapshot {name}; return with `:rollback {name}`")

    def do_rollback(self, name: str = "") -> None:
        if not self._snapshots or (name and name not in self._snapshots):
            names = ", ".join(self._snapshots) or "none"
            raise BadRequestError(f"no such snapshot (known: {names})", hint="Make one with `:snapshot NAME`.")
        name = name or list(self._snapshots)[-1]
        self.now.box.restore(self._snapshots[name])
        self._write(f"back at snapshot {name}")

    def do_undo(self) -> None:
        if not self.now.undo():
            raise BadRequestError("no earlier state", hint="Keep one with `:snapshot`.")
        self._write("undid the last block")

    def do_keep(self) -> None:
        self._write(self.now.box.snapshot(durable=True))

    def do_branch(self, count: str) -> None:
        number = int(count) if count.isascii() and count.isdigit() else 0
        if not 1 <= number <= MOST_BRANCHES:
            raise BadRequestError(f"invalid number of branches {count}: use 1 to {MOST_BRANCHES}")
        start = self.now.box.snapshot()
        try:
            grown = self.now.box.fork(start, number)
        finally:
            self._pool.forget(start)
        first = len(self.sessions)
        self.sessions += [ReplSession(self._pool, self._limits, box, self._write) for box in grown]
        self._write(f"{counted(number, 'branch')}, {first} to {first + number - 1}; switch with `:use {first}`")

    def do_use(self, which: str) -> None:
        if not (which.isascii() and which.isdigit() and int(which) < len(self.sessions)):
            raise BadRequestError(f"no sandbox {which}", hint=f"Use 0 to {len(self.sessions) - 1}.")
        self.at = int(which)

    # files

    def do_files(self, folder: str = "/work") -> None:
        entries = self.now.box.list(folder)
        for entry in entries:
            size = str(entry.size) if entry.kind is FileKind.FILE else entry.kind.value
            self._write(f"{size:>10}  {printable(entry.path, limit=200)}")
        if not entries:
            self._write(f"nothing below {folder}")

    def do_put(self, host: str, guest: str = "") -> None:
        source = expanded(host)
        if not source.exists():
            raise BadRequestError(f"{host} does not exist")
        guest_path = guest or f"/work/{source.resolve().name}"
        self._write(f"{copy_in(self.now.box, source, guest_path)} files to {guest_path}")

    def do_get(self, guest: str, host: str = "") -> None:
        target = expanded(host) if host else Path(_plain_name(guest))
        if target.exists():
            raise BadRequestError(f"{target} already exists", hint="Name another target; nothing is replaced.")
        kinds = {entry.path: entry.kind for entry in self.now.box.list(str(PurePosixPath(guest).parent))}
        if guest in ("/work", "/tmp") or kinds.get(guest) is FileKind.FOLDER:  # noqa: S108 - the guest's
            self._write(f"{self.now.box.download(guest, target)} files to {target}")
            return
        content = self.now.box.read(guest, max_bytes=READ_BYTES)
        with target.open("xb") as stream:
            stream.write(content)
        self._write(f"{len(content)} bytes to {target}")

    def do_usage(self) -> None:
        usage, limits = self.now.box.usage, self.now.box.limits
        memory = "?" if usage.peak_memory_mib is None else f"{usage.peak_memory_mib:.0f}"
        cpu = "?" if usage.cpu_seconds is None else f"{usage.cpu_seconds:.2f}"
        self._write(f"calls       {usage.calls} of {limits.calls}, {usage.seconds:.2f} s in them")
        self._write(f"processor   {cpu} of {limits.cpu_seconds:g} s")
        self._write(f"memory      {memory} of {limits.memory_mib} MiB at its peak")
        self._write(f"output      {usage.output_bytes} bytes")
        self._write(f"snapshots   {usage.snapshots} of {limits.snapshots}")


def _plain_name(guest: str) -> str:
    name = PurePosixPath(guest).name
    if not name or name in (".", "..") or not printable(name) == name:
        raise BadRequestError(f"{guest!r} is not a usable file name here", hint="Name the target: `:get GUEST HOST`.")
    return name
