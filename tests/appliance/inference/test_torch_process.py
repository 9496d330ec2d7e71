"""Torch in a process of its own, here or on another host, draws what torch in this process draws."""

from __future__ import annotations

import copy
import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from weakref import WeakSet

import pytest
from safetensors.torch import save_model
from test_engine_conformance import SLOTS, VOCABULARY, asked, tiny
from vllm_engines import KeptProcesses, started_torch_process, torch_process

from appliance.inference.adapters import adapter_files, push_model
from appliance.inference.engine import Engine, GenerationRequest, Turn
from appliance.inference.torch import engine as torch_engine
from appliance.inference.torch.core import TorchCore
from appliance.inference.torch.decoder import Decoder
from appliance.inference.torch.engine import TorchEngine
from appliance.inference.vllm.engine import VllmEngine
from appliance.inference.vllm.process import EngineFault
from appliance.learning.trained_weights import add_adapter
from appliance.scheduling.engine_pool import EnginePool
from appliance.system.patience import Patience

ANYTHING = tuple(range(1, VOCABULARY))


@pytest.fixture(scope="module")
def processes() -> Iterator[KeptProcesses]:
    kept = KeptProcesses(started_torch_process)
    yield kept
    kept.end()


@pytest.fixture
def there(processes: KeptProcesses) -> Iterator[VllmEngine]:
    made = VllmEngine(2, SLOTS, start=processes.start)
    push_model(made, tiny("qwen2"), "a")
    yield made
    made.close()


@pytest.fixture
def here() -> Iterator[TorchEngine]:
    made = TorchEngine(2, SLOTS)
    push_model(made, tiny("qwen2"), "a")
    yield made
    made.close()


def turns_of(engine: Engine, count: int) -> dict[int, tuple[int, ...]]:
    turns: list[Turn] = []
    while len(turns) < count:
        turns += engine.step()
    return {turn.request: turn.ids for turn in turns}


def drawn(engine: Engine, *requests: GenerationRequest) -> dict[int, tuple[int, ...]]:
    for request in requests:
        engine.submit(request)
    found = turns_of(engine, len(requests))
    for request in requests:
        engine.finish(request.id)
    return found


def test_it_draws_the_same_tokens_from_the_same_seed(here: TorchEngine, there: VllmEngine) -> None:
    requests = [asked(seed) for seed in (3, 4)]
    assert drawn(there, *requests) == drawn(here, *requests)


def test_what_an_engine_had_drawn_when_it_was_lost_goes_on_as_it_would_have(
    here: TorchEngine, there: VllmEngine
) -> None:
    request = asked(3)
    (whole,) = drawn(here, request).values()
    there.submit(request)
    while len(there.under_way(3).ids) < 2:
        there.step()
    there.supervisor.replace(EngineFault("its host is gone"))
    there._dispatch_again()
    assert turns_of(there, 1) == {3: whole}


def test_a_conversation_goes_on_with_its_own_seed_where_another_has_said_the_same(
    here: TorchEngine, there: VllmEngine
) -> None:
    """A turn of one token, which two seeds drew alike; now the one and now the other is answered first."""
    by_token: dict[int, int] = {}
    for seed in range(100):
        (token,) = drawn(here, asked(seed, other_stops=ANYTHING))[seed]
        if token in by_token:
            break
        by_token[token] = seed
    pair = [asked(number, other_stops=ANYTHING, max_tokens=12) for number in (by_token[token], seed)]
    alone = {}
    for engine in (here, there):
        first = drawn(engine, *pair)
        assert len(set(first.values())) == 1
        for order in (1, -1):
            for request in pair[::order]:
                engine.submit(request)
            assert turns_of(engine, 2) == first
            for request in pair:
                engine.resume(request.id, (7,))
            alone.setdefault(engine, []).append(turns_of(engine, 2))
            for request in pair:
                engine.finish(request.id)
    assert alone[here] == alone[there]
    assert any(len(set(turns.values())) == 2 for turns in alone[here])


@pytest.mark.parametrize("changed", [{"temperature": 0.0}, {"other_stops": ()}])
def test_a_request_that_goes_on_behind_another_one_is_sampled_as_it_asks(
    here: TorchEngine, there: VllmEngine, changed: dict[str, Any]
) -> None:
    """Same tokens, budget and seed, and another temperature, or other stops, than the turn before."""
    for seed in range(6):
        first = asked(seed, other_stops=ANYTHING, max_tokens=12)
        ids = drawn(here, first)[seed]
        then = replace(first, prompt=(*first.prompt, *ids, 7), **changed)
        whole = drawn(here, then)
        assert drawn(there, first) == {seed: ids}
        assert drawn(there, then) == whole
    assert there.supervisor.quarantined == []


def test_a_push_in_the_middle_of_conversations_keeps_the_process(there: VllmEngine) -> None:
    pool = EnginePool([there], SLOTS)
    push_model(pool, tiny("qwen2"), "a")
    pool.submit(asked(3))
    while len(pool.under_way(3).ids) < 2:
        pool.step()
    pid, before = there.supervisor.pid, pool.under_way(3).ids
    pool.push_in_flight(tiny("qwen2"), "b")
    turns: list[Turn] = []
    while not turns:
        turns += pool.step()
    assert (there.supervisor.quarantined, there.supervisor.pid) == ([], pid)
    assert [span.version for span in turns[0].weights] == ["a", "b"]
    assert turns[0].ids[: len(before)] == before


def test_nothing_counts_that_an_engine_sampled_of_a_turn_about_which_it_contradicts_itself(
    here: TorchEngine, there: VllmEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    (whole,) = drawn(here, asked(3)).values()
    ask, wrong = there.supervisor.ask, iter([True])

    def lying(kind: str, **message: Any) -> dict[str, Any]:
        answer = ask(kind, **message)
        for report in answer.get("reports", ()) if kind == "step" else ():
            if report["ids"] and report["ended"] and next(wrong, False):
                report["versions"] = [["another", 0, len(report["ids"])]]
                report["ids"][0] = (report["ids"][0] + 1) % VOCABULARY
        return answer

    monkeypatch.setattr(there.supervisor, "ask", lying)
    there.submit(asked(3))
    assert turns_of(there, 1) == {3: whole}
    assert len(there.supervisor.quarantined) == 1


def test_an_engine_that_takes_nothing_is_given_up_also_in_the_middle_of_a_question(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    process = torch_process({"model": str(tmp_path), "rows": 1, "slots": SLOTS, "dtype": "float32"})
    try:
        process.patience = Patience(idle_seconds=1)  # type: ignore[attr-defined]
        os.kill(process.pid, signal.SIGSTOP)
        with pytest.raises(EngineFault, match="does not answer score"):
            process.ask("score", conversations=[[1] * (1 << 20)], temperature=1.0)
    finally:
        process.kill()
    with pytest.raises(EngineFault, match="ended during figures"):
        process.ask("figures")


GARBAGE = {
    "no reports": ("step", lambda answer: {}),
    "a report that is text": ("step", lambda answer: {"reports": ["x"]}),
    "a report of nobody": ("step", lambda answer: {"reports": [{}]}),
    "text for a log-probability": ("step", lambda answer: altered(answer, logprobs=["x"], ids=[1])),
    "an end without versions": ("step", lambda answer: altered(answer, ended="stop", versions=None)),
    "scores without numbers": ("score", lambda answer: {"scores": [[None] * len(row) for row in answer["scores"]]}),
    "scores of other tokens": ("score", lambda answer: {"scores": [row[1:] for row in answer["scores"][:1]]}),
    "scores of unlike lengths": (
        "score",
        lambda answer: {"scores": [row[n:] for n, row in enumerate(answer["scores"])]},
    ),
    "scores above 1": ("score", lambda answer: {"scores": [[0.5] * len(row) for row in answer["scores"]]}),
    "no probe": ("probe", lambda answer: {"reports": [{"number": one["number"]} for one in answer["reports"]]}),
}


def altered(answer: dict[str, Any], **fields: object) -> dict[str, Any]:
    return {"reports": [{**report, **fields} for report in answer["reports"]]}


@pytest.mark.parametrize("case", GARBAGE)
def test_an_engine_that_answers_with_garbage_is_put_aside_and_nothing_of_it_counts(
    there: VllmEngine, here: TorchEngine, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, spoiled = GARBAGE[case]
    process, wrong = there.supervisor._process, [spoiled]
    assert process is not None
    ask = process.ask

    def said(asked: str, **message: Any) -> dict[str, Any]:
        answer = ask(asked, **message)
        return wrong.pop()(answer) if asked == kind and wrong else answer

    monkeypatch.setattr(process, "ask", said, raising=False)
    if kind == "step":
        request = asked(1)
        assert drawn(there, request) == drawn(here, request)
    else:
        assert there.push(tiny("qwen2"), "b").version == "b"
    assert len(there.supervisor.quarantined) == 1


def test_an_adapter_takes_the_place_of_the_copy_without_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decoders: WeakSet[Decoder] = WeakSet()
    make, beside = torch_engine.make_decoder, []

    def made(*given: Any, **how: Any) -> Decoder:
        beside.append(len(decoders))
        decoders.add(decoder := make(*given, **how))
        return decoder

    monkeypatch.setattr(torch_engine, "make_decoder", made)
    model = tiny("qwen2")
    save_model(model, str(tmp_path / "model.safetensors"))
    model.config.save_pretrained(tmp_path)
    core = TorchCore(str(tmp_path), rows=1, slots=SLOTS, dtype="float32", device="cpu")
    core.load({"path": str(tmp_path / "model.safetensors")}, {}, "base")
    for name, drop in (("first", []), ("second", ["first"])):
        adapted = copy.deepcopy(model)
        add_adapter(adapted, rank=2, alpha=4.0, seed=1)
        for file, content in adapter_files(adapted).items():
            (tmp_path / file).write_bytes(content)
        core.adapt(name, str(tmp_path), drop)
        assert core.score([(1, 2, 3)], 1.0, name)
    assert beside == [0, 0, 0]
