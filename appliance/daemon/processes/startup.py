"""Starts the broker, which keeps root's rights, then drops the daemon's own.

Invariants: inside `started_broker` this process has no capability and cannot regain one, and neither can its children;
the daemon's own broker runs under its guard, or an existing broker is used, or `refused` says why model code cannot
run. An own broker is ended last.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from appliance.config.configuration import Settings
from appliance.config.places import broker_folder, broker_settings, broker_socket
from appliance.daemon.contract import BrokenError
from appliance.daemon.processes.broker_process import BrokerProcess, command
from appliance.daemon.processes.child_log import ChildLog
from appliance.daemon.processes.listening import require_place
from appliance.daemon.processes.privileges import drop_privileges, require_own_folder, user_account
from appliance.errors import explain
from appliance.ledger.lock import require_unlocked
from appliance.readiness.sandbox import is_served, require_isolation
from appliance.settings.policy_files import load_policy
from policies.policy import Policy
from runtime.errors import RefusedError

MEND = "fix that: the daemon retries by itself; logs/broker.log in the data folder has the details"


@dataclass(frozen=True)
class BrokerStart:
    settings: Settings
    """Given settings, with the socket of the broker in use."""
    broker: BrokerProcess | None
    """Own broker, if one was started."""
    refused: RefusedError | None
    """Why model code cannot run at first, None if it can; an own broker may start to work later."""
    policy: str = ""
    """Digest of the policy file under which an own broker was started; empty without one."""

    def require_policy(self, in_force: str) -> None:
        """Raises BrokenError if the broker was started under another policy than the one in force. `in_force` is that
        policy's digest, from the audit log; the file differed from it and was restored."""
        if self.policy not in ("", in_force):
            raise BrokenError(
                f"the broker was started under the policy {self.policy[:12]}, and {in_force[:12]} is in force",
                hint="start it again: policy/in-force.toml had been changed, and was restored",
            )

    @contextmanager
    def watched(self, say: Callable[[str], None], fail: Callable[[Exception], None]) -> Iterator[None]:
        """Watches the daemon's own sandbox broker inside the block: `say` is called for every end, `fail` when it
        cannot restart."""
        if self.broker is None:
            yield
            return
        log = ChildLog(self.settings.data / "logs" / "broker.log")
        lost = BrokenError(
            "the broker has ended and cannot be started again", hint=f"{log.path} says why; restart the daemon"
        )
        self.broker.watch(log, say, lambda: fail(lost))
        try:
            yield
        finally:
            self.broker.stop_news()


@contextmanager
def started_broker(settings: Settings, *, control: Path | None = None) -> Iterator[BrokerStart]:
    """Starts a sandbox broker if none runs, then drops root's rights, and ends that broker after the block. Main thread
    only, before there is another.

    Obstacles to working on this folder or listening at `control` are reported before a broker starts. Raises
    ConfigError, PolicyError, BrokenError, RequestError or DataLockedError.
    """
    user = user_account(settings.service.user)
    require_own_folder(settings.data, user)
    require_unlocked(settings.data)
    if control is not None:
        require_place(control)
    broker, refused, policy = None, None, ""
    if settings.sandbox.broker is None:
        socket = broker_socket(settings, settings.data)
        if not is_served(socket):
            try:
                require_isolation(settings)
            except RefusedError as error:
                refused = error
            else:
                in_force = load_policy(settings.data, outside=False)
                broker, policy = _prepared(settings, socket, user.pw_uid, in_force), in_force.digest
        if refused is None:
            sandbox = settings.sandbox.model_copy(update={"broker": socket})
            settings = settings.model_copy(update={"sandbox": sandbox})
    try:
        problem = broker.start() if broker is not None else ""
        if problem:
            refused = RefusedError(f"model code cannot be run: the broker does not start: {problem}", hint=MEND)
        drop_privileges(user)
        yield BrokerStart(settings, broker, refused, policy)
    finally:
        if broker is not None:
            broker.close()


def _prepared(settings: Settings, socket: Path, uid: int, policy: Policy) -> BrokerProcess:
    folder = broker_folder(settings, settings.data)
    make_broker_folder(folder, for_others=uid != 0)
    broker_set = broker_settings(settings, settings.data, policy)
    return BrokerProcess(broker_set, socket, command(socket, uid))


def make_broker_folder(folder: Path, *, for_others: bool) -> None:
    """Creates the sandbox broker's folder, and raises BrokenError if anybody else can write it. Its content is executed
    and removed with root's rights. `for_others` lets other users pass through to the socket."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for place in (folder, *folder.parents) if for_others else (folder,):
            found = place.lstat()
            open_to_all = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not found.st_mode & stat.S_ISVTX
            if found.st_uid != os.geteuid() or not stat.S_ISDIR(found.st_mode) or open_to_all:
                raise BrokenError(
                    f"the broker's folder {folder} is not safe: somebody else can change {place}",
                    hint="set sandbox.folder to a folder below which only root may write, such as one in /var/lib",
                )
        if for_others:
            folder.chmod(0o711)
    except OSError as error:
        raise BrokenError(
            f"the broker's folder {folder} cannot be used: {error.strerror}", hint=explain(error).hint
        ) from error
