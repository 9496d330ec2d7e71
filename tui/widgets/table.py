"""What a table of records is: how a row looks, and how a record looks as a whole.

The functions are pure, and escape what a model, a guest or a stranger wrote.
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
    """Head and width in cells."""
    empty: str
    """What is said while there is no record."""
    row: Callable[[Any], Row]
    detail: Callable[[Any, Status], Text]
