"""Starts a worker; run by the core, never by a person.

  python -I -m appliance.worker prepare <cycle>  --policy SHA256 --ledger-fd N --data DIR --settings FILE
  python -I -m appliance.worker train <cycle>    --policy SHA256 --ledger-fd N --data DIR --settings FILE
  python -I -m appliance.worker evaluate <cycle> --policy SHA256 --ledger-fd N --data DIR --settings FILE
  python -I -m appliance.worker jobs any|solvers|model --policy SHA256 --ledger-fd N --data DIR --settings FILE

Exit status: 0 the work is recorded; 2 the work is impossible as requested, so a retry is useless; 3 it left a finished
job (cancelled, timed out) whose work did not stop; 4 the configured model is unusable; 5 the infrastructure failed, so
a retry may help. The last line on standard error gives the reason.
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
from appliance.system.process_state import CANNOT, MISCONFIGURED
from runtime.errors import RefusedError

ASKED: set[int] = set()
"""Signals with which the core asked this process to end. The handler takes no lock (an Event would): it may interrupt
the code that holds the same lock."""


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m appliance.worker", description=__doc__)
    parser.add_argument("work", choices=("prepare", "train", "evaluate", "jobs"))
    parser.add_argument("id", nargs="?", default="")
    parser.add_argument("--ledger-fd", type=int, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--settings", type=Path, required=True)
    parser.add_argument("--policy", default="", help="digest of the policy in force; any other is refused")
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
                # The failure is an effect of the stop: the ledger refuses writes of cancelled work.
                sys.stderr.write(f"stopped: {arguments.work} {arguments.id} was cancelled, or resumes later\n")
                return 128 + signal.SIGTERM if ASKED else 0
    except (KeyboardInterrupt, SystemExit):
        raise
    except Exception as error:  # noqa: BLE001 - the outermost frame: said in one line, with the exit status
        explained = explain(error)
        sys.stderr.write(f"{explained.message}; {explained.hint}\n" if explained.hint else f"{explained.message}\n")
        # The core decides whether model code may run here: a broker may have ended just now.
        if isinstance(error, ConfigError):
            return MISCONFIGURED
        cannot = isinstance(error, ModelError | RenderingError) or explained.code is ExitCode.USAGE
        cannot = cannot or (explained.code is ExitCode.REFUSED and not isinstance(error, RefusedError))
        return CANNOT if cannot else int(ExitCode.INFRASTRUCTURE)
    return 0


def work(
    kind: Literal["prepare", "train", "evaluate", "jobs"],
    name: str,
    data: Path,
    settings: Settings,
    ledger: Ledger,
    policy: str,
) -> None:
    """Runs this worker's work: prepares, trains or evaluates a cycle, or runs jobs. Imports heavy libraries only after
    every check that needs none."""
    from appliance.settings.policy_files import load_policy
    from appliance.worker.tasks import run_cycle, run_jobs

    in_force = load_policy(data, policy)
    if kind == "jobs":
        part: JobPart = "solvers" if name == "solvers" else "model" if name == "model" else "any"
        run_jobs(part, data, settings, ledger, in_force)
    else:
        run_cycle(kind, name, data, settings, ledger, in_force)


def renew_leases(ledger: Ledger, seconds: float = RENEW_SECONDS) -> None:
    """Starts a daemon thread that renews this worker's leases periodically. A worker that lost a lease continues until
    its next write, which is refused."""

    def renew() -> None:
        while True:
            time.sleep(seconds)
            try:
                ledger.renew_leases()
            except LedgerError:
                return

    threading.Thread(target=renew, name="leases", daemon=True).start()


def run(argv: list[str]) -> NoReturn:
    """Runs the worker's `main` and exits with its status; ignores SIGTERM from then on."""
    try:
        status = main(argv)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(status)


def _is_over(ledger: Ledger, cycle: str) -> bool:
    """True if the cycle ended while this worker ran; False if the ledger cannot be reached."""
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
