"""Chat formats by name, and detection of a model's format.

In this order: `rendering.json` in the model's folder names it; `dialect.json` of an earlier version has markers; a
family writes exactly what the chat template writes; the template itself passes the proof. A model with ChatML's tokens
and no tools in its template, or no template, gets ChatML with our call syntax. Anything else is refused, never guessed,
and the renderer's `name` says how it was found. `exported` writes a format as a chat template, for other programs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from appliance.rendering.guarded import GuardedTokenizer, load_tokenizer
from appliance.rendering.markers import CHATML, MarkerRenderer, Markers
from appliance.rendering.model_files import FILES, FORMAT, OLD_FORMAT, TEMPLATE, chat_templates, json_table
from appliance.rendering.renderer import SAY_IT, Renderer, RenderingError

__all__ = ["FAMILY_NAMES", "FILES", "FORMAT", "FORMATS", "load_renderer", "load_tokenizer", "write_markers"]

FAMILY_NAMES = (
    *("qwen3", "qwen3.5", "qwen3.6", "qwen3.8", "llama-3", "gpt-oss", "glm-4.5", "glm-5", "glm-5.1", "glm-5.3"),
    *("kimi-k2", "kimi-k2.5", "gemma4", "deepseek-v3", "deepseek-v4", "minimax-m2", "nemotron-3"),
    *("nemotron-3.5", "hy3"),
)
"""Chat model families supported by the library `renderers`."""

MakeRenderer = Callable[[Mapping[str, bytes], dict[str, Any]], Renderer]


def _markers(files: Mapping[str, bytes], settings: dict[str, Any]) -> Renderer:
    return MarkerRenderer(load_tokenizer(files), Markers(**settings))


def _chatml(files: Mapping[str, bytes], settings: dict[str, Any]) -> Renderer:
    tokenizer = GuardedTokenizer(files)
    return MarkerRenderer(tokenizer.whole, CHATML, "chatml (named)", tokenizer.ends, chat=True, **settings)


def _template(files: Mapping[str, bytes], settings: dict[str, Any]) -> Renderer:
    from appliance.rendering.jinja import ChatTemplate
    from appliance.rendering.template import TemplateRenderer

    source, toolless = chat_templates(files)
    if not source:
        raise RenderingError("rendering.json names the chat template, but the model has none", hint=SAY_IT)
    tokenizer = GuardedTokenizer(files)
    return TemplateRenderer(tokenizer, ChatTemplate(source, tokenizer.special, settings, toolless))


def _told(files: Mapping[str, bytes], settings: dict[str, Any]) -> Renderer:
    from appliance.rendering.jinja import ChatTemplate
    from appliance.rendering.template import TemplateRenderer
    from appliance.rendering.told import BARE_CHATML, told_template, with_options

    tokenizer = GuardedTokenizer(files)
    source = chat_templates(files)[1] or (BARE_CHATML if _has_chatml(tokenizer.whole) else "")
    if not source:
        raise RenderingError("the format told needs a chat template, but the model has none", hint=SAY_IT)
    fault: RenderingError | None = None
    for folded in (False, True):
        try:
            template = ChatTemplate(told_template(with_options(source, settings), folded=folded), tokenizer.special, {})
            made = TemplateRenderer(tokenizer, template, "told: tools are described in its system text")
        except RenderingError as error:
            fault = error
            continue
        if made.calls_tools:
            return made
    raise fault or RenderingError("its chat template drops the description of tools", hint=SAY_IT)


def _family(name: str) -> MakeRenderer:
    def make(files: Mapping[str, bytes], settings: dict[str, Any]) -> Renderer:
        from appliance.rendering.chat import ChatRenderer

        return ChatRenderer(GuardedTokenizer(files), name, settings)

    return make


FORMATS: dict[str, MakeRenderer] = {
    "markers": _markers,
    "chatml": _chatml,
    "template": _template,
    "told": _told,
    **{name: _family(name) for name in FAMILY_NAMES},
}
"""Constructors of renderers from a model's files and settings, by format name."""


def load_renderer(files: Mapping[str, bytes]) -> Renderer:
    """Creates the renderer for the chat format of a model's files. Raises RenderingError for an unknown format or a
    damaged file."""
    if FORMAT not in files and OLD_FORMAT not in files:
        return _found(files)
    name = FORMAT if FORMAT in files else OLD_FORMAT
    settings = json_table(files, name)
    chosen = settings.pop("format", "markers")
    make = FORMATS.get(chosen) if isinstance(chosen, str) else None
    if make is None:
        raise RenderingError(f"unknown format {chosen!r} of the model: use one of {', '.join(FORMATS)}", hint=SAY_IT)
    try:
        return make(files, settings)
    except TypeError as error:
        raise RenderingError(f"{name} does not fit the format {chosen!r}: {error}", hint=SAY_IT) from error


def write_markers(folder: Path, markers: Markers) -> None:
    """Writes a rendering.json with the format `markers` to the folder."""
    (folder / FORMAT).write_text(json.dumps({"format": "markers", **asdict(markers)}, indent=1) + "\n")


def _found(files: Mapping[str, bytes]) -> Renderer:
    """Creates the renderer of a model whose files name no chat format, by detecting it."""
    tokenizer = GuardedTokenizer(files)
    plain = tokenizer.whole
    source, toolless = chat_templates(files)
    if not source:
        if _has_chatml(plain):
            name = "ChatML (found: its tokenizer has ChatML's end of a turn, and it has no chat template)"
            return MarkerRenderer(plain, CHATML, name, tokenizer.ends, chat=True)
        raise RenderingError(f"the model has no chat template and no {FORMAT}", hint=SAY_IT)

    from appliance.rendering.families import find_family
    from appliance.rendering.jinja import ChatTemplate
    from appliance.rendering.template import TemplateRenderer

    template = ChatTemplate(source, tokenizer.special, {}, toolless)
    family = find_family(tokenizer, template, files)
    if family is not None:
        return family
    made = TemplateRenderer(tokenizer, template, "found: turns extend their prefix")
    if not made.calls_tools and _has_chatml(plain):
        name = "ChatML (found: its template writes it, and declares no tools)"
        chatml = MarkerRenderer(plain, CHATML, name, tokenizer.ends, chat=True)
        whole, ours = (one.text(one.question("1 + 1?")) for one in (made, chatml))
        if whole.endswith(ours):
            chatml.omits = whole.removesuffix(ours)
            return chatml
    return made


def _has_chatml(tokenizer: Tokenizer) -> bool:
    return tokenizer.token_to_id(CHATML.end) is not None


def exported(files: Mapping[str, bytes]) -> tuple[dict[str, bytes | None], str]:
    """Returns the files that make a model's chat template write its format exactly, None for one to leave out, and the
    reason if no template can; both are empty if its own does. Raises RenderingError as `load_renderer`."""
    from appliance.rendering.chat import ChatRenderer
    from appliance.rendering.families import writes_alike
    from appliance.rendering.jinja import ChatTemplate
    from appliance.rendering.template import TemplateRenderer
    from appliance.rendering.told import CHATML as CHATML_TEMPLATE
    from appliance.rendering.told import FOLD, with_options

    renderer = load_renderer(files)
    own, toolless = chat_templates(files)
    if isinstance(renderer, MarkerRenderer) and renderer.chat:
        named = json.dumps({"format": "chatml"}).encode() + b"\n"
        return {TEMPLATE: CHATML_TEMPLATE.encode(), FORMAT: named, OLD_FORMAT: None}, ""
    if isinstance(renderer, TemplateRenderer):
        settings = json_table(files, FORMAT) if FORMAT in files else {}
        source = renderer.source
        if settings.pop("format", "") == "template":
            source = with_options(source, settings)
        source = source if renderer.briefs else FOLD + source
        return ({TEMPLATE: source.encode(), FORMAT: None}, "") if source != own else ({}, "")
    if isinstance(renderer, ChatRenderer):
        tokenizer = GuardedTokenizer(files)
        if not own or not writes_alike(renderer, tokenizer, ChatTemplate(own, tokenizer.special, {}, toolless)):
            return {}, f"its chat template does not write the format {renderer.name}: other programs need that format"
    return {}, ""
