"""Results are those of one thread; processes that learn together are started once."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from vllm_engines import PYTHON

from appliance.learning import rank_processes
from appliance.learning.rank_processes import RankProcesses


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """Results are promised bit by bit for one number of threads."""
    torch.set_num_threads(1)


@pytest.fixture(scope="package")
def ranks() -> Iterator[Callable[[int], RankProcesses]]:
    """So many processes that train one model together: those of the test before, where it has not ended them."""
    kept: dict[int, RankProcesses] = {}

    def of(count: int) -> RankProcesses:
        if count not in kept or not kept[count].folder.exists():
            with pytest.MonkeyPatch.context() as patched:
                patched.setattr(rank_processes.sys, "executable", str(PYTHON))
                kept[count] = RankProcesses(("cpu",) * count, threads=count)
        return kept[count]

    yield of
    for processes in kept.values():
        processes.close()
