"""The same seeds make the same bytes in another process, whatever its hash seed, time zone and locale."""

from __future__ import annotations

import subprocess
import sys

import pytest

from benchmarks.same_bytes import SURROUNDINGS, different, digests, elsewhere
from curriculum.certification.certificate import made_by, shipped
from curriculum.registry import BUILT_IN, DOMAINS, TASKSETS


@pytest.mark.parametrize(
    "surroundings",
    [SURROUNDINGS[0], *(pytest.param(one, marks=pytest.mark.slow) for one in SURROUNDINGS[1:])],
    ids=lambda one: one["PYTHONHASHSEED"],
)
def test_every_taskset_makes_in_another_process_what_was_certified(surroundings: dict[str, str]) -> None:
    found = elsewhere(sys.executable, list(TASKSETS), 4, surroundings)
    found.pop("python")
    assert found == shipped()


def test_other_tasks_are_told_by_taskset(monkeypatch: pytest.MonkeyPatch) -> None:
    taskset = TASKSETS["digits"]
    other = type(
        "Other", (), {**{name: getattr(taskset, name) for name in dir(taskset) if name[:2] != "__"}, "version": 99}
    )
    monkeypatch.setitem(DOMAINS, "calculator", {**DOMAINS["calculator"], "digits": other()})
    found = different([sys.executable], ["digits", "tables"], 2)
    assert len(found) == 2
    assert set(map(tuple, found.values())) == {("digits",)}


def test_a_digest_is_of_as_many_seeds_as_are_asked_for() -> None:
    assert digests(["tables"], 4) == {"tables": made_by(BUILT_IN, "tables")}
    assert digests(["tables"], 5) != digests(["tables"], 4)


def test_an_interpreter_that_cannot_make_tasks_is_an_error() -> None:
    with pytest.raises((subprocess.CalledProcessError, OSError)):
        elsewhere("/bin/false", ["tables"], 1, {})
