"""Rows and files exchanged at a random moment of a night, by somebody who can write the data folder and has no key:
nothing goes into service, and each exchange is named.

The night is that of `benchmarks/scripted_night.py`: a real core, dispatcher, connection and processes; only the model
is scripted.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from data_attacks import NOW, Used, used_folder
from test_written_attacks import content_of, exchange

from appliance.config.configuration import Settings
from appliance.daemon.coordination.core import Core
from appliance.daemon.coordination.threads import Dispatcher
from appliance.daemon.service.readiness import Readiness
from common.errors import HintedError

pytestmark = pytest.mark.usefixtures("lent")
WORKER = Path(__file__).parents[4] / "benchmarks" / "scripted_night.py"
STEPS = 4
SECONDS = 300.0
"""Generous: a busy machine is no fault of a night."""


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Used:
    return used_folder(tmp_path_factory.mktemp("used"))


def wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("it never came to hold")
        time.sleep(0.005)


def exchange_in_a_night(template: Used, folder: Path, seed: int) -> str:
    """What was exchanged, and how the night ended: the state of its cycle."""
    used, draw = template.copied(folder), random.Random(seed)
    (used.data / "clock").write_text(NOW)
    settings = Settings(data=used.data, audit=used.settings.audit, schedule={"enabled": False})
    step, rest = draw.randrange(STEPS + 2), draw.random() / 10
    done, changed, ended, failed = "", False, "not asked", []
    with suppress(HintedError), Core(settings, now=lambda: NOW, worker=[sys.executable, "-P", str(WORKER)]) as core:
        dispatcher = Dispatcher(core, failed.append)
        dispatcher.start()
        try:
            cycle = core.cycles.start("night").id
            dispatcher.wake()
            wait_for(lambda: failed or len(core.ledger.recorded_steps(cycle)) >= min(step, STEPS))
            assert not failed, failed
            time.sleep(rest)  # of a step, or what comes behind the last one
            with Stopped(core):
                before = settled(used)
                done = exchange(used, draw)
                changed = content_of(used) != before
            wait_for(lambda: failed or core.supervisor.waits_for or core.cycles.unfinished() is None)
            used.said.append(core.supervisor.waits_for)
            used.use(core)
            used.trying(lambda: core.governance.rollback("mallory"))
            used.require_nothing_new(core)
            ended = "held up" if failed else next(one.state for one in core.ledger.cycles() if one.id == cycle)
        finally:
            with suppress(HintedError):
                dispatcher.close()
    used.said += [str(error) for error in failed]
    used.audit()
    used.started(3)
    assert any(used.said) or not changed, f"seed {seed}: {done}: {used.said}"
    shutil.rmtree(folder)
    return f"{done}: {ended}"


def settled(used: Used) -> list[str]:
    """What stands in the ledger once the core has written what its worker had sent before it was stopped."""
    found: list[str] = []
    while found != (again := content_of(used)):
        found = again
        time.sleep(0.1)
    return found


class Stopped:
    """The night's worker rests, so that what the exchange changed can be told from what the night writes."""

    def __init__(self, core: Core) -> None:
        self.pid = core.supervisor.process.pid

    def __enter__(self) -> None:
        self._send(signal.SIGSTOP)

    def __exit__(self, *error: object) -> None:
        self._send(signal.SIGCONT)

    def _send(self, what: signal.Signals) -> None:
        if self.pid is not None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, what)


@pytest.mark.parametrize("seed", range(2))
def test_an_exchange_in_a_night_puts_nothing_into_service(
    template: Used, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(Readiness, "require", lambda *_, **__: None)  # the folders here are no models
    exchange_in_a_night(template, tmp_path / "copy", seed)


@pytest.mark.slow
@pytest.mark.timeout(14_400)
def test_two_hundred_exchanges_in_nights_put_nothing_into_service(
    template: Used, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Readiness, "require", lambda *_, **__: None)
    for seed in range(int(os.environ.get("FIRST_SEED", "2000")), 2_200):
        print(seed, exchange_in_a_night(template, tmp_path / f"copy-{seed}", seed), flush=True)
