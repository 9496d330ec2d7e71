"""Single processes of a daemon that works are killed or stopped, in short form; `benchmarks/chaos.py` kills a thousand
and stops for ten minutes, with a training beside the jobs."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import guest_roots as building
import pytest

from benchmarks.chaos import IN_TURN, LEARNS, Loop, Tally, stop, trial


@pytest.fixture(scope="module")
def make_folder() -> Iterator[Callable[[], Path]]:
    """With a short path: a Unix socket's must stay below 100 bytes."""
    made: list[Path] = []

    def make() -> Path:
        made.append(Path(tempfile.mkdtemp(prefix="assay-c-")))
        return made[-1]

    yield make
    for folder in made:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("kills", [len(IN_TURN), pytest.param(50, marks=pytest.mark.slow)])
def test_whatever_is_stopped_and_then_killed_in_turn_the_loop_goes_on_and_nothing_is_lost_or_doubled(
    make_folder: Callable[[], Path], guest_roots: Path, kills: int
) -> None:
    def prepare(data: Path) -> None:
        building.lend(guest_roots, data / "run")

    tally = trial(kills, 5, make_folder(), 300.0, prepare, learns=False, in_turn=True, stopped_first=1.0)
    assert tally.faults == []
    assert tally.kills == sum(tally.killed.values()) == kills
    assert set(tally.killed) == set(IN_TURN)
    assert len(tally.all_seconds) == kills // len(IN_TURN)
    assert tally.late == 0


@pytest.fixture(scope="module")
def learning(make_folder: Callable[[], Path], guest_roots: Path) -> Iterator[Loop]:
    """A loop of jobs with a training beside them, which goes on over the tests."""
    data = make_folder() / "data"
    building.lend(guest_roots, data / "run")
    loop = Loop(data, 2, Tally())
    yield loop
    assert stop(loop.process, data) == []


@pytest.mark.slow  # in the suite: test_rank_processes.py, and test_daemon_worker.py of the daemon
@pytest.mark.parametrize("kind", LEARNS)
def test_a_training_goes_on_when_what_learns_was_stopped_for_a_while(kind: str, learning: Loop) -> None:
    """The engine's stop is in `test_vllm_engine.py`, that of several learners in `test_rank_processes.py`."""
    while not learning.kill_one((kind,), stopped=1.0):  # it had ended between the looks
        assert learning.comes_up(kind)
    assert learning.works_again(kind) < 300
    assert learning.tally.faults == []
    assert learning.tally.starts == 1
