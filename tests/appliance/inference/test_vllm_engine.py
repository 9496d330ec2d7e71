"""The real vLLM behind the seam: what is pushed is what samples, and an engine that holds anything else goes."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Literal

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import MixtralConfig, MixtralForCausalLM, Qwen3Config, Qwen3ForCausalLM
from vllm_engines import Faults, needs_vllm

from appliance.inference.adapters import adapter_parameters, proof_of, push_model, weights_digest
from appliance.inference.engine import GenerationRequest, ModelError, Turn
from appliance.inference.vllm import supervisor
from appliance.inference.vllm.engine import VllmEngine
from appliance.inference.vllm.placement import VllmSettings
from appliance.inference.vllm.process import EngineFault
from appliance.inference.vllm.transfers import WAYS
from appliance.inference.vllm.transfers.file import WeightFile
from appliance.inference.vllm.weights import OfferedWeights, offer_weights
from appliance.learning.trained_weights import add_adapter
from appliance.scheduling.engine_pool import EnginePool
from appliance.system.patience import Patience
from runtime.errors import InfrastructureError

pytestmark = [needs_vllm, pytest.mark.timeout(900)]
VOCABULARY, SLOTS, ROWS, STOP = 96, 96, 32, 5
CLOSE = 1e-4


def model(seed: int, *, tied: bool = True) -> Any:
    torch.manual_seed(seed)
    return Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=VOCABULARY,
            hidden_size=64,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=1,
            head_dim=32,
            max_position_embeddings=SLOTS,
            bos_token_id=None,
            eos_token_id=None,
            initializer_range=0.2,
            tie_word_embeddings=tied,
        )
    ).eval()


def requests(count: int, seed: int = 0) -> list[GenerationRequest]:
    random = Random(seed)
    prefix = tuple(random.randrange(VOCABULARY) for _ in range(40))
    return [
        GenerationRequest(
            id=number,
            prompt=(*prefix, random.randrange(VOCABULARY)),
            stop=STOP,
            max_tokens=random.randrange(50, SLOTS),
            temperature=random.choice((1.0, 0.7)),
            seed=random.getrandbits(63),
        )
        for number in range(count)
    ]


@torch.no_grad()
def furthest(turns: list[tuple[GenerationRequest, Turn]], models: dict[str, Any]) -> float:
    """The largest difference of a sampled token's log-probability from that under the weights that its span names."""
    worst = 0.0
    for request, turn in turns:
        ids = torch.tensor([[*request.prompt, *turn.ids]])
        drawn = torch.tensor(turn.ids)
        for span in turn.weights:
            logits = models[span.version](input_ids=ids).logits[0, len(request.prompt) - 1 : -1]
            own = (logits / request.temperature).log_softmax(-1).gather(1, drawn[:, None]).squeeze(1)
            part = slice(span.start, span.end)
            worst = max(worst, (own[part] - torch.tensor(turn.logprobs)[part]).abs().max().item())
    return worst


def played(
    engine: VllmEngine | EnginePool, asked: list[GenerationRequest], at: dict[int, Any]
) -> list[tuple[GenerationRequest, Turn]]:
    """Plays one turn of each request; after as many tokens as `at` names, it does what stands there."""
    known = {request.id: request for request in asked}
    for request in asked:
        engine.submit(request)
    turns: list[tuple[GenerationRequest, Turn]] = []
    before, left = engine.tokens_sampled, dict(sorted(at.items()))
    while engine.runnable:
        if left and engine.tokens_sampled - before >= next(iter(left)):
            left.pop(next(iter(left)))()
        for turn in engine.step():
            turns.append((known[turn.request], turn))
            engine.finish(turn.request)
    assert not left
    assert sorted(turn.request for _, turn in turns) == sorted(known)
    for _, turn in turns:
        assert [span.start for span in turn.weights] == [0, *(span.end for span in turn.weights[:-1])]
        assert turn.weights[-1].end == len(turn.ids) == len(turn.logprobs)
    return turns


@torch.no_grad()
def stepped(pushed: Any, size: float) -> Any:
    """Moves all weights by about so much, as a step of the learner does."""
    random = torch.Generator().manual_seed(9)
    for one in pushed.parameters():
        one += size * torch.randn(one.shape, generator=random)
    return pushed


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory) -> Faults:
    return Faults(tmp_path_factory.mktemp("faults"))


@pytest.fixture(scope="module")
def shared(faults: Faults) -> Iterator[VllmEngine]:
    engine = VllmEngine(ROWS, SLOTS, start=faults.start)
    yield engine
    engine.close()


@pytest.fixture
def engine(shared: VllmEngine, faults: Faults) -> VllmEngine:
    """The one engine of these tests, which nobody put aside yet and which has work of nobody."""
    faults.always()
    shared.supervisor.quarantined.clear()
    assert shared.unfinished == 0
    return shared


@pytest.mark.parametrize(
    ("tied", "pushes"),
    [
        (True, 6),
        pytest.param(True, 20, marks=pytest.mark.long_vllm),
        pytest.param(False, 20, marks=pytest.mark.long_vllm),
    ],
)
def test_c1_what_is_pushed_is_what_samples(engine: VllmEngine, tied: bool, pushes: int) -> None:
    for seed in range(pushes):
        pushed = model(seed, tied=tied)
        assert engine.push(pushed, f"v{seed}").digest == weights_digest(pushed)
        assert engine.supervisor.worst_difference < CLOSE
    turns = played(engine, requests(ROWS), {})
    last = f"v{pushes - 1}"
    assert {span.version for _, turn in turns for span in turn.weights} == {last}
    assert furthest(turns, {last: pushed}) < CLOSE
    assert engine.supervisor.quarantined == []


def test_c3_spans_say_which_weights_drew_which_token(engine: VllmEngine) -> None:
    models = {f"v{number}": model(number) for number in range(6)}
    pool = EnginePool([engine], SLOTS)
    pool.push(models["v0"], "v0")
    random = Random(3)
    pushes = {random.randrange(500 * number, 500 * number + 200): f"v{number}" for number in range(1, 6)}
    sampled: dict[int, list[int]] = {}

    def push(name: str) -> None:
        pool.push_in_flight(models[name], name)
        for number in pool.lengths():
            sampled.setdefault(number, []).append(len(pool.under_way(number).ids))

    turns = played(pool, requests(200), {tokens: partial(push, name) for tokens, name in pushes.items()})
    for request, turn in turns:
        pauses = [tokens for tokens in sampled.get(request.id, ()) if 0 < tokens < len(turn.ids)]
        assert [span.start for span in turn.weights[1:]] == pauses, "weights change where it paused, and nowhere else"
    assert {span.version for _, turn in turns for span in turn.weights} == set(models)
    assert sum(len(turn.weights) > 1 for _, turn in turns) > 10
    assert furthest(turns, models) < CLOSE
    assert engine.supervisor.quarantined == []


def test_c4_keys_of_other_weights_are_never_found_and_without_the_salt_the_proof_fails(
    engine: VllmEngine, faults: Faults
) -> None:
    faults.always("keep_cache")
    models = {"a": model(30), "b": model(31), "c": model(32)}
    for name in ("a", "b"):
        engine.push(models[name], name)
        assert furthest(played(engine, requests(8), {}), models) < CLOSE
    assert engine.supervisor.quarantined == []
    faults.always("keep_cache", "no_salt")
    engine.push(models["a"], "a")
    faults.always("keep_cache", "no_salt")
    engine.push(models["c"], "c")
    assert any("after a cached prompt" in reason for reason in engine.supervisor.quarantined)


def truncated(file: WeightFile) -> None:
    content = file.path.read_bytes()
    file.path.write_bytes(content[: len(content) * 2 // 3])


def swapped(file: WeightFile) -> None:
    tensors = load_file(file.path)
    one, two = (f"model.layers.{layer}.mlp.up_proj.weight" for layer in (0, 1))
    tensors[one], tensors[two] = tensors[two], tensors[one]
    save_file(tensors, file.path)


CASES = {
    "truncated": "failed during load",
    "swapped": "other weights than those of",
    "skipped": "missing or incomplete weights of model.layers.1.mlp.down_proj",
    "nothing taken": "missing or incomplete weights of",
    "killed": "ended during load",
    "another version": "reports version 'another'",
    "deaf": "the engine's answers are bit-identical",
}


SHORT = ("truncated", "skipped", "deaf")
"""What is tried in the suite: bytes that are wrong, weights that were left out, and answers that stay as they were."""


def marked(fault: str) -> Any:
    if fault == SHORT[0]:
        return fault
    return pytest.param(fault, marks=pytest.mark.long_vllm if fault in SHORT else pytest.mark.slow)


@pytest.mark.parametrize("fault", [marked(fault) for fault in CASES])
def test_c2_a_push_that_went_wrong_is_found_and_nothing_of_that_engine_is_used(
    engine: VllmEngine, faults: Faults, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.push(model(40), "before")
    pid = engine.supervisor.pid
    assert pid
    damage = {"truncated": truncated, "swapped": swapped}.get(fault)
    if damage is None:
        faults.once(fault)
    else:

        def offered(pushed: Any, *way: str, **settings: Any) -> OfferedWeights:
            found = offer_weights(pushed, *way, **settings)
            file = found.offer
            assert isinstance(file, WeightFile)
            whole = file.path.read_bytes()
            damage(file)
            mend = supervisor.VllmSupervisor._quarantine

            def quarantine(self: Any, found: EngineFault) -> None:
                file.path.write_bytes(whole)
                mend(self, found)

            monkeypatch.setattr(supervisor.VllmSupervisor, "_quarantine", quarantine)
            return found

        monkeypatch.setattr(supervisor, "offer_weights", offered)
    after = model(41)
    if fault == "skipped":  # of a step that is too small for the answers to show it
        after = stepped(model(40), 1e-6)
    engine.push(after, "after")
    assert len(engine.supervisor.quarantined) == 1
    assert CASES[fault] in engine.supervisor.quarantined[0]
    assert not Path(f"/proc/{pid}").exists()
    turns = played(engine, requests(4), {})
    assert {span.version for _, turn in turns for span in turn.weights} == {"after"}
    assert furthest(turns, {"after": after}) < CLOSE


@pytest.mark.parametrize("tied", [pytest.param(False, marks=pytest.mark.long_vllm), True])
def test_c1_a_stock_reload_leaves_a_tied_head_as_it_was_and_is_found(
    engine: VllmEngine, faults: Faults, tied: bool
) -> None:
    engine.push(model(45, tied=tied), "before")
    faults.once("stock")
    engine.push(model(46, tied=tied), "after")
    assert ["differ from the trainer's" in reason for reason in engine.supervisor.quarantined] == (
        [True] if tied else []
    )


@pytest.mark.long_vllm
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_conversations_go_on_from_their_tokens_when_an_engine_dies_or_hangs(
    engine: VllmEngine, number: signal.Signals
) -> None:
    pushed = model(50)
    engine.push(pushed, "a")
    process = engine.supervisor._process
    assert process is not None

    def strike() -> None:
        process.patience = Patience(idle_seconds=2)
        os.kill(process.pid, number)

    sampled = engine.tokens_sampled
    turns = played(engine, requests(ROWS), {200: strike})
    assert len(engine.supervisor.quarantined) == 1
    said = "no CPU time used for 2 s" if number == signal.SIGSTOP else "during step"
    assert said in engine.supervisor.quarantined[0]
    assert engine.tokens_sampled - sampled == sum(len(turn.ids) for _, turn in turns)
    assert furthest(turns, {"a": pushed}) < CLOSE


@pytest.mark.long_vllm
def test_a_push_that_went_wrong_in_the_middle_of_conversations_costs_none_of_their_tokens(
    engine: VllmEngine, faults: Faults
) -> None:
    models = {"a": model(70), "b": model(71)}
    pool = EnginePool([engine], SLOTS)
    pool.push(models["a"], "a")
    pid = engine.supervisor.pid
    assert pid

    def spoiled() -> None:
        faults.once("skipped")
        pool.push_in_flight(models["b"], "b")

    sampled = engine.tokens_sampled
    turns = played(pool, requests(ROWS), {300: spoiled})
    assert ["incomplete weights of" in reason for reason in engine.supervisor.quarantined] == [True]
    assert not Path(f"/proc/{pid}").exists()
    assert engine.tokens_sampled - sampled == sum(len(turn.ids) for _, turn in turns)
    assert any([span.version for span in turn.weights] == ["a", "b"] for _, turn in turns)
    assert furthest(turns, models) < CLOSE


def with_adapter(seed: int) -> Any:
    """The same frozen weights for each seed, and an adapter of rank 8 beside them that differs: as the learner's."""
    found = model(60)
    add_adapter(found, 8, 16, seed)
    random = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, one in adapter_parameters(found).items():
            if ".lora_B." in name:
                one.normal_(0, 0.1, generator=random)
    return found


@pytest.mark.parametrize("count", [12, pytest.param(50, marks=pytest.mark.long_vllm)])
def test_c5_each_version_of_an_adapter_is_added_beside_frozen_weights_that_never_change(
    engine: VllmEngine, faults: Faults, count: int
) -> None:
    pool = EnginePool([engine], SLOTS)
    pool.push(model(59), "another base")
    models: dict[str, Any] = {}
    asked = {request.id: request for request in requests(2 * count)}
    turns: list[tuple[GenerationRequest, Turn]] = []
    waiting, loaded = list(asked.values()), set()
    for number in range(count):
        version = f"v{number}"
        models[version] = with_adapter(number)
        proof = pool.push_in_flight(models[version], version)
        assert proof == proof_of(models[version], version)
        assert proof.base == weights_digest(model(60)), "the digest is that of the bare model"
        loaded.add(faults.loads())
        assert engine.supervisor.worst_difference < CLOSE
        for _ in range(2):
            pool.submit(waiting.pop())
        for _ in range(3):
            turns += [(asked[turn.request], turn) for turn in pool.step()]
    while pool.runnable:
        turns += [(asked[turn.request], turn) for turn in pool.step()]
    for number in asked:
        pool.finish(number)
    assert len(loaded) == 1, "the frozen weights were handed over once"
    assert len(turns) == len(asked)
    assert {span.version for _, turn in turns for span in turn.weights} >= {
        f"v{version}" for version in range(4 * count // 5)
    }
    assert furthest(turns, models) < CLOSE
    assert engine.supervisor.quarantined == []
    assert len(engine.supervisor._adapters) == 1, "old ones are unloaded"
    push_model(engine, models["v3"], "v3")
    push_model(engine, model(60), "v4")
    assert engine.supervisor.quarantined == []


@pytest.mark.long_vllm
def test_c5_new_adapters_in_the_middle_of_a_pools_conversations_end_those_under_way_and_keep_the_engine(
    engine: VllmEngine,
) -> None:
    models = {f"v{number}": with_adapter(number) for number in range(4)}
    pool = EnginePool([engine], SLOTS)
    pool.push(models["v0"], "v0")
    pid = engine.supervisor.pid
    pushes = {150 * number: partial(pool.push_in_flight, models[f"v{number}"], f"v{number}") for number in (1, 2, 3)}
    turns = played(pool, requests(ROWS), pushes)
    assert (engine.supervisor.quarantined, engine.supervisor.pid) == ([], pid)
    assert {span.version for _, turn in turns for span in turn.weights} == set(models)
    assert furthest(turns, models) < CLOSE


@pytest.mark.long_vllm
@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("bound", "put the adapter on 13 of 14 layers"),
        pytest.param("nothing bound", "put the adapter on 0 of 14 layers", marks=pytest.mark.slow),
        pytest.param("deaf", "the engine's answers are bit-identical", marks=pytest.mark.slow),
    ],
)
def test_an_adapter_that_does_not_act_on_every_layer_is_found(
    engine: VllmEngine, faults: Faults, fault: str, reason: str
) -> None:
    engine.push(with_adapter(1), "before")
    pid = engine.supervisor.pid
    assert pid
    faults.once_adapted(fault)
    engine.push(with_adapter(2), "after")
    assert [reason in found for found in engine.supervisor.quarantined] == [True]
    assert not Path(f"/proc/{pid}").exists()
    turns = played(engine, requests(4), {})
    assert {span.version for _, turn in turns for span in turn.weights} == {"after"}
    assert furthest(turns, {"after": with_adapter(2)}) < CLOSE


def test_an_adapter_that_vllm_cannot_be_told_of_is_refused(engine: VllmEngine) -> None:
    wide = model(60)
    add_adapter(wide, 513, 16, 1)
    with pytest.raises(ModelError, match="its rank exceeds 512"):
        engine.push(wide, "v")


@pytest.mark.long_vllm
@pytest.mark.parametrize("way", [way if way == "file" else pytest.param(way, marks=pytest.mark.slow) for way in WAYS])
def test_two_processes_that_hold_one_model_together_are_pushed_to_and_proved_as_one(
    faults: Faults, way: Literal["file", "ipc", "nccl"]
) -> None:
    """NCCL needs GPUs: on processors the same broadcast goes through gloo."""
    faults.always()
    faults.network = "shared" if way == "nccl" else "own"
    engine = VllmEngine(4, SLOTS, start=faults.start, settings=VllmSettings(tensor_parallel=2, transfer=way))
    try:
        for name in ("a", "b"):
            pushed = with_adapter(ord(name))
            assert engine.push(pushed, name) == proof_of(pushed, name)
            assert engine.supervisor.worst_difference < CLOSE
        group = engine.supervisor.pid
        turns = played(engine, requests(4), {})
        assert furthest(turns, {"b": pushed}) < CLOSE
        assert engine.supervisor.quarantined == []
        assert group
        assert members(group) > {group}, "there is more than one process"
    finally:
        faults.network = "own"
        engine.close()
    while members(group):  # a group ends as one; who is killed takes a moment to go
        time.sleep(0.05)


@pytest.mark.slow
def test_an_engine_that_dies_in_a_broadcast_is_replaced_and_gets_the_weights_as_they_were(faults: Faults) -> None:
    faults.always()
    faults.network = "shared"
    engine = VllmEngine(4, SLOTS, start=faults.start, settings=VllmSettings(transfer="nccl"))
    try:
        engine.push(model(80), "a")
        pushed, wanted = model(81), proof_of(model(81), "b")
        faults.once("cut off")
        assert engine.push(pushed, "b") == wanted
        assert ["ended during load" in found for found in engine.supervisor.quarantined] == [True]
        pid = engine.supervisor.pid
        assert pid
        with torch.no_grad():
            pushed.model.norm.weight += 1  # the learner goes on
        played(engine, requests(2), {0: lambda: os.kill(pid, signal.SIGKILL)})
        assert furthest(played(engine, requests(4), {}), {"b": model(81)}) < CLOSE
    finally:
        faults.network = "own"
        engine.close()


def members(group: int) -> set[int]:
    """The processes of a process group that have not ended."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[2]) == group and fields[0] != "Z":
                found.add(int(stat.parent.name))
    return found


@pytest.mark.long_vllm
def test_a_model_that_vllm_cannot_run_is_refused_with_its_reason(engine: VllmEngine) -> None:
    odd = model(1).config.to_dict() | {"head_dim": 24}
    with pytest.raises(ModelError, match=r"the engine cannot be used here: .*head"):
        engine.push(Qwen3ForCausalLM(Qwen3Config(**odd)).eval(), "odd")
    assert (engine.version, engine.supervisor.pid) == ("", None)


@pytest.mark.long_vllm
def test_a_model_whose_weights_vllm_has_no_place_for_is_refused_once(engine: VllmEngine) -> None:
    sizes = {"hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2}
    sizes |= {"num_key_value_heads": 2, "num_local_experts": 2, "vocab_size": 64, "max_position_embeddings": 2 * SLOTS}
    experts = MixtralForCausalLM(MixtralConfig(**sizes)).eval()
    with pytest.raises(ModelError, match=r"vLLM does not accept weights of this model: .*layers\.0\.mlp"):
        engine.push(experts, "experts")
    assert (engine.version, engine.supervisor.pid, engine.supervisor.quarantined) == ("", None, [])


def test_engines_that_fail_one_after_the_other_are_a_failure_of_the_infrastructure() -> None:
    starts: list[int] = []

    def start(settings: dict[str, Any]) -> Any:
        starts.append(1)
        raise EngineFault("it died at once")

    engine = VllmEngine(ROWS, SLOTS, start=start)
    with pytest.raises(InfrastructureError, match="it died at once"):
        engine.push(model(1), "a")
    assert len(starts) == supervisor.REPLACEMENTS + 1
    assert engine.version == ""


def test_weights_that_have_diverged_are_refused_before_anybody_starts(engine: VllmEngine) -> None:
    broken = model(1)
    with torch.no_grad():
        broken.model.norm.weight[0] = float("nan")
    with pytest.raises(ModelError, match="no finite probabilities"):
        engine.push(broken, "nan")
