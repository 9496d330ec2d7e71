"""Finds a model's chat format family by comparing with its own chat template.

Invariants: a family matches only if it writes a question, a system message with tools and, if the template declares
tools, a call with its result in exactly the template's tokens. Architecture names only decide which family is tried
first.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from appliance.rendering.chat import FAMILIES, HARMONY, ChatRenderer
from appliance.rendering.guarded import GuardedTokenizer
from appliance.rendering.jinja import ChatTemplate
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
            if all(mine == theirs for mine, theirs in _written(made, tokenizer, template)):
                return made
        except RenderingError:
            continue
    return None


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


FORMAT = "rendering.json"
OLD_FORMAT = "dialect.json"
TOKENIZER = "tokenizer.json"
CONFIG = "tokenizer_config.json"
SPECIAL_MAP = "special_tokens_map.json"
TEMPLATE = "chat_template.jinja"
MODEL = "config.json"
GENERATION = "generation_config.json"
FILES = (TOKENIZER, FORMAT, OLD_FORMAT, CONFIG, SPECIAL_MAP, TEMPLATE, MODEL, GENERATION)
"""Files of a model that a renderer needs."""


def json_table(files: Mapping[str, bytes], name: str) -> dict[str, Any]:
    """Parses one of a model's files as a JSON object; empty if missing. Raises RenderingError."""
    if name not in files:
        return {}
    try:
        table = json.loads(files[name])
    except (ValueError, RecursionError) as error:
        raise RenderingError(f"{name} is not JSON: {error}", hint="copy or write that file again") from error
    if not isinstance(table, dict):
        raise RenderingError(f"{name} is not a JSON object", hint="copy or write that file again")
    return table


def eos_ids(files: Mapping[str, bytes]) -> Iterator[int]:
    """Yields the ids of the end tokens in a model's generation_config.json and config.json. Raises RenderingError."""
    for name in (GENERATION, MODEL):
        told = json_table(files, name).get("eos_token_id")
        for token in told if isinstance(told, list) else [told]:
            if type(token) is int and 0 <= token < 1 << 32:
                yield token


def chat_templates(files: Mapping[str, bytes]) -> tuple[str, str]:
    """Returns the model's chat templates with and without tools, from its own file or from tokenizer_config.json; empty
    if missing. They are equal unless named `tool_use` and `default` (chosen as by transformers). Raises RenderingError.
    """
    if TEMPLATE in files:
        found: Any = files[TEMPLATE].decode(errors="replace")
    else:
        found = json_table(files, CONFIG).get("chat_template")
    if isinstance(found, list):
        named = {one.get("name"): one.get("template") for one in found if isinstance(one, dict)}
        both = named.get("tool_use") or named.get("default"), named.get("default") or named.get("tool_use")
    else:
        both = found, found
    return (both[0], both[1]) if isinstance(both[0], str) and isinstance(both[1], str) else ("", "")
