"""Program that reads a Parquet file and prints its rows, one JSON object a line, and `true` at the end.

  python -I -m appliance.cli.curriculum.parquet_rows FILE MEMORY

A few kilobytes may decompress to any size, and neither the footer nor a page's header has to tell the truth about it:
only limits of a process bound what its decoder takes. If the file cannot be read, the last line is the reason.
"""

from __future__ import annotations

import json
import resource
import sys
from datetime import date, time
from decimal import Decimal
from math import isfinite
from typing import Any

MEMORY = 2 << 30
"""Writable bytes of the process: the pages of one row group's columns are in memory at the same time."""
SECONDS = 600
"""CPU seconds."""
BATCH_ROWS = 64
"""Rows in memory at the same time."""


def main(path: str, memory: int) -> None:
    """Prints the rows of a Parquet file. Raises ImportError if the reader is not installed."""
    from arro3.io import read_parquet

    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    try:
        for batch in read_parquet(path, batch_size=BATCH_ROWS):
            names = batch.column_names
            if len(set(names)) < len(names):
                raise ValueError("two of its columns have one name")
            columns = [batch.column(name) for name in names]
            for at in range(batch.num_rows):
                row = {name: _plain(column[at].as_py()) for name, column in zip(names, columns, strict=True)}
                sys.stdout.buffer.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
        end: object = True
    except BaseException as error:  # noqa: BLE001 - a decoder panic is not an Exception
        end = str(error)[:300]
    sys.stdout.buffer.write(json.dumps(end).encode() + b"\n")


def _plain(value: Any) -> Any:
    """Returns a cell as JSON has it: dates and decimals are text; bytes and numbers that are not finite are None."""
    if isinstance(value, dict):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return f"{value:f}"
    return value if isinstance(value, str | int) or (isinstance(value, float) and isfinite(value)) else None


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
