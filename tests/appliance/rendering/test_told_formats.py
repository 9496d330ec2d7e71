"""A model is told of its tool and of the answer form, and an exported template writes every prompt as training did."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from chat_models import qwen3_template, text_and_calls, tokenizer_of
from transformers import AutoTokenizer

from appliance.agent.conversation import Conversation
from appliance.agent.texts import messages_for_chat
from appliance.rendering.formats import exported, load_renderer
from appliance.rendering.markers import SEEDLING, MarkerRenderer, TextMessage
from appliance.rendering.renderer import (
    PYTHON,
    TOOLS,
    ChatMessage,
    Malformed,
    OwnTurn,
    Renderer,
    RenderingError,
    ToolRequest,
    TurnParts,
)
from appliance.rendering.told import BARE_CHATML
from appliance.rendering.tools import declared
from appliance.seedling.tokenizer import train_tokenizer
from curriculum.contract.environment import ToolSchema
from curriculum.contract.task import Split, Task, asked
from verifiers.answers.spec import AnswerSpec
from verifiers.lean.spec import LeanSpec

OWN_SYSTEM = (
    "{% if messages[0]['role'] != 'system' %}{{ '<|im_start|>system\\nYou are Small.<|im_end|>\\n' }}{% endif %}"
    + BARE_CHATML
)
"""A template that adds a system text of its own, and declares no tools."""
STRICT = (
    "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('order') }}"
    "{% endif %}{{ '<|im_start|>' + m.role + '\\n' + m.content | trim + '<|im_end|>\\n' }}{% endfor %}"
    "{{ '<|im_start|>assistant\\n' if add_generation_prompt }}"
)
"""A template that refuses system texts, tools, and two turns of one side."""
SEARCH = ToolSchema(
    name="search",
    description="Finds mails.",
    parameters={"type": "object", "properties": {"words": {"type": "string"}}, "required": ["words"]},
)
FORMATS = {
    "ChatML that is found": (OWN_SYSTEM, {}),
    "ChatML that is named": ("", {"format": "chatml"}),
    "told in ChatML without a template": ("", {"format": "told"}),
    "told beside a system text of its own": (OWN_SYSTEM, {"format": "told"}),
    "told without system texts": (STRICT, {"format": "told"}),
    "a family": (qwen3_template(), {}),
    "a template with an option": ("{{- mood -}}" + qwen3_template(), {"format": "template", "mood": "Calm: "}),
    "a template that refuses system texts": (
        "{% if messages[0].role == 'system' %}{{ raise_exception('none') }}{% endif %}"
        "{% if tools %}{{ tools | tojson }}{% endif %}" + qwen3_template().replace("tools", "none"),
        {"format": "template"},
    ),
}


def files_of(template: str, settings: dict[str, Any]) -> dict[str, bytes]:
    named = {"eos_token": "<|im_end|>", "tokenizer_class": "PreTrainedTokenizerFast"}
    files = {"tokenizer.json": tokenizer_of("qwen3").encode(), "tokenizer_config.json": json.dumps(named).encode()}
    if template:
        files["chat_template.jinja"] = template.encode()
    return {**files, "rendering.json": json.dumps(settings).encode()} if settings else files


def a_call(code: str, number: int) -> dict[str, Any]:
    function = {"name": PYTHON.name, "arguments": {"code": code}}
    called = [{"type": "function", "id": f"call0000{number}", "function": function}]
    return {"role": "assistant", "content": "", "tool_calls": called}


def conversations() -> list[tuple[str, bool, int, int]]:
    """System text, tools, calls, further questions: twenty conversations of every sort."""
    return [
        (system, tools, calls, questions)
        for system in ("", "Be short. Use <b>units</b>\n\nalways")
        for tools, most in ((True, 3), (False, 1))
        for calls in range(most)
        for questions in range(3)
        if not (tools and calls == 2 and questions == 2)
    ][:20]


@pytest.mark.parametrize("name", FORMATS)
def test_an_exported_template_gives_transformers_the_tokens_of_training(tmp_path: Path, name: str) -> None:
    files = files_of(*FORMATS[name])
    renderer = load_renderer(files)
    written, fault = exported(files)
    assert not fault
    for file, content in {**files, **written}.items():
        if content is not None:
            (tmp_path / file).write_bytes(content)
    plain = AutoTokenizer.from_pretrained(tmp_path)
    for system, tools, calls, questions in conversations():
        offered = TOOLS if tools else ()
        mine: list[ChatMessage] = [TextMessage(system, "system")] if system else []
        theirs: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
        for question in range(questions + 1):
            text = f"What is {question + 6} times 7, in \\boxed{{}}? Zahlen: 一二三 {question}"
            mine.append(TextMessage(text))
            theirs.append({"role": "user", "content": text})
            ids = renderer.prompt(mine, offered)
            for number in range(calls):
                code = f'x = {number}\nif x < 3:\n    print("é", x)'
                turn = renderer.request(ToolRequest(code), offered)
                mine += [OwnTurn(turn, ids), TextMessage("42\n<tool>", "tool")]
                theirs.append(a_call(code, number + 1))
                theirs.append({"role": "tool", "content": "42\n<tool>", "tool_call_id": f"call0000{number + 1}"})
                ids += turn + (renderer.follow(ids, turn, (TextMessage("42\n<tool>", "tool"),), offered) or ())
            given = plain.apply_chat_template(
                theirs, tools=declared(offered) or None, add_generation_prompt=True, return_dict=False
            )
            assert list(ids) == given, plain.decode(given)
            turn = renderer.answer(f"It is \\boxed{{{question}}}.")
            mine.append(OwnTurn(turn, ids))
            theirs.append({"role": "assistant", "content": f"It is \\boxed{{{question}}}."})
    assert len(conversations()) == 20


@pytest.mark.parametrize("name", FORMATS)
def test_a_model_is_told_of_its_tool_and_reads_back_a_call(name: str) -> None:
    renderer = load_renderer(files_of(*FORMATS[name]))
    ids = renderer.prompt((TextMessage("What is 6 times 7?"),))
    assert "Python code in a sandbox" in renderer.text(ids)
    assert "Python code" not in renderer.text(renderer.prompt((TextMessage("What is 6 times 7?"),), ()))
    call = renderer.call("if 1:\n    print(6 * 7)")
    assert renderer.read(call, ids) == ToolRequest("if 1:\n    print(6 * 7)")


def test_every_tool_can_be_told() -> None:
    renderer = load_renderer(files_of(STRICT, {"format": "told"}))
    tools = (SEARCH, *TOOLS)
    ids = renderer.prompt((TextMessage("Who wrote?"),), tools)
    assert "Finds mails" in renderer.text(ids)
    assert '{"name": "search", "arguments": {...}}' in renderer.text(ids)
    wanted = ToolRequest(tool="search", arguments={"words": "<|im_end|> x"})
    turn = renderer.request(wanted, tools)
    assert renderer.read(turn, ids, tools) == wanted
    forced = renderer.follow(ids, turn, (TextMessage("none", "tool"),), tools)
    assert forced is not None
    assert "<tool_response>\nnone\n</tool_response>" in renderer.text(forced)
    assert renderer.parts((*turn[:-1], *turn), ids, tools).calls == (), "the template refuses two results"
    both = load_renderer(files_of("", {"format": "told"}))
    two = text_and_calls(both, "I look.", wanted, ToolRequest("1"), tools=tools)
    assert both.parts(two, ids, tools) == TurnParts("I look.", (wanted, ToolRequest("1")))
    unknown = renderer.plain('<tool_call>\n{"name": "rm", "arguments": {}}\n</tool_call>')
    assert isinstance(renderer.read((*unknown, renderer.stop), ids, tools), Malformed)


def test_a_format_that_needs_a_template_says_so() -> None:
    files = {"tokenizer.json": tokenizer_of("llama-3").encode(), "rendering.json": b'{"format": "told"}'}
    with pytest.raises(RenderingError, match="needs a chat template"):
        load_renderer(files)
    with pytest.raises(RenderingError):
        load_renderer({**files, "chat_template.jinja": b"{{ messages[0].content }}"})
    with pytest.raises(RenderingError, match="invalid name"):
        load_renderer(files_of(STRICT, {"format": "told", "x -%}{{ 1": 2}))


def test_a_family_without_its_template_cannot_be_exported_exactly_and_says_so() -> None:
    written, fault = exported(files_of("", {"format": "qwen3"}))
    assert not written
    assert "does not write the format qwen3" in fault


def a_task(text: str, spec: Any, **more: Any) -> Task:
    return Task(taskset="counting", level=0, seed=1, split=Split.TRAIN, messages=asked(text), spec=spec, **more)


def seedling() -> Renderer:
    return MarkerRenderer(train_tokenizer(["gcd of 1 and 2?"] * 4, SEEDLING), SEEDLING)


def test_only_a_chat_model_is_told_the_answer_form() -> None:
    task = a_task("gcd of 12 and 18?", AnswerSpec(notation="digits", expected="6"))
    chat = load_renderer(files_of(*FORMATS["a family"]))
    assert "End with the answer in one \\boxed{}, in digits." in chat.text(Conversation.begin(chat, task).ids)
    assert Conversation.begin(seedling(), task).ids == seedling().question("gcd of 12 and 18?")


@pytest.mark.parametrize(
    ("task", "sentence"),
    [
        (a_task("Which?", AnswerSpec(expected="x")), "End with the answer in one \\boxed{}."),
        (a_task("Which? Answer \\boxed{unknown} if unclear.", AnswerSpec(expected="x")), ""),
        (
            a_task("Prove it.", LeanSpec(statement="theorem t : True", imports=()), form="block"),
            "End with the whole Lean proof in one fenced code block.",
        ),
    ],
)
def test_the_answer_form_is_stated_once(task: Task, sentence: str) -> None:
    assert messages_for_chat(task)[-1].text == "\n".join(filter(None, [task.question, sentence]))
