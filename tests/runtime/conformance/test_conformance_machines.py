"""A check judges the backend and not the machine: where it passes, it passes on a slow, a busy or a fast one too."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Any

import pytest
from conformance_lies import Lie, pool
from lying_pools import sending

from runtime.conformance import CheckOutcome
from runtime.conformance.check import Subject, examine
from runtime.conformance.suite import CHECKS
from runtime.sessions import Sessions


def long_on_the_way(self: Any, code: str) -> Any:
    time.sleep(1.2)
    return self.real.run(code)


MACHINES: list[tuple[str, str, Lie]] = [
    (
        "rollback is whole",
        "its threads have their turn every 0.4 s",
        pool(sandbox=sending(lambda code: code.replace("sleep(0.01)\nthreading", "sleep(0.4)\nthreading"))),
    ),
    ("limit: lifetime", "the caller stands still for a second before its call", pool(sandbox={"run": long_on_the_way})),
    ("limit: processor time", "it has a tenth of a core", pool(limits={"cpus": 0.1})),
    (
        "limit: usage",
        "it is a hundred times as fast",
        pool(sandbox=sending(lambda code: code.replace("3_000_000", "30_000"))),
    ),
]


@pytest.mark.parametrize(("name", "machine", "really"), MACHINES, ids=[each[0] for each in MACHINES])
def test_a_check_passes_whatever_the_machine(
    gvisor: Sessions, tmp_path: Path, name: str, machine: str, really: Lie
) -> None:
    check = next(check for check in CHECKS if check.name == name)
    with contextlib.closing(really(gvisor)) as given:
        result = examine(check, Subject(given, tmp_path, "token"), area="any", snapshots=True)
    assert (result.outcome, result.detail) == (CheckOutcome.PASS, ""), machine
