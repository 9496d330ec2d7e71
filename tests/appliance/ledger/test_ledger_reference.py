"""The reference page of the ledger comes from its tables."""

from __future__ import annotations

import re

from appliance.cli.show.docs import ledger_page
from appliance.ledger.tables import METADATA


def test_the_page_has_every_table_with_every_column() -> None:
    sections = re.findall(r"(?ms)^## (\w+)\n(.*?)(?=^## |\Z)", ledger_page())
    columns = {name: set(re.findall(r"(?m)^\| `(\w+)` \|", body)) for name, body in sections}
    assert columns == {name: set(table.columns.keys()) for name, table in METADATA.tables.items()}
