"""A learner reads a mixture's rollouts through the experts that its sampler chose."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch
from learning_builders import judged, verdict
from tokenizers import Tokenizer
from torch import Tensor
from transformers import AutoModelForCausalLM, MixtralConfig, OlmoeConfig, Qwen2MoeConfig, Qwen3MoeConfig

from appliance.agent.branching import joined, until
from appliance.agent.conversation import Conversation
from appliance.agent.keeping import Replay
from appliance.inference.device import choose_placement
from appliance.inference.engine import GenerationRequest, Turn
from appliance.inference.torch.blocks import Paging
from appliance.inference.torch.engine import TorchEngine
from appliance.inference.torch.routing import Routers, routers_of
from appliance.learning.batches import Sample, collate, collate_routes, sample_each
from appliance.learning.errors import LearningError
from appliance.learning.recipes.recipe import MismatchRecipe, TrainingRecipe
from appliance.learning.scoring import Scorer, read_tokens, score
from appliance.learning.signal.corrections import mismatch_kl
from appliance.learning.signal.grouping import make_groups
from appliance.learning.training.trainer import Trainer
from appliance.readiness.model import REPLAYED
from appliance.records.rollouts import Message, PartialRollout, Rollout, ToolCall, ToolStatus
from appliance.records.training import Judged
from appliance.rendering.markers import SEEDLING, MarkerRenderer
from appliance.scheduling.joining import joined as continued
from appliance.seedling.tokenizer import train_tokenizer
from curriculum.contract.task import Split, Task, asked
from verifiers.contract.verdict import Outcome
from verifiers.exact.spec import ExactSpec

torch.set_num_threads(1)
SIZES = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "moe_intermediate_size": 32,
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "vocab_size": 512,
    "initializer_range": 0.1,
}
FULL = TrainingRecipe(rollouts_per_task=4, keep=2, learning_rate=1e-3, warmup_steps=1, micro_batch=2)
PACKED = FULL.model_copy(update={"packing": True, "micro_batch_tokens": 300})
HALF = choose_placement("cpu", "bfloat16")
CONFIGS = {
    "qwen3_moe": Qwen3MoeConfig(**SIZES, head_dim=16, norm_topk_prob=True),
    "qwen2_moe": Qwen2MoeConfig(**SIZES, shared_expert_intermediate_size=32),
    "olmoe": OlmoeConfig(**SIZES, intermediate_size=32),
    "mixtral": MixtralConfig(**SIZES, num_local_experts=8, intermediate_size=32),
}


@cache
def mixture(family: str = "qwen3_moe") -> Any:
    torch.manual_seed(3)
    return AutoModelForCausalLM.from_config(CONFIGS[family], dtype=torch.float32).eval()


@cache
def renderer() -> MarkerRenderer:
    text = train_tokenizer(["print(1+2) gcd of 12 and 18? \\boxed{6} NameError: name"] * 50).to_str()
    return MarkerRenderer(Tokenizer.from_str(text), SEEDLING)


def task_of(question: str) -> Task:
    spec = ExactSpec(expected="6")
    return Task(taskset="t", level=0, seed=0, split=Split.JOB, messages=asked(question), spec=spec)


def rolled(engine: TorchEngine, count: int, *, tokens: int = 90, again: int = 0) -> list[Judged]:
    """Rollouts of the mixture: its turns end often, and results follow. With `again`, each request is withdrawn after
    that many steps and continues from its tokens."""
    writer = renderer()
    said = [Conversation.begin(writer, task_of(f"gcd of {number} and 18?")) for number in range(count)]
    for number, conversation in enumerate(said):
        engine.submit(_request(number, conversation.ids, tokens))
    parts: dict[int, Turn] = {}
    for step in itertools.count():
        if not engine.unfinished:
            break
        for turn in engine.step():
            number = turn.request
            conversation = said[number]
            conversation.take(continued(parts.pop(number, None), turn))
            if turn.ended == "length":
                continue
            forced = conversation.give_back(ToolCall(status=ToolStatus.OK, sandbox="box"), f"{number * 7}")
            if forced is None or len(conversation.ids) >= tokens - 1:
                engine.finish(number)
            else:
                engine.resume(number, forced)
        if step == again and again:
            for number in sorted(engine.lengths()):
                parts[number] = engine.withdraw(number)
                engine.submit(_request(number, said[number].ids + parts[number].ids, tokens))
    return [_judged(number, tuple(one.nodes)) for number, one in enumerate(said)]


def _request(number: int, prompt: tuple[int, ...], tokens: int) -> GenerationRequest:
    return GenerationRequest(number, prompt, renderer().stop, tokens, 1.0, number, tuple(range(30, 60)))


def _judged(number: int, nodes: tuple[Message, ...]) -> Judged:
    rollout = judged(f"t{number // 4}", number % 4).rollout.model_copy(update={"nodes": nodes})
    read = Rollout.model_validate_json(rollout.model_dump_json())
    assert read == rollout == Rollout.model_validate(rollout.model_dump(mode="json"))
    return Judged(rollout=read, verdict=verdict(Outcome.PASS if number % 2 else Outcome.FAIL), family="gcd")


def pushed(rows: int = 6, slots: int = 90, model: Any = None, **options: Any) -> TorchEngine:
    engine = TorchEngine(rows, slots, **options)
    engine.push(model or mixture(), "w")
    return engine


@cache
def half_rollouts() -> list[Judged]:
    return rolled(pushed(placement=HALF), 12)


def samples_of(rollouts: Sequence[Judged]) -> list[Sample]:
    return [one for judged in rollouts for one in sample_each(judged.rollout, 1.0)]


def own_routes(model: Any, routers: Routers, ids: Sequence[int]) -> Tensor:
    with torch.no_grad(), routers.recording() as taken:
        model(input_ids=torch.tensor([ids]), use_cache=False)
    return taken().view(len(ids), routers.layers, routers.chosen)


def routers_in(model: Any) -> Routers:
    found = routers_of(model)
    assert found is not None
    return found


@pytest.mark.parametrize(
    "options",
    [{}, {"again": 9}, {"kv_tokens": 130, "paging": Paging(block=4, window=10, chunk=6)}],
    ids=["waits", "withdrawn", "blocks"],
)
def test_every_token_carries_the_experts_of_the_pass_before_it(options: dict[str, Any]) -> None:
    again = options.pop("again", 0) if (options := dict(options)) else 0
    engine = pushed(**options)
    rollouts = rolled(engine, 8, again=again)
    assert not options or engine.preemptions()
    routers = routers_in(mixture())
    for one in samples_of(rollouts):
        expected = own_routes(mixture(), routers, one.ids[:-1])
        found = collate_routes([one], routers)[0]
        assert torch.equal(found, expected.short())
    nodes = [node for one in rollouts for node in one.rollout.nodes]
    assert all(len(node.routes) == 4 * (len(node.ids) - (node.parent is None)) for node in nodes if node.sampled)
    assert sum(node.sampled for node in nodes) > len(rollouts), "some conversations have several turns"


@pytest.mark.parametrize("family", REPLAYED)
def test_the_replay_of_own_choices_changes_no_bit(family: str) -> None:
    model, ids = mixture(family), torch.arange(40)[None] * 11 % 512
    routers, mask = routers_in(model), torch.ones(1, 40, dtype=torch.bool)
    plain = score(model, ids, mask).logprobs
    routes = own_routes(model, routers, ids[0, :-1].tolist()).long()
    with routers.replaying(routes):
        assert torch.equal(score(model, ids, mask).logprobs, plain)
    with routers.replaying((routes + 1) % 8):
        assert not torch.allclose(score(model, ids, mask).logprobs, plain, atol=1e-3)
    assert torch.equal(score(model, ids, mask).logprobs, plain), "nothing is left behind"


def test_the_learner_chooses_its_sampler_s_experts_and_the_mismatch_falls() -> None:
    model, chosen = mixture(), samples_of(half_rollouts())
    routers, other, tokens, kl = routers_in(model), 0, 0, dict.fromkeys(("own", "replayed"), 0.0)
    for one in chosen:
        batch, given = collate([one]), collate_routes([one], routers)[0]
        own = own_routes(model, routers, one.ids[:-1])
        other += int((own.short().sort(-1).values != given.sort(-1).values).any(-1).any(-1).sum())
        tokens += len(given)
        mask, sampled = batch.mask[:, 1:], batch.logprobs[:, 1:]
        with torch.no_grad():
            free = score(model, batch.ids, batch.mask).logprobs
            with routers.recording() as taken, routers.replaying(given):
                bound = score(model, batch.ids, batch.mask).logprobs
        kl["own"] += float(mismatch_kl(free[mask], sampled[mask]))
        kl["replayed"] += float(mismatch_kl(bound[mask], sampled[mask]))
        assert torch.equal(taken().view(given.shape).short(), given)
    assert 0 < other < tokens
    assert kl["own"] > 5 * kl["replayed"]


def test_the_gradient_of_a_router_is_that_of_its_log_probabilities() -> None:
    model = copy.deepcopy(mixture())
    one = samples_of(half_rollouts())[0]
    routers, batch = routers_in(model), collate([one])
    routes = collate_routes([one], routers).flatten(0, 1)
    gate = model.model.layers[0].mlp.gate.weight
    way = torch.randn(gate.shape, generator=torch.Generator().manual_seed(1))

    def value() -> Tensor:
        with routers.replaying(routes):
            return score(model, batch.ids, batch.mask).logprobs.double().sum()

    with routers.replaying(routes):
        score(model, batch.ids, batch.mask).logprobs.sum().backward()
    exact, step, ends = float((gate.grad * way).sum()), 2e-3, []
    for sign in (1, -1):
        with torch.no_grad():
            gate += sign * step * way
            ends.append(float(value()))
            gate -= sign * step * way
    assert (ends[0] - ends[1]) / (2 * step) == pytest.approx(exact, rel=1e-3)


def test_packed_rows_keep_each_token_s_experts() -> None:
    model = copy.deepcopy(mixture())
    routers, chosen = routers_in(model), samples_of(half_rollouts())
    one = chosen[0]
    long = Sample("long", one.ids * 40, one.mask * 40, one.logprobs * 40, one.advantages * 40)
    picks = torch.rand(len(long.ids) - 1, 2, 8, generator=torch.Generator().manual_seed(2)).argsort(-1)[..., :2]
    chosen = [*chosen, replace(long, routes=picks.byte().numpy().tobytes()), replace(chosen[1], routes=b"")]
    batch, routes = collate(chosen), collate_routes(chosen, routers)
    wanted = batch.mask[:, 1:]
    scorer = Scorer(model, packing=True)
    real = read_tokens(wanted)
    with torch.no_grad(), routers.recording() as taken, routers.replaying(routes[real]):
        packed = scorer(batch.ids, batch.mask).logprobs
    given = routes[real]
    assert len(given) > 3000
    same = (taken().view(given.shape).short() == given) | (given < 0)
    assert bool(same.all())
    with torch.no_grad(), routers.replaying(routes.flatten(0, 1)):
        padded = score(model, batch.ids, batch.mask).logprobs
    assert torch.allclose(packed, padded, atol=2e-4)


@pytest.mark.parametrize("recipe", [FULL, PACKED, PACKED.model_copy(update={"method": "lora"})])
def test_a_step_replays_and_computing_activations_again_does_too(recipe: TrainingRecipe) -> None:
    rollouts = half_rollouts()
    groups, figures = make_groups(rollouts, recipe, seed=9), []
    without = [_bare(one) for one in rollouts]
    for again, known in ((False, rollouts), (True, rollouts), (False, without)):
        way = recipe.model_copy(update={"gradient_checkpointing": again, "mismatch": MismatchRecipe(rule="mask")})
        trainer = Trainer(copy.deepcopy(mixture()), way, 4, max_tokens=90)
        figures.append(trainer.train_step(0, known, groups))
    plain, checkpointed, free = figures
    for name in ("loss", "gradient_norm", "mismatch_kl"):
        assert plain[name] == pytest.approx(checkpointed[name], rel=1e-4, abs=1e-7), name
    assert free["mismatch_kl"] > 5 * plain["mismatch_kl"]


def _bare(one: Judged) -> Judged:
    nodes = tuple(node.model_copy(update={"routes": b""}) for node in one.rollout.nodes)
    return one.model_copy(update={"rollout": one.rollout.model_copy(update={"nodes": nodes})})


def test_full_training_of_a_mixture_takes_no_rollout_without_routes_or_with_another_model_s() -> None:
    rollouts = half_rollouts()
    groups = make_groups(rollouts, FULL, seed=9)
    trainer = Trainer(copy.deepcopy(mixture()), FULL, 4, max_tokens=90)
    with pytest.raises(LearningError, match="lacks its sampler's choices of experts") as caught:
        trainer.train_step(0, [_bare(one) for one in rollouts], groups)
    assert "mismatch.rule" in caught.value.hint
    routers, one = routers_in(mixture()), samples_of(rollouts)[0]
    for routes in (one.routes[:-1], b"\x08" + one.routes[1:], one.routes[:1] * 2 + one.routes[2:]):
        with pytest.raises(LearningError, match="do not fit the model"):
            collate_routes([replace(one, routes=routes)], routers)
    assert trainer.step == 0


def test_a_turn_in_parts_keeps_its_routes_or_none() -> None:
    whole = Turn(0, (1, 2, 3), (-1.0,) * 3, "stop", (), b"aabbcc", b"xxyy")
    begun = until(whole, 1)
    assert (begun.routes, begun.read) == (b"aa", b"xxyy")
    rest = Turn(0, (2, 3), (-1.0,) * 2, "stop", (), b"BBCC", b"XXYYAA")
    for made in (joined(begun, rest), continued(begun, rest)):
        assert (made.routes, made.read) == (b"aaBBCC", b"xxyy")
    assert continued(replace(begun, read=b""), rest).read == b"XXYY"
    for part, turn in ((begun, replace(rest, routes=b"")), (replace(begun, routes=b""), rest)):
        assert not continued(part, turn).routes
    assert continued(begun, Turn(0, (), (), "withdrawn")).routes == b"aa"


def test_a_saved_rollout_resumes_with_its_routes() -> None:
    first, turn, result, begun, *_ = next(one.rollout.nodes for one in half_rollouts() if len(one.rollout.nodes) > 3)
    replay = Replay(PartialRollout(id="r", cycle="c", step=0, nodes=(first, turn, result), begun=begun))
    assert not replay.diverges(first)
    again = Conversation(renderer(), (), (), [first.model_copy(update={"routes": b""})], first.ids)
    said = replay.turn(0)
    assert said is not None
    again.take(said)
    assert again.nodes[0] == first
    assert again.nodes[1].routes == turn.routes
    assert not replay.diverges(result)
    part = replay.begun(0)
    assert part is not None
    assert part.routes == begun.routes
