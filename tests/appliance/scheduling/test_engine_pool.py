"""Several engines are one to the agent: nothing that was sampled is lost, whatever becomes of the engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from random import Random
from typing import Any

import pytest
import torch
from inference_models import VOCABULARY, tiny
from scripted_engine import Ids, ScriptedEngine

from appliance.inference.adapters import push_model
from appliance.inference.engine import Engine, EngineCapacity, GenerationRequest, PushProof, Turn
from appliance.inference.torch.engine import TorchEngine
from appliance.scheduling.engine_pool import EnginePool
from runtime.errors import InfrastructureError

SLOTS, STOP, TURNS = 64, 5, 3
HEAD = 32


class ShortOfMemory(TorchEngine):
    """Holds only so many tokens at once, and counts how often it has more."""

    def __init__(self, rows: int, slots: int, tokens: int) -> None:
        super().__init__(rows, slots)
        self._tokens = tokens
        self.overfull = 0

    @property
    def capacity(self) -> EngineCapacity:
        return EngineCapacity(super().capacity.rows, self._tokens)

    def step(self) -> list[Turn]:
        turns = super().step()
        self.overfull += sum(self.lengths().values()) > self._tokens
        return turns


class Dies(TorchEngine):
    """Fails at the steps that are named, and after each until it is given weights anew."""

    def __init__(self, rows: int, slots: int, *at: int) -> None:
        super().__init__(rows, slots)
        self._fails_at, self._count = at, count()

    def step(self) -> list[Turn]:
        if next(self._count) in self._fails_at:
            raise InfrastructureError("the processor is on fire")
        return super().step()


class RunsOut(Dies):
    """Meets a GPU without memory in the middle of those steps instead."""

    def step(self) -> list[Turn]:
        return TorchEngine.step(self)

    def _sample(self, *given: Any) -> list[Turn]:
        if next(self._count) in self._fails_at:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return super()._sample(*given)


class Forgets(ScriptedEngine):
    """Takes no weights at all, and says that it has."""

    def push(self, weights: Any, version: str) -> PushProof:
        return PushProof(version, "0" * 64)


def requests(groups: int = 4, each: int = 4) -> list[GenerationRequest]:
    rng = Random(0)
    prompts = [tuple(rng.randrange(VOCABULARY) for _ in range(rng.randint(4, 9))) for _ in range(groups)]
    return [
        GenerationRequest(
            id=number,
            prompt=prompts[number // each],
            stop=STOP,
            max_tokens=rng.randint(30, SLOTS),
            temperature=1.0,
            seed=rng.getrandbits(63),
            group=str(number // each),
        )
        for number in range(groups * each)
    ]


def converse(
    engine: Engine, asked: Sequence[GenerationRequest], meanwhile: Callable[[int], None] = lambda _: None
) -> dict[int, list[Turn]]:
    """Each turn is answered by two tokens, until a conversation is full or has had its turns."""
    said: dict[int, list[Turn]] = {request.id: [] for request in asked}
    lengths = {request.id: len(request.prompt) for request in asked}
    budget = {request.id: request.max_tokens for request in asked}
    for request in asked:
        engine.submit(request)
    for step in range(5_000):
        if not engine.unfinished:
            return said
        meanwhile(step)
        for turn in engine.step():
            said[turn.request].append(turn)
            lengths[turn.request] += len(turn.ids) + 2
            if turn.ended == "length":
                continue
            if len(said[turn.request]) == TURNS or lengths[turn.request] >= budget[turn.request]:
                engine.finish(turn.request)
            else:
                engine.resume(turn.request, (7, 8))
    raise AssertionError("it does not come to an end")


def drawn(said: dict[int, list[Turn]]) -> dict[int, list[tuple[Ids, str]]]:
    return {number: [(turn.ids, turn.ended) for turn in turns] for number, turns in said.items()}


def pool_of(*engines: Engine, weights: str = "qwen2") -> EnginePool:
    pool = EnginePool(engines, SLOTS)
    push_model(pool, tiny(weights, HEAD), "a")
    return pool


@pytest.fixture(scope="module")
def plainly() -> dict[int, list[tuple[Ids, str]]]:
    """What one engine that has room for all says, without a pool."""
    engine = TorchEngine(16, SLOTS)
    engine.push(tiny("qwen2", HEAD), "a")
    said = drawn(converse(engine, requests()))
    assert any(len(turns) > 1 for turns in said.values())
    return said


def agrees(said: dict[int, list[Turn]], versions: tuple[str, ...] = ("a",)) -> None:
    """Every token has its log-probability under the weights that its span names, given all that stands before it."""
    models = dict(zip(versions, ("qwen2", "llama"), strict=False))
    for request in requests():
        known = list(request.prompt)
        for turn in said[request.id]:
            assert [span.start for span in turn.weights] == [0, *(span.end for span in turn.weights[:-1])]
            assert turn.weights[-1].end == len(turn.ids) == len(turn.logprobs)
            with torch.no_grad():
                for span in turn.weights:
                    logits = tiny(models[span.version], HEAD)(input_ids=torch.tensor([[*known, *turn.ids]])).logits[0]
                    own = logits.log_softmax(-1)[len(known) - 1 :]
                    for at in range(span.start, span.end):
                        assert own[at, turn.ids[at]].item() == pytest.approx(turn.logprobs[at], abs=1e-4)
            known += [*turn.ids, 7, 8]


@pytest.mark.parametrize("count", [1, 2, 4])
def test_what_is_drawn_does_not_depend_on_how_many_engines_there_are(
    count: int, plainly: dict[int, list[tuple[Ids, str]]]
) -> None:
    engines = [TorchEngine(3, SLOTS) for _ in range(count)]
    pool = pool_of(*engines)
    assert pool.capacity == EngineCapacity(3 * count)
    said = converse(pool, requests())
    assert drawn(said) == plainly
    assert all(engine.tokens_sampled for engine in engines)
    assert pool.tokens_sampled == sum(len(turn.ids) for turns in said.values() for turn in turns)
    assert (pool.unfinished, pool.runnable) == (0, 0)


def test_what_memory_cannot_hold_is_set_back_and_goes_on_as_if_nothing_had_been(
    plainly: dict[int, list[tuple[Ids, str]]],
) -> None:
    engine = ShortOfMemory(16, SLOTS, 5 * SLOTS)
    pool = pool_of(engine)
    for _ in range(3):  # the first batch teaches it lengths: then it dares more, and has to set back
        said = converse(pool, requests())
        assert drawn(said) == plainly
        agrees(said)
    assert engine.overfull == 0
    assert pool.figures()["set_back"] > 0
    everything = ShortOfMemory(16, SLOTS, 5 * SLOTS)
    everything.push(tiny("qwen2", HEAD), "a")
    converse(everything, requests())
    assert everything.overfull > 0, "all at once is more than it holds"


def test_a_pool_that_is_told_how_long_conversations_got_begins_more_of_them_at_once() -> None:
    def begun(*lengths: int) -> int:
        engine = ShortOfMemory(16, SLOTS, 5 * SLOTS)
        pool = EnginePool([engine], SLOTS, lengths=lambda: lengths)
        push_model(pool, tiny("qwen2", HEAD), "a")
        for request in requests():
            pool.submit(request)
        return engine.unfinished

    assert begun() < begun(*[SLOTS // 4] * 100)


def test_an_engine_whose_memory_is_that_of_one_conversation_makes_the_longest_too() -> None:
    class InBlocks(TorchEngine):
        @property
        def capacity(self) -> EngineCapacity:
            return EngineCapacity(2, 60, 16)

    pool = EnginePool([InBlocks(2, 60)], 60)
    push_model(pool, tiny("qwen2", HEAD), "a")
    pool.submit(GenerationRequest(0, tuple(range(40)), -1, 60, 1.0, 1))
    for _ in range(15):
        pool.step()
    pool.push_in_flight(tiny("qwen2", HEAD), "b")
    turns = [turn for _ in range(10) for turn in pool.step()]
    assert [len(turn.ids) for turn in turns] == [20]


@pytest.mark.parametrize("kind", [Dies, RunsOut])
def test_what_a_lost_engine_had_begun_goes_on_elsewhere_and_nothing_of_it_is_lost(
    kind: type[Dies], plainly: dict[int, list[tuple[Ids, str]]]
) -> None:
    lost = kind(8, SLOTS, 6)
    pool = pool_of(lost, TorchEngine(4, SLOTS))
    said = converse(pool, requests())
    assert drawn(said) == plainly
    agrees(said)
    assert (pool.figures()["engines_lost"], lost.version) == (1.0, "")
    sampled = sum(len(turn.ids) for turns in said.values() for turn in turns)
    assert pool.tokens_sampled == sampled, "not one token was drawn twice"
    push_model(pool, tiny("llama", HEAD), "b")
    assert (lost.version, pool.capacity.rows) == ("b", 12), "a later push finds it again"


def test_the_loss_of_the_last_engine_is_a_failure_of_the_infrastructure() -> None:
    pool = pool_of(Dies(4, SLOTS, 3), Dies(4, SLOTS, 5))
    with pytest.raises(InfrastructureError, match="on fire"):
        converse(pool, requests())
    for request in requests():
        pool.finish(request.id)
    assert (pool.unfinished, pool.runnable, list(pool.step())) == (0, 0, [])
    push_model(pool, tiny("qwen2", HEAD), "a")
    assert len(converse(pool, requests())) == 16


def test_new_weights_come_in_the_middle_and_each_token_says_which_drew_it() -> None:
    pool = pool_of(TorchEngine(5, SLOTS), TorchEngine(5, SLOTS))

    def meanwhile(step: int) -> None:
        if step == 24:
            pool.push_in_flight(tiny("llama", HEAD), "b")

    said = converse(pool, requests(), meanwhile)
    agrees(said, ("a", "b"))
    turns = [turn for found in said.values() for turn in found]
    assert {tuple(span.version for span in turn.weights) for turn in turns} == {("a",), ("a", "b"), ("b",)}
    assert pool.figures()["pushes_in_flight"] == 1


def test_an_engine_that_holds_other_weights_than_it_was_given_serves_nobody() -> None:
    liar = Forgets(lambda request, known: (9, STOP), slots=SLOTS)
    pool = pool_of(liar, TorchEngine(4, SLOTS))
    converse(pool, requests())
    assert liar.requests == {}
    with pytest.raises(InfrastructureError, match="other weights"):
        EnginePool([liar, Forgets({})], SLOTS).push(tiny("qwen2", HEAD), "a")


def test_an_engine_works_in_steps_that_have_something_to_sample() -> None:
    engine = ScriptedEngine(lambda request, known: (9, STOP), slots=SLOTS)
    pool = EnginePool([engine], SLOTS, clock=map(float, count()).__next__)  # each step takes a second
    push_model(pool, tiny("qwen2", HEAD), "a")
    pool.step()
    assert pool.figures()["engine_seconds"] == 0
    pool.submit(requests()[0])
    steps = 0
    while pool.runnable:
        pool.step()
        steps += 1
    pool.step()  # all wait for the caller
    assert pool.figures()["engine_seconds"] == steps > 0


def test_a_group_begins_on_one_engine() -> None:
    engines = [ScriptedEngine(lambda request, known: (9, STOP), slots=SLOTS) for _ in range(3)]
    converse(pool_of(*engines), requests())
    groups = [{request.group for request in engine.requests.values()} for engine in engines]
    assert sum(map(len, groups)) == len(set.union(*groups)) == 4
    assert all(groups)


def test_what_is_taken_back_is_whole_and_can_be_given_again() -> None:
    pool = pool_of(TorchEngine(4, SLOTS))
    request = replace(requests()[0], stop=VOCABULARY - 1, max_tokens=40)
    pool.submit(request)
    for _ in range(6):
        pool.step()
    part = pool.withdraw(request.id)
    assert (part.ended, len(part.ids), pool.unfinished) == ("withdrawn", 6, 0)
    with pytest.raises(KeyError):
        pool.withdraw(request.id)
    pool.submit(replace(request, prompt=request.prompt + part.ids))
    other = pool_of(TorchEngine(4, SLOTS))
    other.submit(request)
    whole, rest = (next(turn for _ in range(60) for turn in engine.step()) for engine in (other, pool))
    assert whole.ids == part.ids + rest.ids
