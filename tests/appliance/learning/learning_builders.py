"""Material for the learning tests: small models, rollouts with known tokens, verdicts."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

from appliance.inference.engine import Engine, GenerationRequest
from appliance.learning.scoring import score
from appliance.records.rollouts import Message, Purpose, Role, Rollout, RolloutEnd, ToolCall, ToolStatus, WeightSpan
from appliance.records.training import Judged
from verifiers.contract.verdict import Outcome, Verdict

VOCABULARY = 40


def varied(seed: int = 0, layers: int = 2) -> Qwen2ForCausalLM:
    """A model whose distributions are far from uniform, so that a token of another conversation would show."""
    model = tiny_model(seed, layers)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape) * 0.2)
    return model


def tiny_model(seed: int = 0, layers: int = 1) -> Qwen2ForCausalLM:
    torch.manual_seed(seed)
    config = Qwen2Config(
        vocab_size=VOCABULARY,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=5,
        pad_token_id=0,
    )
    return Qwen2ForCausalLM(config).eval()


def call(ok: bool = True) -> ToolCall:
    status = ToolStatus.OK if ok else ToolStatus.EXCEPTION
    return ToolCall(code="print(1)", status=status, output="1", sandbox="box")


def verdict(outcome: Outcome) -> Verdict:
    return Verdict(
        outcome=outcome, score=float(outcome is Outcome.PASS), reason="as made", verifier="t", version="1", seconds=0.0
    )


def judged(
    task: str = "t",
    sample: int = 0,
    *,
    correct: bool = True,
    calls: tuple[bool, ...] = (True,),
    outcome: Outcome | None = None,
    step: int = 0,
    rng: Random | None = None,
    temperature: float = 1.0,
) -> Judged:
    """Prompt, calls with results, and an answer; tokens and log-probabilities are drawn from `rng`."""
    rng = rng or Random(f"{task}/{sample}/{step}")

    def ids(count: int) -> tuple[int, ...]:
        return tuple(rng.randrange(6, VOCABULARY) for _ in range(count))

    nodes = [Message(parent=None, role=Role.USER, ids=ids(rng.randint(3, 6)), sampled=False)]

    def say(role: Role, count: int, made: ToolCall | None = None) -> None:
        own = role is Role.ASSISTANT
        logprobs = tuple(-rng.uniform(2, 5) for _ in range(count)) if own else ()
        nodes.append(
            Message(
                parent=len(nodes) - 1,
                role=role,
                ids=ids(count),
                sampled=own,
                logprobs=logprobs,
                weights=(WeightSpan(version="w", start=0, end=count),) if own else (),
                call=made,
            )
        )

    for ok in calls:
        say(Role.ASSISTANT, rng.randint(2, 5))
        say(Role.TOOL, rng.randint(2, 4), call(ok))
    say(Role.ASSISTANT, rng.randint(2, 4))
    result = outcome or (Outcome.PASS if correct else Outcome.FAIL)
    return Judged(
        rollout=Rollout(
            id=f"c/train/{step}/{task}/{sample}",
            cycle="c",
            step=step,
            task=task,
            sample=sample,
            purpose=Purpose.TRAIN,
            temperature=temperature,
            nodes=tuple(nodes),
            ended=RolloutEnd.INFRA_ERROR if result is Outcome.INFRA_ERROR else RolloutEnd.ANSWERED,
            answer="6",
            answers=1,
            seconds=0.0,
        ),
        verdict=verdict(result),
        family="gcd",
    )


def with_model_logprobs(one: Judged, model: Qwen2ForCausalLM, temperature: float = 1.0) -> Judged:
    """The same rollout with the log-probabilities that `model` gives its tokens, as a sampler would have kept them."""
    ids = torch.tensor([[token for node in one.rollout.nodes for token in node.ids]])
    with torch.no_grad():
        scores = score(model, ids, torch.ones_like(ids, dtype=torch.bool), temperature)
    values, at, nodes = [0.0, *scores.logprobs[0].tolist()], 0, []
    for node in one.rollout.nodes:
        part = tuple(values[at : at + len(node.ids)]) if node.sampled else ()
        nodes.append(node.model_copy(update={"logprobs": part}))
        at += len(node.ids)
    return one.model_copy(update={"rollout": one.rollout.model_copy(update={"nodes": tuple(nodes)})})


def drawn(one: Judged, engine: Engine, temperature: float) -> Judged:
    """The same rollout with its own tokens drawn by the engine, turn after turn, and what the engine said of each."""

    def turn(before: tuple[int, ...], count: int) -> tuple[tuple[int, ...], tuple[float, ...]]:
        seed = hash((one.rollout.sample, *before))
        engine.submit(GenerationRequest(0, before, 5, len(before) + count, temperature, seed))
        ended = [made for _ in range(count) for made in engine.step()]
        engine.finish(0)
        return ended[0].ids, ended[0].logprobs

    return _with_turns(one, turn, temperature)


def only_likeliest(one: Judged, model: Qwen2ForCausalLM, kept: int, temperature: float) -> Judged:
    """The same rollout with its own tokens drawn from the `kept` likeliest alone, with their probabilities among these:
    what an engine with top-k would have recorded."""
    rng = Random(one.rollout.id)

    def turn(before: tuple[int, ...], count: int) -> tuple[tuple[int, ...], tuple[float, ...]]:
        ids: tuple[int, ...] = ()
        logprobs: tuple[float, ...] = ()
        for _ in range(count):
            with torch.no_grad():
                logits = model(input_ids=torch.tensor([[*before, *ids]])).logits[0, -1] / temperature
            best = logits.topk(kept)
            found = best.values.log_softmax(0).tolist()
            place = rng.choices(range(kept), [2.718281828**value for value in found])[0]
            ids, logprobs = (*ids, int(best.indices[place])), (*logprobs, found[place])
        return ids, logprobs

    return _with_turns(one, turn, temperature)


def ending_in(one: Judged, ids: tuple[int, ...]) -> Judged:
    """The same rollout with other tokens in its last turn, each recorded with the same log-probability."""
    last = one.rollout.nodes[-1]
    told = last.model_copy(
        update={
            "ids": ids,
            "logprobs": (-3.0,) * len(ids),
            "weights": (WeightSpan(version="w", start=0, end=len(ids)),),
        }
    )
    return one.model_copy(update={"rollout": one.rollout.model_copy(update={"nodes": (*one.rollout.nodes[:-1], told)})})


def _with_turns(
    one: Judged, turn: Callable[[tuple[int, ...], int], tuple[tuple[int, ...], tuple[float, ...]]], temperature: float
) -> Judged:
    nodes: list[Message] = []
    for node in one.rollout.nodes:
        made = node
        if node.sampled:
            before = tuple(token for earlier in nodes for token in earlier.ids)
            ids, logprobs = turn(before, len(node.ids))
            spans = (WeightSpan(version="w", start=0, end=len(ids)),)
            made = node.model_copy(update={"ids": ids, "logprobs": logprobs, "weights": spans})
        nodes.append(made)
    told = one.rollout.model_copy(update={"nodes": tuple(nodes), "temperature": temperature})
    return one.model_copy(update={"rollout": told})
