"""Finds a model's chat format family by comparing with its own chat template.

Invariants: a family matches only if it writes a question, a system message with tools and, if the template declares
tools, a call with its result in exactly the template's tokens. Architecture names only decide which family is tried
first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from appliance.rendering.chat import FAMILIES, HARMONY, ChatRenderer
from appliance.rendering.guarded import GuardedTokenizer
from appliance.rendering.jinja import ChatTemplate
from appliance.rendering.model_files import MODEL, json_table
from appliance.rendering.renderer import TOOLS, RenderingError
from appliance.rendering.tools import declared

_QWEN = ("<|im_start|>", "<|im_end|>", "<tool_call>", "<tool_response>", "<think>")
_GLM = ("[gMASK]", "<sop>", "<|observation|>", "<arg_key>")
_KIMI = ("<|im_middle|>", "<|tool_calls_section_begin|>")
_DEEPSEEK = ("<｜User｜>", "<｜Assistant｜>", "<｜end▁of▁sentence｜>")
_NO_THOUGHTS = {"enable_thinking": False}
_TRIED: tuple[tuple[str, dict[str, Any], tuple[str, ...]], ...] = (
    ("qwen3", {}, _QWEN),
    ("qwen3", _NO_THOUGHTS, _QWEN),
    ("qwen3.5", {"enable_thinking": True}, (*_QWEN, "<|vision_start|>")),
    ("qwen3.5", _NO_THOUGHTS, (*_QWEN, "<|vision_start|>")),
    ("qwen3.6", {}, (*_QWEN, "<|vision_start|>")),
    ("qwen3.8", {}, (*_QWEN, "<|vision_start|>")),
    ("nemotron-3", {}, _QWEN),
    ("nemotron-3.5", {}, _QWEN),
    ("llama-3", {}, ("<|start_header_id|>", "<|eot_id|>", "<|eom_id|>")),
    (HARMONY, {}, ("<|channel|>", "<|constrain|>", "<|return|>", "<|call|>")),
    ("glm-4.5", {}, _GLM),
    ("glm-5", {}, _GLM),
    ("glm-5.1", {}, _GLM),
    ("glm-5.3", {}, _GLM),
    ("kimi-k2", {}, _KIMI),
    ("kimi-k2.5", {}, (*_KIMI, "<|media_begin|>")),
    ("gemma4", {}, ("<|turn>", "<turn|>")),
    ("deepseek-v3", {}, _DEEPSEEK),
    ("deepseek-v4", {}, _DEEPSEEK),
    ("minimax-m2", {}, ("]~b]", "[e~[")),
)
"""Candidates: a family, its options, and the marks that it requires."""


def find_family(tokenizer: GuardedTokenizer, template: ChatTemplate, files: Mapping[str, bytes]) -> ChatRenderer | None:
    """Returns the renderer of the model family that writes exactly as the chat template, or None."""
    kind = str(json_table(files, MODEL).get("model_type") or "")
    marks = set(tokenizer.marks.values())
    tried = [one for one in _TRIED if marks.issuperset(one[2])]
    for family, options, _ in sorted(tried, key=lambda one: _letters(one[0]) not in _letters(kind)):
        try:
            made = ChatRenderer(tokenizer, family, options, "found: identical to the model's chat template")
            if writes_alike(made, tokenizer, template):
                return made
        except RenderingError:
            continue
    return None


def writes_alike(made: ChatRenderer, tokenizer: GuardedTokenizer, template: ChatTemplate) -> bool:
    """True if a family's renderer and the chat template write test conversations with equal tokens. Raises
    RenderingError if one of the two cannot write them."""
    return all(mine == theirs for mine, theirs in _written(made, tokenizer, template))


def _written(
    made: ChatRenderer, tokenizer: GuardedTokenizer, template: ChatTemplate
) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
    """Yields each test conversation twice as tokens: as written by the family's renderer and by the chat template."""
    asked: dict[str, Any] = {"role": "user", "content": "gcd of 12 and 18?"}
    system = {"role": "system", "content": "Be short."}
    function = {"name": "python", "arguments": {"code": "print(6)"}}
    called = {"type": "function", "id": "functions.python:0", "function": function}
    call = {"role": "assistant", "content": "", "tool_calls": [called]}
    back = {"role": "tool", "content": "6", "name": "python", "tool_call_id": called["id"]}
    tools = declared(TOOLS)
    tells = template.render([asked], tools, open_turn=True) != template.render([asked], [], open_turn=True)
    conversations: list[tuple[list[dict[str, Any]], list[dict[str, Any]]]] = [
        ([asked], []),
        ([system, asked], tools),
        *([([asked, call, back], tools)] if tells else []),
    ]
    for messages, given in conversations:
        yield made.written(messages, given), tokenizer.encode(template.render(messages, given, open_turn=True))


def _letters(name: str) -> str:
    return "".join(one for one in name.lower() if one.isalnum())


assert {one[0] for one in _TRIED} <= FAMILIES.keys()
