"""Renders a model's chat template in Jinja's sandbox, as transformers does.

Invariants: no code of a model's folder runs. The template sees only its messages and tools; it reads no file and cannot
change its input. An endless template is stopped by a process limit (set by `probe`), where it is tested before a cycle
starts from the model. The date is fixed, so that a rewritten conversation has equal tokens.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, NoReturn

from jinja2 import Template, TemplateError, Undefined
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

from appliance.rendering.harmony import FIXED_DATE
from appliance.rendering.renderer import SAY_IT, RenderingError

_GENERATION = re.compile(r"\{%(-?)\s*(end)?generation\s*(-?)%\}")
"""Tags around model output, for training with transformers; they write nothing."""


class RefusedByTemplate(RenderingError):
    """The chat template refuses this conversation."""


class ChatTemplate:
    """Compiled chat template, or two: `toolless` is for conversations without tools, if different. `special` are the
    model's tokens by name (`bos_token`), `options` more variables."""

    def __init__(self, source: str, special: Mapping[str, str], options: Mapping[str, Any], toolless: str = "") -> None:
        """Compiles a model's chat template. Raises RenderingError for an invalid Jinja template."""
        self.source = source
        self._given = {**special, **options}
        self._template = _compiled(source)
        self._toolless = _compiled(toolless) if toolless and toolless != source else self._template

    def render(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]], *, open_turn: bool
    ) -> str:
        """Renders a conversation as text with the chat template, followed by the start of a model turn if `open_turn`.
        Raises RefusedByTemplate if the template refuses, and RenderingError if it fails."""
        try:
            template = self._template if tools else self._toolless
            return template.render(
                **self._given, messages=list(messages), tools=list(tools) or _NO_TOOLS, add_generation_prompt=open_turn
            )
        except RefusedByTemplate:
            raise
        except Exception as error:  # a template is a program and may raise anything
            why = str(error)[:200] or type(error).__name__
            raise RenderingError(f"its chat template failed: {why}", hint=SAY_IT) from error


class _NoTools(Undefined):
    """The tools of a conversation without any: templates ask `tools is defined`, `is not none` or `if tools`, and each
    must answer that there are none."""

    def __eq__(self, other: object) -> bool:
        return other is None or super().__eq__(other)

    __hash__ = Undefined.__hash__


_NO_TOOLS = _NoTools(name="tools")


def _compiled(source: str) -> Template:
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
    environment.filters["tojson"] = _as_json
    environment.tests["none"] = lambda value: value is None or value is _NO_TOOLS
    environment.globals["raise_exception"] = _refuse
    if not re.search(r"strftime_now\s+is\s+(not\s+)?defined", source):
        environment.globals["strftime_now"] = _today
    try:
        return environment.from_string(_GENERATION.sub(_as_condition, source))
    except TemplateError as error:
        raise RenderingError(f"its chat template cannot be read: {error.message}", hint=SAY_IT) from error


def _as_json(value: Any, ensure_ascii: bool = False, indent: int | None = None, **options: Any) -> str:
    """Encodes a value as JSON for a chat template, with the arguments of transformers; Jinja's own filter escapes for
    HTML, which templates do not expect."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, **options)


def _refuse(message: object) -> NoReturn:
    raise RefusedByTemplate(f"its chat template says: {str(message)[:200]}", hint=SAY_IT)


def _today(pattern: str) -> str:
    return date.fromisoformat(FIXED_DATE).strftime(pattern)


def _as_condition(found: re.Match[str]) -> str:
    return f"{{%{found[1]} {'endif' if found[2] else 'if true'} {found[3]}%}}"
