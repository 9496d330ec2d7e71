"""The page on the ledger names what the file has, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

from appliance.ledger.tables import METADATA

PAGE = (Path(__file__).parents[3] / "docs" / "ledger.md").read_text()
ROWS = {row[0]: row[1] for row in re.findall(r"(?m)^\| `(\w+)` \|(.*)\|$", PAGE)}
SAID_ONCE = {"sequence", "payload", "key"}


def test_every_table_has_a_row_and_every_row_a_table() -> None:
    assert set(ROWS) == set(METADATA.tables)


def test_the_row_of_a_table_names_its_columns() -> None:
    for name, table in METADATA.tables.items():
        for column in set(table.columns.keys()) - SAID_ONCE:
            assert f"`{column}`" in ROWS[name], (name, column)
