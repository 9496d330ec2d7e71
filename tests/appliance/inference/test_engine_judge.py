"""A model behind the engine judges: exact probabilities, the same each time, and a plain refusal where it cannot."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

from appliance.inference.engine import Engine
from appliance.inference.engines import make_engine
from appliance.inference.judge import EngineJudge
from appliance.rendering.markers import SEEDLING, MarkerRenderer
from appliance.seedling.tokenizer import train_tokenizer
from verifiers.checklists.judge import LETTERS, ORDERS, grade_of, prompt
from verifiers.contract.protocols import JudgeError

SLOTS = 2048
POINT, QUESTION, TEXT = "It is kind.", "Write to a friend.", "Dear Ada, how are you?"
LOGITS = (9.0, 8.0, 7.0)


def model() -> Any:
    torch.manual_seed(3)
    config = Qwen2Config(
        vocab_size=CODEC_SIZE,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=SLOTS,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=None,
        initializer_range=0.3,
    )
    return Qwen2ForCausalLM(config).eval()


TOKENIZER = train_tokenizer(["the text is kind and short. A B C"])
CODEC_SIZE = TOKENIZER.get_vocab_size()
RENDERER = MarkerRenderer(TOKENIZER, SEEDLING)


def engine_of(weights: Any) -> Engine:
    engine = make_engine("torch", rows=8, slots=SLOTS)
    engine.push(weights, "weights")
    return engine


@torch.inference_mode()
def opinionated(asked: str) -> Any:
    """A model that answers this prompt with A, B and C as LOGITS say; every other token has the logit 0."""
    weights = model()
    seen = weights.model(torch.tensor([RENDERER.question(asked)])).last_hidden_state[0, -1]
    weights.lm_head.weight.zero_()
    for letter, logit in zip(LETTERS, LOGITS, strict=True):
        weights.lm_head.weight[RENDERER.plain(letter)[0]] = logit * seen / seen.dot(seen)
    return weights


def test_choices_get_the_probabilities_of_their_first_tokens() -> None:
    asked = prompt(POINT, QUESTION, TEXT, ORDERS[0])
    engine = engine_of(opinionated(asked))
    judge = EngineJudge(engine, RENDERER)
    shares = judge.judge(asked, LETTERS)
    others = CODEC_SIZE - len(LETTERS)
    mass = torch.tensor([*LOGITS, *[0.0] * others]).softmax(0)[:3].tolist()
    assert shares == pytest.approx(mass, rel=1e-3)
    assert judge.judge(asked, LETTERS) == shares
    assert engine.unfinished == 0


def test_a_model_grades_a_text() -> None:
    judge = EngineJudge(engine_of(opinionated(prompt(POINT, QUESTION, TEXT, ORDERS[0]))), RENDERER)
    grade = grade_of(judge, POINT, QUESTION, TEXT)
    assert grade == grade_of(judge, POINT, QUESTION, TEXT)
    assert sum(grade.probabilities) == pytest.approx(1, abs=1e-5)


def test_a_model_that_answers_something_else_gives_no_grade() -> None:
    engine = engine_of(model())
    with pytest.raises(JudgeError, match="none of the choices"):
        EngineJudge(engine, RENDERER).judge("Hello?", LETTERS)
    assert engine.unfinished == 0


def test_a_prompt_that_does_not_fit_gives_no_grade() -> None:
    engine = engine_of(model())
    with pytest.raises(JudgeError, match="does not fit"):
        EngineJudge(engine, RENDERER).judge("word " * SLOTS, LETTERS)
    assert engine.unfinished == 0


def test_a_prompt_longer_than_the_model_reads_is_said_in_tokens() -> None:
    with pytest.raises(JudgeError, match="reads 6 tokens, and the question has"):
        EngineJudge(engine_of(model()), RENDERER, most_tokens=6).judge(
            "Hello, who are you and what do you want?", LETTERS
        )


def test_choices_must_differ_in_their_first_token() -> None:
    with pytest.raises(JudgeError, match="same token"):
        EngineJudge(engine_of(model()), RENDERER).judge("Hello?", ("A1", "A2"))


def test_an_engine_without_weights_gives_no_grade() -> None:
    with pytest.raises(JudgeError, match="no weights"):
        EngineJudge(make_engine("torch", rows=2, slots=SLOTS), RENDERER).judge("Hello?", LETTERS)
