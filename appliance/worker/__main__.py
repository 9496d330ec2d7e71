"""Starts a worker, for the core and never for a person.

    python -I -m appliance.worker train <cycle>    --policy SHA256 --ledger-fd N --data DIR --settings FILE
    python -I -m appliance.worker evaluate <cycle> --policy SHA256 --ledger-fd N --data DIR --settings FILE
    python -I -m appliance.worker jobs any|solvers|model --policy SHA256 --ledger-fd N --data DIR --settings FILE

Exit status: 0 the work is on record; 2 it cannot be done as asked, so trying again is useless; 3 it left a job that has
ended (cancelled, out of time) because the work did not stop; 4 the configured model cannot be used; 5 the
infrastructure failed, so trying again may help. The last line on standard error says why.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType
from typing import Literal, NoReturn

from appliance.config.configuration import Settings
from appliance.errors import ExitCode, explain
from appliance.inference.engine import ModelError
from appliance.ledger.ledger import RENEW_SECONDS, Ledger, LedgerError
from appliance.ledger.remote import RemoteLedger
from appliance.records.jobs import JobPart
from appliance.rendering.renderer import RenderingError
from appliance.settings import logs
from appliance.settings.config_layers import ConfigError
from appliance.system.worker_exit import CANNOT, MISCONFIGURED
from runtime.errors import RefusedError

ASKED: set[int] = set()
"""The signals by which the core has asked this process to end. A handler takes no lock, as that of an Event would be:
it may come just when the same lock was taken."""


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m appliance.worker", description=__doc__)
    parser.add_argument("work", choices=("train", "evaluate", "jobs"))
    parser.add_argument("id", nargs="?", default="")
    parser.add_argument("--ledger-fd", type=int, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--settings", type=Path, required=True)
    parser.add_argument("--policy", default="", help="the digest of the one in force: no other is worked under")
    arguments = parser.parse_args(argv)
    # Torch's threads sleep while they wait: spinning ones starve the sandboxes and each other on a busy machine.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    # The core asks with SIGTERM: an exception closes what is open, on the way out.
    signal.signal(signal.SIGTERM, _stop)
    settings = Settings.model_validate_json(arguments.settings.read_text())
    logs.configure(settings.log.level, settings.log.format)
    try:
        with Connection(arguments.ledger_fd) as connection:
            ledger = RemoteLedger(connection)
            renew_leases(ledger)
            try:
                work(arguments.work, arguments.id, arguments.data, settings, ledger, arguments.policy)
            except Exception:
                if not ASKED and (arguments.work == "jobs" or not _is_over(ledger, arguments.id)):
                    raise
                # What broke is what the end interrupted: the ledger takes no more of work that was called off.
                sys.stderr.write(f"stopped: {arguments.work} {arguments.id} was called off, or goes on later\n")
                return 128 + signal.SIGTERM if ASKED else 0
    except (KeyboardInterrupt, SystemExit):
        raise
    except Exception as error:  # noqa: BLE001 - the outermost frame: said in one line, with the exit status
        explained = explain(error)
        sys.stderr.write(f"{explained.message}; {explained.hint}\n" if explained.hint else f"{explained.message}\n")
        # Whether model code may be run here at all is the core's to say: a broker may have ended just now.
        if isinstance(error, ConfigError):
            return MISCONFIGURED
        cannot = isinstance(error, ModelError | RenderingError) or explained.code is ExitCode.USAGE
        cannot = cannot or (explained.code is ExitCode.REFUSED and not isinstance(error, RefusedError))
        return CANNOT if cannot else int(ExitCode.INFRASTRUCTURE)
    return 0


def work(
    kind: Literal["train", "evaluate", "jobs"], name: str, data: Path, settings: Settings, ledger: Ledger, policy: str
) -> None:
    """Does it. Heavy imports come first here, after everything that can be refused without them."""
    from appliance.settings.policy_files import load_policy
    from appliance.worker.tasks import run_cycle, run_jobs

    in_force = load_policy(data, policy)
    if kind == "jobs":
        part: JobPart = "solvers" if name == "solvers" else "model" if name == "model" else "any"
        run_jobs(part, data, settings, ledger, in_force)
    else:
        run_cycle(kind, name, data, settings, ledger, in_force)


def renew_leases(ledger: Ledger, seconds: float = RENEW_SECONDS) -> None:
    """Renews what this worker holds from time to time, in a thread that ends with the process. One whose lease is lost
    goes on until it writes, which is refused."""

    def renew() -> None:
        while True:
            time.sleep(seconds)
            try:
                ledger.renew_leases()
            except LedgerError:
                return

    threading.Thread(target=renew, name="leases", daemon=True).start()


def run(argv: list[str]) -> NoReturn:
    """Does the work and ends the process, which nothing asks to end any more once it is ending."""
    try:
        status = main(argv)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(status)


def _is_over(ledger: Ledger, cycle: str) -> bool:
    """Whether the cycle ended while it was worked on; not where nobody can say."""
    try:
        known = ledger.cycle(cycle)
    except LedgerError:
        return False
    return known is not None and known.state.ended


def _stop(number: int, frame: FrameType | None) -> None:
    ASKED.add(number)
    raise SystemExit(128 + number)


if __name__ == "__main__":
    run(sys.argv[1:])
