"""Material for the learning tests: small models, rollouts with known tokens, verdicts."""

from __future__ import annotations

from random import Random

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

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
