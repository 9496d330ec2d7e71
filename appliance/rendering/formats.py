"""Lists the formats by name, and finds the one that a model folder has.

A folder names its format in `rendering.json`. One of an earlier version has its markers in `dialect.json`; a folder
with neither is taken to have ChatML's.
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


FORMATS: dict[str, Callable[[Tokenizer, Mapping[str, Any]], Renderer]] = {
    "markers": lambda tokenizer, settings: MarkerRenderer(tokenizer, Markers(**settings))
}
"""What makes a renderer of a folder's tokenizer and the settings beside the name."""


def load_renderer(folder: Path) -> Renderer:
    """Makes the renderer of a model folder. Raises RenderingError for an unknown format or a broken file."""
    settings = read_format(folder)
    name = settings.pop("format", "markers")
    make = FORMATS.get(name)
    if make is None:
        raise RenderingError(f"{folder} has the format {name!r}, which is none of {', '.join(sorted(FORMATS))}")
    try:
        return make(Tokenizer.from_file(str(folder / "tokenizer.json")), settings)
    except TypeError as error:
        raise RenderingError(f"{folder / FILE} does not fit the format {name!r}: {error}") from error


def read_format(folder: Path) -> dict[str, Any]:
    """Reads the name of the folder's format and its settings."""
    for name in (FILE, OLD_FILE):
        if (folder / name).exists():
            settings = json.loads((folder / name).read_text())
            if not isinstance(settings, dict):
                raise RenderingError(f"{folder / name} holds no table")
            return settings
    return asdict(CHATML)


def write_markers(folder: Path, markers: Markers) -> None:
    """Says in the folder that it has the format `markers`, with these."""
    (folder / FILE).write_text(json.dumps({"format": "markers", **asdict(markers)}, indent=1) + "\n")
