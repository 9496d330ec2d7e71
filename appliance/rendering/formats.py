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
from appliance.rendering.renderer import Renderer, RenderingError

FILE = "rendering.json"
OLD_FILE = "dialect.json"
FILES = ("tokenizer.json", FILE, OLD_FILE)
"""What of a model's files a renderer is made of."""


FORMATS: dict[str, Callable[[Tokenizer, Mapping[str, Any]], Renderer]] = {
    "markers": lambda tokenizer, settings: MarkerRenderer(tokenizer, Markers(**settings))
}
"""What makes a renderer of a folder's tokenizer and the settings beside the name."""


def load_renderer(files: Mapping[str, bytes]) -> Renderer:
    """Makes the renderer of a model's files. Raises RenderingError for an unknown format or a broken file."""
    settings = read_format(files)
    name = settings.pop("format", "markers")
    make = FORMATS.get(name)
    if make is None:
        raise RenderingError(f"the model has the format {name!r}, which is none of {', '.join(sorted(FORMATS))}")
    try:
        return make(Tokenizer.from_buffer(files["tokenizer.json"]), settings)
    except TypeError as error:
        raise RenderingError(f"{FILE} does not fit the format {name!r}: {error}") from error


def read_format(files: Mapping[str, bytes]) -> dict[str, Any]:
    """Reads the name of the model's format and its settings."""
    for name in (FILE, OLD_FILE):
        if name in files:
            settings = json.loads(files[name])
            if not isinstance(settings, dict):
                raise RenderingError(f"{name} holds no table")
            return settings
    return asdict(CHATML)


def write_markers(folder: Path, markers: Markers) -> None:
    """Says in the folder that it has the format `markers`, with these."""
    (folder / FILE).write_text(json.dumps({"format": "markers", **asdict(markers)}, indent=1) + "\n")
