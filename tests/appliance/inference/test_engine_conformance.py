"""What every engine keeps, whatever is behind it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from inference_models import VOCABULARY
from inference_models import tiny as sized
from scripted_engine import ScriptedEngine
from tables import table
from vllm_engines import KeptProcesses, needs_vllm, torch_process

from appliance.inference.adapters import push_model, weights_digest
from appliance.inference.engine import Engine, GenerationRequest, ModelError, NoProbabilitiesError, PushProof, Turn
from appliance.inference.engines import ENGINES, make_engine
from appliance.inference.folder import read_model
from appliance.inference.vllm.engine import VllmEngine
from appliance.scheduling.engine_pool import make_pool

SLOTS = 48
STOP = 5
HEAD = 32
MODELS = ("qwen2", "llama", "qwen3")


def scripted(rows: int, slots: int, threads: int | None) -> ScriptedEngine:
    """Ends its first turn with the stop token, and fills the budget with the next one."""

    def script(request: GenerationRequest, known: tuple[int, ...]) -> tuple[int, ...]:
        return (7, 8, request.stop) if len(known) == len(request.prompt) else (9,) * slots

    return ScriptedEngine(script, version="", slots=slots, rows=rows, vocabulary=VOCABULARY)


def tiny(name: str) -> Any:
    return sized(name, HEAD)


@pytest.fixture(scope="module")
def processes() -> Iterator[KeptProcesses]:
    """Processes of vLLM that a closed engine leaves to the next one: each takes 10 s of a processor to start."""
    kept = KeptProcesses()
    yield kept
    kept.end()


@pytest.fixture(scope="module")
def torch_processes() -> Iterator[KeptProcesses]:
    """The same of torch."""
    kept = KeptProcesses(torch_process)
    yield kept
    kept.end()


@pytest.fixture(
    params=["torch", "process", "scripted", "pool", pytest.param("vllm", marks=[needs_vllm, pytest.mark.timeout(900)])]
)
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    monkeypatch.setitem(ENGINES, "scripted", scripted)
    if request.param == "vllm":
        kept = request.getfixturevalue("processes")
        monkeypatch.setitem(ENGINES, "vllm", lambda rows, slots, threads: VllmEngine(rows, slots, start=kept.start))
    if request.param == "process":
        own = request.getfixturevalue("torch_processes")
        monkeypatch.setitem(ENGINES, "process", lambda rows, slots, threads: VllmEngine(rows, slots, start=own.start))
    if request.param == "pool":
        made: Engine = make_pool("torch", 2, rows=1, slots=SLOTS)
    else:
        made = make_engine(request.param, rows=2, slots=SLOTS)
    yield made
    made.close()


def asked(number: int = 0, **changes: object) -> GenerationRequest:
    made = {"prompt": (1, 2, 3), "stop": STOP, "max_tokens": SLOTS, "temperature": 1.0, "seed": number, **changes}
    return GenerationRequest(id=number, **made)  # type: ignore[arg-type]


def next_turn(engine: Engine) -> Turn:
    turns = [turn for _ in range(SLOTS) for turn in (engine.step() if engine.runnable else ())]
    assert len(turns) == 1
    return turns[0]


def turn_that_stops(engine: Engine) -> tuple[GenerationRequest, Turn]:
    """A request whose first turn ends with its stop token, and waits."""
    for seed in range(200):
        request = asked(seed)
        engine.submit(request)
        turn = next_turn(engine)
        if turn.ended == "stop" and len(turn.ids) < 20:
            return request, turn
        engine.finish(request.id)
    raise AssertionError("no turn ended with the stop token")


def plainly(name: str, ids: tuple[int, ...], temperature: float) -> list[float]:
    """By a forward pass of transformers."""
    with torch.no_grad():
        logprobs = (tiny(name)(input_ids=torch.tensor([ids])).logits[0] / temperature).log_softmax(-1)
    return [logprobs[at, token].item() for at, token in enumerate(ids[1:])]


def test_an_engine_without_weights_serves_nobody(engine: Engine) -> None:
    assert (engine.version, engine.unfinished, engine.runnable, list(engine.step())) == ("", 0, 0, [])
    for ask in (lambda: engine.submit(asked()), lambda: engine.score([(1, 2)])):
        with pytest.raises(RuntimeError, match="no weights"):
            ask()


def test_a_push_is_proved_by_the_digest_of_what_arrived(engine: Engine, tmp_path: Path) -> None:
    tiny("llama").save_pretrained(tmp_path)
    model = tiny("qwen2")
    assert engine.push(model, "a") == PushProof("a", weights_digest(model))
    assert engine.push(read_model(tmp_path), "b") == PushProof("b", weights_digest(tiny("llama")))
    assert engine.version == "b"


def test_every_token_says_which_weights_drew_it(engine: Engine) -> None:
    seen = []
    for version, name in (("a", "qwen2"), ("b", "llama")):
        push_model(engine, tiny(name), version)
        engine.submit(asked())
        turn = next_turn(engine)
        engine.finish(0)
        assert len(turn.ids) == len(turn.logprobs) > 0
        seen.append([(span.version, span.start, span.end - len(turn.ids)) for span in turn.weights])
    assert seen == [[("a", 0, 0)], [("b", 0, 0)]]


def test_new_weights_never_come_in_the_middle_of_a_conversation(engine: Engine) -> None:
    engine.push(tiny("qwen2"), "a")
    engine.submit(asked())
    with pytest.raises(RuntimeError, match="unfinished"):
        engine.push(tiny("llama"), "b")
    assert engine.version == "a"
    engine.finish(0)
    assert engine.push(tiny("llama"), "b").version == "b"


def test_a_turn_that_stopped_waits_and_goes_on_behind_what_is_forced(engine: Engine) -> None:
    engine.push(tiny("qwen2"), "a")
    request, first = turn_that_stops(engine)
    assert first.ids[-1] == STOP
    assert (engine.unfinished, engine.runnable) == (1, 0)
    engine.resume(request.id, (4, 6))
    assert engine.runnable == 1
    with pytest.raises(ValueError, match="does not wait"):
        engine.resume(request.id, (4,))
    last = next_turn(engine)
    if last.ended == "length":
        assert 3 + len(first.ids) + 2 + len(last.ids) == SLOTS
        assert engine.unfinished == 0
        with pytest.raises(ValueError, match="does not wait"):
            engine.resume(request.id, (4,))


def test_forced_tokens_that_leave_no_room_or_are_no_tokens_are_refused(engine: Engine) -> None:
    engine.push(tiny("qwen2"), "a")
    request, _ = turn_that_stops(engine)
    for forced, message in (((1,) * SLOTS, "leave no room"), ((VOCABULARY,), "vocabulary"), ((-1,), "vocabulary")):
        with pytest.raises(ValueError, match=message):
            engine.resume(request.id, forced)
    assert (engine.unfinished, engine.runnable) == (1, 0)


@pytest.mark.parametrize(
    "wrong",
    [
        {"prompt": ()},
        {"prompt": (1, 2), "max_tokens": 2},
        {"max_tokens": SLOTS + 1},
        {"prompt": (1, VOCABULARY)},
        {"prompt": (-1,)},
        {"temperature": -0.5},
        {"temperature": math.nan},
    ],
)
def test_a_request_that_cannot_be_served_is_refused_at_once(engine: Engine, wrong: dict[str, object]) -> None:
    engine.push(tiny("qwen2"), "a")
    with pytest.raises(ValueError, match=r"request|prompt|temperature|token"):
        engine.submit(asked(**wrong))
    engine.submit(asked())
    with pytest.raises(ValueError, match=r"request 0"):
        engine.submit(asked())
    assert engine.unfinished == 1
    engine.finish(0)
    engine.finish(0)
    assert (engine.unfinished, engine.runnable) == (0, 0)


def test_scores_are_the_log_probabilities_that_were_sampled_under(engine: Engine) -> None:
    engine.push(tiny("qwen2"), "a")
    for number in range(2):
        engine.submit(asked(number))
    turns: dict[int, Turn] = {}
    while len(turns) < 2:
        turns |= {turn.request: turn for turn in engine.step()}
    conversations = [(1, 2, 3, *turns[number].ids) for number in range(2)]
    scores = engine.score([*conversations, (4,)])
    assert [len(one) for one in scores] == [*(len(ids) - 1 for ids in conversations), 0]
    for number in range(2):
        assert scores[number][2:] == pytest.approx(turns[number].logprobs, abs=1e-4)
    for wrong in ((), (1,) * (SLOTS + 1), (VOCABULARY,)):
        with pytest.raises(ValueError, match=r"fit|vocabulary"):
            engine.score([wrong])


def test_what_is_taken_back_in_the_middle_goes_on_from_its_tokens(engine: Engine) -> None:
    engine.push(tiny("qwen2"), "a")
    assert engine.capacity.rows == 2
    assert (engine.capacity.tokens or SLOTS) >= SLOTS
    request = asked(prompt=(1, 2, 3), stop=VOCABULARY - 1)
    engine.submit(request)
    first = [turn for _ in range(5) for turn in engine.step()][:1]
    length = engine.lengths().get(0, SLOTS)
    if not first:
        part = engine.withdraw(0)
        assert (part.ended, engine.unfinished, engine.preemptions()) == ("withdrawn", 0, 0)
        assert 3 + len(part.ids) == length > 3
        engine.submit(asked(prompt=(1, 2, 3, *part.ids), stop=VOCABULARY - 1))
        rest = next_turn(engine)
        known = (1, 2, 3, *part.ids, *rest.ids)
        (scores,) = engine.score([known])
        assert scores[2:] == pytest.approx([*part.logprobs, *rest.logprobs], abs=1e-4)
        assert [(span.version, span.start) for span in part.weights] == [("a", 0)]
    with pytest.raises(KeyError):
        engine.withdraw(7)


def test_weights_without_probabilities_are_told_from_a_model_that_cannot_be_used(engine: Engine) -> None:
    """Training goes back to its last good checkpoint for them, so all engines have to call them the same."""
    if isinstance(engine, ScriptedEngine):
        pytest.skip("it draws from no weights")
    model = tiny("qwen2")
    broken = type(model)(model.config)
    broken.load_state_dict(model.state_dict())
    broken.model.norm.weight.data.fill_(math.nan)

    def try_it() -> None:
        engine.push(broken, "b")
        engine.submit(asked())
        next_turn(engine)

    with pytest.raises(NoProbabilitiesError, match="no finite probabilities"):
        try_it()
    engine.push(model, "a")
    assert engine.version == "a"


def test_a_closed_engine_holds_nothing(engine: Engine) -> None:
    engine.push(tiny("qwen2"), "a")
    engine.submit(asked())
    engine.close()
    engine.close()
    assert (engine.version, engine.unfinished, engine.runnable) == ("", 0, 0)
    with pytest.raises(RuntimeError, match="no weights"):
        engine.submit(asked())


def test_an_engine_that_took_other_weights_is_found_out() -> None:
    class Deaf(ScriptedEngine):
        def push(self, weights: object, version: str) -> PushProof:
            return PushProof(version, weights_digest(tiny("llama")))

    with pytest.raises(ModelError, match="other weights"):
        push_model(Deaf({}), tiny("qwen2"), "a")


def test_the_digest_of_weights_tells_a_changed_number_and_a_changed_name() -> None:
    model = type(tiny("qwen2"))(tiny("qwen2").config)
    before = weights_digest(model)
    assert before == weights_digest(model)
    model.model.norm.weight.data[0] += 1e-6
    assert weights_digest(model) != before


def test_an_unknown_engine_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ModelError, match="unknown engine 'nobody'") as caught:
        make_engine("nobody", rows=1, slots=8)
    assert "torch" in caught.value.hint


@table("name", [*MODELS, "gpt2"])
@table("temperature", [1.0, 0.6])
def test_the_torch_engine_scores_as_transformers_does(name: str, temperature: float) -> None:
    engine = make_engine("torch", rows=1, slots=SLOTS)
    engine.push(tiny(name), name)
    conversations = [tuple((seed * 7 + at * 3) % VOCABULARY for at in range(2 + 5 * seed)) for seed in range(6)]
    for ids, scores in zip(conversations, engine.score(conversations, temperature), strict=True):
        assert scores == pytest.approx(plainly(name, ids, temperature), abs=1e-4)
