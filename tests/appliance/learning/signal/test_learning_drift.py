"""Drift is measured on the candidate's own tokens: none from itself, more from a model that is further away."""

from __future__ import annotations

import pytest
from learning_builders import judged, tiny_model, with_model_logprobs
from transformers import Qwen2ForCausalLM

from appliance.inference.engine import Engine
from appliance.inference.engines import make_engine
from appliance.learning.batches import sample_each
from appliance.learning.signal.corrections import divergence, drift_of
from appliance.records.training import Judged
from policies.contract.evidence import DriftReport
from verifiers.contract.verdict import Outcome

OWN = tiny_model(0)
WRITTEN = [with_model_logprobs(judged(task=f"t{n}"), OWN) for n in range(12)]


def engine_of(model: Qwen2ForCausalLM) -> Engine:
    engine = make_engine("torch", rows=1, slots=64)
    engine.push(model, "model")
    return engine


def drift(candidate: list[Judged], model: Qwen2ForCausalLM = OWN) -> DriftReport:
    kl = divergence(candidate, engine_of(model), 1.0)
    return drift_of(candidate, candidate, kl_champion=divergence(candidate, engine_of(OWN), 1.0), kl_base=kl)


def test_a_model_does_not_diverge_from_itself() -> None:
    found = drift(WRITTEN)
    assert found.kl_champion == pytest.approx(0.0, abs=1e-5)
    assert found.kl_base == found.kl_champion
    assert (found.entropy, found.length, found.calls) == (
        found.entropy_champion,
        found.length_champion,
        found.calls_champion,
    )
    assert found.entropy > 0
    assert found.calls == 1.0
    assert found.tokens == sum(one.trained_tokens for one in (sample_each(each.rollout, 0.0)[0] for each in WRITTEN))


def test_another_model_is_further_away_and_the_figure_is_never_negative() -> None:
    found = drift(WRITTEN, tiny_model(1))
    assert found.kl_base > 10 * abs(found.kl_champion) + 1e-3


def test_temperature_is_that_of_the_sampling() -> None:
    warm = [with_model_logprobs(judged(task=f"t{n}"), OWN, 2.0) for n in range(4)]
    engine = engine_of(OWN)
    assert divergence(warm, engine, 2.0) == pytest.approx(0.0, abs=1e-5)
    assert divergence(warm, engine, 1.0) > 1e-4


def test_what_broken_infrastructure_cut_short_counts_nowhere() -> None:
    broken = judged(task="b", outcome=Outcome.INFRA_ERROR, calls=(True, True, True))
    whole = drift(WRITTEN)
    mixed = drift([*WRITTEN, broken])
    assert mixed == whole


def test_without_a_token_nothing_is_claimed() -> None:
    found = drift([])
    assert found.tokens == 0
