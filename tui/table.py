"""What a table of the screen is: where its records come from, how a row looks, and how a record looks as a whole.

A new table is one module with a `Table` and one row in `tui.tables`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rich.text import Text

from appliance.client import ApiClient, Status


@dataclass(frozen=True)
class Row:
    key: str
    cells: tuple[Text, ...]


@dataclass(frozen=True, kw_only=True)
class Table:
    """The functions are pure but for `fetch`, and escape what a model, a guest or a stranger wrote."""

    name: str
    columns: tuple[tuple[str, int], ...]
    """Head and width in cells."""
    side: Literal["left", "right"]
    empty: str
    """What is said while there is no record."""
    fetch: Callable[[ApiClient], Sequence[Any]]
    """Its records from the control API, newest first. Raises ApiError."""
    row: Callable[[Any], Row]
    detail: Callable[[Any, Status], Text]
