"""Reads a model's files that decide how it writes a conversation. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from appliance.rendering.renderer import RenderingError

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
