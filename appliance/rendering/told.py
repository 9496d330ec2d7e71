"""Jinja sources of formats for chat templates that declare no tools.

`told` puts the tools into the system text of any chat template, and writes calls and results as text. `CHATML` writes
what the marker format ChatML writes, for exported models. Both are plain chat templates: transformers renders them
exactly as the product does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from appliance.rendering.markers import TELL
from appliance.rendering.renderer import SAY_IT, RenderingError

BARE_CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}"
    "{% endfor %}{{ '<|im_start|>assistant\\n' if add_generation_prompt else '' }}"
)
"""Chat template of a model that has ChatML's tokens and no template."""
_BEFORE = (
    "You can call these tools. Each is described in JSON:\n",
    "\nTo call one, end your turn with the call in JSON. The next message is its result. For example:\n",
)
"""Text before the declarations of tools, and before the example of a call."""
_TOLD = """\
{%- set told = namespace(system='', rows=[], text='') -%}
{%- if tools -%}
{%- set told.system = BEFORE + tools | map(attribute='function') | map('tojson') | join('\\n') + BEHIND -%}
{%- set example = '{"code": "print(6 * 7)"}' if tools[0].function.name == 'python' else '{...}' -%}
{%- set told.system = told.system + '<tool_call>\\n{"name": "' + tools[0].function.name + '", "arguments": ' -%}
{%- set told.system = told.system + example + '}\\n</tool_call>' -%}
{%- endif -%}
{%- for message in messages -%}
{%- if loop.first and message.role == 'system' -%}
{%- set told.system = told.system + ('\\n\\n' if told.system else '') + message.content -%}
{%- elif message.role == 'tool' -%}
{%- set text = '<tool_response>\\n' + message.content + '\\n</tool_response>' -%}
{%- set told.rows = told.rows + [{'role': 'user', 'content': text}] -%}
{%- elif message.tool_calls -%}
{%- set told.text = message.content or '' -%}
{%- for one in message.tool_calls -%}
{%- set call = one.function -%}
{%- set given = call.arguments if call.arguments is string else call.arguments | tojson -%}
{%- set text = '<tool_call>\\n{"name": ' + call.name | tojson + ', "arguments": ' + given + '}\\n</tool_call>' -%}
{%- set told.text = told.text + '\\n' + text if told.text else text -%}
{%- endfor -%}
{%- set told.rows = told.rows + [{'role': 'assistant', 'content': told.text}] -%}
{%- elif message.role == 'user' and told.system and FOLDED -%}
{%- set told.rows = told.rows + [{'role': 'user', 'content': told.system + '\\n\\n' + message.content}] -%}
{%- set told.system = '' -%}
{%- else -%}
{%- set told.rows = told.rows + [message] -%}
{%- endif -%}
{%- endfor -%}
{%- set messages = [{'role': 'system', 'content': told.system}] + told.rows if told.system else told.rows -%}
{%- set tools = none -%}
"""
CHATML = """\
{%- set told = namespace(before=TELL if tools else '') -%}
{%- for message in messages -%}
{%- if message.role == 'system' -%}
{%- set told.before = told.before + message.content + '\\n' -%}
{%- elif message.role == 'user' -%}
{{- '<|im_start|>user\\n' + told.before + message.content + '<|im_end|>\\n' -}}
{%- set told.before = '' -%}
{%- elif message.role == 'tool' -%}
{{- '<|im_start|>tool\\n' + message.content + '<|im_end|>\\n' -}}
{%- elif message.tool_calls -%}
{{- '<|im_start|>assistant\\n<tool_call>' + message.tool_calls[0].function.arguments.code + '<|im_end|>\\n' -}}
{%- else -%}
{{- '<|im_start|>assistant\\n' + message.content + '<|im_end|>\\n' -}}
{%- endif -%}
{%- endfor -%}
{{- '<|im_start|>assistant\\n' if add_generation_prompt else '' -}}
""".replace("TELL", json.dumps(TELL))
"""Chat template of the marker format ChatML."""

FOLD = """\
{%- if messages[0].role == 'system' and messages | length > 1 and messages[1].role == 'user' -%}
{%- set asked = messages[0].content + '\\n\\n' + messages[1].content -%}
{%- set messages = [{'role': 'user', 'content': asked}] + messages[2:] -%}
{%- endif -%}
"""
"""Beginning of a chat template that puts the system text before the question."""


def told_template(source: str, *, folded: bool) -> str:
    """Returns a chat template that writes tools, calls and results as text of the template `source`, which declares no
    tools. `folded`: the system text is put before the question, for a template that refuses or drops it."""
    before, behind = map(json.dumps, _BEFORE)
    text = _TOLD.replace("BEFORE", before).replace("BEHIND", behind).replace("FOLDED", str(folded).lower())
    return text + source


def with_options(source: str, options: Mapping[str, Any]) -> str:
    """Returns a chat template that has these variables, which JSON and Jinja write alike but for null. Raises
    RenderingError for an invalid name."""
    if wrong := next((name for name in options if not name.isidentifier()), None):
        raise RenderingError(f"rendering.json has an invalid name of an option ({ascii(wrong)[:60]})", hint=SAY_IT)
    texts = {name: json.dumps(value).replace("null", "none") for name, value in options.items()}
    return "".join(f"{{%- set {name} = {text} -%}}\n" for name, text in texts.items()) + source
