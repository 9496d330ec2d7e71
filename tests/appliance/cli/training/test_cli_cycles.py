"""`assay cycle show` and `watch` without an id, when a newer cycle has done nothing yet."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sandbox_commands import in_process

from appliance.cli.demo.appliance import PASSPHRASE, fill, served
from appliance.cli.training.cycles import RECENT
from appliance.client.person_keys import make_key, unlock
from appliance.client.signing import admission
from appliance.config.configuration import Settings
from appliance.daemon.coordination.core import Core
from appliance.records.cycles import Cycle, CycleState, Event

NEWER = "night-20991231t010000-e3e3"


@pytest.fixture
def core(monkeypatch: pytest.MonkeyPatch) -> Iterator[Core]:
    """A core with a made-up night, served on its socket, whose path has to be short."""
    folder = Path(tempfile.mkdtemp(prefix="assay-t-"))
    settings = Settings.model_validate({"data": folder / "data", "audit": {"head": folder / "head"}})
    monkeypatch.setenv("ASSAY_AUDIT__HEAD", str(folder / "head"))
    try:
        with Core(settings) as made:
            key = make_key(folder / "keys", PASSPHRASE, PASSPHRASE)
            made.trust.change_key(admission("demo", unlock(key, PASSPHRASE)))
            fill(made, datetime.now(UTC), nights=1)
            with served(made, settings.data / "run" / "assay.sock"):
                yield made
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def cycle(core: Core, *words: str) -> str:
    ran = in_process(["--data", str(core.data), "cycle", *words])
    assert ran.returncode in (0, 1), ran.stderr
    return ran.stdout


def begin(core: Core, state: CycleState) -> Cycle:
    """Puts down a newer cycle that has done nothing, and returns the one before."""
    (worked,) = core.ledger.cycles(limit=1)
    empty = {"id": NEWER, "seconds": {}, "failure": "", "phase": "prepare", "created": core.now()}
    core.ledger.put_cycle(worked.model_copy(update={**empty, "state": state}))
    return worked


def test_show_prefers_the_newest_cycle_that_did_something(core: Core) -> None:
    worked = begin(core, CycleState.CANCELLED)
    shown = cycle(core, "show").splitlines()
    assert shown[0].split()[:2] == ["cycle", f"{worked.id},"]
    assert f"{NEWER} cancelled, prepare: no attempt yet" in " ".join(shown)
    assert cycle(core, "show", NEWER).split()[:2] == ["cycle", f"{NEWER},"]


def test_watch_begins_with_the_newest_events_of_its_cycle(core: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    begin(core, CycleState.RUNNING)
    for number in range(RECENT + 1):
        core.ledger.put_event(Event(kind="progress", text=f"{number} of 9 attempts ended", created=core.now()))
    running = core.ledger.cycle(NEWER)
    assert running is not None
    ended = running.model_copy(update={"state": CycleState.CANCELLED})
    monkeypatch.setattr("time.sleep", lambda seconds: core.ledger.put_cycle(ended))
    first, *others = cycle(core, "watch").splitlines()
    assert first == f"{NEWER} running, prepare"
    said = [line[21:] for line in others if "attempts ended" in line]
    assert said == [f"progress: {number} of 9 attempts ended" for number in range(1, RECENT + 1)]
    assert others[-1] == f"{NEWER} is cancelled"
