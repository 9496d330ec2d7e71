"""Two sessions of one interpreter stay apart under snippets that know re-entrancy: the short form of the long search.

`python benchmarks/reentrancy.py` is the long one: ten million snippets, and what is compared.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "reentrancy.py"


def searched(folder: Path, *arguments: str) -> tuple[int, dict[str, Any], str]:
    told = folder / "told.json"
    command = [sys.executable, "-P", str(SCRIPT), "--json", str(told), *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    return ended.returncode, json.loads(told.read_text())["figures"], ended.stdout


def test_snippets_that_are_decided_shared_neither_read_nor_change_nor_crash_another_session(tmp_path: Path) -> None:
    code, told, output = searched(tmp_path, "--snippets", "3000", "--size", "1500", "--first", "6")
    assert (code, told["findings"]) == (0, 0), output
    assert told["drawn"] == 3_000
    assert told["ran"] >= 0.3 * told["drawn"]


def test_the_search_finds_the_door_that_was_closed(tmp_path: Path) -> None:
    code, told, output = searched(tmp_path, "--snippets", "3000", "--size", "1000", "--reopen", "accumulate")
    assert code == 1
    assert told["findings"] > 0
    assert "accumulate" in output


def test_a_search_that_was_stopped_goes_on_where_it_was(tmp_path: Path) -> None:
    progress = tmp_path / "progress.jsonl"
    small = ("--size", "200", "--progress", str(progress))
    assert searched(tmp_path, "--snippets", "200", *small)[1]["batches"] == [0, 0]
    first = progress.read_text()
    assert searched(tmp_path, "--snippets", "400", *small)[1]["batches"] == [0, 1]
    assert progress.read_text().startswith(first)
    assert progress.read_text().count("\n") == 2
