"""One short night that all test processes of a run have in common: recorded once, and copied by each test."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import guest_roots as building
import pytest
import torch
from short_nights import SHORT, run_night, train_night

from appliance.ledger.sqlite import SqliteLedger
from appliance.settings.policy_files import load_policy
from appliance.worker.setup.context import WorkContext
from policies.contract.decision import Decision
from runtime.settings import RuntimeSettings


class RecordedNight:
    """The night `n` in two folders: `trained`, which it left before its evaluation, and `finished`."""

    def __init__(self, tmp_path_factory: pytest.TempPathFactory, runtime: RuntimeSettings) -> None:
        run, self._runtime = building.shared(tmp_path_factory), runtime
        self._folder = run / "recorded-night"
        written = self._folder / "decision.json"
        with building.alone(run / "recorded-night.lock"):
            if not written.exists():
                shutil.rmtree(self._folder, ignore_errors=True)
                written.write_text(self._record().model_dump_json())
        self.decision = Decision.model_validate_json(written.read_text())

    def _record(self) -> Decision:
        torch.set_num_threads(1)
        finished = self._folder / "finished"
        finished.mkdir(parents=True)
        with self._opened(finished) as context:
            train_night(context, "n")
            copied(finished, self._folder / "trained")
            return run_night(context, "n")

    @contextmanager
    def copied(self, moment: str, folder: Path) -> Iterator[WorkContext]:
        """A copy in `folder`, opened."""
        copied(self._folder / moment, folder)
        with self._opened(folder) as context:
            yield context

    @contextmanager
    def _opened(self, folder: Path) -> Iterator[WorkContext]:
        with (
            SqliteLedger(folder / "ledger.sqlite3") as ledger,
            WorkContext(folder, ledger, self._runtime, SHORT.agent, load_policy(folder)) as context,
        ):
            yield context


def copied(data: Path, folder: Path) -> None:
    """A data folder of which the ledger may be open."""
    shutil.copytree(data, folder, ignore=shutil.ignore_patterns("ledger.*"), dirs_exist_ok=True)
    before, after = (closing(sqlite3.connect(place / "ledger.sqlite3")) for place in (data, folder))
    with before as source, after as target:
        source.backup(target)
