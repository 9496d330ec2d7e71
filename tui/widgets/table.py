"""Definition of a record table: columns, row layout and detail text.

The functions are pure and escape text written by a model, a guest or a stranger.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.text import Text

if TYPE_CHECKING:  # loaded with the first answer
    from appliance.client import Status


@dataclass(frozen=True)
class Row:
    key: str
    cells: tuple[Text, ...]


@dataclass(frozen=True, kw_only=True)
class Table:
    name: str
    columns: tuple[tuple[str, int], ...]
    """Heading and width in cells."""
    empty: str
    """Text shown without records."""
    row: Callable[[Any], Row]
    detail: Callable[[Any, Status], Text]
