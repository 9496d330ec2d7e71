"""Renders a model's own chat template, as transformers does, in Jinja's sandbox.

What always holds: no code of a model's folder runs. The template sees its messages, its tools and nothing else; it
reads no file and changes nothing that it is given. One that never ends is stopped by who has put a limit on the process
(`probe` has), for it is tried there before a night begins from the model. The day that it may ask for is always the
same, so that a conversation that is written again is the same tokens.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, NoReturn

from jinja2 import Template, TemplateError
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

from appliance.rendering.harmony import FIXED_DATE
from appliance.rendering.renderer import SAY_IT, RenderingError

_GENERATION = re.compile(r"\{%(-?)\s*(end)?generation\s*(-?)%\}")
"""Marks of what the model says, for training by transformers; they write nothing."""


class RefusedByTemplate(RenderingError):
    """Says that a template does not write such a conversation."""


class ChatTemplate:
    """Is a compiled template, or two: `toolless` is for conversations without tools, where that is another. `special`
    are the model's tokens by name (`bos_token`), `options` what else it gets."""

    def __init__(self, source: str, special: Mapping[str, str], options: Mapping[str, Any], toolless: str = "") -> None:
        """Raises RenderingError where it is no Jinja template."""
        self.source = source
        self._given = {**special, **options}
        self._template = _compiled(source)
        self._toolless = _compiled(toolless) if toolless and toolless != source else self._template

    def render(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]], *, open_turn: bool
    ) -> str:
        """Returns the conversation as text, with the beginning of a turn of the model behind it if `open_turn`.

        Raises RefusedByTemplate where the template does, and RenderingError where it breaks."""
        try:
            template = self._template if tools else self._toolless
            return template.render(
                **self._given, messages=list(messages), tools=list(tools) or None, add_generation_prompt=open_turn
            )
        except RefusedByTemplate:
            raise
        except Exception as error:  # a template is a program: it breaks in every way that one can
            why = str(error)[:200] or type(error).__name__
            raise RenderingError(f"its chat template breaks: {why}", hint=SAY_IT) from error


def _compiled(source: str) -> Template:
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
    environment.filters["tojson"] = _as_json
    environment.globals["raise_exception"] = _refuse
    if not re.search(r"strftime_now\s+is\s+(not\s+)?defined", source):
        environment.globals["strftime_now"] = _today
    try:
        return environment.from_string(_GENERATION.sub(_as_condition, source))
    except TemplateError as error:
        raise RenderingError(f"its chat template cannot be read: {error.message}", hint=SAY_IT) from error


def _as_json(value: Any, ensure_ascii: bool = False, indent: int | None = None, **options: Any) -> str:
    """Jinja's own filter escapes for HTML, which no template means; what it takes, and in which order, is as in
    transformers."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, **options)


def _refuse(message: object) -> NoReturn:
    raise RefusedByTemplate(f"its chat template says: {str(message)[:200]}", hint=SAY_IT)


def _today(pattern: str) -> str:
    return date.fromisoformat(FIXED_DATE).strftime(pattern)


def _as_condition(found: re.Match[str]) -> str:
    return f"{{%{found[1]} {'endif' if found[2] else 'if true'} {found[3]}%}}"
