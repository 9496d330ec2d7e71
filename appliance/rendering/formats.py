"""Lists the formats by name, and finds the one that a model has.

A model names its format in `rendering.json`. One of an earlier version has its markers in `dialect.json`; one with
neither is taken to have ChatML's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from appliance.rendering.markers import CHATML, MarkerRenderer, Markers
from appliance.rendering.renderer import NO_TOKENIZER, SAY_IT, Renderer, RenderingError

FILE = "rendering.json"
OLD_FILE = "dialect.json"
TOKENIZER = "tokenizer.json"
FILES = (TOKENIZER, FILE, OLD_FILE)
"""What of a model's files a renderer is made of."""

FORMATS: dict[str, Callable[[Tokenizer, Mapping[str, Any]], Renderer]] = {
    "markers": lambda tokenizer, settings: MarkerRenderer(tokenizer, Markers(**settings))
}
"""What makes a renderer of a folder's tokenizer and the settings beside the name."""


def load_renderer(files: Mapping[str, bytes]) -> Renderer:
    """Makes the renderer of a model's files. Raises RenderingError for an unknown format or a broken file."""
    settings = read_format(files)
    name = settings.pop("format", "markers")
    make = FORMATS.get(name) if isinstance(name, str) else None
    if make is None:
        raise RenderingError(
            f"the model has the format {name!r}, which is none of {', '.join(sorted(FORMATS))}", hint=SAY_IT
        )
    try:
        return make(load_tokenizer(files), settings)
    except TypeError as error:
        raise RenderingError(f"{FILE} does not fit the format {name!r}: {error}", hint=SAY_IT) from error


def load_tokenizer(files: Mapping[str, bytes]) -> Tokenizer:
    """Makes the tokenizer of a model's files. Raises RenderingError where there is none, or none that can be read."""
    if TOKENIZER not in files:
        raise RenderingError(f"the model has no {TOKENIZER}", hint=NO_TOKENIZER)
    try:
        return Tokenizer.from_buffer(files[TOKENIZER])
    except Exception as error:
        raise RenderingError(
            f"{TOKENIZER} cannot be read: {str(error)[:200]}", hint="copy the folder again: the file was changed or cut"
        ) from error


def read_format(files: Mapping[str, bytes]) -> dict[str, Any]:
    """Reads the name of the model's format and its settings. Raises RenderingError."""
    for name in (FILE, OLD_FILE):
        if name in files:
            return _table(name, files[name])
    return asdict(CHATML)


def require_known_template(files: Mapping[str, bytes]) -> None:
    """Raises RenderingError for a model that names no format and whose chat template is not ChatML's: it would be
    written to in a way that it has never seen."""
    if FILE in files or OLD_FILE in files:
        return
    template = files.get("chat_template.jinja", b"").decode(errors="replace")
    if not template and "tokenizer_config.json" in files:
        template = str(_table("tokenizer_config.json", files["tokenizer_config.json"]).get("chat_template") or "")
    if template and CHATML.end not in template:
        raise RenderingError(f"its chat template is not ChatML's, and it has no {FILE}", hint=SAY_IT)


def write_markers(folder: Path, markers: Markers) -> None:
    """Says in the folder that it has the format `markers`, with these."""
    (folder / FILE).write_text(json.dumps({"format": "markers", **asdict(markers)}, indent=1) + "\n")


def _table(name: str, content: bytes) -> dict[str, Any]:
    try:
        table = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise RenderingError(f"{name} is not JSON: {error}", hint="copy or write that file again") from error
    if not isinstance(table, dict):
        raise RenderingError(f"{name} holds no table", hint="copy or write that file again")
    return table
