"""A grammar allows exactly the turns that a format writes: a call of an offered tool, or an answer in JSON."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
from chat_models import MARKS, files_of
from llguidance import LLMatcher, LLTokenizer

from appliance.rendering.chat import ChatRenderer
from appliance.rendering.grammars import turn_grammar
from appliance.rendering.guarded import GuardedTokenizer
from appliance.rendering.renderer import PYTHON, Ids, ToolRequest
from curriculum.contract.environment import ToolSchema

SEEDLING = Path(__file__).parents[2] / "fixtures" / "seedling"
WEATHER = ToolSchema(
    name="weather",
    description="Tells the weather.",
    parameters={
        "type": "object",
        "properties": {"city": {"type": "string", "enum": ["Rome", "Oslo"]}, "days": {"type": "integer"}},
        "required": ["city", "days"],
        "additionalProperties": False,
    },
)
TOOLS = (PYTHON, WEATHER)
JSON = {"deepseek-v3", "kimi-k2", "kimi-k2.5", "llama-3", "qwen3"}
"""Families whose calls have arguments in JSON; others bind calls of `python` alone."""


@cache
def made(family: str) -> tuple[GuardedTokenizer, Any, str]:
    files = files_of(family)
    tokenizer = GuardedTokenizer(files)
    return tokenizer, ChatRenderer(tokenizer, family, {}), files["tokenizer.json"].decode()


def allowed(tokenizer: str, grammar: str, stops: Ids, turn: Ids) -> bool:
    """Has a parser read a turn, up to its stop token."""
    matcher = LLMatcher(
        LLTokenizer(tokenizer, eos_token=list(stops)), LLMatcher.grammar_from_lark(grammar), log_level=0
    )
    assert not matcher.is_error(), matcher.get_error()
    body = list(turn[:-1]) if turn[-1] in stops else list(turn)
    return matcher.validate_tokens(body) == len(body) and matcher.consume_tokens(body) and matcher.is_accepting()


@pytest.mark.parametrize("family", sorted(MARKS))
def test_a_call_that_a_family_writes_is_allowed_and_one_that_does_not_fit_is_not(family: str) -> None:
    tokenizer, renderer, text = made(family)
    before, stops = renderer.question("Rome?"), (renderer.stop, *renderer.other_stops)
    grammar = turn_grammar(renderer, tokenizer.marks, before, TOOLS)
    assert bool(grammar) == (family in JSON)
    if not grammar:
        return
    asked = [
        ToolRequest(tool="weather", arguments={"city": "Rome", "days": 3}),
        ToolRequest("print(6)"),
        ToolRequest(tool="weather", arguments={"city": "Bonn", "days": 3}),
        ToolRequest(tool="weather", arguments={"city": "Rome"}),
    ]
    turns = [*(renderer.request(one, TOOLS) for one in asked), renderer.answer("Sunny.")]
    assert [allowed(text, grammar, stops, turn) for turn in turns] == [True, True, False, False, False]


@pytest.mark.parametrize("family", sorted(MARKS))
def test_an_answer_in_json_is_allowed_and_any_other_is_not(family: str) -> None:
    tokenizer, renderer, text = made(family)
    stops = (renderer.stop, *renderer.other_stops)
    grammar = turn_grammar(renderer, tokenizer.marks, renderer.question("Rome?"), schema=WEATHER.parameters)
    answers = ('{"city": "Rome", "days": 3}', '{"city": "Rome"}', "Rome, 3 days.")
    turns = [renderer.answer(one) for one in answers]
    assert [allowed(text, grammar, stops, turn) for turn in turns] == [True, False, False]


@pytest.mark.parametrize("family", sorted(MARKS))
def test_python_alone_can_be_demanded_in_every_family(family: str) -> None:
    tokenizer, renderer, text = made(family)
    before, stops = renderer.question("6?"), (renderer.stop, *renderer.other_stops)
    grammar = turn_grammar(renderer, tokenizer.marks, before, (PYTHON,))
    turns = (renderer.call("print(6)"), renderer.answer("6"))
    assert [allowed(text, grammar, stops, turn) for turn in turns] == [True, False]
