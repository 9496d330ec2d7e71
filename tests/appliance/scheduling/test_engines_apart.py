"""Engines in processes of their own work at once: the pool asks all before it waits for any."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from inference_models import tiny
from test_engine_pool import HEAD, SLOTS, converse, drawn, requests
from vllm_engines import KeptProcesses, torch_process

from appliance.inference.adapters import push_model
from appliance.inference.torch.engine import TorchEngine
from appliance.inference.vllm.engine import VllmEngine
from appliance.inference.vllm.process import EngineProcess
from appliance.scheduling.engine_pool import EnginePool

TOGETHER = 60.0
"""Seconds that an engine waits for the others, who come at once or never."""


class _Noted:
    """An engine's process, of which it is noted what is asked and what is answered; a push waits for all others."""

    def __init__(self, process: EngineProcess, said: list[tuple[str, str]], pushes: threading.Barrier) -> None:
        self._process, self._said, self._pushes = process, said, pushes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._process, name)

    def ask(self, kind: str, **message: Any) -> dict[str, Any]:
        if kind == "load":
            self._said.append(("loads", message["weights"]["path"]))
            self._pushes.wait(TOGETHER)
        return self._process.ask(kind, **message)

    def begin(self, kind: str, **message: Any) -> None:
        self._said.append(("asked", kind))
        self._process.begin(kind, **message)

    def answer(self) -> dict[str, Any]:
        self._said.append(("answered", ""))
        return self._process.answer()


@pytest.fixture(scope="module")
def processes() -> Iterator[KeptProcesses]:
    kept = KeptProcesses(torch_process)
    yield kept
    kept.end()


def engines(processes: KeptProcesses, said: list[tuple[str, str]], count: int = 2) -> list[VllmEngine]:
    barrier = threading.Barrier(count)
    return [
        VllmEngine(3, SLOTS, start=lambda settings: _Noted(processes.start(settings), said, barrier))
        for _ in range(count)
    ]


def test_all_engines_are_asked_for_a_step_before_any_has_answered_and_draw_what_they_would_alone(
    processes: KeptProcesses,
) -> None:
    said: list[tuple[str, str]] = []
    pool, here = EnginePool(engines(processes, said), SLOTS), EnginePool([TorchEngine(3, SLOTS)], SLOTS)
    for one in (pool, here):
        push_model(one, tiny("qwen2", HEAD), "a")
    said.clear()
    asked = requests(2, 2)
    for request in asked:
        pool.submit(request)
    pool.step()
    assert [what for what, _ in said] == ["asked", "asked", "answered", "answered"]
    for request in asked:
        pool.finish(request.id)
    assert drawn(converse(pool, asked)) == drawn(converse(here, asked))
    pool.close()


def test_all_engines_take_a_push_at_once_and_from_one_file(processes: KeptProcesses) -> None:
    said: list[tuple[str, str]] = []
    made = engines(processes, said)
    pool = EnginePool(made, SLOTS)
    for version in ("a", "b"):
        push_model(pool, tiny("qwen2", HEAD), version)
        paths = {Path(path) for what, path in said if what == "loads"}
        assert len(said) == 2, "each waited for the other one"
        assert len(paths) == 1
        (path,) = paths
        assert path.exists(), "an engine that is replaced is given it anew"
        said.clear()
    made[0].close()
    assert path.exists()
    pool.close()
    assert not path.exists()


def test_an_engine_that_dies_while_all_are_asked_is_replaced_and_its_requests_go_on() -> None:
    processes = KeptProcesses(torch_process)
    made = [VllmEngine(3, SLOTS, start=processes.start) for _ in range(2)]
    pool, here = EnginePool(made, SLOTS), EnginePool([TorchEngine(3, SLOTS)], SLOTS)
    for one in (pool, here):
        push_model(one, tiny("qwen2", HEAD), "a")

    def strike(step: int) -> None:
        if step == 3:
            os.kill(made[1].supervisor.pid or 0, signal.SIGKILL)

    try:
        asked = requests(2, 2)
        assert drawn(converse(pool, asked, strike)) == drawn(converse(here, asked))
        assert [len(one.supervisor.quarantined) for one in made] == [0, 1]
        pid = made[0].supervisor.pid or 0
        os.kill(pid, signal.SIGKILL)
        push_model(pool, tiny("llama", HEAD), "b")
        assert made[0].supervisor.pid != pid
        assert ([one.version for one in made], pool.figures()["engines_lost"]) == (["b", "b"], 0)
    finally:
        pool.close()
        processes.end()


def test_new_weights_in_the_middle_cost_nothing_that_an_engine_had_sampled_unasked(processes: KeptProcesses) -> None:
    engine = VllmEngine(3, SLOTS, start=processes.start)
    pool = EnginePool([engine], SLOTS)
    push_model(pool, tiny("qwen2", HEAD), "a")
    long, short = (
        replace(one, stop=-1, max_tokens=most) for one, most in zip(requests(2, 1), (SLOTS, 10), strict=True)
    )
    for request in (long, short):
        pool.submit(request)
    turns = list(pool.step())
    told = {request.id: len(pool.under_way(request.id).ids) for request in (long, short)}
    process = engine.supervisor._process
    assert process is not None
    for _ in range(3):
        process.ask("figures")  # which is answered behind the next step
    pool.push_in_flight(tiny("llama", HEAD), "b")
    assert len(pool.under_way(long.id).ids) >= told[long.id] + 2
    while pool.unfinished:
        assert pool.runnable
        turns += pool.step()
    assert {turn.request: len(turn.ids) for turn in turns} == {
        request.id: request.max_tokens - len(request.prompt) for request in (long, short)
    }
    (spans,) = ([span.version for span in turn.weights] for turn in turns if turn.request == long.id)
    assert spans == ["a", "b"]
    assert pool.tokens_sampled == sum(len(turn.ids) for turn in turns)
    pool.close()
