"""The tasksets that a command may name."""

from __future__ import annotations

from pathlib import Path

import typer

from curriculum.catalog import Catalog
from curriculum.registry import BUILT_IN


def catalog_of(context: typer.Context, data: Path | None) -> Catalog:
    """Those of the code."""
    return BUILT_IN
